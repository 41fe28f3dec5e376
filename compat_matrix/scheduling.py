"""How pytest-xdist distributes the cells. Imported only when it does."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling


class ByArtifact(LoadScopeScheduling):  # type: ignore[misc]
    """Cells of one artifact go to one process, in their order; a process that dies costs the cell it was at.

    The base class gives that cell to the next process as well, and addresses a process that has not collected yet.
    """

    def _split_scope(self, nodeid: str) -> str:
        """``case/producer@version`` of ``plan.json::case/producer@version/consumer@version/check``."""
        return "/".join(nodeid.partition("::")[2].split("/")[:2])

    def remove_node(self, node: Any) -> str | None:
        """Take back what a process had left to do; returns the cell it died at, if it died."""
        workload = self.assigned_work.pop(node)
        pending = [(unit, nodeid) for unit in workload.values() for nodeid, done in unit.items() if not done]
        if not pending:
            return None
        unit, crashed = pending[0]
        unit[crashed] = True
        self.workqueue.update({scope: unit for scope, unit in workload.items() if not all(unit.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return str(crashed)

    def _reschedule(self, node: Any) -> None:
        if node in self.registered_collections:
            super()._reschedule(node)
