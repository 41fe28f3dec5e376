"""How a model or its server failed to serve, and the words for it that a log has."""

from __future__ import annotations

import re
from collections.abc import Sequence

from savedmodel_common.staging import Staged

from .client import VersionStatus
from .drivers.base import ExitState

REFUSED, CRASHED, HUNG, KILLED = "refused", "crashed", "hung", "killed"

LOG_TAIL = 64 << 10  # characters that go with a verdict


class NotServed(Exception):
    """A model that no server serves, and why.

    Attributes:
      kind: "refused" (the server said no), "crashed" (it killed the server, at load or at a
        request), "hung", or "killed" (the server got SIGKILL, SIGTERM or the like below its memory
        limit: from the machine, or somebody on it).
      reason: one line.
      error: the state of the model that the server told, if it told one.
      log: what the server wrote since the load of the model, or the request, began.
      exit: how the server ended, if it did.
    """

    def __init__(
        self,
        kind: str,
        reason: str,
        error: VersionStatus | None = None,
        log: str = "",
        exit: ExitState | None = None,
    ) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.error, self.log, self.exit = (
            kind,
            reason,
            error,
            log[-LOG_TAIL:],
            exit,
        )

    def again(self) -> NotServed:
        """The same, to be raised once more."""
        return NotServed(self.kind, self.reason, self.error, self.log, self.exit)


class NotStarted(Exception):
    """The server itself does not start, or not stay, with no model to blame.

    ``log``: what it wrote.
    """

    def __init__(self, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.reason, self.log = reason, log[-LOG_TAIL:]


class Fell(Exception):
    """Raised when a server failed to load models: it ended (``state``), refused all of them
    (``refusal``), or hangs.

    ``suspects``: the models that may be the cause, empty for all; ``waited``: seconds without a
    change; ``log``: the part since they were added.
    """

    def __init__(
        self,
        state: ExitState | None,
        suspects: Sequence[Staged] = (),
        waited: float = 0,
        refusal: str = "",
        log: str = "",
    ) -> None:
        super().__init__(refusal or str(state))
        self.state, self.suspects, self.waited, self.refusal, self.log = (
            state,
            list(suspects),
            waited,
            refusal,
            log,
        )


class NoReload(Exception):
    """Raised when a running server does not accept another list of models."""


def crashed(state: ExitState, where: str, log: str) -> NotServed:
    """Return the verdict on a model whose server crashed or was killed."""
    said = f"the server {state} {where}; the log says: {words_of(log)}"
    return NotServed(KILLED if state.from_outside else CRASHED, said, log=log, exit=state)


def fallen(fall: Fell, static: bool) -> NotServed:
    """Return the verdict on the one model that may be the cause. A ``static`` server had it from
    the start, and ends if it does not load."""
    if fall.refusal:
        return NotServed(REFUSED, fall.refusal, log=fall.log)
    if fall.state is None:
        said = (
            f"nothing happened for {fall.waited:g} s while it was loaded; the log says:"
            f" {words_of(fall.log)}"
        )
        return NotServed(HUNG, said, log=fall.log)
    if static and fall.state.signal is None and not fall.state.oom_killed:
        said = f"the server {fall.state} with it; the log says: {words_of(fall.log)}"
        return NotServed(REFUSED, said, log=fall.log, exit=fall.state)
    return crashed(fall.state, "while it was loaded", fall.log)


# 2026-11-21 21:38:28.123456: E path/file.cc:123] text
_LINE = re.compile(
    r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: ([EFW]) \S+\] (.*)$|^(F|E)\d{4} .*?\] (.*)$",
    re.MULTILINE,
)


def words_of(log: str) -> str:
    """Return the line of a log that says what went wrong: the last fatal one, else the last error,
    else the last line.
    """
    found = [(one[1] or one[3], one[2] or one[4]) for one in _LINE.finditer(log)]
    for letter in "FE":
        texts = [text for which, text in found if which == letter]
        if texts:
            return texts[-1].strip()
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1] if lines else "its log is empty"
