"""Identify the process that started a server: it can be told from later processes of the same
number, and found dead.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

PREFIX = "savedmodel-compat.harness."  # of labels


@dataclass(frozen=True)
class Harness:
    """A process of this project.

    ``space`` is its namespace of process ids: a container has its own.
    """

    pid: int
    started: str
    host: str
    boot: str
    space: str

    def labels(self) -> dict[str, str]:
        return {PREFIX + name: str(value) for name, value in asdict(self).items()}

    @classmethod
    def from_labels(cls, labels: Mapping[str, str]) -> Harness | None:
        """None when the labels do not tell."""
        values = {
            name: labels.get(PREFIX + name, "") for name in ("started", "host", "boot", "space")
        }
        pid = labels.get(PREFIX + "pid", "")
        return cls(int(pid), **values) if pid.isdigit() and values["started"] else None


def me() -> Harness:
    return Harness(os.getpid(), started(os.getpid()) or "", platform.node(), _boot(), _space())


def started(pid: int) -> str | None:
    """Return the start time of a process, exact enough to notice that its number was reused; None
    without such a process.
    """
    if Path("/proc/self/stat").exists():
        try:
            # Behind the name, which may hold anything: state is field 3, the start in clock ticks
            # since the boot field 22.
            fields = (
                Path(f"/proc/{pid}/stat")
                .read_text(encoding="utf-8", errors="replace")
                .rpartition(")")[2]
                .split()
            )
        except OSError:
            return None
        return None if fields[0] in "ZX" else fields[19]
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.Error:
        return None


def alive(harness: Harness) -> bool | None:
    """Return whether a harness still runs; None if it cannot be known, as on another machine or in
    a container.
    """
    here = me()
    if harness.host != here.host:
        return None
    if harness.boot != here.boot:
        return False if harness.boot and here.boot else None
    if harness.space != here.space:
        return None
    return started(harness.pid) == harness.started


def _boot() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def _space() -> str:
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").readlink())
    return ""
