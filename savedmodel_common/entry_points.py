"""Our own entry points: what one package of ours offers to another that stands below it.

The program finds the commands of all packages here, and the harness the model servers, which need
packages that the harness does not. Plug-ins of other people are found by
`compat_matrix.plugins.found`.
"""

from __future__ import annotations

import functools
import importlib.metadata
from importlib.metadata import EntryPoint

DISTRIBUTION = "savedmodel-compat"
COMMANDS = "savedmodel_compat.commands"
SERVERS = "savedmodel_compat.servers"
CHECKS = "savedmodel_compat.checks"


class NotInstalledHere(Exception):
    """Raised where our packages are importable, but were not installed: no entry point is known."""


def own(group: str) -> dict[str, EntryPoint]:
    """Return our entry points of ``group`` (as ``savedmodel_compat.commands``), by sorted name.

    Raises NotInstalledHere.
    """
    return {point.name: point for point in _all() if point.group == group}


@functools.cache
def _all() -> tuple[EntryPoint, ...]:
    try:
        found = importlib.metadata.distribution(DISTRIBUTION).entry_points
    except importlib.metadata.PackageNotFoundError:
        raise NotInstalledHere(
            f"the distribution {DISTRIBUTION} is not installed in this Python, only its packages"
            " are importable; in a checkout run: pip install -e ."
        ) from None
    return tuple(sorted(found, key=lambda point: (point.group, point.name)))
