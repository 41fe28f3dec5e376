"""What becomes of one model of the cache: rebuilt, and equal to what its own release answered. Runs where Keras 3 is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_models.material import Made

TOLERANCE = 1e-5  # of the issue: another release and another backend round otherwise
HALF = 2e-3  # of models that compute in float16
STEP = 2e-5  # a training step adds up more roundings


def examine(made: Made, target: Path | None = None) -> dict[str, Any]:
    """Rebuild a model and compare it. Returns ``{"state": ..., "why": ...}``; saves an equal one as ``target``.

    States: ``equal``, ``refused`` (with the reason), ``predictions``, ``weights``, ``step`` (what differs first), ``error``.
    """
    import keras

    from compat_matrix.keras_migration.reading.saved import NotKeras
    from compat_matrix.keras_migration.rebuild import rebuild
    from compat_matrix.keras_migration.refused import Refused

    keras.utils.clear_session(free_memory=True)
    try:
        model = rebuild(made.model, trust_lambda=True, tables=_tables(made)).model
    except (Refused, NotKeras) as error:
        return {"state": "refused", "why": str(error)}
    except Exception as error:
        return {"state": "error", "why": f"{type(error).__name__}: {error}"[:500]}
    try:
        why = differences(made, model, target)
    except Exception as error:
        return {"state": "error", "why": f"{type(error).__name__}: {error}"[:500]}
    return {"state": why[0], "why": why[1]} if why else {"state": "equal", "why": ""}


def _tables(made: Made) -> Any:
    import tensorflow as tf

    import reference_impl
    from compat_matrix.workers.keras_worker import Tables

    return Tables(tf, reference_impl, str(made.model))


def differences(made: Made, model: Any, target: Path | None) -> tuple[str, str] | None:
    """``(state, words)`` of the first difference; None where there is none, and then the model is saved."""
    order = match(made.arrays("weights.npz", "w"), [np.asarray(weight) for weight in model.weights])
    if isinstance(order, str):
        return "weights", order
    if why := compare_answers(made, model):
        return "predictions", why
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        model.save(target)
    if (made.folder / "step.npz").exists() and (why := _step(made, model, order)):
        return "step", why
    return None


def match(old: Sequence[Any], new: Sequence[Any]) -> list[int] | str:
    """The number of the old weight of each new one, by their bits; words where an old one has no new one.

    Keras 3 may have weights that Keras 2 had not (the state of a random generator); they get -1.
    """
    left: dict[tuple[Any, ...], list[int]] = {}
    for number, array in enumerate(old):
        left.setdefault(_bits(array), []).append(number)
    order = []
    for array in new:
        numbers = left.get(_bits(array))
        order.append(numbers.pop(0) if numbers else -1)
    missing = [number for numbers in left.values() for number in numbers if old[number].dtype.kind == "f"]
    if missing:
        return f"{len(missing)} of {len(old)} weights are not in the new model: shapes {[old[n].shape for n in missing][:4]}"
    return order


def _bits(array: Any) -> tuple[Any, ...]:
    return array.shape, array.tobytes()


def inputs(made: Made, model: Any) -> Any:
    """The recorded inputs as the model takes them."""
    import keras

    arrays = [array.tolist() if array.dtype == object else array for array in made.arrays("io.npz", "x")]
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        arrays = [tf.constant(array) for array in arrays]
    if isinstance(getattr(model, "_inputs_struct", None), Mapping):
        return dict(zip(made.facts["inputs"], arrays))
    return arrays[0] if len(arrays) == 1 else arrays


def compare_answers(made: Made, model: Any) -> str:
    """Words for the first answer that differs from the recorded one, else ``""``."""
    import keras

    answers = keras.tree.flatten(model(inputs(made, model), training=False))
    wanted = made.arrays("io.npz", "y")
    if len(answers) != len(wanted):
        return f"{len(answers)} outputs in place of {len(wanted)}"
    half = "mixed" in made.name
    for number, (answer, expected) in enumerate(zip(answers, wanted)):
        got = (
            answer.numpy()
            if hasattr(answer, "numpy") and keras.backend.backend() == "tensorflow"
            else keras.ops.convert_to_numpy(answer)
        )
        if why := difference(expected, got, HALF if half else TOLERANCE):
            return f"output {number}: {why}"
    return ""


def difference(old: Any, new: Any, tolerance: float) -> str:
    """Words for how two arrays differ, else ``""``. Integers of another width are the same."""
    if old.shape != new.shape:
        return f"shape {new.shape} in place of {old.shape}"
    if old.dtype.kind in "OSU":
        return "" if [str(a) for a in old.ravel()] == [str(a) for a in new.ravel()] else "other strings"
    if not np.allclose(
        new, old, rtol=tolerance, atol=tolerance * max(1.0, float(np.max(np.abs(old), initial=0.0))), equal_nan=True
    ):
        return f"differs by {np.max(np.abs(new.astype('float64') - old)):.2g}"
    return ""


def _step(made: Made, model: Any, order: Sequence[int]) -> str:
    if getattr(model, "optimizer", None) is None:
        return "the new model is not compiled"
    targets = made.arrays("step.npz", "t")
    given: Any = targets[0] if len(targets) == 1 else targets
    if isinstance(getattr(model, "_outputs_struct", None), Mapping):
        given = dict(zip(sorted(model.output), targets))
    loss = float(np.ravel(model.train_on_batch(inputs(made, model), given))[0])
    recorded = made.facts["loss"]
    tolerance = HALF if "mixed" in made.name else STEP
    if not np.isclose(loss, recorded, rtol=1e-4, atol=tolerance):
        return f"loss {loss:.7g} in place of {recorded:.7g}"
    after = made.arrays("step.npz", "w")
    for weight, number in zip(model.weights, order):
        if number >= 0 and (why := difference(after[number], np.asarray(weight), tolerance)):
            return f"{weight.path} after a step: {why}"
    return ""
