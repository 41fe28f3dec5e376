"""The scheduler that distributes cells to processes of pytest-xdist.

Imported only if xdist is used.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

from xdist.scheduler import LoadScopeScheduling

from compat_matrix.cells.plan import Plan


class ByScope(LoadScopeScheduling):  # type: ignore[misc]
    """Send the cells of one scope to one process, in their order.

    If a process dies, only its current cell is lost.

    The scope is the artifact, whose production comes first. In a plan over many runtimes it is the
    runtime, which takes seconds to start, or a share of its artifacts if there are more processes
    than runtimes. The base class would also give the lost cell to the next process, and address a
    process that has not collected yet.
    """

    def __init__(self, config: Any, log: Any, plan: Plan) -> None:
        super().__init__(config, log)
        self.by_id = plan.by_id
        self.by_runtime = plan.in_phases
        self.shares = max(1, -(-self.numnodes // max(1, len(plan.runtimes))))

    def _split_scope(self, nodeid: str) -> str:
        """Return the scope of ``plan.json::cell id``."""
        cell = self.by_id[nodeid.partition("::")[2]]
        return (
            f"{cell.runtime}/{crc32(cell.artifact_id.encode()) % self.shares}"
            if self.by_runtime
            else cell.artifact_id
        )

    def remove_node(self, node: Any) -> str | None:
        """Take back the remaining cells of a process; return its current cell if it died."""
        workload = self.assigned_work.pop(node)
        pending = []
        for unit in workload.values():
            pending += [(unit, nodeid) for nodeid, done in unit.items() if not done]
        if not pending:
            return None
        unit, crashed = pending[0]
        unit[crashed] = True
        self.workqueue.update(
            {scope: unit for scope, unit in workload.items() if not all(unit.values())}
        )
        for other in self.assigned_work:
            self._reschedule(other)
        return str(crashed)

    def _reschedule(self, node: Any) -> None:
        if node in self.registered_collections:
            super()._reschedule(node)
