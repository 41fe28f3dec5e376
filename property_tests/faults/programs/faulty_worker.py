"""A fake worker under a schedule: what goes wrong once, in which request about which case; run in
place of every worker.

``FAULTS`` names a folder: ``schedule.json`` is ``[[program, case, op, fault], ...]``, ``artifact``
what a production makes, ``journal`` gets a line as each request begins and ends.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[3]))
sys.path.append(str(Path(__file__).parents[3] / "tests" / "support"))

import fake_worker
from fake_worker import WRITE_FD, protocol

HERE = Path(os.environ["FAULTS"])
PROGRAM = sys.argv[-1]
FLOOD = 100 << 20  # bytes
PAUSE = float(
    os.environ.get("FAULTS_PAUSE", "0")
)  # seconds in each request, so that a random moment is within one


class FaultyWorker(fake_worker.FakeWorker):
    """Does what the schedule says, before its reply or behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.case = "-"
        self.behind = ""

    def produce(self, case: str, directory: str, scratch: str) -> None:
        for part in ("model", "io"):
            shutil.copytree(HERE / "artifact" / part, Path(directory, part))

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        op = request["op"]
        if op == "load":
            self.case = Path(request["dir"]).parts[-3]
        elif op == "produce":
            self.case = Path(request["case"]).stem
        elif "handle" in request:  # of a model that another check loaded
            self.case = Path(self.models[request["handle"]]["directory"]).parts[-3]
        if op != "hello":
            note(f"begin {op} {self.case}")
            time.sleep(PAUSE)
        fault = scheduled(self.case, op)
        if fault:
            sys.stderr.write(f"last words of {self.case} in {op}\n")
            self.behind = before(fault, request["id"])
        reply: dict[str, Any] = super().answer(request)
        if op != "hello":
            note(f"end {op} {self.case}")
        return reply


def send(replies: Any, reply: dict[str, Any]) -> None:
    """In place of the protocol's: a fault may come behind the reply."""
    data = (json.dumps(reply) + "\n").encode()
    fault, WORKER.behind = WORKER.behind, ""
    replies.write(data * 2 if fault == "twice" else data)
    if fault == "twice_later":
        replies.write(data)
    elif fault == "killed_later":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "stopped_later":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif fault == "noise_later":
        replies.write(b'{"id": ')


def before(fault: str, number: int) -> str:
    """Do what comes before the reply; the fault that is left for behind it."""
    if fault.startswith("SIG"):
        os.kill(os.getpid(), signal.Signals[fault])
    elif fault == "exit":
        os._exit(0)
    elif fault == "garbage":
        os.write(WRITE_FD, os.urandom(3000).replace(b"\n", b" ") + b"\n")
    elif fault == "half":
        os.write(WRITE_FD, b'{"id": %d, "status": "ok", "hand' % number)
    elif fault == "half_and_dead":
        os.write(WRITE_FD, b'{"id": %d, "status": "ok", "hand' % number)
        os._exit(9)
    elif fault == "of_another":
        for other in (
            number % (1 << 20),
            number + (1 << 20),
        ):  # those of a worker that counts from one, and of a younger one
            os.write(
                WRITE_FD, b'{"id": %d, "status": "ok", "handle": 1, "signatures": {}}\n' % other
            )
    elif fault == "flood":
        line = b"x" * 1023 + b"\n"
        for _ in range(FLOOD >> 20):
            os.write(2, line * 1024)
    elif fault == "close_stdout":
        os.close(1)
    elif fault == "close_channel":
        os.close(WRITE_FD)
        time.sleep(600)
    else:
        return fault
    return ""


def scheduled(case: str, op: str) -> str:
    """The fault of a request, which happens once."""
    for number, (*where, fault) in enumerate(json.loads((HERE / "schedule.json").read_text())):
        if where == [PROGRAM, case, op]:
            with suppress(FileExistsError):
                (HERE / f"done-{number}").open("x").close()
                return str(fault)
    return ""


def note(text: str) -> None:
    handle = os.open(HERE / "journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{os.getpid()} {PROGRAM} {text}\n".encode())
    os.close(handle)


if __name__ == "__main__":
    protocol._send = send

    def make() -> FaultyWorker:
        global WORKER
        WORKER = FaultyWorker()
        return WORKER

    protocol.serve(make)
