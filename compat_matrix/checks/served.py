"""The context of a check that asks a model server, not a worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compat_matrix.cells.plan import Cell
from compat_matrix.hosts.servers import Servers
from compat_matrix.requests.artifact import Artifact


@dataclass
class ServedCell:
    """One cell being executed.

    ``ahead``: the models that are asked next. ``timings``: step -> seconds, which grow as the check
    asks. ``kept``: files that are evidence of a pass. ``rss_kib``: None, the memory of a server is
    not measured.
    """

    cell: Cell
    servers: Servers
    artifact: Artifact
    scratch: Path
    ahead: Sequence[Path] = ()
    timings: dict[str, float] = field(default_factory=dict)
    kept: dict[str, Path] = field(default_factory=dict)
    rss_kib: int | None = None
