"""One container that serves: where it answers, how it ended, its log, and the evidence that
outlives it.
"""

from __future__ import annotations

import io
import json
import tarfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import engine
from .base import EXIT, GRPC_PORT, LOG, REST_PORT, Endpoint, EngineTrouble, ExitState, Server

MODELS = "/models"  # in every container
LOG_GRACE = 5.0  # seconds for the rest of a log after the end
LOG_LIMIT = 64 << 20  # bytes of it that are kept
PATIENCE, PAUSE = (
    4,
    1.0,
)  # questions to an engine that does not answer, and the seconds between them


class ContainerServer(Server):
    """A started container.

    ``copied_from``: the folder its models are copied from, None when it is mounted.
    """

    def __init__(
        self,
        container: Any,
        client: Any,
        evidence: Path,
        copied_from: Path | None,
        host: str | None,
    ) -> None:
        self._container, self._client, self._evidence, self._copied_from = (
            container,
            client,
            evidence,
            copied_from,
        )
        self._host = host
        self.name = str(container.name)
        self._state: ExitState | None = None
        self._stopped = False
        evidence.mkdir(parents=True, exist_ok=True)
        self._log = evidence / LOG
        self._log.touch()
        self._follower = threading.Thread(
            target=self._follow, daemon=True, name=f"log of {self.name}"
        )
        self._follower.start()

    def _follow(self) -> None:
        """Copies the log while it is written: it must not be lost with the engine."""
        with suppress(Exception):  # whatever ends it early: `stop` takes the whole log once more
            client = engine.connect()
            try:
                written = 0
                with self._log.open("ab", buffering=0) as stream:
                    for chunk in client.containers.get(self._container.id).logs(
                        stream=True, follow=True
                    ):
                        written += stream.write(chunk[: LOG_LIMIT - written])
            finally:
                client.close()

    @property
    def copied(self) -> bool:
        return self._copied_from is not None

    def endpoint(self) -> Endpoint | None:
        """From the mapping, which engines may show a moment after the start, and over IPv6 only."""
        with engine.asked(f"ports of {self.name}"):
            self._container.reload()
        ports = (self._container.attrs.get("NetworkSettings") or {}).get("Ports") or {}
        grpc, rest = (published(ports.get(f"{port}/tcp")) for port in (GRPC_PORT, REST_PORT))
        if grpc is None or rest is None:
            return None
        # Both are published alike; an address of one family serves both.
        host = self._host or (grpc[0] if grpc[0] == rest[0] else "localhost")
        return Endpoint(host, grpc[1], rest[1])

    def exit_state(self) -> ExitState | None:
        from docker.errors import NotFound

        if self._state is not None:
            return self._state
        for left in reversed(range(PATIENCE)):
            try:
                with engine.asked(f"state of {self.name}"):
                    self._container.reload()
                    break
            except EngineTrouble as trouble:
                if isinstance(trouble.__cause__, NotFound):
                    self._state = ExitState(
                        137, signal=9, error="the container was removed by somebody else"
                    )
                    return self._state
                if not trouble.passing or not left:
                    raise
                time.sleep(PAUSE)  # an engine that is started anew
        self._state = ended(self._container.attrs.get("State") or {})
        return self._state

    def log_size(self) -> int:
        self._refresh()
        return self._log.stat().st_size

    def logs(self, start: int = 0) -> str:
        if self._state is not None:
            self._follower.join(LOG_GRACE)
        self._refresh()
        with self._log.open("rb") as stream:
            stream.seek(start)
            return stream.read().decode("utf-8", "replace")

    def add(self, name: str) -> None:
        if self._copied_from is None:
            return
        with engine.asked(f"copying {name} into {self.name}"):
            self._container.put_archive("/", packed(self._copied_from, name, MODELS.strip("/")))

    def kill(self) -> None:
        from docker.errors import APIError

        with suppress(EngineTrouble), engine.asked(f"killing {self.name}"), suppress(APIError):
            self._container.kill()  # an error: it is not running
        with suppress(EngineTrouble), engine.asked(f"waiting for {self.name}"):
            self._container.wait(timeout=LOG_GRACE)

    def stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        troubles: list[str] = []
        before = None
        try:
            before = self.exit_state()
            if before is None:
                self.kill()
            self._follower.join(LOG_GRACE)
            self._take_log()
            self.exit_state()
        except EngineTrouble as trouble:
            troubles.append(str(trouble))
        state = self._state or ExitState(-1, error="how it ended is not known")
        told = {
            **asdict(state),
            "stopped_by_harness": before is None,
            "container": self._container.id,
            "trouble": troubles,
        }
        (self._evidence / EXIT).write_text(json.dumps(told, indent=1), encoding="utf-8")
        with suppress(EngineTrouble), engine.asked(f"removing {self.name}"):
            self._client.api.remove_container(self._container.id, force=True, v=True)
        self._follower.join(LOG_GRACE)

    def _refresh(self) -> None:
        """The log anew, where nobody follows it any more: the engine was gone for a while, or the
        server has ended.
        """
        if not self._follower.is_alive() and not self._stopped:
            with suppress(EngineTrouble):
                self._take_log()

    def _take_log(self) -> None:
        """Replace the log by the whole log of the container, if that is longer."""
        with engine.asked(f"log of {self.name}"):
            whole: bytes = self._container.logs()[:LOG_LIMIT]
        if len(whole) > self._log.stat().st_size:
            self._log.write_bytes(whole)


def published(mapping: Any) -> tuple[str, int] | None:
    """``(address to connect to, port)`` from one entry of the mapping of ports; IPv4 where there is
    one.
    """
    if not mapping:
        return None
    entries = sorted(mapping, key=lambda one: ":" in (one.get("HostIp") or ""))
    address = entries[0].get("HostIp") or "0.0.0.0"
    # What listens on every address is asked on the machine's own.
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address), int(entries[0]["HostPort"])


def ended(state: Mapping[str, Any]) -> ExitState | None:
    """Return the exit state from an engine's description of a container, or None while it runs."""
    if state.get("Running") or state.get("Status") in (
        "created",
        "running",
        "restarting",
        "removing",
        "paused",
    ):
        return None
    dates = {
        "started": str(state.get("StartedAt", "")),
        "finished": str(state.get("FinishedAt", "")),
    }
    error = str(state.get("Error", ""))
    return ExitState.of(
        int(state.get("ExitCode") or 0),
        oom_killed=bool(state.get("OOMKilled")),
        error=error,
        **dates,
    )


def packed(folder: Path, name: str, root: str) -> bytes:
    """A tar archive of ``folder/name`` (or all of it) below ``root``, readable by every user of the
    container.
    """

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mode = 0o755 if member.isdir() else 0o644
        return member

    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.add(folder / name, arcname=str(Path(root) / name), filter=plain)
    return stream.getvalue()
