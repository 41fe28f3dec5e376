"""Servers in containers: the official image's contract (ports 8500 and 8501, ``/models``, arguments
appended), and no privileges.

The folder of models is bind-mounted read-only where the engine sees the harness's files; that is
tried, not believed: a file with a word of our own is read back through the engine. Where it is not
seen (another machine, a virtual one that does not share the folder) the models are copied into the
container. No container removes itself: its log and exit state are copied first.
"""

from __future__ import annotations

import functools
import io
import itertools
import os
import tarfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from savedmodel_common import interrupts

from . import engine, harness, images
from .base import GRPC_PORT, REST_PORT, Driver, EngineTrouble, ServerIdentity, need_grpc
from .container import MODELS, ContainerServer, packed

LABEL, RUN_LABEL = "savedmodel-compat.serving", "savedmodel-compat.run"
MEMORY = 4 << 30  # bytes, and never more than three quarters of what the engine has
CPUS = 2.0
ATTEMPTS = 3
PAUSE = 1.0  # seconds before another attempt
PROBE = ".probe"
UNSEEN = (
    "bind source path",
    "no such file",
    "not shared",
    "statfs",
)  # how engines say that they have no such folder
INIT = ("docker-init", "container-init", "catatonit", "init binary")
LOG_BYTES = "64m"  # kept by the engine


