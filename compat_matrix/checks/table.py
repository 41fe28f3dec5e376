"""The checks by name, in the order they are planned: every module of
`compat_matrix.checks.kinds`, and those that packages above the harness offer by an entry point of
the group `savedmodel_compat.checks` (the checks of model servers).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from compat_matrix.checks import kinds
from compat_matrix.checks.kind import Check
from savedmodel_common import entry_points

_MODULES = [
    importlib.import_module(f"{kinds.__name__}.{module.name}")
    for module in pkgutil.iter_modules(kinds.__path__)
]
_MODULES += [point.load() for point in entry_points.own(entry_points.CHECKS).values()]
_MODULES.sort(key=lambda module: (module.CHECK.place, module.CHECK.name))

CHECKS: dict[str, Check] = {
    module.CHECK.name: module.CHECK for module in _MODULES if not module.CHECK.served
}
# Checks of a server. Each is a cell of its own, so that a limit of one transport does not affect
# the other.
SERVE_CHECKS: dict[str, Check] = {
    module.CHECK.name: module.CHECK for module in _MODULES if module.CHECK.served
}
# Checks that ask a model where it lies. The others write every model anew, or copy it, which takes
# most of the time of a run.
READING = tuple(name for name, check in CHECKS.items() if check.only_reads)
RUN: dict[str, Callable[[Any], dict[str, Any]]] = {
    module.CHECK.name: module.check for module in _MODULES
}
