"""Loaded models as parts of models of tf.distribute, and functions over the replicas of variables;
prints what happens, as JSON.

A process makes its devices at its start, so this is one of its own.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import reference_impl

SCALAR = [tf.TensorSpec([])]
ON_READ = tf.VariableSynchronization.ON_READ
READERS = {"tf": tf.saved_model.load, "reference": reference_impl.load}


class Reusable(tf.__internal__.tracking.AutoTrackable):
    """A model as TF Hub wants it, with a variable of each kind that a strategy knows."""

    def __init__(self) -> None:
        self.w, self.shift = tf.Variable([[1.0], [2.0]]), tf.Variable(1.0, trainable=False)
        self.total = tf.Variable(
            0.0, trainable=False, synchronization=ON_READ, aggregation=tf.VariableAggregation.SUM
        )
        self.variables, self.trainable_variables = [self.w, self.shift, self.total], [self.w]

    @tf.function(input_signature=[tf.TensorSpec([None, 2]), tf.TensorSpec([], tf.bool)])
    def __call__(self, x: Any, training: Any = False) -> Any:
        if training:
            self.total.assign_add(1.0)
        return x @ self.w + self.shift

    @tf.function(input_signature=SCALAR)
    def bump(self, by: Any) -> Any:
        return self.shift.assign_add(by)

    @tf.function(input_signature=SCALAR)
    def scale(self, x: Any) -> Any:
        return x * self.shift

    @tf.function(input_signature=SCALAR)
    def add_total(self, x: Any) -> Any:
        return x + self.total


def attempt(action: Any) -> Any:
    try:
        return action()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def summed(strategy: Any, kind: str) -> Any:
    """A module with a local variable of 1 and 2, of an aggregation, and functions that were never
    called.
    """
    root = tf.Module()
    with strategy.scope():
        root.v = tf.Variable(
            0.0, trainable=False, synchronization=ON_READ, aggregation=tf.VariableAggregation[kind]
        )
    number = lambda: tf.distribute.get_replica_context().replica_id_in_sync_group  # noqa: E731
    strategy.run(lambda: root.v.assign(tf.cast(number(), tf.float32) + 1.0))
    root.f = tf.function(lambda x: root.v.assign_add(x), input_signature=SCALAR)
    root.g = tf.function(lambda x: root.v + x, input_signature=SCALAR)
    return root


def updated_at_save(strategy: Any, out: Path) -> dict[str, Any]:
    """Value, answer and value after an update of an ON_READ variable whose functions are first
    traced by `save`.
    """
    found = {}
    for kind in ("SUM", "MEAN", "ONLY_FIRST_REPLICA"):
        for scope in ("inside", "outside"):
            root, path = summed(strategy, kind), str(out / f"{kind}_{scope}")
            with strategy.scope() if scope == "inside" else contextlib.nullcontext():
                reference_impl.save(root, path)
            for reader, load in READERS.items():
                loaded = load(path)
                answer = [float(loaded.v), float(loaded.g(1.0))]
                loaded.f(10.0)
                found[f"{kind} {scope} {reader}"] = [*answer, float(loaded.v)]
    return found


def merged(strategy: Any, out: Path) -> dict[str, Any]:
    """Answers of functions that were traced before: each captures both replicas.

    XLA must be able to compile them.
    """
    root = tf.Module()
    with strategy.scope():
        root.mean = tf.Variable(
            1.0, trainable=False, synchronization=ON_READ, aggregation=tf.VariableAggregation.MEAN
        )
        root.v = tf.Variable(2.0, aggregation=tf.VariableAggregation.SUM)
    inner = tf.function(lambda x: root.mean * x)
    bodies = {
        "read": lambda x: root.mean + x,
        "nested": lambda x: inner(x) + root.mean,
        "update": lambda x: root.v.assign_add(x) + root.mean,
    }
    for name, body in bodies.items():
        function = tf.function(body, input_signature=SCALAR, jit_compile=True)
        function.get_concrete_function()
        setattr(root, name, function)
    reference_impl.save(root, str(out / "merged"), signatures={"nested": root.nested})
    found = {}
    for reader, load in READERS.items():
        loaded = load(str(out / "merged"))
        for name in bodies:
            (concrete,) = getattr(loaded, name).concrete_functions
            found[f"{name} {reader}"] = attempt(
                lambda concrete=concrete: float(concrete(tf.constant(3.0)))
            )
            captured = concrete.captured_inputs
            found[f"{name} {reader} once"] = len({id(handle) for handle in captured}) == len(
                captured
            )
        found[f"signature {reader}"] = float(
            loaded.signatures["nested"](x=tf.constant(3.0))["output_0"]
        )
    return found


def outer_model(out: Path) -> Any:
    outer = tf.Module()
    outer.inner, outer.factor = reference_impl.load(str(out / "part")), tf.Variable(2.0)
    outer.f = tf.function(
        lambda x: outer.inner(x, True) * outer.factor, input_signature=[tf.TensorSpec([None, 2])]
    )
    return outer


def wrapped(strategy: Any, out: Path) -> dict[str, Any]:
    """A model that has a loaded one as a part, saved in the scope of a strategy and outside."""
    found = {}
    for scope in ("inside", "outside"):
        path = str(out / f"wrapped_{scope}")
        with strategy.scope():
            outer = outer_model(out)
            if scope == "inside":
                reference_impl.save(outer, path)
        if scope == "outside":
            reference_impl.save(outer, path)
        for reader, load in READERS.items():
            loaded = load(path)
            found[f"{scope} {reader}"] = [
                float(loaded.f(tf.ones([1, 2]))[0, 0]),
                float(loaded.inner.total),
            ]
    return found


def called(strategy: Any, out: Path) -> dict[str, Any]:
    """Calls of loaded functions in a scope, outside of replicas and in them."""
    with strategy.scope():
        loaded = reference_impl.load(str(out / "part"))
        traced = tf.function(lambda: loaded.bump(1.0))
        return {
            "read": attempt(lambda: float(loaded.scale(3.0))),
            "update": attempt(lambda: float(loaded.bump(1.0))),
            "local": attempt(lambda: float(loaded.add_total(1.0))),
            "traced update": attempt(lambda: float(traced())),
            "replicas": [
                float(v)
                for v in strategy.experimental_local_results(
                    strategy.run(lambda: loaded.scale(3.0))
                )
            ],
            "value": float(loaded.shift.numpy()),
        }


def hub_layer(strategy: Any, out: Path) -> dict[str, Any]:
    """Predictions of a hub.KerasLayer built in the scope and trained, for each loader, and of its
    copies by `save`.
    """
    import tensorflow_hub as hub
    import tf_keras

    found = {}
    x, y = np.arange(8, dtype="float32").reshape(4, 2) / 8, np.ones([4, 1])
    for loader, load in READERS.items():
        tf.compat.v1.saved_model.load_v2 = load
        with strategy.scope():
            layer = hub.KerasLayer(str(out / "part"), trainable=True)
            dense = tf_keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
            model = tf_keras.Sequential([tf_keras.Input([2]), layer, dense])
            model.compile(tf_keras.optimizers.SGD(0.1), "mse")
        model.fit(x, y, batch_size=4, epochs=2, verbose=0, shuffle=False)
        found[f"fit {loader}"] = model.predict(x, verbose=0).ravel().tolist()
        with strategy.scope():
            reference_impl.save(model, str(out / f"hub_{loader}"))
        for reader, read in READERS.items():
            answer = read(str(out / f"hub_{loader}"))(tf.constant(x), training=False)
            found[f"saved {loader} {reader}"] = answer.numpy().ravel().tolist()
    return found


def main(out: Path) -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    tf.saved_model.save(Reusable(), str(out / "part"))
    actions = (updated_at_save, merged, wrapped, called, hub_layer)
    print(
        json.dumps(
            {
                action.__name__: attempt(lambda action=action: action(strategy, out))
                for action in actions
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