class DockerDriver(Driver):
    """Starts servers of one image.

    ``image`` None: the stand-in's newest. ``memory`` in bytes, ``cpus`` as a number of them.
    """

    def __init__(
        self, image: str | None, memory: int | None = None, cpus: float | None = None
    ) -> None:
        super().__init__()
        self.name = "standin" if image is None else image
        self._wanted, self._memory, self._cpus = image, memory, cpus
        self._client: Any = None
        self._image: Any = None
        self._identity: ServerIdentity | None = None
        self._with_init = True
        self._numbers = itertools.count(1)
        self.run = uuid.uuid4().hex[:12]

    # What it is
    # ----------------------------------------------------------------------------------------------

    def identify(self) -> ServerIdentity:
        if self._identity is None:
            need_grpc()
            client = self._engine()
            name = self._wanted or images.standin(client)
            self._image = images.find(client, name)
            self._identity = images.identify(client, self._image, name, self._labels())
        return self._identity

    def _engine(self) -> Any:
        if self._client is None:
            self._client = engine.connect()
        return self._client

    def _labels(self) -> dict[str, str]:
        return {LABEL: "1", RUN_LABEL: self.run, **harness.me().labels()}

    def seen(self, folder: Path) -> str:
        return MODELS

    # Starting
    # ----------------------------------------------------------------------------------------------

    def start(self, folder: Path, flags: Sequence[str], evidence: Path) -> ContainerServer:
        self.identify()
        for left in reversed(range(ATTEMPTS)):
            try:
                return self._start(folder, flags, evidence)
            except EngineTrouble as trouble:
                if not trouble.passing or not left:
                    raise
                self.retried.append(str(trouble))
                time.sleep(PAUSE)
        raise AssertionError("unreachable")

    def _start(self, folder: Path, flags: Sequence[str], evidence: Path) -> ContainerServer:
        name = f"savedmodel-compat-{self.run}-{next(self._numbers)}"
        try:
            container, copied = self._created(name, folder, flags)
            interrupts.check()
            self._started(container)
        except BaseException:  # also an interruption: what was created has a name that is known
            self._discard(name)
            raise
        return ContainerServer(
            container, self._client, evidence, folder if copied else None, engine.remote_host()
        )

    def _created(self, name: str, folder: Path, flags: Sequence[str]) -> tuple[Any, bool]:
        """The container, not started, with its models; whether they are a copy."""
        if engine.remote_host() is None:
            word = uuid.uuid4().hex
            (folder / PROBE).write_text(word, encoding="ascii")
            try:
                container = self._create(name, flags, folder)
                if _read_back(container) == word:
                    return container, False
            except EngineTrouble as trouble:
                if not any(words in str(trouble).lower() for words in UNSEEN):
                    raise
            finally:
                (folder / PROBE).unlink(missing_ok=True)
            self._discard(name)
        container = self._create(name, flags, None)
        with engine.asked(f"copying models into {name}"):
            container.put_archive("/", packed(folder, "", MODELS.strip("/")))
        return container, True

    def _create(self, name: str, flags: Sequence[str], folder: Path | None) -> Any:
        from docker.types import Mount

        more: dict[str, Any] = {}
        if folder is not None:
            more["mounts"] = [Mount(MODELS, str(folder.resolve()), type="bind", read_only=True)]
            more["read_only"] = True  # a copy needs a root file system that can be written
            more["user"] = self._user()
        more.update(self._resources())
        try:
            return self._contained(name, flags, more)
        except EngineTrouble as trouble:
            if self._goes_without_init(trouble):
                return self._contained(name, flags, more)
            raise

    def _contained(self, name: str, flags: Sequence[str], more: dict[str, Any]) -> Any:
        from docker.types import LogConfig

        address = "127.0.0.1" if engine.remote_host() is None else ""
        return engine.created(
            self._client,
            self._image.id,
            list(flags),
            name,
            labels=self._labels(),
            ports={f"{port}/tcp": (address, None) for port in (GRPC_PORT, REST_PORT)},
            environment={"MODEL_BASE_PATH": MODELS},
            tmpfs={"/tmp": "rw,size=256m,mode=1777"},
            init=self._with_init,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            log_config=LogConfig(type="json-file", config={"max-size": LOG_BYTES}),
            **more,
        )

    @functools.cached_property
    def _info(self) -> dict[str, Any]:
        """Return the engine's description of itself."""
        with engine.asked("info"):
            return dict(self._client.info())

    def _resources(self) -> dict[str, Any]:
        info = self._info
        has = int(info.get("MemTotal") or 0)
        memory = self._memory or (min(MEMORY, has * 3 // 4) if has else MEMORY)
        cpus = min(self._cpus or CPUS, float(info.get("NCPU") or CPUS))
        return {"mem_limit": memory, "memswap_limit": memory, "nano_cpus": int(cpus * 1e9)}

    def _user(self) -> str | None:
        """Return the user to run as, who staged the models and can read them; a root without
        capabilities may not be able to.
        """
        if not hasattr(os, "getuid"):
            return None
        options = " ".join(self._info.get("SecurityOptions") or [])
        # There the container's root is the user of the engine, and any other number is somebody
        # else.
        return (
            None if "rootless" in options or "userns" in options else f"{os.getuid()}:{os.getgid()}"
        )

    def _started(self, container: Any) -> None:
        try:
            with engine.asked(f"starting {container.name}"):
                container.start()
        except EngineTrouble as trouble:
            if self._goes_without_init(trouble):
                raise EngineTrouble(f"{trouble}; tried again without it", passing=True) from trouble
            raise

    def _goes_without_init(self, trouble: EngineTrouble) -> bool:
        """Return whether to try again without an init process, whose program is missing: podman
        says so when it creates a container, docker when it starts one."""
        lacks = self._with_init and any(words in str(trouble) for words in INIT)
        if lacks:
            self._with_init = False
        return lacks

    # The end
    # ----------------------------------------------------------------------------------------------

    def _discard(self, name: str) -> None:
        from docker.errors import NotFound

        try:
            with engine.asked(f"removing {name}"):
                self._client.api.remove_container(name, force=True, v=True)
        except EngineTrouble as trouble:
            if not isinstance(trouble.__cause__, NotFound):
                self.retried.append(str(trouble))

    def close(self) -> None:
        """Remove what is left of this run, found by its label."""
        if self._client is None:
            return
        try:
            with engine.asked("containers of this run"):
                left = self._client.containers.list(
                    all=True, filters={"label": f"{RUN_LABEL}={self.run}"}, ignore_removed=True
                )
            for container in left:
                self._discard(container.name)
        except EngineTrouble as trouble:
            self.retried.append(str(trouble))
        self._client.close()
        self._client = None


def _read_back(container: Any) -> str | None:
    """The probe as the container sees it; works before it is started."""
    from docker.errors import NotFound

    with engine.asked("reading the probe"):
        try:
            chunks, _ = container.get_archive(f"{MODELS}/{PROBE}")
        except NotFound:
            return None
        data = b"".join(chunks)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        member = archive.next()
        stream = archive.extractfile(member) if member is not None else None
        return stream.read().decode("ascii", "replace") if stream is not None else None
