"""Remove the leftovers of dead harnesses: containers are found by their labels, processes by their
records.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .drivers import engine, harness
from .drivers.base import EngineTrouble
from .drivers.binary import records
from .drivers.docker import LABEL

# Of what is found.
DEAD, ALIVE, UNKNOWN = (
    "its harness is gone",
    "its harness lives",
    "its harness is of another machine or container",
)


@dataclass(frozen=True)
class Found:
    """A container or a process of ours.

    ``removed``: whether it is gone now; ``trouble``: why it could not be removed.
    """

    what: str
    state: str
    removed: bool
    trouble: str = ""


def containers(client: Any, everything: bool, dry_run: bool) -> Iterator[Found]:
    """Remove the containers of dead harnesses; with ``everything`` all of ours.

    Raises EngineTrouble.
    """
    with engine.asked("containers of ours"):
        ours = client.api.containers(all=True, filters={"label": f"{LABEL}=1"})
    for one in ours:
        labels, number = one.get("Labels") or {}, str(one["Id"])
        state = _state(harness.Harness.from_labels(labels))
        what = (
            f"container {(one.get('Names') or [number[:12]])[0].lstrip('/')}"
            f" ({one.get('Status', '')})"
        )
        if state != DEAD and not everything:
            yield Found(what, state, False)
            continue
        try:
            if not dry_run:
                with engine.asked(f"removing {what}"):
                    client.api.remove_container(number, force=True, v=True)
            yield Found(what, state, not dry_run)
        except EngineTrouble as trouble:
            yield Found(what, state, False, str(trouble))


def processes(everything: bool, dry_run: bool) -> Iterator[Found]:
    """End the server processes of dead harnesses; with ``everything`` all of ours.

    Records of ended ones are removed.
    """
    for record in sorted(records().glob("*.json")):
        try:
            told = json.loads(record.read_text(encoding="utf-8"))
            pid, began, owner = (
                int(told["pid"]),
                str(told["started"]),
                harness.Harness(**told["harness"]),
            )
            command = Path(str(told["command"][0])).name
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            if not dry_run:
                record.unlink(missing_ok=True)
            continue
        state = _state(owner)
        if state == UNKNOWN:
            continue  # its number has no meaning here
        # If the number now belongs to another process, nothing of ours is left.
        lives = harness.me().boot == owner.boot and harness.started(pid) == began
        if lives and (state == DEAD or everything):
            if not dry_run:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)  # a guard leads its group
            yield Found(f"process {pid} ({command})", state, not dry_run)
        elif lives:
            yield Found(f"process {pid} ({command})", state, False)
            continue
        if not dry_run:
            record.unlink(missing_ok=True)


def _state(owner: harness.Harness | None) -> str:
    lives = harness.alive(owner) if owner is not None else None
    if lives is None:
        return UNKNOWN
    return ALIVE if lives else DEAD
