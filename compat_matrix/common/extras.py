"""The extras of this package: the command that installs one, and the extra that a missing module belongs to."""

from __future__ import annotations

import importlib.util
import re
from typing import Optional

_PACKAGES = {"grpc": "grpcio", "xdist": "pytest-xdist", "tensorflow": "tensorflow-cpu"}  # packages whose module has another name
_EXTRA = re.compile(r"extra == ['\"]([\w-]+)['\"]")  # in the requirements that an installed package lists
_BEST_KNOWN = ("matrix", "tf", "serving", "cluster", "keras", "safetensors")  # an extra that contains others comes after those


def install(extra: str) -> str:
    """Return the command that installs an extra."""
    return f'pip install "savedmodel-compat[{extra}]"'


def need(*modules: str) -> None:
    """Raise ModuleNotFoundError for a module that is not installed. Long work calls this before it starts, not at its end."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)


def missing(module: str) -> Optional[str]:
    """Return what to tell a user who lacks ``module``, in one line. None if no extra of ours brings it."""
    from importlib import metadata

    package = _PACKAGES.get(module, module)
    try:
        requirements = metadata.requires("savedmodel-compat") or []
    except metadata.PackageNotFoundError:
        return None
    extras = set()
    for requirement in requirements:
        if re.match(rf"{re.escape(package)}\b(?!-)", requirement) and (marker := _EXTRA.search(requirement)):
            extras.add(marker.group(1))
    extra = next((name for name in _BEST_KNOWN if name in extras), None)
    return extra and f"this needs the package {package}, which is not installed: {install(extra)}"
