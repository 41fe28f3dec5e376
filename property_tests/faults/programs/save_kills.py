"""`reference_impl.save` over an existing export, killed at every moment at which it changes the
directory, and at random ones; prints what is left.

Forks a process that has imported TensorFlow but computed little: what the child runs, it runs on
its own thread.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[3] / "tests" / "support"))

import tensorflow as tf
from kill_points import Killer

import reference_impl
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from reference_impl.format.values import tensor_proto


def model(folder: Path, value: float) -> tf.Module:
    """A variable, a function that reads it, an asset; all of them say the value."""
    file = folder / f"{value}.txt"
    file.write_text(str(value))
    root = tf.Module()
    root.v = tf.Variable([value] * 100)
    root.asset = tf.saved_model.Asset(str(file))
    root.f = tf.function(lambda: root.v + value, input_signature=[])
    root.f.get_concrete_function()
    return root


def floats_of(node: Any) -> list[float]:
    """The numbers in a constant of floats."""
    tensor = node.attr["value"].tensor
    return tensor_proto.decode(tensor).ravel().tolist() if tensor.dtype == 1 else []


def told(target: Path) -> str:
    """The value that everything in the export says, or all that it says."""
    read = layout.read(target)
    (graph,) = read.saved_model.meta_graphs
    (asset,) = read.assets(graph)
    with BundleReader(read.checkpoint_prefix) as reader:
        reader.verify_all()
        values = {
            float(value)
            for key in reader.entries()
            if key.startswith("v/")
            for value in reader.read(key)
        }
    nodes = [
        node
        for function in graph.graph_def.library.function
        for node in function.node_def
        if node.op == "Const"
    ]
    floats = {float(number) for node in nodes for number in floats_of(node)}
    floats &= {1.0, 2.0}  # other constants are not the model's
    said = values | {float(asset.path.read_text())} | floats
    return str(said.pop()) if len(said) == 1 else f"mixture:{sorted(said)}"


def main(folder: Path, hurried: int) -> None:
    """Kill at every moment, then so many times after a random time."""
    old, new = model(folder, 1.0), model(folder, 2.0)
    target = folder / "there" / "model"
    point, status = 0, -1
    while status != 0:
        point += 1
        reference_impl.save(old, target)
        pid = os.fork()
        if pid == 0:
            killer = Killer(target.parent, point)
            killer.armed = True
            reference_impl.save(new, target)
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        assert status in (0, signal.SIGKILL), status
        print(told(target), len(list(target.parent.iterdir())) - 1, flush=True)
    rng = random.Random(9)
    start = time.monotonic()
    reference_impl.save(new, target)
    usual = time.monotonic() - start
    for number in range(hurried):
        pid = os.fork()
        if pid == 0:
            reference_impl.save((old, new)[number % 2], target)
            os._exit(0)
        time.sleep(usual * rng.random())
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        print(told(target), len(list(target.parent.iterdir())) - 1, flush=True)
    reference_impl.save(new, target)
    print(told(target), len(list(target.parent.iterdir())) - 1, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), 70)
