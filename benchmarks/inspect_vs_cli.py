"""``savedmodel-compat inspect`` against ``saved_model_cli show --all``, both as programs, on a saved_model.pb of about 2 MB."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import Comparison, alternate

_FUNCTIONS = 330

# Runs in a process of its own: this one must not have imported TensorFlow when it starts others.
_MAKE = f"""
import sys
import tensorflow as tf

class Block(tf.Module):
    def __init__(self, number):
        super().__init__()
        self.w = tf.Variable(tf.ones([4, 4]), name=f"w{{number}}")
        self.b = tf.Variable(tf.zeros([4]), name=f"b{{number}}", trainable=number % 2 == 0)

    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x")])
    def __call__(self, x):
        y = tf.nn.relu(tf.matmul(x, self.w) + self.b)
        y = tf.cond(tf.reduce_sum(y) > 0, lambda: tf.sin(y), lambda: tf.cos(y))
        return {{"y": tf.reduce_mean(y, axis=-1, keepdims=True), "z": tf.concat([x, y], -1)}}

root = tf.Module()
root.blocks = [Block(number) for number in range({_FUNCTIONS})]
tf.saved_model.save(root, sys.argv[1], signatures={{"first": root.blocks[0].__call__, "last": root.blocks[-1].__call__}})
"""


def run(repeats: int) -> list[Comparison]:
    """Both forms of our output against the text of saved_model_cli."""
    cli = Path(sys.executable).with_name("saved_model_cli")
    if not cli.exists():
        raise FileNotFoundError(f"{cli}: TensorFlow is not installed in this environment")
    # As installed: without compiled bytecode both programs would mostly measure Python's compiler.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    folder = Path(tempfile.mkdtemp(prefix="benchmark-"))
    try:
        model = folder / "model"
        _call([sys.executable, "-c", _MAKE, str(model)], environment)
        size = (model / "saved_model.pb").stat().st_size
        theirs = [str(cli), "show", "--dir", str(model), "--all"]
        found = []
        for form in ([], ["--json"]):
            ours = [sys.executable, "-m", "compat_matrix", "inspect", str(model), *form]
            times = alternate(lambda ours=ours: _call(ours, environment), lambda: _call(theirs, environment), repeats)
            name = " ".join(["savedmodel-compat inspect", *form])
            notes = f"saved_model.pb of {size / 1e6:.1f} MB, {_FUNCTIONS} traced functions"
            found.append(Comparison("inspect a SavedModel", name, "saved_model_cli show --all", *times, 0.1, notes))
        return found
    finally:
        shutil.rmtree(folder)


def _call(command: list[str], environment: dict[str, str]) -> None:
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
