"""``savedmodel-compat runtimes doctor``: what a machine has, and whether every consumer starts."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from compat_matrix.cells.consumers import CONSUMERS, CPP
from compat_matrix.hosts.host import Host
from compat_matrix.runtimes import interpreters, places, registry, uv
from compat_matrix.runtimes.native import build as native
from compat_matrix.runtimes.places import NotInstalled
from compat_matrix.runtimes.resolve import install_command, resolve_all
from compat_matrix.runtimes.runtime import LOCAL, Runtime
from compat_matrix.runtimes.worker import NotStarted
from savedmodel_common import extras
from savedmodel_common.command_line.examined import Examined

LITTLE = 5 << 30  # bytes; a TensorFlow needs one to two GB, less where uv's cache has it


def examine(names: Sequence[str]) -> Iterator[Examined]:
    """Yield what the machine has for runtimes, then these runtimes and their consumers, each
    started.

    Without names the local one, which may lack TensorFlow. Raises RuntimeTrouble for a name that
    means nothing.
    """
    known = registry.read()
    runtimes, absent = _found(names, known)
    yield from _machine(known)
    for name in absent:
        yield Examined(
            name, "not installed", ok=False, command=install_command(name).partition(": ")[2]
        )
    with tempfile.TemporaryDirectory() as folder:
        for runtime in runtimes:
            if runtime.tensorflow_version is None:
                command = extras.install("tf") if runtime.name == LOCAL else ""
                says = f"TensorFlow is not installed, {runtime.python}"
                yield Examined(runtime.name, says, ok=False, command=command, needed=bool(names))
            else:
                yield from _runtime(runtime, Path(folder))


def _found(names: Sequence[str], known: registry.Registry) -> tuple[list[Runtime], list[str]]:
    """Return the runtimes that are here, and the specs of those that are not."""
    runtimes: dict[str, Runtime] = {}
    absent: list[str] = []
    for name in names or (LOCAL,):
        try:
            runtimes |= {runtime.name: runtime for runtime in resolve_all(name, known)}
        except NotInstalled as missing:
            absent += missing.specs
    return list(runtimes.values()), absent


def _machine(known: registry.Registry) -> Iterator[Examined]:
    """uv, the Pythons, the disk, the compiler.

    What is missing here is needed by installations only, except uv.
    """
    try:
        yield Examined("uv", f"{uv.run(['--version']).strip()}, {uv.find()}")
    except uv.UvTrouble as error:
        yield Examined("uv", str(error), ok=False)
    here = interpreters.here()
    for version in sorted(
        {stanza.python for stanza in known.stanzas.values()},
        key=lambda text: int(text.split(".")[1]),
    ):
        users = ", ".join(
            stanza.name for stanza in known.stanzas.values() if stanza.python == version
        )
        where = here.get(version) or f"none, so {users} cannot be installed"
        yield Examined(f"Python {version}", str(where))
    folder = places.home()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    yield Examined(
        "disk", f"{free >> 30} GiB free for {places.home()}{' - little' if free < LITTLE else ''}"
    )
    yield Examined("g++", _version_of("g++") or "none, so the C++ loader cannot be built")


def _version_of(program: str) -> str:
    try:
        return subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True
        ).stdout.splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return ""


def _runtime(runtime: Runtime, folder: Path) -> Iterator[Examined]:
    """Yield a runtime and each consumer, started in it.

    A consumer that is known to lack something there is not a defect.
    """
    yield Examined(runtime.name, f"TensorFlow {runtime.tensorflow_version}, {runtime.python}")
    examined = native.examined(runtime, CPP)
    without = {**examined.lacks, **examined.unready}
    with Host(folder, {runtime.name: runtime}) as host:
        for name, consumer in CONSUMERS.items():
            if name in without:
                yield Examined(name, f"none, {without[name]}", runtime=runtime.name)
                continue
            worker = host.worker(runtime.name, consumer.program)
            try:
                hello = worker.hello()
            except NotStarted as error:
                yield Examined(name, str(error), ok=False, runtime=runtime.name)
                continue
            finally:
                worker.close()
            versions = ", ".join(
                f"{part} {version}" for part, version in sorted(hello["versions"].items())
            )
            details = {"can": sorted(hello["capabilities"]), "uses": hello["libraries"]}
            yield Examined(name, versions, runtime=runtime.name, details=details)
