"""A runtime: a Python interpreter and the TensorFlow installed beside it, or a model server. Nothing here imports TensorFlow."""

from __future__ import annotations

import functools
import importlib.metadata
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from compat_matrix.common.extras import install

# Distributions that install the package `tensorflow`, the usual first.
DISTRIBUTIONS = ("tensorflow", "tensorflow-cpu", "tf-nightly", "tf-nightly-cpu", "tensorflow-intel", "tensorflow-macos")


LABELLED = re.compile(r"([A-Za-z][A-Za-z0-9_]*)=(?!=)(.+)")  # LABEL=SPEC, on a command line
LOCAL = "local"  # the name of the runtime that runs the harness
INSTALL = install("tf")  # what gives it a TensorFlow
_NO_MODULE = "No module named 'tensorflow'"  # as a worker says it


@dataclass(frozen=True)
class Runtime:
    """Where a worker runs. ``python`` is the interpreter; ``tensorflow_version`` None says that it has no TensorFlow.

    ``tensorflow_version`` is what stands in cell ids; two runtimes of one version are told apart by a local label
    (``2.21.0+candidate``). ``lacks``: the name of a consumer or producer -> why this runtime has none; ``unready``: likewise, why
    it has none at present on this machine, and what would help. ``spec``: how to ask for it on a command line.

    A runtime with ``server``, how to reach or to start one, is asked over the wire, as the consumer ``consumer``; it writes
    nothing and its ``python`` is the harness's own.
    """

    name: str
    python: Path
    tensorflow_version: str | None
    lacks: Mapping[str, str] = field(default_factory=dict)
    spec: str = ""
    unready: Mapping[str, str] = field(default_factory=dict)
    server: str = ""
    consumer: str = ""

    def labelled(self, label: str) -> Runtime:
        """This runtime under another name, which its version carries along: two of one release can stand in one plan."""
        separator = "." if "+" in (self.tensorflow_version or "") else "+"
        version = self.tensorflow_version and f"{self.tensorflow_version}{separator}{label.replace('_', '.')}"
        return replace(self, name=label, tensorflow_version=version, spec=f"{label}={self.spec or self.name}")

    @property
    def no_tensorflow(self) -> str:
        """That this runtime has no TensorFlow, and what to do."""
        return f"no TensorFlow in runtime {self.name}" + (f" ({INSTALL})" if self.name == LOCAL else "")

    def with_advice(self, reason: str) -> str:
        """Why a worker did not start here, and what to do if that is for want of a TensorFlow."""
        return f"{reason} ({INSTALL})" if self.name == LOCAL and _NO_MODULE in reason and INSTALL not in reason else reason

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "python": str(self.python), "lacks": dict(self.lacks), "unready": dict(self.unready)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Runtime:
        return cls(**{**data, "python": Path(data["python"])})


@functools.lru_cache(maxsize=1)
def local_runtime() -> Runtime:
    """The interpreter that runs the harness, with the version of the TensorFlow distribution found beside it."""
    return Runtime(LOCAL, Path(sys.executable), _tensorflow_version(), spec=LOCAL)


def _tensorflow_version() -> str | None:
    for name in DISTRIBUTIONS:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def same_release(one: str, other: str) -> bool:
    """Whether two versions are one release, whatever their local labels (``2.21.0+candidate``) and spelling."""
    try:
        return Version(one).public == Version(other).public
    except InvalidVersion:
        return one == other
