"""Give models to a running server and watch each of them: the second of the two clocks."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from savedmodel_common import interrupts
from savedmodel_common.staging import VERSION, Staged

from .client import (
    BadAnswer,
    ModelRef,
    ServerError,
    ServingError,
    Timeout,
    Unreachable,
    VersionStatus,
)
from .launch import Launched
from .verdicts import Fell, NoReload

FINAL = ("AVAILABLE", "END")
PAUSES = (0.02, 0.5)  # seconds between two looks, from and to
STATUS_LIMIT = 10.0  # seconds for one state
ANSWER_LIMIT = 30.0  # seconds from the last state to the answer of the request
REFUSED_CONFIGS = ("INVALID_ARGUMENT", "FAILED_PRECONDITION")


def load(
    now: Launched, wanted: Sequence[Staged], fresh: Sequence[Staged], limit: float, reload: bool
) -> dict[str, list[VersionStatus]]:
    """Make the server hold exactly ``wanted``, and wait until all of ``fresh`` are available or
    have ended.

    ``limit``: seconds without any change. ``reload`` False: it has been started with them. Returns
    the states of the one version, by name. Raises Fell, NoReload.
    """
    mark = now.server.log_size()
    request = _Reload(now, wanted, limit * max(1, len(fresh))) if reload else None
    seen: dict[str, list[VersionStatus]] = {staged.name: [] for staged in fresh}
    pending = list(fresh)
    changed, pause = time.monotonic(), PAUSES[0]
    while pending:
        interrupts.check()
        if _look(now, pending, seen):
            changed, pause = time.monotonic(), PAUSES[0]
        pending = [
            staged
            for staged in pending
            if not seen[staged.name] or seen[staged.name][-1].state not in FINAL
        ]
        if not pending:
            break
        state = now.server.exit_state()
        if state is not None:
            raise Fell(state, pending, log=now.server.logs(mark))
        if request is not None:
            request.check(pending, seen)
        if time.monotonic() - changed > limit:
            loading = [
                staged
                for staged in pending
                if seen[staged.name] and seen[staged.name][-1].state == "LOADING"
            ]
            raise Fell(None, loading or pending, waited=limit, log=now.server.logs(mark))
        time.sleep(pause)
        pause = min(pause * 1.5, PAUSES[1])
    if request is not None:
        request.join(min(limit, ANSWER_LIMIT))
    return seen


def _look(now: Launched, pending: Sequence[Staged], seen: dict[str, list[VersionStatus]]) -> bool:
    """Query the states of all models; return whether one changed."""
    changed = False
    for staged in pending:
        try:
            states = now.grpc.status(ModelRef(staged.name), limit=STATUS_LIMIT)
        except ServerError:
            continue  # NOT_FOUND: it has not read the folder yet
        except (Unreachable, Timeout, BadAnswer):
            return changed  # the caller then checks whether it has ended
        ours = [one for one in states if one.version == VERSION]
        if ours and (not seen[staged.name] or seen[staged.name][-1] != ours[-1]):
            seen[staged.name].append(ours[-1])
            changed = True
    return changed


class _Reload:
    """The pending request: a server answers it when all its models are loaded or have failed to
    load.
    """

    def __init__(self, now: Launched, wanted: Sequence[Staged], limit: float) -> None:
        from savedmodel_common.serving.messages import ModelConfig

        self._configs = [
            ModelConfig(
                name=staged.name, base_path=f"{now.seen}/{staged.name}", model_platform="tensorflow"
            )
            for staged in wanted
        ]
        self._now, self._limit = now, limit
        self._error: ServingError | None = None
        self._thread = threading.Thread(
            target=self._ask, daemon=True, name="HandleReloadConfigRequest"
        )
        self._thread.start()

    def _ask(self) -> None:
        client, rest = self._now.connect(
            self._now.endpoint
        )  # a client must not be shared by two threads
        try:
            client.reload(self._configs, limit=self._limit)
        except ServingError as error:
            self._error = error
        finally:
            client.close()
            if rest is not None:
                rest.close()

    def check(self, pending: Sequence[Staged], seen: dict[str, list[VersionStatus]]) -> None:
        """Raises NoReload where there is no such request, Fell where the list was refused."""
        error = None if self._thread.is_alive() else self._error
        if not isinstance(error, ServerError):
            return  # for a broken connection, the state of the server tells more
        if error.code == "UNIMPLEMENTED":
            raise NoReload(str(error))
        if error.code in REFUSED_CONFIGS and not any(seen[staged.name] for staged in pending):
            raise Fell(
                None, pending, refusal=f"the server refused the list of models: {error.message}"
            )

    def join(self, limit: float) -> None:
        """Wait until the request is answered: the next one would wait for it."""
        self._thread.join(limit)
