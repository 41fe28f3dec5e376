"""Prove that a new model has the weights of the old one and trains as that does.

Imports TensorFlow and Keras: for workers only.

Predictions and the saved file are compared before, by requests like those of every other model.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Optional

import numpy as np

from reference_impl.format.names import VALUE, checkpoint_key
from savedmodel_common.compare import Tolerance, compare_tensor
from savedmodel_common.tensors import from_numpy
from savedmodel_migration.keras_2_to_3.reading.saved import at
from savedmodel_migration.keras_2_to_3.rounding import LARGEST, Rounding

WEIGHTS, GRADIENTS, STEP_OF_TRAINING = "weights", "gradients", "training step"
SUFFIX = checkpoint_key("/", VALUE)
REPEATED = 3  # calls of the original model, to see what it draws
SHOWN = 3
RANDOM_GRADIENTS = (
    GRADIENTS,
    "none",
    "each call of the original draws numbers, on which every gradient depends",
)

Verdict = tuple[
    str, str, str
]  # what, "equal" | "close" | "differs" | "none" (there is nothing to compare), detail
Pair = tuple[str, Any, Any]  # name, variable of the old model, variable of the new one


def prove(
    old: Any,
    new: Any,
    pairs: Sequence[Pair],
    nest: Any,
    endpoint: str = "",
    left_out: Sequence[int] = (),
) -> list[Verdict]:
    """Compare the weights, the gradients and one training step of an old and a new model.

    Both have trained afterwards.

    Args:
      old: what `reference_impl.load` returned.
      pairs: which variables are one, as `pairs_of` gives them.
      nest: inputs, as both take them.
      endpoint: the function of the old model, "" for the default one.
      left_out: the numbers of outputs that do not count.
    """
    from savedmodel_compat.keras.endpoint import variables_of
    from savedmodel_compat.keras.layer import holds_numbers

    if not pairs:
        return [
            (what, "none", "the model has no weights")
            for what in (WEIGHTS, GRADIENTS, STEP_OF_TRAINING)
        ]
    found = [_weights(pairs)]
    if found[0][1] == "differs":
        return found
    training = not _draws(new, nest, left_out)
    moving = moving_variances(new, pairs) if training else {}
    start = [
        (variable, variable.numpy()) for variable, _ in variables_of(old) if holds_numbers(variable)
    ]
    models = _both(old, new, pairs, training, endpoint, left_out)
    made = [_loss_and_gradients(call, variables, nest) for call, variables in models]
    if made[0] is None or made[1] is None:
        trains = any(view.trainable for _, _, view in pairs)
        why = "no output is a floating-point number" if trains else "no weight of the model trains"
        return [*found, *((what, "none", why) for what in (GRADIENTS, STEP_OF_TRAINING))]

    if all(item is None for item in [*made[0], *made[1]]):
        why = "no output depends on a weight that trains"
        return [*found, *((what, "none", why) for what in (GRADIENTS, STEP_OF_TRAINING))]

    def gradients_and_statistics(nest: Any) -> dict[str, Any]:
        return _named(pairs, _loss_and_gradients(*models[0], nest))

    first = _named(pairs, made[0])
    rounding = Rounding(gradients_and_statistics, first, start, nest)
    keys = [key for key, _, view in pairs if view.trainable]
    largest = max(
        (float(np.max(np.abs(item), initial=0.0)) for item in made[0] if item is not None),
        default=0.0,
    )

    def compared(random: Collection[str]) -> Verdict:
        items = [item for item in zip(keys, *made) if _gradient(item[0]) not in random]
        return (
            _arrays(GRADIENTS, items, lambda key: rounding.bound(_gradient(key), largest))
            if items
            else RANDOM_GRADIENTS
        )

    verdict = compared(())
    random = (
        _drawn(gradients_and_statistics, first, start, nest) if verdict[1] == "differs" else set()
    )
    verdict = compared(random) if random else verdict
    part = rounding.part(map(_gradient, keys), largest) if verdict[1] == "differs" else 0.0
    found.append(_if_comparable(verdict, part))
    for (
        _,
        variables,
    ) in (
        models
    ):  # with the same gradients: Adam would make a whole step of one that is only a rounding
        _optimizer(new).apply(list(made[0]), variables)
    # What moves gradients so far moves the statistics of its layers too.
    bound = functools.partial(rounding.bound, capped=part <= LARGEST)
    after = after_a_step(pairs, moving, bound)
    if after[1] == "differs":  # statistics are compared as gradients are
        random |= _drawn(gradients_and_statistics, first, start, nest)
        left = [pair for pair in pairs if pair[0] not in random]
        after = after_a_step(left, moving, bound) if len(left) < len(pairs) else after
    words = [after[2], "" if training else "without what is drawn at random in training"]
    words += (
        [f"without the values that each call draws again: {', '.join(sorted(random)[:SHOWN])}"]
        if random
        else []
    )
    words += (
        ["statistics as far as rounding moves those of the original"]
        if part > LARGEST and after[1] == "close"
        else []
    )
    words += (
        []
        if getattr(new, "optimizer", None) is not None
        else ["with plain SGD: the model is not compiled"]
    )
    return [*found, (after[0], after[1], "; ".join(text for text in words if text))]


def _drawn(
    run: Callable[[Any], Mapping[str, Any]],
    first: Mapping[str, Any],
    start: Sequence[tuple[Any, Any]],
    nest: Any,
) -> set[str]:
    """Return the gradients and statistics of the original model that are others in another call.

    Sets the variables back.

    ``start``: the variables with their values before the first call.
    """
    kept = [variable.numpy() for variable, _ in start]
    found = set()
    for _ in range(REPEATED):
        for variable, value in start:
            variable.assign(value)
        again = run(nest)
        found |= {name for name, array in first.items() if not _same(array, again.get(name))}
    for (variable, _), value in zip(start, kept):
        variable.assign(value)
    return found


def _same(one: Any, other: Any) -> bool:
    return (
        one is other if one is None or other is None else np.array_equal(one, other, equal_nan=True)
    )


def _named(pairs: Sequence[Pair], gradients: Optional[Sequence[Any]]) -> dict[str, Any]:
    """Return the gradients and the statistics of the original model after a call in training, by
    name.
    """
    of = iter(gradients or ())
    found = {}
    for key, variable, view in pairs:
        if view.trainable:
            found[_gradient(key)] = _float64(next(of, None))
        elif variable.dtype.is_floating:
            found[key] = _float64(variable)
    return found


def _gradient(key: str) -> str:
    return f"gradient of {key}"


def _float64(array: Any) -> Any:
    return None if array is None else np.asarray(array, dtype="float64")


def pairs_of(old: Any, new: Any, variables: Mapping[str, Any]) -> list[Pair]:
    """Return the variables of an old and a new model that are one, each once; ``variables``:
    checkpoint key -> new variable.
    """
    found: list[Pair] = []
    left = {id(variable) for variable in new.variables}
    for key, view in variables.items():
        variable = at(old, key.removesuffix(SUFFIX).split("/"))
        if id(view) in left and hasattr(variable, "assign"):
            left.remove(id(view))
            found.append((key.removesuffix(SUFFIX), variable, view))
    return found


def _weights(pairs: Sequence[Pair]) -> Verdict:
    for key, before, after in _values(pairs):
        if before.tobytes() != after.tobytes() or before.shape != after.shape:
            return WEIGHTS, "differs", f"{key} has other bits"
    return WEIGHTS, "equal", ""


def _values(pairs: Sequence[Pair]) -> list[tuple[str, Any, Any]]:
    return [(key, np.asarray(variable.numpy()), np.asarray(view)) for key, variable, view in pairs]


def moving_variances(new: Any, pairs: Sequence[Pair]) -> dict[str, tuple[float, Any]]:
    """Return the momentum and the value of each moving variance of a BatchNormalization, by
    name.
    """
    import keras

    layers = [
        layer
        for layer in new._flatten_layers()
        if isinstance(layer, keras.layers.BatchNormalization)
    ]
    momenta = {id(layer.moving_variance): float(layer.momentum) for layer in layers}
    return {
        key: (momenta[id(view)], np.asarray(view, "float64"))
        for key, _, view in pairs
        if id(view) in momenta
    }


def after_a_step(
    pairs: Sequence[Pair], moving: Mapping[str, tuple[float, Any]], bound: Callable[[str], float]
) -> Verdict:
    """Compare the weights after a step of training, which are equal, and the statistics, moving
    variances as Keras 2 has them.

    ``moving``: `moving_variances` before the step; ``bound`` returns how far an entry of a weight
    may be off.
    """
    arrays, unbiased = [], ""
    for key, old, new in _values(pairs):
        factor = _unbiased(old, new, *moving[key], bound(key)) if key in moving else None
        if factor:
            momentum, start = moving[key]
            new = momentum * start + (new - momentum * start) * factor
            unbiased = (
                "moving variances of Keras 2 are n / (n - 1) times those of Keras 3, of n values in"
                " a batch"
            )
        arrays.append((key, old, new))
    what, state, detail = _arrays(STEP_OF_TRAINING, arrays, bound)
    return (what, "close", unbiased) if unbiased and state != "differs" else (what, state, detail)


def _unbiased(old: Any, new: Any, momentum: float, start: Any, bound: float) -> Optional[float]:
    """Return the factor of an unbiased variance, which Keras 2 took, to the biased one of Keras 3;
    None if they are the same.

    The fused computation of Keras 2, which is that of images, divides by n - 1. Keras 3 divides by
    n.
    """
    one, other = (
        float(np.sum(np.asarray(after, "float64") - momentum * start)) for after in (old, new)
    )
    if other <= 0 or not other < one <= 2.01 * other or float(np.max(np.abs(old - new))) <= bound:
        return None
    factor = one / other
    count = round(factor / (factor - 1))
    return factor if count > 1 and abs(factor - count / (count - 1)) < 0.02 * (factor - 1) else None


def _arrays(what: str, items: Any, bound: Callable[[str], float]) -> Verdict:
    """Compare arrays by name. The bound of an array is asked for only if it has other bits."""
    state = "equal"
    for key, before, after in items:
        if (before is None) != (after is None):
            return (
                what,
                "differs",
                f"{key}: only the {'new' if before is None else 'old'} model has one",
            )
        if before is None:
            continue
        # The sign of a zero does not count here: + 0.0 removes it.
        one, other = (from_numpy(_float64(array) + 0.0) for array in (before, after))
        if compare_tensor(key, one, other) is None:
            continue
        allowed = bound(key)
        found = compare_tensor(key, one, other, Tolerance(atol=allowed))
        if found is not None:
            return what, "differs", f"{found}, and roundings move it by no more than {allowed:.2g}"
        state = "close"
    return what, state, ""


def _if_comparable(verdict: Verdict, part: float) -> Verdict:
    """Return ``none`` in place of a verdict on gradients that rounding alone moves by more than the
    largest bound.

    A deep model that normalizes a few examples has such gradients: those of an untrained ResNet50
    move by some percent.
    """
    if part <= LARGEST:
        return verdict
    return (
        GRADIENTS,
        "none",
        f"rounding alone moves those of the original by {part:.1g} of the largest entry",
    )


def changeable(new: Any) -> list[Any]:
    """Return the variables of a Keras 3 model that a call outside of training may change.

    TF 1.x lists counters among the trainable ones. Keras does not list the states of a stateful
    RNN.
    """
    import keras

    counters = [
        item for item in new.trainable_variables if not keras.backend.is_float_dtype(item.dtype)
    ]
    states = keras.tree.flatten([getattr(layer, "states", None) for layer in new._flatten_layers()])
    return [
        *counters,
        *new.non_trainable_variables,
        *(item for item in states if isinstance(item, keras.Variable)),
    ]


def _draws(new: Any, nest: Any, left_out: Sequence[int]) -> bool:
    """Whether two calls in training answer or update otherwise: of such a model only the rest is
    compared.

    A Dropout before a quantizer changes its statistics, and need not change an answer.
    """
    # A call in training changes weights too, as that of a SpectralNormalization does.
    kept = [
        (variable, np.asarray(variable))
        for variable in [*new.trainable_variables, *changeable(new)]
    ]
    held = [(variable, value) for variable, value in kept if "seed" not in variable.path]
    updated = [variable for variable, _ in held]
    answers = []
    for _ in range(2):
        outputs = _counted(new(nest, training=True), left_out)
        answers.append([np.asarray(item) for item in (*outputs, *updated)])
        for variable, value in held:
            variable.assign(value)
    return not all(
        np.array_equal(one, other, equal_nan=one.dtype.kind == "f") for one, other in zip(*answers)
    )


def _counted(outputs: Any, left_out: Sequence[int]) -> list[Any]:
    import keras

    return [
        item for number, item in enumerate(keras.tree.flatten(outputs)) if number not in left_out
    ]


def _both(
    old: Any, new: Any, pairs: Sequence[Pair], training: bool, name: str, left_out: Sequence[int]
) -> list[tuple[Any, list[Any]]]:
    """Return `(call, trainable variables)` of the old and of the new model; a call returns the
    outputs that count and losses.
    """
    from savedmodel_compat.keras.endpoint import Endpoint, regularization_losses
    from savedmodel_compat.keras.layer import keras_variable

    endpoint = Endpoint(old, name or None)

    def call_old(nest: Any) -> tuple[Any, list[Any]]:
        outputs, losses = endpoint(nest, training, {})
        return _counted(outputs, left_out), [
            *losses,
            *(loss() for loss in regularization_losses(old)),
        ]

    def call_new(nest: Any) -> tuple[Any, list[Any]]:
        outputs = new(nest, training=training)
        return _counted(outputs, left_out), list(new.losses)

    trained = [
        (keras_variable(variable, True), view) for _, variable, view in pairs if view.trainable
    ]
    for variable, view in trained:
        variable.constraint = view.constraint  # of the configuration: a SavedModel has none
    return [
        (call_old, [variable for variable, _ in trained]),
        (call_new, [view for _, view in trained]),
    ]


def _loss_and_gradients(
    call: Callable[[Any], Any], variables: Sequence[Any], nest: Any
) -> Optional[list[Any]]:
    """Return the gradients of a loss that every output has a part in. None where nothing trains."""
    import tensorflow as tf

    random = np.random.default_rng(3)
    with tf.GradientTape() as tape:
        outputs, losses = call(nest)
        terms = [
            tf.reduce_mean(
                tf.square(
                    tf.cast(item, tf.float32) - random.standard_normal(item.shape).astype("float32")
                )
            )
            for item in outputs
            if item.dtype.is_floating
        ]
        if not terms or not variables:
            return None
        total = tf.add_n([*terms, *(tf.cast(loss, tf.float32) for loss in losses)])
    found = tape.gradient(total, [variable.value for variable in variables])
    return [None if item is None else tf.convert_to_tensor(item) for item in found]


def _optimizer(new: Any) -> Any:
    """Return a fresh optimizer, the one that the model is compiled with if it is."""
    import keras

    compiled = getattr(new, "optimizer", None)
    if compiled is None:
        return keras.optimizers.SGD(0.01)
    inner = getattr(compiled, "inner_optimizer", compiled)
    return type(inner).from_config(inner.get_config())
