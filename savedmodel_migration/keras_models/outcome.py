"""The outcome of one model of the cache: rebuilt, and compared with the answers of its release.

Runs where Keras 3 is.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from savedmodel_common.compare import FLOATS, Tolerance, compare_tensor, numbers
from savedmodel_common.tensors import Tensor, from_numpy
from savedmodel_migration.keras_models.material import Made

TOLERANCE = 1e-5  # of the issue: another release and another backend round otherwise
STEP = 1e-4  # of the largest entry of a weight: another release adds up in another order
FLOOR = 0.1  # what is still counted as the largest entry of a small weight
HALF = 2e-3  # of models that compute in float16
SAME_BITS = {
    "optimizer": "without the graph optimizer",
    "kernel": "with the normalization of Keras 2",
    "both": "without the graph optimizer and with the normalization of Keras 2",
}


def examine(made: Made, target: Path | None = None) -> dict[str, Any]:
    """Rebuild a model and compare it; an equal or close one is saved as ``target``.

    Returns:
      ``state``: ``equal`` (each answer has the bits of the original in this TensorFlow), ``close``,
        ``refused``, ``answers``, ``weights``, ``step`` (what differs first) or ``error``; ``why``;
        for the first two ``off``, the largest difference from the original, and ``release``, that
        from what the release itself answered, both as parts of the largest entry; ``file``, if the
        functions in the file themselves answer otherwise than the release did, says how; ``bits``,
        of other bits than those of the original, what gives them the same: an entry of
        ``SAME_BITS`` or ``""``.
    """
    import keras
    import tensorflow as tf

    import reference_impl
    from savedmodel_migration.keras_2_to_3.loaded import Loaded
    from savedmodel_migration.keras_2_to_3.reading.saved import NotKeras
    from savedmodel_migration.keras_2_to_3.rebuild import rebuild
    from savedmodel_migration.keras_2_to_3.refused import Refused

    keras.utils.clear_session(free_memory=True)
    try:
        original = Loaded(tf, reference_impl, str(made.model))
        model = rebuild(made.model, trust_lambda=True, tables=original.rows).model
        return differences(made, original.model(), model, target)
    except (Refused, NotKeras) as error:
        return {"state": "refused", "why": str(error)}
    except Exception as error:
        return {"state": "error", "why": f"{type(error).__name__}: {error}"[:500]}


def differences(made: Made, original: Any, model: Any, target: Path | None) -> dict[str, Any]:
    """Return the findings about a rebuilt model, as ``examine`` returns them."""

    order = match(_trained(made), [np.asarray(weight) for weight in model.weights])
    if isinstance(order, str):
        return {"state": "weights", "why": order}
    after, recorded = answers(made, model), made.arrays("io.npz", "y")
    if why := compare(recorded, after, tolerance_of(made)):
        return {"state": "answers", "why": why}
    before = _original(original, inputs(made, model))
    unlike = before if isinstance(before, str) else compare(before, after, tolerance_of(made))
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        model.save(target)
    found: dict[str, Any] = {"release": distance(recorded, after)}
    if unlike:
        found["file"] = unlike
    else:
        found["off"] = distance(before, after)
        if not same_bits(before, after):
            found["bits"] = _when_equal(made, original, model)
    if (made.folder / "step.npz").exists() and (why := _step(made, model, order)):
        return {"state": "step", "why": why, **found}
    return {
        "state": "equal" if not unlike and same_bits(before, after) else "close",
        "why": "",
        **found,
    }


def _original(model: Any, given: Any) -> list[Any] | str:
    """The answers of what ``reference_impl`` loaded, or why it gives none."""
    import keras

    try:
        return [np.asarray(item) for item in keras.tree.flatten(model(given, training=False))]
    except Exception as error:  # a function of an old release that this TensorFlow cannot run
        return f"{type(error).__name__}: {error}".split("\n")[0][:300]


def _when_equal(made: Made, original: Any, model: Any) -> str:
    """Return the first of ``SAME_BITS`` under which the rebuilt model has the answers of the
    original, ``""`` if none.
    """
    from savedmodel_migration.keras_models.kernels import (
        normalization_of_keras_2,
        without_graph_optimizer,
    )

    given = inputs(made, model)
    for name, contexts in (
        ("optimizer", (without_graph_optimizer,)),
        ("kernel", (normalization_of_keras_2,)),
        ("both", (without_graph_optimizer, normalization_of_keras_2)),
    ):
        with contextlib.ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context())
            before = _original(original, given)
            if not isinstance(before, str) and same_bits(before, answers(made, model)):
                return name
    return ""


def _trained(made: Made) -> list[Any]:
    """The recorded weights, without those of preprocessing: Keras 3 has them in the configuration,
    and the answers tell.
    """
    adapted = ("Discretization/", "IntegerLookup/", "StringLookup/", "TextVectorization/")
    return [] if made.name.startswith(adapted) else made.arrays("weights.npz", "w")


def match(old: Sequence[Any], new: Sequence[Any]) -> list[int] | str:
    """The number of the old weight of each new one, by their bits; words where an old one has no
    new one.

    Keras 3 may have weights that Keras 2 had not (the state of a random generator); they get -1.
    """
    left: dict[tuple[Any, ...], list[int]] = {}
    for number, array in enumerate(old):
        left.setdefault(_bits(array), []).append(number)
    order = []
    for array in new:
        numbers = left.get(_bits(array))
        order.append(numbers.pop(0) if numbers else -1)
    not_taken = itertools.chain.from_iterable(left.values())
    missing = [number for number in not_taken if old[number].dtype.kind == "f"]
    if missing:
        return (
            f"{len(missing)} of {len(old)} weights are not in the new model: shapes"
            f" {[old[n].shape for n in missing][:4]}"
        )
    return order


def _bits(array: Any) -> tuple[Any, ...]:
    return array.shape, array.tobytes()


def inputs(made: Made, model: Any) -> Any:
    """The recorded inputs as the model takes them."""
    import keras

    arrays = [
        array.tolist() if array.dtype == object else array for array in made.arrays("io.npz", "x")
    ]
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        dtypes = [
            tensor.dtype
            for tensor in keras.tree.flatten(getattr(model, "_inputs_struct", model.inputs))
        ]
        arrays = [
            tf.cast(array, dtype) if dtype != "string" else tf.constant(array)
            for array, dtype in zip(arrays, dtypes)
        ]
    if isinstance(getattr(model, "_inputs_struct", None), Mapping):
        return dict(zip(made.facts["inputs"], arrays))
    return arrays[0] if len(arrays) == 1 else arrays


def answers(made: Made, model: Any) -> list[Any]:
    """The answers of a model to the recorded inputs, as arrays; on TensorFlow those of a graph, as
    in ``predict``.
    """
    import keras

    given = inputs(made, model)
    if keras.backend.backend() != "tensorflow":
        return [
            np.asarray(keras.ops.convert_to_numpy(item))
            for item in keras.tree.flatten(model(given, training=False))
        ]
    import tensorflow as tf

    found = tf.function(lambda nest: model(nest, training=False))(given)
    return [
        np.asarray(item.numpy() if hasattr(item, "numpy") else item)
        for item in keras.tree.flatten(found)
    ]


def tolerance_of(made: Made) -> float:
    """Of the predictions of a model."""
    return HALF if "mixed" in made.name else TOLERANCE


def compare(old: Sequence[Any], new: Sequence[Any], tolerance: float) -> str:
    """Words for the first answer that differs, else ``""``."""
    if len(old) != len(new):
        return f"{len(new)} outputs in place of {len(old)}"
    for number, (one, other) in enumerate(zip(old, new)):
        if why := difference(one, other, tolerance):
            return f"output {number}: {why}"
    return ""


def same_bits(old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Whether all answers are the same. Integers of another width are, if their values are."""
    return all(
        (
            bool(np.all(one == other))
            if one.dtype.kind in "OSUiub"
            else one.tobytes() == other.tobytes()
        )
        for one, other in zip(old, new)
    )


