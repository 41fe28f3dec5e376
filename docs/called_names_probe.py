"""Ask one TensorFlow which names of children its loader of SavedModels runs, breaks on, or looks
up. Python 3.8 syntax.

It gets a model with a child called NAME, a function or an object, and prints one line of JSON.
`docs.called_names` starts it.
"""

import ast
import inspect
import json
import sys
import tempfile
from pathlib import Path

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.saved_model import function_deserialization

LOOKED_AT = ("trackable", "training/tracking", "saved_model", "checkpoint", "module")


def attributes_of(cls):
    """Attributes of a class, and those that its methods set."""
    found = set(dir(cls))
    for base in cls.__mro__:
        if not base.__module__.startswith("tensorflow"):
            continue
        try:
            tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(base)))
        except (OSError, TypeError, SyntaxError):
            continue
        for node in ast.walk(tree):
            is_self = (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "self"
            )
            if is_self and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
    return found


def looked_up():
    """Names that the tracking code looks up in any object: hasattr(x, "name"), getattr(x,
    "name").
    """
    root = Path(tf.__file__).parent / "python"
    files = [root / "ops" / "resource_variable_ops.py"]
    for part in LOOKED_AT:
        files += (root / part).rglob("*.py")
    names = set()
    for file in files:
        names.update(_lookups(ast.parse(file.read_text(encoding="utf-8"))))
    return names


def _lookups(tree):
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", "") in ("hasattr", "getattr")
            and len(node.args) > 1
        ):
            value = getattr(node.args[1], "value", getattr(node.args[1], "s", None))
            if isinstance(value, str) and value.startswith("_"):
                yield value


def outcome(message, folder, name, kind, called):
    """Load a model with a child of a kind: "run" if the child was called, "broken" if the load
    fails, else "".
    """
    child = message.meta_graphs[0].object_graph_def.nodes[0].children[0]
    child.local_name, child.node_id = name, {"function": 1, "object": 2}[kind]
    (Path(folder) / "saved_model.pb").write_bytes(message.SerializeToString())
    called.clear()
    try:
        tf.saved_model.load(folder)
    except Exception:
        return "run" if called else "broken"
    return "run" if called else ""


def main(model):
    message = saved_model_pb2.SavedModel()
    message.ParseFromString((Path(model) / "saved_model.pb").read_bytes())
    called = []
    plain = type(tf.saved_model.load(model))
    function_deserialization.RestoredFunction.__call__ = lambda self, *args, **kwargs: (
        called.append(args)
    )
    others = looked_up()
    names = sorted(attributes_of(plain) | attributes_of(tf.Module) | others)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "variables").symlink_to(Path(model).resolve() / "variables")
        for name in names:
            results = [
                outcome(message, folder, name, kind, called) for kind in ("function", "object")
            ]
            found[name] = "run" if "run" in results else max(results)
    print(json.dumps({"version": tf.__version__, "names": found, "looked_up": sorted(others)}))


if __name__ == "__main__":
    main(sys.argv[1])
