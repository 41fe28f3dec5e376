"""Saves models of tf.distribute, for which a process makes devices at its start; prints what
readers see, as JSON.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import tensorflow as tf

import reference_impl
from reference_impl.format.container import layout
from reference_impl.saving.options import SaveOptions

SPEC = [tf.TensorSpec([], tf.float32, "x")]


def model(strategy: Any, kind: str) -> Any:
    """A mirrored variable of 2, local ones of 1 and 2 that are added up or averaged, and a
    function.
    """
    root = tf.Module()
    on_read, add, mean = (
        tf.VariableSynchronization.ON_READ,
        tf.VariableAggregation.SUM,
        tf.VariableAggregation.MEAN,
    )
    with strategy.scope():
        root.mirrored = tf.Variable(2.0, name="mirrored", aggregation=add)
        root.sum = tf.Variable(1.0, name="sum", synchronization=on_read, aggregation=add)
        root.mean = tf.Variable(1.0, name="mean", synchronization=on_read, aggregation=mean)
    for variable in (root.sum, root.mean):
        strategy.run(assign_replica, (variable,))
    functions = {
        "read": lambda x: x * root.mirrored,
        "sum": lambda x: x + root.sum.read_value(),
        "mean": lambda x: x + root.mean,
        "update": lambda x: root.mirrored.assign_add(x),
        "run": lambda x: strategy.reduce(
            "sum", strategy.run(lambda: root.mirrored.assign_add(x)), axis=None
        ),
    }
    root.f = tf.function(functions[kind], input_signature=SPEC)
    return root


def assign_replica(variable: Any) -> None:
    variable.assign(
        tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32) + 1.0
    )


def seen(path: Path) -> dict[str, Any]:
    """The variables and the answer for 3, by ourselves, tf.saved_model.load and a session."""
    out: dict[str, Any] = {}
    for name, load in (("reference", reference_impl.load), ("tf", tf.saved_model.load)):
        loaded = load(str(path))
        out[name] = [
            float(loaded.mirrored),
            float(loaded.sum),
            float(loaded.mean),
            float(loaded.f(tf.constant(3.0))),
        ]
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.loader.load(session, ["serve"], str(path)).signature_def[
            "serving_default"
        ]
        out["session"] = float(
            session.run(signature.outputs["output_0"].name, {signature.inputs["x"].name: 3.0})
        )
    return out


def attempt(root: Any, path: Path, options: Any = None, scope: Any = None) -> Any:
    try:
        with scope or contextlib.nullcontext():
            reference_impl.save(root, path, options=options)
    except ValueError as error:
        return str(error)
    return seen(path)


def main(out: Path) -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    found: dict[str, Any] = {}
    for kind in ("read", "sum", "mean", "update"):
        found[kind] = attempt(model(strategy, kind), out / kind)
        found[f"{kind} in scope"] = attempt(
            model(strategy, kind), out / f"{kind}_scope", scope=strategy.scope()
        )
    for kind in ("read", "sum", "update"):
        found[f"{kind} expanded"] = attempt(
            model(strategy, kind),
            out / f"{kind}_x",
            SaveOptions(variable_policy="expand_distributed_variables"),
        )
    concrete = model(strategy, "update")
    concrete.f = concrete.f.get_concrete_function()
    found["concrete"] = attempt(concrete, out / "concrete")
    meta_graph = layout.read(out / "read_x").meta_graph(None)
    variables = [
        node.variable for node in meta_graph.object_graph_def.nodes if node.HasField("variable")
    ]
    found["components"] = [
        [part.device[-5:] for part in v.experimental_distributed_variable_components]
        for v in variables
    ]
    found["devices"] = sorted(
        node.device[-5:] for node in meta_graph.graph_def.node if node.op == "VarHandleOp"
    )
    plain = layout.read(out / "read").meta_graph(None)
    found["plain devices"] = sorted({node.device for node in plain.graph_def.node})
    with strategy.scope():
        loaded = reference_impl.load(out / "read")
    found["again"] = attempt(loaded, out / "again", scope=strategy.scope())
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
