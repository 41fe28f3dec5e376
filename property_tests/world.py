"""Running scripts, and comparing what they made with what came back."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import note
from hypothesis.errors import InvalidArgument


@dataclass
class Built:
    """A model that a script has made: ``root``, ``signatures``, and ``requests``: (path, arguments
    as source).
    """

    root: Any
    signatures: dict[str, Any]
    requests: list[tuple[str, str]]
    variables: list[str]
    names: dict[str, Any]

    def ask(self, model: Any, request: tuple[str, str]) -> Any:
        """The answer of a model, this one or one loaded, to a request."""
        path, arguments = request
        return eval(f"model{path}({arguments})", {**self.names, "model": model})

    def find(self, model: Any, path: str) -> Any:
        return eval(f"model{path}", {"model": model})

    def answers(self, model: Any) -> list[Any]:
        """Plain answers to all requests, in order: functions may change state."""
        return [plain(self.ask(model, request)) for request in self.requests]


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="property-") as name:
        yield Path(name)


def run(script: str) -> dict[str, Any]:
    """The names of a script that has run; a failing example shows it."""
    with contextlib.suppress(InvalidArgument):  # a regression is no example
        note(script)
    names: dict[str, Any] = {"__name__": "script"}
    exec(
        compile(script, "<script>", "exec", dont_inherit=True), names
    )  # not the annotations of this module
    return names


def build(script: str, at: Path) -> Built:
    """The model of a script."""
    names = run(script)
    root, signatures = names["build"](at / "source")
    return Built(root, signatures, names["REQUESTS"], names["VARIABLES"], names)


def plain(value: Any) -> Any:
    """A nest without TensorFlow: comparable by ``==``, bit for bit but for NaN, which is one
    value.
    """
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if isinstance(value, dict):
        return ("dict", tuple([(key, plain(value[key])) for key in sorted(value)]))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return ("namedtuple", type(value).__name__, value._fields, tuple(map(plain, value)))
    if isinstance(value, (list, tuple)):
        return (
            type(value).__name__ if type(value) in (list, tuple) else "list",
            tuple(map(plain, value)),
        )
    if type(value).__name__ == "Scaled":
        return ("Scaled", plain(value.values), plain(value.scale), value.label)
    if hasattr(value, "flat_values"):
        return ("ragged", *[plain(part) for part in (value.flat_values, *value.nested_row_splits)])
    if hasattr(value, "dense_shape"):
        return ("sparse", plain(value.indices), plain(value.values), plain(value.dense_shape))
    return bits(value.numpy(), value.dtype.name)


def bits(array: Any, dtype: str) -> tuple[Any, ...]:
    """dtype, shape and items of an array."""
    array = np.asarray(array)
    if dtype == "bfloat16" and array.dtype == np.uint16:  # as workers carry it
        array = array.view(ml_dtypes.bfloat16)
    if array.dtype.kind in "OSU":
        return (
            dtype,
            array.shape,
            tuple(
                [
                    item.encode() if isinstance(item, str) else bytes(item)
                    for item in array.ravel().tolist()
                ]
            ),
        )
    if array.dtype.kind in "fc" or dtype == "bfloat16":
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return dtype, array.shape, array.tobytes()
