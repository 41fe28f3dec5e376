"""A runtime: a Python interpreter and the TensorFlow installed beside it, or a model server.

Nothing here imports TensorFlow.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from reference_impl.remembering import found_once
from savedmodel_common.distributions import DISTRIBUTIONS
from savedmodel_common.extras import install

LABELLED = re.compile(r"([A-Za-z][A-Za-z0-9_]*)=(?!=)(.+)")  # LABEL=SPEC, on a command line
LOCAL = "local"  # the name of the runtime that runs the harness
INSTALL = install("tf")  # the command that installs a TensorFlow
_NO_MODULE = "No module named 'tensorflow'"  # the message of a worker


@dataclass(frozen=True)
class Runtime:
    """A place where workers run.

    ``python`` is the interpreter; ``tensorflow_version`` is None without TensorFlow.

    ``tensorflow_version`` is the version in cell ids; a local label tells two runtimes of one
    version apart
    (``2.21.0+candidate``). ``lacks``: the name of a consumer or producer -> why this runtime does
    not have it; ``unready``:
    likewise,
    why it is not available on this machine at present, and what would help. ``spec``: the name on a
    command line.

    A runtime with ``server`` (how to reach or start one) is queried over the network, as the
    consumer ``consumer``. It writes nothing, and its ``python`` is the harness's own.
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
        """Return this runtime under another name, which is added to its version, so that one plan
        can hold two of one release.
        """
        separator = "." if "+" in (self.tensorflow_version or "") else "+"
        version = (
            self.tensorflow_version
            and f"{self.tensorflow_version}{separator}{label.replace('_', '.')}"
        )
        return replace(
            self, name=label, tensorflow_version=version, spec=f"{label}={self.spec or self.name}"
        )

    @property
    def no_tensorflow(self) -> str:
        """Return a message that this runtime has no TensorFlow, and what to do."""
        return f"no TensorFlow in runtime {self.name}" + (
            f" ({INSTALL})" if self.name == LOCAL else ""
        )

    def with_advice(self, reason: str) -> str:
        """Return why a worker did not start here, and what to do if TensorFlow is missing."""
        return (
            f"{reason} ({INSTALL})"
            if self.name == LOCAL and _NO_MODULE in reason and INSTALL not in reason
            else reason
        )

    def to_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "python": str(self.python),
            "lacks": dict(self.lacks),
            "unready": dict(self.unready),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Runtime:
        return cls(**{**data, "python": Path(data["python"])})


def local_runtime() -> Runtime:
    """Return the interpreter that runs the harness, with the version of the TensorFlow distribution
    found beside it.
    """
    return Runtime(LOCAL, Path(sys.executable), _tensorflow_version(), spec=LOCAL)


@found_once
def _tensorflow_version() -> str | None:
    for name in DISTRIBUTIONS:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def same_release(one: str, other: str) -> bool:
    """Return whether two versions are the same release, ignoring local labels
    (``2.21.0+candidate``) and spelling.
    """
    try:
        return Version(one).public == Version(other).public
    except InvalidVersion:
        return one == other
