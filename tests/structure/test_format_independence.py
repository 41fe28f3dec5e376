"""Bytes, graphs and views import neither TensorFlow nor anything that brings it."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Refuses the packages themselves and everything below them, so that even an attempt that is caught
# is seen.
PROGRAM = """
import importlib, importlib.abc, json, pkgutil, sys

tried = []

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {"tensorflow", "tensorflow_core", "keras", "tf_keras", "jax", "compat_matrix"} or name.startswith("savedmodel_"):
            tried.append(name)
            raise ImportError(f"{name} is refused here")
        return None

sys.meta_path.insert(0, Refuse())
import reference_impl
names = [
    module.name
    for room in ("format", "graph", "safety", "views")
    for module in pkgutil.walk_packages([f"{reference_impl.__path__[0]}/{room}"], f"reference_impl.{room}.")
]
for name in names:
    importlib.import_module(name)

from reference_impl.format import schema
from reference_impl.format.container import layout, writer
from reference_impl.format.values import structure
import numpy
model = schema.SavedModel(saved_model_schema_version=1)
graph = model.meta_graphs.add()
graph.object_graph_def.nodes.add().function.function_spec.fullargspec.CopyFrom(structure.encode([numpy.float32([1])]))
with writer.LayoutWriter(sys.argv[1]) as out:
    out.saved_model(model, text=True)
read = layout.read(sys.argv[1])
(array,) = structure.decode(read.meta_graph().object_graph_def.nodes[0].function.function_spec.fullargspec)
assert array.array().tolist() == [1]
ours = {name.split(".")[1] for name in sys.modules if name.startswith("reference_impl.")}
rest = sorted(ours - {"errors", "format", "graph", "safety", "views"})
print(json.dumps([tried, rest, len(names)]))
"""


def test_nothing_below_the_live_objects_imports_tensorflow(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "model")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    tried, rest, number = json.loads(done.stdout)
    assert (tried, rest) == ([], [])
    assert number >= 60


def test_the_hook_sees_an_attempt():
    program = (
        PROGRAM.partition("import reference_impl\n")[0]
        + "try:\n    import tensorflow\nexcept ImportError:\n    print(tried)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "['tensorflow']"
