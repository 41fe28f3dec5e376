"""Workers as forks of a process that has imported TensorFlow.

An import takes seconds of CPU, a fork some hundredths of one (the benchmark "start of a worker").
The worker's side is ``compat_matrix/workers/forking.py``. Where a system cannot fork so, a worker
starts by its command.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from compat_matrix.runtimes.children import CHANNEL, TEMPORARY, Child, Descriptors, Own, Start
from reference_impl.remembering import found_once
from savedmodel_common import interrupts

IMPORT_LIMIT = 300.0  # seconds to import TensorFlow, on a cold and busy machine
_SLICE = 0.25  # seconds between looks for an interrupt
_KEPT = 2  # processes that fork; a migration has one with a network and one without


class _Fork:
    """A process that a :class:`_Forker` forked."""

    def __init__(self, forker: _Forker, pid: int) -> None:
        self.pid, self._forker = pid, forker
        self._status: int | None = None
        self._end: int | None = os.pidfd_open(pid)

    def exited(self) -> bool:
        return self._ended(0)

    def _ended(self, seconds: float) -> bool:
        if self._end is None:
            return True
        poller = select.poll()
        poller.register(self._end, select.POLLIN)
        return bool(poller.poll(seconds * 1000))

    def stopped(self) -> bool:
        with suppress(OSError):
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
        return False

    def reap(self, seconds: float) -> int | None:
        if self._end is not None and self._ended(seconds):
            self._status = self._forker.reap(self.pid)
            os.close(self._end)
            self._end = None
        return self._status


class _CannotFork(Exception):
    """Raised when a process does not fork: it has no TensorFlow, it has threads, it has died, or
    the system lacks the means.
    """


class _Forker:
    """A process that has imported TensorFlow and forks (``compat_matrix/workers/forking.py``)."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [*command, "forking", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._lock = threading.Lock()
        self._forks: set[int] = set()  # not reaped yet
        self._retired = False
        self.has_forked = False

    def fork(
        self, program: str, environment: Mapping[str, str], folder: Path, descriptors: Descriptors
    ) -> _Fork:
        """Return a new process. Raises _CannotFork."""
        request = {
            "program": program,
            "folder": str(folder),
            "environment": dict(environment),
            "channel": CHANNEL,
        }
        reply = self._ask(request, descriptors)
        if "pid" not in reply:
            raise _CannotFork(reply["refused"])
        self._forks.add(reply["pid"])
        self.has_forked = True
        return _Fork(self, reply["pid"])

    def reap(self, pid: int) -> int | None:
        """Return the exit status of a fork that has ended; None if this process has died before
        it.
        """
        try:
            return os.waitstatus_to_exitcode(self._ask({"reap": pid})["status"])
        except _CannotFork:
            return None
        finally:
            self._forks.discard(pid)
            if self._retired:
                self.retire()

    def _ask(self, request: Mapping[str, Any], descriptors: Sequence[int] = ()) -> Any:
        with self._lock:
            try:
                socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
                reply = self._receive()
            except OSError as error:
                raise _CannotFork(str(error)) from error
            except (
                BaseException
            ):  # interrupted: its reply would be taken for the reply to the next request
                self._close()
                raise
        if not reply:
            raise _CannotFork("the process that forks has ended")
        return json.loads(reply)

    def _receive(self) -> bytes:
        poller = select.poll()
        poller.register(self._socket, select.POLLIN)
        deadline = time.monotonic() + IMPORT_LIMIT
        while not poller.poll(_SLICE * 1000):
            interrupts.check()
            if time.monotonic() > deadline:
                raise TimeoutError("TensorFlow was not imported in time")
        return self._socket.recv(1 << 16)

    def retire(self) -> None:
        """Fork no more: end the process when all its forks have been reaped."""
        self._retired = True
        if not self._forks:
            self._close()

    def _close(self) -> None:
        self._socket.close()
        self._process.kill()
        self._process.wait()


class _Pool:
    """The processes that fork, by what they share with their forks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keepers = 0
        self._forkers: dict[Any, _Forker] = {}  # the last one used stands last
        self._refused: set[Any] = set()  # these never forked

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Allow processes that fork. They end with the last of these contexts."""
        with self._lock:
            self._keepers += 1
        try:
            yield
        finally:
            with self._lock:
                self._keepers -= 1
                if not self._keepers:
                    self._leave(0)
                    self._refused.clear()

    def fork(
        self,
        command: Sequence[str],
        shared: Mapping[str, str],
        environment: Mapping[str, str],
        folder: Path,
        ends: Descriptors,
    ) -> _Fork:
        """Return a fork that runs ``command``. Raises _CannotFork."""
        *words, program = command
        key = (os.getpid(), *words, *sorted(shared.items()))
        with self._lock:
            if not self._keepers or key in self._refused or not _system_can():
                raise _CannotFork(
                    "nobody keeps the process, it did not fork before, or the system lacks the"
                    " means"
                )
            if key not in self._forkers:
                self._leave(_KEPT - 1)
            forker = self._forkers[key] = (
                self._forkers.pop(key) if key in self._forkers else _Forker(words, shared)
            )
        try:
            return forker.fork(program, environment, folder, ends)
        except _CannotFork:
            with self._lock:
                if not forker.has_forked:  # else it has died since, and the next one will do
                    self._refused.add(key)
                if self._forkers.get(key) is forker:
                    del self._forkers[key]
            forker.retire()
            raise

    def _leave(self, most: int) -> None:
        for key in list(self._forkers)[: max(len(self._forkers) - most, 0)]:
            self._forkers.pop(key).retire()


@found_once
def _system_can() -> bool | None:
    """Return True if the system tells the end of a process that is not our child, else None."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):  # also for want of descriptors, which may end
        return None
    return True


_pool = _Pool()
kept = _pool.kept


def forked(own_names: Collection[str]) -> Start:
    """Return the way to start a program of ours that imports TensorFlow: a fork where that can be,
    else its command.

    ``own_names``: the variables of its environment that other programs do not have, though they
    share the import.
    """

    def start(
        command: Sequence[str], environment: Mapping[str, str], folder: Path, ends: Descriptors
    ) -> Child:
        shared = {
            name: value
            for name, value in environment.items()
            if name not in {*own_names, TEMPORARY}
        }
        try:
            return _pool.fork(command, shared, environment, folder, ends)
        except _CannotFork:
            return Own(command, environment, folder, ends)

    return start
