"""Faults of a worker in one of its requests: it is killed, frozen, floods, lies."""

from __future__ import annotations

import json
from pathlib import Path

from property_tests.faults.declaring import Fault, Plant
from property_tests.faults.faulty_world import PROGRAMS
from property_tests.faults.found_by.cell import CASE, CONSUMER, OP, Cell

# Fault of `programs/faulty_worker.py` -> what is wrong, the cell that it costs.
LOST: dict[str, tuple[str, Cell]] = {
    "SIGKILL": (
        "a worker is killed while it is asked",
        Cell("CRASH", "SIGKILL", "was killed by SIGKILL while it was asked to"),
    ),
    "SIGSEGV": (
        "a worker crashes while it is asked",
        Cell("CRASH", "SIGSEGV", "was killed by SIGSEGV while it was asked to"),
    ),
    "SIGSTOP": (
        "a worker is stopped while it is asked",
        Cell("TIMEOUT", "TimeLimit", r"no reply to '\w+' within 2 s: it is stopped by a signal"),
    ),
    "exit": (
        "a worker ends while it is asked",
        Cell("CRASH", "exit 0", "ended with status 0"),
    ),
    "garbage": ("a reply is random bytes", Cell("CRASH", "garbage", "is not a reply")),
    "half": ("half a reply stands before the reply", Cell("CRASH", "garbage", "is not a reply")),
    "half_and_dead": (
        "a worker ends after half a reply",
        Cell("CRASH", "exit 9", "ended with status 9"),
    ),
    "of_another": (
        "replies to requests of other workers stand before the reply",
        Cell("CRASH", "garbage", "is not a reply"),
    ),
    "close_channel": (
        "a worker closes its channel and goes on",
        Cell("CRASH", "closed", "closed its channel and went on"),
    ),
    "twice": ("a reply comes twice", Cell("CRASH", "garbage", "is not a reply")),
}
HARMLESS = {
    "flood": "a worker writes 100 MiB to stderr",
    "close_stdout": "a worker closes its standard output",
}
# Behind a reply: the cell is lost if it was seen before the cell's end; else none is, or the next
# one of this worker if its request was on the way by then.
LATER = {
    "twice_later": "a reply comes once more later",
    "killed_later": "a worker is killed behind its reply",
    "stopped_later": "a worker is stopped behind its reply",
    "noise_later": "the start of a second reply stands behind the reply",
}


def in_a_request(fault: str) -> Plant:
    """One request to a worker, about one of the cases, has this fault."""

    def plant(folder: Path) -> None:
        place = [PROGRAMS[CONSUMER], CASE, OP, fault]
        (folder / "faults" / "schedule.json").write_text(json.dumps([place]))

    return plant


ROWS = (
    *[
        Fault(f"worker-{name}", what, in_a_request(name), cell)
        for name, (what, cell) in LOST.items()
    ],
    *[Fault(f"worker-{name}", what, in_a_request(name), Cell()) for name, what in HARMLESS.items()],
    *[
        Fault(f"worker-{name}", what, in_a_request(name), Cell(or_none=True))
        for name, what in LATER.items()
    ],
)
