"""Write the outputs of a signature as JSON or as an npz file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from savedmodel_common import tensors, writing
from savedmodel_tools.contract import values
from savedmodel_tools.evaluation.inputs import spec_text

SUFFIXES = (".npz", ".json")


class OutputError(ValueError):
    """Raised when a file format cannot carry an output."""


def as_tensors(outputs: Mapping[str, Any]) -> dict[str, tensors.Tensor]:
    """Return the outputs as tensors. Raises OutputError for a value that is not one, such as a
    table.
    """
    found = {}
    for name, value in outputs.items():
        if not isinstance(value, np.ndarray):
            raise OutputError(f"{name}: {type(value).__name__} is not a tensor")
        try:
            found[name] = tensors.from_numpy(value)
        except TypeError as error:
            raise OutputError(f"{name}: {error}") from error
    return found


def to_json(outputs: Mapping[str, Any]) -> str:
    """Return a JSON object: output -> dtype, shape and values in row-major order.

    Raises OutputError as `as_tensors`.

    Example: ``{"y": {"dtype": "float32", "shape": [1, 1], "values": [3.0]}}``.
    """
    found = {name: values.to_json(tensor) for name, tensor in as_tensors(outputs).items()}
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()]
    return "{" + ",\n ".join(lines) + "}"


def to_text(outputs: Mapping[str, Any]) -> str:
    """Return the outputs for people: name, dtype and shape in one line, then the values.

    Large arrays are shortened. Raises OutputError as `as_tensors`.
    """
    as_tensors(outputs)
    parts = [
        f"{name}: {spec_text(value.dtype, value.shape)}\n{np.array2string(value, separator=', ')}"
        for name, value in outputs.items()
    ]
    return "\n".join(parts)


def write(outputs: Mapping[str, Any], out: Path) -> None:
    """Write the outputs to a file, which appears when it is complete.

    Args:
      outputs: name -> array.
      out: a file that ends in one of `SUFFIXES`.

    Raises:
      OutputError: npz has no type for an output: strings, bfloat16. JSON carries them.
      OSError: the file cannot be written.
    """
    if out.suffix == ".json":
        writing.write_text(out, to_json(outputs) + "\n")
        return
    for name, tensor in as_tensors(outputs).items():
        if tensors.CARRIERS.get(tensor.dtype) != tensor.dtype:
            raise OutputError(f"{name}: .npz has no type for {tensor.dtype}; .json has")
    with writing.new_file(out) as staged, staged.open("wb") as stream:
        np.savez(stream, **outputs)
