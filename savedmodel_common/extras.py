"""The extras of this package: the command that installs one, and the extra that a missing module
belongs to.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from types import ModuleType
from typing import Optional

_PACKAGES = {
    "grpc": "grpcio",
    "xdist": "pytest-xdist",
    "tensorflow": "tensorflow-cpu",
}  # packages whose module has another name
_ALIKE = {
    "tensorflow-cpu": ("tensorflow-cpu", "tensorflow"),
    "tensorflow": ("tensorflow", "tensorflow-cpu"),
}  # either will do
_EXTRA = re.compile(
    r"extra == ['\"]([\w-]+)['\"]"
)  # in the requirements that an installed package lists
_BEST_KNOWN = (
    "matrix",
    "tf",
    "serving",
    "cluster",
    "keras",
    "safetensors",
)  # an extra that contains others comes after those


EXTRAS = _BEST_KNOWN
_NAME = "savedmodel-compat"


def lacking(extra: str) -> list[str]:
    """Return the packages of an extra that are not installed, by name.

    Empty too where this package itself is not installed.
    """
    from importlib import metadata

    from packaging.requirements import Requirement

    absent = []
    for line in _required():
        requirement = Requirement(line)
        if requirement.marker is None or not requirement.marker.evaluate({"extra": extra}):
            continue
        if requirement.name == _NAME:
            for other in sorted(requirement.extras):
                absent += lacking(other)
        elif not any(
            _is_installed(metadata, name)
            for name in _ALIKE.get(requirement.name, (requirement.name,))
        ):
            absent.append(requirement.name)
    return list(dict.fromkeys(absent))


def _required() -> Sequence[str]:
    """Return the requirements of this package, those of its extras too; none where it is not
    installed.
    """
    from importlib import metadata

    try:
        return metadata.requires(_NAME) or []
    except metadata.PackageNotFoundError:
        return []


def _is_installed(metadata: ModuleType, name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def install(extra: str) -> str:
    """Return the command that installs an extra."""
    return f'pip install "savedmodel-compat[{extra}]"'


def need(*modules: str) -> None:
    """Raise ModuleNotFoundError for a module that is not installed.

    Long work calls this before it starts, not at its end.
    """
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)


def missing(module: str) -> Optional[str]:
    """Return what to tell a user who lacks ``module``, in one line.

    None if no extra of ours brings it.
    """
    package = _PACKAGES.get(module, module)
    extras = set()
    for requirement in _required():
        if re.match(rf"{re.escape(package)}\b(?!-)", requirement) and (
            marker := _EXTRA.search(requirement)
        ):
            extras.add(marker.group(1))
    extra = next((name for name in _BEST_KNOWN if name in extras), None)
    return extra and f"this needs the package {package}, which is not installed: {install(extra)}"
