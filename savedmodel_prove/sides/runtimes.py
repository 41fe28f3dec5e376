"""Which Python runs a converted file.

In this order: the Python that the user names, the one that runs this program if it has the
packages, and an environment made from a lock of `third_party` in a checkout.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

from compat_matrix.runtimes import programs
from compat_matrix.runtimes.programs import Program
from savedmodel_prove.sides.side import SideError

WORKERS = Path(__file__).parents[1] / "workers"
LOCKS = Path(__file__).parents[2] / "third_party" / "locks"
PYTHON = "3.11"  # of the locks


@dataclass(frozen=True)
class Format:
    """A format of converted files.

    Attributes:
      runtime: the program that runs it, for people.
      script: our worker, a file of `workers`.
      modules: the packages that it imports.
      install: what to install where they are missing.
      lock: the file of `third_party/locks` that has them.
    """

    runtime: str
    script: str
    modules: tuple[str, ...]
    install: str
    lock: str


STABLEHLO = Format("XLA", "stablehlo_file_worker.py", ("jax",), "jax", "stablehlo.txt")
FORMATS = {
    ".onnx": Format(
        "onnxruntime",
        "onnx_file_worker.py",
        ("onnxruntime", "onnx"),
        "onnx onnxruntime",
        "onnx.txt",
    ),
    ".tflite": Format(
        "LiteRT", "tflite_file_worker.py", ("ai_edge_litert",), "ai-edge-litert", "tensorflow.txt"
    ),
    ".keras": Format(
        "Keras",
        "keras_file_worker.py",
        ("keras", "tensorflow"),
        "keras tensorflow",
        "tensorflow.txt",
    ),
    ".xml": Format(
        "OpenVINO", "openvino_file_worker.py", ("openvino",), "openvino", "openvino.txt"
    ),
    ".mlir": STABLEHLO,
    ".mlirbc": STABLEHLO,
    ".stablehlo": STABLEHLO,
}
NOT_READ = {
    ".h5": "a Keras 2 file; save it as .keras",
    ".hdf5": "a Keras 2 file; save it as .keras",
}


def program_of(path: Path, python: Optional[Path] = None) -> tuple[str, Program]:
    """Return the runtime's name and the program that runs a converted file.

    Args:
      path: the file; its suffix tells the format.
      python: of an environment that has the runtime.

    Raises SideError: the format is not read, or no Python has its runtime.
    """
    suffix = path.suffix.lower()
    if suffix in NOT_READ:
        raise SideError(f"not comparable: {path} is {NOT_READ[suffix]}")
    if suffix not in FORMATS:
        listed = ", ".join(FORMATS)
        raise SideError(f"not comparable: {path} is neither a SavedModel nor one of {listed}")
    wanted = FORMATS[suffix]
    program = programs.of_script(WORKERS / wanted.script)
    if python is not None:
        return wanted.runtime, replace(program, python=str(python))
    if all(importlib.util.find_spec(module) is not None for module in wanted.modules):
        return wanted.runtime, replace(program, python=sys.executable)
    lock = LOCKS / wanted.lock
    if lock.is_file():
        return wanted.runtime, replace(program, lock=(str(lock), PYTHON))
    raise SideError(
        f"not comparable: no Python here has {wanted.runtime}. Install it beside this program"
        f" (pip install {wanted.install}), or name a Python that has it with --python"
    )
