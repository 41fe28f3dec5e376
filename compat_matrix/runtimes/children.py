"""A worker's process: what the harness asks of it, and the usual way to start one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

CHANNEL = "SAVEDMODEL_COMPAT_FD"
TEMPORARY = "TMPDIR"  # each worker has its own

# stdout, stderr, and the worker's ends of the channel: requests, replies.
Descriptors = tuple[int, int, int, int]


class Child(Protocol):
    """A process whose end we are told.

    It stays a zombie until it is reaped, so that its group's id stays ours.
    """

    pid: int

    def exited(self) -> bool:
        """Return whether the process has ended. It is not reaped where the system allows that."""

    def stopped(self) -> bool:
        """Return whether a signal has stopped the process, where the system tells."""

    def reap(self, seconds: float) -> int | None:
        """Wait for the end of the process.

        Return its exit status, or minus the signal's number; None if it has not ended.
        """


Start = Callable[[Sequence[str], Mapping[str, str], Path, Descriptors], Child]


class Own:
    """A child process, as the leader of its own session."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        descriptors: Descriptors,
    ) -> None:
        """Start ``command`` in ``folder``. Raises OSError."""
        out, err, *channel = descriptors
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=folder,
            env={**environment, CHANNEL: ",".join(map(str, channel))},
            pass_fds=channel,
            start_new_session=True,
        )
        self.pid = self._process.pid

    def exited(self) -> bool:
        if hasattr(os, "waitid"):
            with suppress(ChildProcessError):
                return (
                    os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
                )
        return self._process.poll() is not None

    def stopped(self) -> bool:
        if not hasattr(os, "waitid"):
            return False
        with suppress(ChildProcessError):
            seen = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
            return seen is not None and seen.si_code == os.CLD_STOPPED
        return False

    def reap(self, seconds: float) -> int | None:
        with suppress(
            subprocess.TimeoutExpired
        ):  # in uninterruptible sleep: only the system can end it
            return self._process.wait(seconds)
        return None
