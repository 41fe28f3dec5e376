"""Where the environments are kept, and what can go wrong with them. A leaf: nothing of the project is imported."""

from __future__ import annotations

import os
import sys
from pathlib import Path


class RuntimeTrouble(Exception):
    """No runtime for a reason of the machine or of the request: nothing that a SavedModel could be blamed for."""


class UnknownRuntime(RuntimeTrouble):
    """What was named is no runtime: not in the registry, no requirement, no wheel, no interpreter."""


class NotInstalled(RuntimeTrouble):
    """The runtime is known and not here. ``specs`` are to be handed to ``savedmodel-compat runtimes install``."""

    def __init__(self, message: str, specs: tuple[str, ...]) -> None:
        super().__init__(message)
        self.specs = specs


def home() -> Path:
    """The folder of all that is made once and kept: SAVEDMODEL_COMPAT_HOME, else one in the user's cache folder."""
    if os.environ.get("SAVEDMODEL_COMPAT_HOME"):
        return Path(os.environ["SAVEDMODEL_COMPAT_HOME"]).absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or (Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache"))
    return Path(cache) / "savedmodel-compat"


def environments() -> Path:
    """The folder of the environments, one each."""
    return home() / "environments"