def distance(old: Sequence[Any], new: Sequence[Any]) -> float:
    """The largest difference of two lists of answers, as a part of the largest entry of its
    array.
    """
    parts = [0.0]
    for one, other in zip(old, new):
        if one.dtype.kind == "f" and one.size:
            one, other = one.astype("float64"), other.astype("float64")
            parts.append(
                float(np.nanmax(np.abs(other - one)) / max(float(np.nanmax(np.abs(one))), 1e-30))
            )
    return float(f"{max(parts):.2g}")


def difference(old: Any, new: Any, tolerance: float) -> str:
    """Words for how two arrays differ, else ``""``. Integers of another width are the same.

    ``tolerance`` is a part of an entry, and of the largest entry of ``old`` where that is above 1.
    """
    one, other = _as_tensor(old), _as_tensor(new)
    largest = np.max(np.abs(numbers(one)), initial=0.0) if one.dtype in FLOATS else 0.0
    allowed = Tolerance(tolerance, tolerance * max(1.0, float(largest)))
    found = compare_tensor("", one, other, allowed)
    return found.message if found else ""


def _as_tensor(array: Any) -> Tensor:
    """Return an answer as a tensor, every integer as one of 64 bits."""
    return from_numpy(array.astype(np.int64) if array.dtype.kind in "iu" else array)


class _Recorded:
    """A weight of the release after its step."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def numpy(self) -> Any:
        return self._array


def _step(made: Made, model: Any, order: Sequence[int]) -> str:
    from savedmodel_migration.keras_2_to_3.prove import after_a_step, moving_variances

    if getattr(model, "optimizer", None) is None:
        return "the new model is not compiled"
    targets = made.arrays("step.npz", "t")
    given: Any = targets[0] if len(targets) == 1 else targets
    if isinstance(getattr(model, "_outputs_struct", None), Mapping):
        given = dict(zip(sorted(model.output), targets))
    after = made.arrays("step.npz", "w")
    pairs = [
        (weight.path, _Recorded(after[number]), weight)
        for weight, number in zip(model.weights, order)
        if number >= 0
    ]
    moving = moving_variances(model, pairs)
    loss = float(np.ravel(model.train_on_batch(inputs(made, model), given))[0])
    recorded = made.facts["loss"]
    tolerance = HALF if "mixed" in made.name else STEP
    if not np.isclose(loss, recorded, rtol=1e-4, atol=tolerance):
        return f"loss {loss:.7g} in place of {recorded:.7g}"
    largest = {path: float(np.max(np.abs(old.numpy()), initial=0.0)) for path, old, _ in pairs}
    _, state, why = after_a_step(pairs, moving, lambda path: tolerance * max(largest[path], FLOOR))
    return f"after a step: {why}" if state == "differs" else ""
