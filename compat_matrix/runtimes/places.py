"""The places of the environments, and their errors. This module imports nothing of the project."""

from __future__ import annotations

import os
import sys
from pathlib import Path


class RuntimeTrouble(Exception):
    """Raised when there is no runtime because of the machine or the request.

    A SavedModel is never to blame.
    """


class UnknownRuntime(RuntimeTrouble):
    """Raised for a name that is not a runtime of the registry, a requirement, a wheel or an
    interpreter.
    """


class NotInstalled(RuntimeTrouble):
    """Raised for a known runtime that is not installed.

    ``specs`` are the arguments for ``savedmodel-compat runtimes install``.
    """

    def __init__(self, message: str, specs: tuple[str, ...]) -> None:
        super().__init__(message)
        self.specs = specs


class ServerTrouble(Exception):
    """Raised when there is no model server because of the machine.

    A SavedModel is never to blame.
    """


def environment(*without: str) -> dict[str, str]:
    """Return this process's environment for another Python: without variables that begin with
    PYTHON or with these words.
    """
    return {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", *without))
    }


def home() -> Path:
    """Return the folder for everything that is kept: SAVEDMODEL_COMPAT_HOME, else one in the user's
    cache folder.
    """
    if os.environ.get("SAVEDMODEL_COMPAT_HOME"):
        return Path(os.environ["SAVEDMODEL_COMPAT_HOME"]).absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or (
        Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    )
    return Path(cache) / "savedmodel-compat"


def environments() -> Path:
    """Return the folder that holds the environments."""
    return home() / "environments"
