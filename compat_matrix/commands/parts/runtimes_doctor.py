"""``savedmodel-compat doctor``: what the machine has, and whether every consumer really starts."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from compat_matrix.cells.consumers import CONSUMERS, CPP
from compat_matrix.commands.parts.examined import Examined
from compat_matrix.hosts.host import Host
from compat_matrix.runtimes import interpreters, places, registry, uv
from compat_matrix.runtimes.native import build as native
from compat_matrix.runtimes.resolve import resolve_all
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.runtimes.worker import NotStarted

LITTLE = 5 << 30  # bytes; a TensorFlow needs one to two GB, less where uv's cache has it


def examine(names: Iterable[str]) -> Iterator[Examined]:
    """Yield what the machine has for runtimes, then these runtimes and their consumers, each started.

    Raises RuntimeTrouble for a name that cannot be resolved.
    """
    known = registry.read()
    runtimes = resolve_all(",".join(names), known)
    yield from _machine(known)
    with tempfile.TemporaryDirectory() as folder:
        for runtime in runtimes:
            yield from _runtime(runtime, Path(folder))


def _machine(known: registry.Registry) -> Iterator[Examined]:
    """uv, the Pythons, the disk, the compiler. What is missing here is needed by installations only, except uv."""
    try:
        yield Examined("uv", f"{uv.run(['--version']).strip()}, {uv.find()}")
    except uv.UvTrouble as error:
        yield Examined("uv", str(error), ok=False)
    here = interpreters.here()
    for version in sorted({stanza.python for stanza in known.stanzas.values()}, key=lambda text: int(text.split(".")[1])):
        users = ", ".join(stanza.name for stanza in known.stanzas.values() if stanza.python == version)
        where = here.get(version) or f"none, so {users} cannot be installed"
        yield Examined(f"Python {version}", str(where))
    folder = places.home()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    yield Examined("disk", f"{free >> 30} GiB free for {places.home()}{' - little' if free < LITTLE else ''}")
    yield Examined("g++", _version_of("g++") or "none, so the C++ loader cannot be built")


def _version_of(program: str) -> str:
    try:
        return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return ""


def _runtime(runtime: Runtime, folder: Path) -> Iterator[Examined]:
    """Yield a runtime and each consumer, started in it. A consumer that is known to lack something there is not a defect."""
    yield Examined(runtime.name, f"TensorFlow {runtime.tensorflow_version or 'is not installed'}, {runtime.python}")
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
            versions = ", ".join(f"{part} {version}" for part, version in sorted(hello["versions"].items()))
            details = {"can": sorted(hello["capabilities"]), "uses": hello["libraries"]}
            yield Examined(name, versions, runtime=runtime.name, details=details)
