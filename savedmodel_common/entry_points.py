"""Our own entry points: what one package of ours offers to another that stands below it.

The program finds the commands of all packages here, and the harness the model servers, which need
packages that the harness does not. Plug-ins of other people are found by
`compat_matrix.plugins.found`.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, NamedTuple

from savedmodel_common import fast
from savedmodel_common.fast import entry_point_files

DISTRIBUTION = "savedmodel-compat"
COMMANDS = "savedmodel_compat.commands"
SERVERS = "savedmodel_compat.servers"
CHECKS = "savedmodel_compat.checks"


class NotInstalledHere(Exception):
    """Raised where our packages are importable, but were not installed: no entry point is known."""


class EntryPoint(NamedTuple):
    """One entry point: an object of a module under a name of a group."""

    group: str
    name: str
    value: str  # ``package.module:object``

    @property
    def module(self) -> str:
        return self.value.partition(":")[0].strip()

    def load(self) -> Any:
        """Import the module and return the object; the module, if no object is named."""
        found: Any = importlib.import_module(self.module)
        path = self.value.partition(":")[2].partition("[")[0].strip()
        for attribute in filter(None, path.split(".")):
            found = getattr(found, attribute)
        return found


def own(group: str) -> dict[str, EntryPoint]:
    """Return our entry points of ``group`` (as ``savedmodel_compat.commands``), by sorted name.

    Raises NotInstalledHere.
    """
    return {point.name: point for point in _all() if point.group == group}


@functools.cache
def _all() -> tuple[EntryPoint, ...]:
    found = entry_point_files.entry_points(DISTRIBUTION) if fast.is_on() else None
    return tuple(sorted(EntryPoint(*item) for item in (_by_metadata() if found is None else found)))


def _by_metadata() -> list[tuple[str, str, str]]:
    from importlib import metadata

    try:
        found = metadata.distribution(DISTRIBUTION).entry_points
    except metadata.PackageNotFoundError:
        raise NotInstalledHere(
            f"the distribution {DISTRIBUTION} is not installed in this Python, only its packages"
            " are importable; in a checkout run: pip install -e ."
        ) from None
    return [(point.group, point.name, point.value) for point in found]
