"""``--with tf2onnx``: make the converted file first, in the environment of the converter."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from compat_matrix.runtimes.locked import Environment
from compat_matrix.runtimes.places import RuntimeTrouble, environment
from reference_impl.format import schema
from reference_impl.format.container import layout
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
      suffix: of the file that it writes.
      module: the package that it needs.
      lock: the file of `third_party/locks` that has it.
      arguments: of Python, from model, tags, signature and the file to write.
      beside: the suffix of a second file, with the weights; "" if there is none.
      takes_one: it takes the only signature of a model, and cannot be told which one of several.
    """

    suffix: str
    module: str
    lock: str
    arguments: Arguments
    beside: str = ""
    takes_one: bool = False

    def files(self, out: Path) -> list[Path]:
        """Return the files that it writes; the first is ``out``."""
        return [out, *([out.with_suffix(self.beside)] if self.beside else [])]


def _tf2onnx(model: str, tags: Sequence[str], key: str, out: str) -> list[str]:
    asked = ["--saved-model", model, "--tag", ",".join(tags), "--signature_def", key]
    return ["-m", "tf2onnx.convert", *asked, "--opset", OPSET, "--output", out]


def _litert(model: str, tags: Sequence[str], key: str, out: str) -> list[str]:
    return [str(WORKERS / "convert_tflite.py"), model, ",".join(tags), key, out]


def _openvino(model: str, tags: Sequence[str], key: str, out: str) -> list[str]:
    return [str(WORKERS / "convert_openvino.py"), model, ",".join(tags), out]


CONVERTERS = {
    "tf2onnx": Converter(".onnx", "tf2onnx", "onnx.txt", _tf2onnx),
    "litert": Converter(".tflite", "tensorflow", "tensorflow.txt", _litert),
    "openvino": Converter(".xml", "openvino", "openvino.txt", _openvino, ".bin", takes_one=True),
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
    with new_file(out) as staged, tempfile.TemporaryDirectory(dir=out.parent) as scratch:
        source = (
            _with_one_signature(model, tags, key, Path(scratch)) if converter.takes_one else model
        )
        # The converters look at the suffix of the file that they write.
        written = converter.files(Path(scratch, f"out{converter.suffix}"))
        arguments = converter.arguments(str(source.absolute()), tags, key, str(written[0]))
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
        if done.returncode or not written[0].is_file():
            raise SideError(f"{name} cannot convert the signature {key!r}: {_last(done.stderr)}")
        for file, place in zip(written[1:], converter.files(out)[1:]):
            file.replace(place)
        written[0].replace(staged)


def _with_one_signature(model: Path, tags: Sequence[str], key: str, scratch: Path) -> Path:
    """Return a copy of a SavedModel that has only one signature; its other files are links."""
    message = schema.SavedModel(saved_model_schema_version=1)
    graph = message.meta_graphs.add()
    graph.CopyFrom(layout.read(model).meta_graph(tags))
    for other in set(graph.signature_def) - {key}:
        del graph.signature_def[other]
    copy = scratch / "model"
    copy.mkdir()
    for path in model.iterdir():
        if path.name not in layout.FORMATS:
            (copy / path.name).symlink_to(path.absolute())
    (copy / layout.PB).write_bytes(schema.serialize(message))
    return copy


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
