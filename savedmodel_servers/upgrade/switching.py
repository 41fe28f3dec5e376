"""Run one order of an upgrade under load: forward and back, with real servers and both exports of
every model.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from compat_matrix.requests.artifact import Artifact
from savedmodel_common import staging
from savedmodel_common.serving.messages import ModelConfig
from savedmodel_servers.client import (
    ModelRef,
    ServerError,
    ServingError,
    VersionStatus,
)
from savedmodel_servers.drivers import Driver, Endpoint
from savedmodel_servers.launch import Launched, Launcher
from savedmodel_servers.served import SERVE, Limits, connect
from savedmodel_servers.upgrade import sides
from savedmodel_servers.upgrade.client_requests import ClientRequest
from savedmodel_servers.upgrade.clients import Clients, Lost, learn
from savedmodel_servers.upgrade.load import Load
from savedmodel_servers.upgrade.sides import NEW, OLD, Place
from savedmodel_servers.verdicts import words_of

VERSIONS = {OLD: 1, NEW: 2}  # an export is a version of its model
LIMITS = Limits()
END_LIMIT = 5.0  # seconds from a broken connection to the end of the process
PAUSE = 0.1  # seconds between two looks at a server


class _Failed(Exception):
    """A server did not do what a step needs."""


class Traveller:
    """Runs the orders of an upgrade, with drivers of servers and exports of each model by side,
    while requests are asked.

    ``left_out``: lines that name what clients were not made to ask, and why.
    """

    def __init__(
        self,
        drivers: Mapping[str, Driver],
        exports: Mapping[str, Mapping[str, Artifact]],
        requests: Sequence[ClientRequest],
        work: Path,
        limits: Limits = LIMITS,
    ) -> None:
        self._drivers, self._exports, self._requests = drivers, exports, requests
        self._work, self._limits = work, limits
        self.left_out: dict[str, None] = {}

    def go(self, order: str) -> tuple[list[dict[str, Any]], str]:
        """Run one order forward and back.

        Raises NotStarted, NotHere, EngineTrouble: a server could not be started at all.

        Return the steps, each with the number of answers of each transport after it, and what
        failed, "" if nothing did.
        """
        steps: list[dict[str, Any]] = []
        work = self._work / order.replace(" ", "-")
        with ExitStack() as stack:
            servers: dict[str, TwoExports] = {}
            load: Load | None = None
            before: Place | None = None
            for place in sides.places(order):
                doing = sides.step(before, place) if before else f"start: {place}"
                try:
                    if place.server not in servers:
                        server = TwoExports(
                            self._drivers[place.server],
                            work / place.server,
                            self._exports,
                            self._limits,
                        )
                        stack.callback(server.close)
                        servers[place.server] = server
                    here = servers[place.server]
                    if load is not None and before is not None and before.server == place.server:
                        load.aim(
                            here.endpoint, OLD, NEW
                        )  # during the switch, either export may answer
                    here.hold(place.export)
                    if load is None:
                        load = stack.enter_context(Load(self._learned(here.endpoint)))
                    load.aim(here.endpoint, place.export)
                    answers = load.settle()
                except (Lost, _Failed) as error:
                    # A connection may break some time before the process ends.
                    seen = [
                        (side, one.end(END_LIMIT if side == place.server else 0))
                        for side, one in servers.items()
                    ]
                    ends = (f"the {side} server {end}" for side, end in seen if end)
                    return steps, "; ".join([f"{doing}: {error}", *ends])
                steps.append(
                    {
                        "step": doing,
                        "server": place.server,
                        "export": place.export,
                        "answers": answers,
                    }
                )
                before = place
        return steps, ""

    def _learned(self, endpoint: Endpoint) -> Clients:
        """Return the clients of the old export on the old server. Raises Lost."""
        clients = learn(endpoint, self._requests)
        self.left_out |= dict.fromkeys(clients.left_out)
        return clients


class TwoExports:
    """A running server that holds both exports of every model, and serves one of them."""

    def __init__(
        self,
        driver: Driver,
        work: Path,
        exports: Mapping[str, Mapping[str, Artifact]],
        limits: Limits,
    ) -> None:
        self._folder = folder = staging.Staging(work / "models").folder
        for name, artifacts in exports.items():
            for side, artifact in artifacts.items():
                staging.place(artifact.model, folder / name / str(VERSIONS[side]))
        self._names, self._limits = tuple(exports), limits
        self._launched: Launched = Launcher(driver, folder, work, SERVE, limits, connect).launch([])
        for name in exports:
            self._launched.server.add(name)
        self.endpoint = self._launched.endpoint

    def hold(self, side: str) -> None:
        """Serve only this export of every model. Raises _Failed."""
        version, base = VERSIONS[side], self._launched.seen
        policy = {"specific": {"versions": [version]}}
        configs = [
            ModelConfig(
                name=name,
                base_path=f"{base}/{name}",
                model_platform="tensorflow",
                model_version_policy=policy,
            )
            for name in self._names
        ]
        try:
            self._launched.grpc.reload(configs, limit=self._limits.available)
            for name in self._names:
                self._until_only(name, version)
        except ServingError as error:
            raise _Failed(str(error)) from error

    def _until_only(self, name: str, version: int) -> None:
        """Wait until one version of a model is served."""
        deadline = time.monotonic() + self._limits.available
        while True:
            states = self._states(name)
            wanted = next((one for one in states if one.version == version), None)
            others = [
                one
                for one in states
                if one.version != version and one.state not in ("END", "UNKNOWN")
            ]
            if wanted is not None and wanted.state == "AVAILABLE" and not others:
                return
            if wanted is not None and wanted.state == "END" and wanted.error_code:
                raise _Failed(f"{name}: {wanted.error_message}")
            if self.end() or time.monotonic() > deadline:
                told = (
                    ", ".join(f"version {one.version} is {one.state}" for one in states)
                    or "it has no version"
                )
                raise _Failed(f"{name}: version {version} is not the one that is served: {told}")
            time.sleep(PAUSE)

    def _states(self, name: str) -> list[VersionStatus]:
        try:
            return self._launched.grpc.status(ModelRef(name), limit=self._limits.up)
        except ServerError:
            return []  # NOT_FOUND: it has not read the folder yet

    def end(self, limit: float = 0) -> str:
        """Return how the server ended, now or within ``limit`` seconds, and its last output; ""
        while it runs.
        """
        state = self._launched.ended_within(limit)
        return f"{state}: {words_of(self._launched.server.logs())}" if state else ""

    def close(self) -> None:
        """Stop the server. Its logs are kept; the staged models are removed."""
        self._launched.close()
        shutil.rmtree(self._folder, ignore_errors=True)
