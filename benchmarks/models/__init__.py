"""The models that are loaded and saved: made once with random weights, each in a process of its
own, and kept in a cache folder.

Every other module here makes one model: run as a program it writes the SavedModel to the directory
it is given. A module with a function ``build`` gives the Python object, too, for the benchmarks of
saving.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import tensorflow_version
from compat_matrix.runtimes import places
from compat_matrix.runtimes.resolve import provide as provide_runtime


@dataclass(frozen=True)
class Model:
    """One model.

    Attributes:
      name: of the module that makes it.
      title: for the tables.
      shape, dtype: of the argument of its signature ``serving_default``.
      load_goal: a load should take less than this part of the time that TensorFlow takes.
      runtime: what the process that makes it has beside the packages of this one: "keras 2"; or "tf
        1" instead of them.
      saved: has it a function ``build``?
    """

    name: str
    title: str
    shape: tuple[int, ...]
    dtype: str
    load_goal: float
    runtime: str = ""
    saved: bool = False


MODELS = (
    Model("functions", "300 functions, 300 variables", (2, 4), "float32", 0.055, saved=True),
    Model(
        "resnet_keras3",
        "ResNet50 exported by Keras 3",
        (1, 224, 224, 3),
        "float32",
        0.15,
        saved=True,
    ),
    Model(
        "resnet_keras2",
        "ResNet50 saved by Keras 2, compiled and fitted",
        (1, 224, 224, 3),
        "float32",
        0.2,
        "keras 2",
    ),
    Model("gibibyte", "1 GiB of weights", (1, 64), "float32", 0.4, saved=True),
    Model("transformer", "transformer of 12 layers", (1, 128), "int32", 0.18, saved=True),
    Model(
        "inception",
        "graph like Inception V3, reference variables",
        (1, 299, 299, 3),
        "float32",
        0.25,
        "tf 1",
    ),
)


def home() -> Path:
    """The folder of the models."""
    return places.home() / "benchmarks"


def provide(model: Model) -> Path:
    """The directory of a model's SavedModel, which is made on first use, and anew when its program
    or a version is another.

    Raises:
      RuntimeTrouble: no uv or no network.
      CalledProcessError: the model could not be made.
    """
    script = Path(__file__).with_name(f"{model.name}.py")
    writer, python, path = runtime(model.runtime)
    mark = hashlib.sha256(script.read_bytes() + writer.encode()).hexdigest()[:12]
    place = home() / f"{model.name}-{mark}"
    if not place.exists():
        print(f"making the model: {model.title}, with {writer}", file=sys.stderr, flush=True)
        fresh = place.with_name(f"{place.name}.{os.getpid()}.tmp")
        fresh.parent.mkdir(parents=True, exist_ok=True)
        # Without the caller's settings: a TensorFlow 2 leaves TF2_BEHAVIOR behind, which would make
        # TF 1.x something else.
        clean = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PYTHON", "TF_", "TF2_"))
        }
        environment = {
            **clean,
            "PYTHONPATH": path,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PYTHONWARNINGS": "ignore",
        }
        try:
            subprocess.run(
                [python, str(script), str(fresh)],
                env=environment,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            fresh.replace(place)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return place


def writer(model: Model) -> str:
    """Which TensorFlow wrote the model, and which Keras."""
    return runtime(model.runtime)[0]


@functools.cache
def runtime(kind: str) -> tuple[str, str, str]:
    """Return name, interpreter and PYTHONPATH of the process that makes a model.

    Raises ValueError: there is no such runtime.
    """
    version = tensorflow_version()
    if kind == "tf 1":
        try:
            return "TF 1.15.5", str(provide_runtime("tf1.15", lambda _: None).python), ""
        except places.RuntimeTrouble as error:
            print(
                f"no TensorFlow 1.15 ({error}): compat.v1 of {version} makes the graph",
                file=sys.stderr,
            )
            return f"TF {version} (compat.v1)", sys.executable, ""
    if kind == "keras 2":
        # Beside TensorFlow, not in the environment: with tf_keras in it TensorFlow itself behaves
        # differently.
        minor = ".".join(version.split(".")[:2])
        place = home() / f"tf_keras-{minor}"
        if not place.exists():
            command = [
                "uv",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--target",
                str(place),
                f"tf_keras~={minor}.0",
            ]
            subprocess.run(command, check=True)
        return f"TF {version}, tf_keras {minor}", sys.executable, str(place)
    if kind:
        raise ValueError(f"no runtime is called {kind!r}")
    return f"TF {version}", sys.executable, ""


def build(model: Model) -> tuple[Any, Any]:
    """A Python object and its signatures, as `tf.saved_model.save` takes them.

    Imports TensorFlow.
    """
    return importlib.import_module(f"{__name__}.{model.name}").build()  # type: ignore[no-any-return]
