"""`reference_impl.load` and `save` against `tf.saved_model` of the same TensorFlow, in one process,
in turns.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import Comparison, alternate, attempt, models

CALL_GOAL = 0.5  # load and first call
# of many functions; of models of Keras, without Keras' own work
FUNCTIONS_GOAL, KERAS_GOAL = 0.28, 0.25
DURABLE_GOAL, QUICK_GOAL = 0.9, 0.4  # of 1 GiB on the disk; and not waiting for the disk
MAPPED_GOAL, VERIFIED_GOAL = (
    0.1,
    0.3,
)  # LoadOptions(weights="mapped"), without and with the checksums


def run(repeats: int) -> list[Comparison]:
    """Every model: load; load and call once; and save, where the object can be built in this
    process.
    """
    rows: list[Comparison] = []
    for model in models.MODELS:
        rows += attempt(f"load: {model.title}", loading, model, repeats)
    gibibyte = next(model for model in models.MODELS if model.name == "gibibyte")
    rows += attempt(f"load, mapped: {gibibyte.title}", mapping, gibibyte, repeats)
    # After all of the loading: building imports Keras.
    for model in models.MODELS:
        if model.saved:
            rows += attempt(f"save: {model.title}", saving, model, repeats)
    return rows


def mapping(model: models.Model, repeats: int) -> list[Comparison]:
    """Loads of a model whose weights are mapped, against loads by TensorFlow, which has nothing
    like it.
    """
    import tensorflow as tf

    import reference_impl

    directory, found = str(models.provide(model)), []
    for verify, goal in ((False, MAPPED_GOAL), (True, VERIFIED_GOAL)):
        options = reference_impl.LoadOptions(weights="mapped", verify_mapped=verify)
        ours = functools.partial(reference_impl.load, directory, options=options)
        with tf.device("cpu"):
            times = alternate(ours, lambda: tf.saved_model.load(directory), repeats)
        name = f"load, mapped{' and verified' if verify else ''}: {model.title}"
        found.append(
            Comparison(
                name,
                "reference_impl",
                "tf.saved_model",
                *times,
                goal,
                f"written by {models.writer(model)}",
            )
        )
    return found


def loading(model: models.Model, repeats: int) -> list[Comparison]:
    import tensorflow as tf

    import reference_impl

    directory = str(models.provide(model))
    value = tf.cast(
        tf.random.stateless_uniform(model.shape, [1, 2]) * (1 if model.dtype == "float32" else 100),
        model.dtype,
    )

    def ours() -> Any:
        return reference_impl.load(directory)

    def theirs() -> Any:
        return tf.saved_model.load(directory)

    def answer(loaded: Any) -> Any:
        function = loaded.signatures["serving_default"]
        (name,) = function.structured_input_signature[1]
        result = function(**{name: value})
        return loaded, [tensor.numpy() for tensor in result.values()]

    with tf.device("cpu"):
        notes = f"written by {models.writer(model)}"
        load = alternate(ours, theirs, repeats)
        call = alternate(lambda: answer(ours()), lambda: answer(theirs()), repeats)
    names = "reference_impl", "tf.saved_model"
    return [
        Comparison(f"load: {model.title}", *names, *load, model.load_goal, notes),
        Comparison(f"load and call: {model.title}", *names, *call, CALL_GOAL, notes),
    ]


def saving(model: models.Model, repeats: int) -> list[Comparison]:
    """Saves of an object; of large weights also without waiting for the disk, for which TensorFlow
    does not wait either. The time that Keras itself takes is left out on both sides.
    """
    import tensorflow as tf

    import reference_impl

    made, signatures = models.build(model)
    if model.name == "gibibyte":
        goals = {True: DURABLE_GOAL, False: QUICK_GOAL}
    else:
        goals = {True: KERAS_GOAL if _is_of_keras(made) else FUNCTIONS_GOAL}
    folder = Path(
        tempfile.mkdtemp(prefix="benchmark-", dir=models.home())
    )  # on the disk where models are, not in memory
    found = []
    try:
        for sync, goal in goals.items():
            with keras_apart(made) as apart:
                times = alternate(
                    functools.partial(
                        _save,
                        made,
                        folder / "ours",
                        signatures,
                        reference_impl.SaveOptions(sync=sync),
                    ),
                    lambda: tf.saved_model.save(made, str(folder / "theirs"), signatures),
                    repeats,
                    apart,
                )
            how = "" if sync else ", sync=False"
            notes = "a traced Python object"
            if _is_of_keras(made):
                notes += "; without the work of Keras' layers, which trace the model in every save"
            found.append(
                Comparison(
                    f"save{how}: {model.title}",
                    "reference_impl",
                    "tf.saved_model",
                    *times,
                    goal,
                    notes,
                )
            )
    finally:
        shutil.rmtree(folder)
    return found


def _is_of_keras(made: object) -> bool:
    return type(made).__module__.partition(".")[0] == "keras"


@contextlib.contextmanager
def keras_apart(made: object) -> Iterator[Callable[[], float]]:
    """Measure what Keras 3 does inside a save, which both writers call in the same way.

    A layer that is asked for its children as a SavedModel makes its functions; a model traces
    itself anew for it. For example, this is two thirds of a save of ResNet50.

    Yields a function that returns the seconds so far; it returns 0 for other objects.
    """
    if not _is_of_keras(made):
        yield float
        return
    import keras
    from keras.src.backend.tensorflow.layer import TFLayer

    assert isinstance(made, keras.layers.Layer)
    seconds, depth = 0.0, 0
    listing = TFLayer._trackable_children

    def timed(layer: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal seconds, depth
        start, depth = time.perf_counter(), depth + 1
        try:
            return listing(layer, *args, **kwargs)
        finally:
            depth -= 1
            if not depth:
                seconds += time.perf_counter() - start

    TFLayer._trackable_children = timed
    try:
        yield lambda: seconds
    finally:
        TFLayer._trackable_children = listing


def _save(made: Any, directory: Path, signatures: Any, options: Any) -> None:
    import reference_impl

    reference_impl.save(made, directory, signatures, options=options)
