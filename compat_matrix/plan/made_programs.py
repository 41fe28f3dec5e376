"""Programs that must be compiled, and environments of plug-ins that must be made, before cells run
under a time limit.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Iterable

from compat_matrix.cells.consumers import CPP
from compat_matrix.cells.plan import Plan
from compat_matrix.cells.registry import OURS, Registry
from compat_matrix.runtimes.native import build as native
from compat_matrix.runtimes.places import RuntimeTrouble
from compat_matrix.runtimes.programs import Program
from compat_matrix.runtimes.runtime import Runtime


def make_programs(
    plan: Plan, wanted: Collection[str], runtimes: Iterable[Runtime], registry: Registry = OURS
) -> None:
    """Make the missing programs and environments of the cells ``wanted``.

    A failure is reported by the cells themselves.
    """
    cells = [cell for cell in plan if cell.id in wanted]
    compiled = {cell.runtime for cell in cells if cell.consumer == CPP}
    for runtime in runtimes:
        if runtime.name in compiled:
            with contextlib.suppress(native.BuildError):
                native.build(runtime, lambda text: print(text, file=sys.stderr, flush=True))
    asked = {cell.producer if cell.is_production else cell.consumer for cell in cells}
    for plugins in registry.theirs:
        for one in plugins:
            if one.name in asked and isinstance(one.program, Program):
                with contextlib.suppress(RuntimeTrouble):
                    one.program.environment_of_lock()
