"""``--with tf2onnx``: make the converted file first, in the environment of the converter."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from compat_matrix.runtimes.locked import Environment
from compat_matrix.runtimes.places import RuntimeTrouble, environment
from savedmodel_common.writing import new_file
from savedmodel_prove.sides.runtimes import LOCKS, PYTHON, WORKERS
from savedmodel_prove.sides.side import SideError

LIMIT = 900.0  # seconds
OPSET = "18"  # the newest that tf2onnx writes

Arguments = Callable[[str, Sequence[str], str, str], list[str]]


@dataclass(frozen=True)
class Converter:
    """A converter.

    Attributes:
      suffix: of the files that it writes.
      module: the package that it needs.
      lock: the file of `third_party/locks` that has it.
      arguments: of Python, from model, tags, signature and the file to write.
    """

    suffix: str
    module: str
    lock: str
    arguments: Arguments


def _tf2onnx(model: str, tags: Sequence[str], key: str, out: str) -> list[str]:
    asked = ["--saved-model", model, "--tag", ",".join(tags), "--signature_def", key]
    return ["-m", "tf2onnx.convert", *asked, "--opset", OPSET, "--output", out]


def _litert(model: str, tags: Sequence[str], key: str, out: str) -> list[str]:
    return [str(WORKERS / "convert_tflite.py"), model, ",".join(tags), key, out]


CONVERTERS = {
    "tf2onnx": Converter(".onnx", "tf2onnx", "onnx.txt", _tf2onnx),
    "litert": Converter(".tflite", "tensorflow", "tensorflow.txt", _litert),
}


def convert(
    name: str,
    model: Path,
    tags: Sequence[str],
    key: str,
    out: Path,
    python: Optional[Path] = None,
) -> None:
    """Convert one signature of a SavedModel.

    Args:
      name: of the converter, a key of `CONVERTERS`.
      model: the directory of the SavedModel.
      tags: of the MetaGraph.
      key: of the signature.
      out: the file to write.
      python: of an environment that has the converter.

    Raises SideError: no Python has the converter, or it fails; OSError.
    """
    converter = CONVERTERS[name]
    interpreter = python or _python(name, converter)
    with new_file(out) as staged:
        # The converters look at the suffix of the file that they write.
        written = staged.with_name(f"{staged.name}{converter.suffix}")
        arguments = converter.arguments(str(model), tags, key, str(written))
        try:
            done = subprocess.run(
                [str(interpreter), *arguments],
                env=environment("TF_"),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise SideError(f"{name} did not end within {LIMIT:.0f} s") from None
        if done.returncode or not written.is_file():
            raise SideError(f"{name} cannot convert the signature {key!r}: {_last(done.stderr)}")
        written.replace(staged)


def _python(name: str, converter: Converter) -> Path:
    if importlib.util.find_spec(converter.module) is not None:
        return Path(sys.executable)
    lock = LOCKS / converter.lock
    if not lock.is_file():
        raise SideError(f"no Python here has {name}; name one that has it with --python")
    try:
        return Environment(lock, PYTHON).python
    except RuntimeTrouble as error:
        raise SideError(f"the environment of {name} cannot be made: {error}") from error


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it wrote no file"
