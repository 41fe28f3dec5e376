"""Compare `reference_impl` with what else loads the same files, beside `tf.saved_model`, and with
other files of weights.

Each is a row without a goal. What is not installed is a row that says so.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Union

from benchmarks import Comparison, NotMeasured, alternate, attempt, environment, measured, models

Rows = list[Union[Comparison, NotMeasured]]

_KERAS = """
import json, os, sys, time
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf, tf_keras, reference_impl
def timed(load):
    start = time.perf_counter()
    load(sys.argv[1])
    return time.perf_counter() - start
pairs = [(timed(reference_impl.load), timed(tf_keras.models.load_model)) for _ in range(int(sys.argv[2]) + 1)]
print(json.dumps(list(zip(*pairs[1:]))))
"""  # noqa: E501

_CALL = """
import sys
import numpy
import reference_impl
function = reference_impl.load(sys.argv[1]).signatures["serving_default"]
inputs = numpy.load(sys.argv[2])
for name, value in function(**{name: inputs[name] for name in inputs.files}).items():
    print(name, value.numpy())
"""


def run(repeats: int) -> Rows:
    """The programs first: this process must not have imported TensorFlow when it starts others."""
    parts = (keras_loader, command_line, session, weights)
    rows: Rows = []
    for part in parts:
        rows += attempt(f"alternatives: {part.__name__}", part, repeats)
    return rows


def _model(name: str) -> models.Model:
    return next(model for model in models.MODELS if model.name == name)


def keras_loader(repeats: int) -> Rows:
    """``tf_keras.models.load_model``, in a process that has it: with tf_keras installed TensorFlow
    itself behaves differently.
    """
    name, model = "load, as a Keras model", _model("resnet_keras2")
    directory, python, path = models.provide(model), *models.runtime(model.runtime)[1:]
    command = [python, "-c", _KERAS, str(directory), str(repeats)]
    done = subprocess.run(
        command, env=environment(path), capture_output=True, text=True, check=False
    )
    if done.returncode:
        return [
            NotMeasured(
                f"{name}: {model.title}", (done.stderr.strip() or "no output").splitlines()[-1]
            )
        ]
    ours, theirs = map(tuple, json.loads(done.stdout))
    return [
        Comparison(
            f"{name}: {model.title}",
            "reference_impl",
            "tf_keras.models.load_model",
            ours,
            theirs,
            None,
            model.title,
        )
    ]


def command_line(repeats: int) -> Rows:
    """``saved_model_cli run``, a program, against a program of seven lines."""
    name, cli, model = (
        "load and call, a program",
        Path(sys.executable).with_name("saved_model_cli"),
        _model("transformer"),
    )
    if not cli.exists():
        return [NotMeasured(name, "saved_model_cli is not installed")]
    import numpy as np

    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        # The name of the input is in the file; TensorFlow must not be imported here.
        from reference_impl.views.model import inspect

        directory, given = models.provide(model), Path(folder, "inputs.npz")
        (signature,) = [
            item
            for item in inspect(directory).meta_graphs[0].signatures
            if item.key == "serving_default"
        ]
        key = signature.inputs[0].name
        np.savez(given, **{key: np.ones(model.shape, model.dtype)})
        theirs = [
            str(cli),
            "run",
            "--dir",
            str(directory),
            "--tag_set",
            "serve",
            "--signature_def",
            "serving_default",
        ]
        commands = [
            [sys.executable, "-c", _CALL, str(directory), str(given)],
            [*theirs, "--inputs", f"{key}={given}[{key}]"],
        ]
        ours, theirs = [], []
        for turn in range(min(repeats, 3) + 1):
            pair = [measured(command, environment()) for command in commands]
            if turn:  # the first fills caches
                ours.append(pair[0])
                theirs.append(pair[1])
    wall, cpu = [], []
    for side in (ours, theirs):
        wall.append(tuple([usage.seconds for usage in side]))
        cpu.append(tuple([usage.cpu for usage in side]))
    return [
        Comparison(name, "reference_impl", "saved_model_cli run", *wall, None, model.title, *cpu)
    ]


def session(repeats: int) -> Rows:
    """The loader of TF 1.x in a session, for a graph of TF 1.x."""
    import tensorflow as tf

    import reference_impl

    model = _model("inception")
    directory = str(models.provide(model))

    def theirs() -> Any:
        with tf.Graph().as_default(), tf.compat.v1.Session() as open_session:
            return tf.compat.v1.saved_model.load(open_session, ["serve"], directory)

    with tf.device("cpu"):
        times = alternate(functools.partial(reference_impl.load, directory), theirs, repeats)
    what, notes = f"load: {model.title}", f"written by {models.writer(model)}"
    return [
        Comparison(what, "reference_impl", "tf.compat.v1.saved_model.load", *times, None, notes)
    ]


def weights(repeats: int) -> Rows:
    """``safetensors``: the same weights alone, copied into tensors. Ours is a whole load."""
    name, model = "load, weights alone", _model("gibibyte")
    if importlib.util.find_spec("safetensors") is None:
        return [NotMeasured(f"{name}: {model.title}", "safetensors is not installed")]
    import numpy as np
    import safetensors.numpy
    import tensorflow as tf

    import reference_impl
    from reference_impl.format.bundle.reader import BundleReader

    directory = models.provide(model)
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=models.home()) as folder:
        file = Path(folder, "weights.safetensors")
        with BundleReader(directory / "variables" / "variables") as reader:
            numbers = [
                key for key, entry in reader.entries().items() if entry.dtype.name == "float32"
            ]
            safetensors.numpy.save_file(
                {key: np.asarray(reader.read(key)) for key in numbers}, file
            )

        def theirs() -> Any:
            return [tf.Variable(value) for value in safetensors.numpy.load_file(file).values()]

        with tf.device("cpu"):
            times = alternate(functools.partial(reference_impl.load, directory), theirs, repeats)
    return [
        Comparison(
            f"{name}: {model.title}",
            "reference_impl",
            "safetensors into tf.Variable",
            *times,
            None,
            "unchecked there",
        )
    ]
