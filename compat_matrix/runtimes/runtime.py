"""A runtime: a Python interpreter and the TensorFlow installed beside it. Nothing here imports TensorFlow."""

from __future__ import annotations

import functools
import importlib.metadata
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# Distributions that install the package `tensorflow`, the usual first.
DISTRIBUTIONS = ("tensorflow", "tensorflow-cpu", "tf-nightly", "tf-nightly-cpu", "tensorflow-intel", "tensorflow-macos")


@dataclass(frozen=True)
class Runtime:
    """Where a worker runs. ``python`` is the interpreter; ``tensorflow_version`` None says that it has no TensorFlow.

    ``tensorflow_version`` is what stands in cell ids; two runtimes of one version are told apart by a local label
    (``2.21.0+candidate``). ``lacks``: the name of a consumer or producer -> why this runtime has none.
    """

    name: str
    python: Path
    tensorflow_version: str | None
    lacks: Mapping[str, str] = field(default_factory=dict)


@functools.lru_cache(maxsize=1)
def local_runtime() -> Runtime:
    """The interpreter that runs the harness, with the version of the TensorFlow distribution found beside it."""
    return Runtime("local", Path(sys.executable), _tensorflow_version())


def _tensorflow_version() -> str | None:
    for name in DISTRIBUTIONS:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None
