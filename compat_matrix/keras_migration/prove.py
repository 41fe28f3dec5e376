"""Prove that a new model has the weights of the old one and trains as that does. Imports TensorFlow and Keras: for workers only.

Predictions and the saved file are compared before, by requests like those of every other model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Optional

import numpy as np

GRADIENT = 1e-4  # of the largest entry: a sum over a batch and its steps is added up in another order
NOISE = 1e-6  # of the largest gradient: what is left of a gradient that is zero, as that of a bias before a BatchNormalization
STEP = 1e-4
WEIGHTS, GRADIENTS, STEP_OF_TRAINING = "weights", "gradients", "training step"
SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"

Verdict = tuple[str, str, str]  # what, "equal" | "close" | "differs" | "none" (there is nothing to compare), detail
Pair = tuple[str, Any, Any]  # name, variable of the old model, variable of the new one


def prove(old: Any, new: Any, pairs: Sequence[Pair], nest: Any, endpoint: str = "") -> list[Verdict]:
    """Compare the weights, the gradients and one training step of an old and a new model. Both have trained afterwards.

    Args:
      old: what `reference_impl.load` returned.
      new: the Keras 3 model.
      pairs: which variables are one, as `pairs_of` gives them.
      nest: inputs, as both take them.
      endpoint: the function of the old model, "" for the default one.
    """
    if not pairs:
        return [(what, "none", "the model has no weights") for what in (WEIGHTS, GRADIENTS, STEP_OF_TRAINING)]
    found = [_weights(WEIGHTS, pairs, None)]
    if found[0][1] == "differs":
        return found
    training = not _draws(new, nest)
    made = [_loss_and_gradients(call, variables, nest) for call, variables in _both(old, new, pairs, training, endpoint)]
    if made[0] is None or made[1] is None:
        trains = any(view.trainable for _, _, view in pairs)
        why = "no output is a floating-point number" if trains else "no weight of the model trains"
        return [*found, *((what, "none", why) for what in (GRADIENTS, STEP_OF_TRAINING))]
    keys = [key for key, _, view in pairs if view.trainable]
    largest = max((float(np.max(np.abs(item), initial=0.0)) for item in made[0] if item is not None), default=0.0)
    found.append(_arrays(GRADIENTS, zip(keys, made[0], made[1]), GRADIENT, GRADIENT * largest))
    made = [[_without_noise(item, NOISE * largest) for item in gradients or ()] for gradients in made]
    for (_, variables), gradients in zip(_both(old, new, pairs, training, endpoint), made):
        _optimizer(new).apply(gradients, variables)
    after = _weights(STEP_OF_TRAINING, pairs, STEP)
    words = [after[2], "" if training else "without what is drawn at random in training", *_said_of_optimizer(new)]
    return [*found, (after[0], after[1], "; ".join(text for text in words if text))]


def pairs_of(old: Any, new: Any, names: Mapping[str, str]) -> list[Pair]:
    """Return the variables of an old and a new model that are one, each once.

    Args:
      old: what `reference_impl.load` returned.
      new: the Keras 3 model.
      names: checkpoint key -> path of the variable of `new`.
    """
    return list(_pairs(old, new, names))


def _pairs(old: Any, new: Any, names: Mapping[str, str]) -> Iterator[Pair]:
    by_path = {variable.path: variable for variable in new.variables}
    seen: set[int] = set()
    for key, path in names.items():
        variable, view = _at(old, key.removesuffix(SUFFIX)), by_path.get(path)
        if view is not None and hasattr(variable, "assign") and id(view) not in seen:
            seen.add(id(view))
            yield key.removesuffix(SUFFIX), variable, view


def _at(root: Any, path: str) -> Optional[Any]:
    """Return the object at a path of the object graph, None where the loaded model has nothing there."""
    for part in path.split("/"):
        found = getattr(root, part, None)
        if found is None and part.isdigit() and isinstance(root, (list, tuple)) and int(part) < len(root):
            found = root[int(part)]
        if found is None:
            return None
        root = found
    return root


def _weights(what: str, pairs: Sequence[Pair], tolerance: Optional[float]) -> Verdict:
    arrays = [(key, np.asarray(variable.numpy()), np.asarray(view)) for key, variable, view in pairs]
    if tolerance is not None:
        return _arrays(what, arrays, tolerance)
    for key, before, after in arrays:
        if before.tobytes() != after.tobytes() or before.shape != after.shape:
            return what, "differs", f"{key} has other bits"
    return what, "equal", ""


def _without_noise(gradient: Any, bound: float) -> Any:
    """Return zeros for a gradient that is only noise: Adam would make a whole step of it."""
    import tensorflow as tf

    return gradient if gradient is None or float(tf.reduce_max(tf.abs(gradient))) > bound else tf.zeros_like(gradient)


def _arrays(what: str, items: Any, tolerance: float, floor: float = 1e-7) -> Verdict:
    state = "equal"
    for key, before, after in items:
        if (before is None) != (after is None):
            return what, "differs", f"{key}: only the {'new' if before is None else 'old'} model has one"
        if before is None:
            continue
        one, other = np.asarray(before, dtype="float64"), np.asarray(after, dtype="float64")
        if one.shape != other.shape:
            return what, "differs", f"{key}: shape {other.shape} in place of {one.shape}"
        bound = max(tolerance * float(np.max(np.abs(one), initial=0.0)), floor)
        if not np.allclose(other, one, rtol=tolerance, atol=bound, equal_nan=True):
            return what, "differs", f"{key} differs by {float(np.max(np.abs(other - one))):.2g}"
        if not np.array_equal(one, other, equal_nan=True):
            state = "close"
    return what, state, ""


def _draws(new: Any, nest: Any) -> bool:
    """Whether two calls in training differ: of such a model only the rest is compared."""
    import keras

    kept = [(variable, np.asarray(variable)) for variable in new.non_trainable_variables]
    answers = []
    for _ in range(2):
        answers.append([np.asarray(item) for item in keras.tree.flatten(new(nest, training=True))])
        for variable, value in kept:
            if "seed" not in variable.path:
                variable.assign(value)
    return not all(np.array_equal(one, other, equal_nan=one.dtype.kind == "f") for one, other in zip(*answers))


def _both(old: Any, new: Any, pairs: Sequence[Pair], training: bool, name: str) -> list[tuple[Any, list[Any]]]:
    """Return `(call, trainable variables)` of the old and of the new model; a call returns outputs and losses."""
    from savedmodel_compat.keras.endpoint import Endpoint, regularization_losses
    from savedmodel_compat.keras.layer import keras_variable

    endpoint = Endpoint(old, name or None)

    def call_old(nest: Any) -> tuple[Any, list[Any]]:
        outputs, losses = endpoint(nest, training, {})
        return outputs, [*losses, *(loss() for loss in regularization_losses(old))]

    def call_new(nest: Any) -> tuple[Any, list[Any]]:
        outputs = new(nest, training=training)
        return outputs, list(new.losses)

    trained = [(keras_variable(variable, True), view) for _, variable, view in pairs if view.trainable]
    for variable, view in trained:
        variable.constraint = view.constraint  # of the configuration: a SavedModel has none
    return [(call_old, [variable for variable, _ in trained]), (call_new, [view for _, view in trained])]


def _loss_and_gradients(call: Callable[[Any], Any], variables: Sequence[Any], nest: Any) -> Optional[list[Any]]:
    """Return the gradients of a loss that every output has a part in. None where nothing trains."""
    import keras
    import tensorflow as tf

    random = np.random.default_rng(3)
    with tf.GradientTape() as tape:
        outputs, losses = call(nest)
        terms = [
            tf.reduce_mean(tf.square(tf.cast(item, tf.float32) - random.standard_normal(item.shape).astype("float32")))
            for item in keras.tree.flatten(outputs)
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


def _said_of_optimizer(new: Any) -> list[str]:
    return [] if getattr(new, "optimizer", None) is not None else ["with plain SGD: the model is not compiled"]
