"""``savedmodel-compat doctor``: what the machine has, and whether every consumer really starts."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import click

from compat_matrix.cells.consumers import CONSUMERS, CPP
from compat_matrix.common.exit_codes import ExitCode
from compat_matrix.hosts.host import Host
from compat_matrix.runtimes import interpreters, places, registry, uv
from compat_matrix.runtimes.native import build as native
from compat_matrix.runtimes.resolve import resolve_all
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.runtimes.worker import NotStarted

LITTLE = 5 << 30  # bytes; a TensorFlow needs one to two GB, less where uv's cache has it


def examine(names: Iterable[str]) -> int:
    """Print all checks; the exit code. Raises RuntimeTrouble for a name that cannot be resolved."""
    known = registry.read()
    runtimes = resolve_all(",".join(names), known)
    well = _machine(known)
    with tempfile.TemporaryDirectory() as folder:
        for runtime in runtimes:
            well &= _runtime(runtime, Path(folder))
    return int(ExitCode.AS_EXPECTED if well else ExitCode.HARNESS_ERROR)


def _machine(known: registry.Registry) -> bool:
    """uv, the Pythons, the disk, the compiler. What is missing here is needed by installations only, except uv."""
    well = True
    try:
        click.echo(f"uv: {uv.run(['--version']).strip()}, {uv.find()}")
    except uv.UvTrouble as error:
        click.echo(f"uv: {error}")
        well = False
    here = interpreters.here()
    for version in sorted({stanza.python for stanza in known.stanzas.values()}, key=lambda text: int(text.split(".")[1])):
        users = ", ".join(stanza.name for stanza in known.stanzas.values() if stanza.python == version)
        where = here.get(version) or f"none, so {users} cannot be installed"
        click.echo(f"Python {version}: {where}")
    folder = places.home()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    click.echo(f"disk: {free >> 30} GiB free for {places.home()}{' - little' if free < LITTLE else ''}")
    click.echo(f"g++: {_version_of('g++') or 'none, so the C++ loader cannot be built'}")
    return well


def _version_of(program: str) -> str:
    try:
        return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return ""


def _runtime(runtime: Runtime, folder: Path) -> bool:
    """Start each consumer's program in a runtime; whether all that it does not lack are well."""
    click.echo(f"{runtime.name}: TensorFlow {runtime.tensorflow_version or 'is not installed'}, {runtime.python}")
    well = True
    examined = native.examined(runtime, CPP)
    without = {**examined.lacks, **examined.unready}
    with Host(folder, {runtime.name: runtime}) as host:
        for name, consumer in CONSUMERS.items():
            if name in without:
                click.echo(f"  {name}: none, {without[name]}")
                continue
            worker = host.worker(runtime.name, consumer.program)
            try:
                hello = worker.hello()
            except NotStarted as error:
                click.echo(f"  {name}: {error}")
                well = False
                continue
            finally:
                worker.close()
            versions = ", ".join(f"{part} {version}" for part, version in sorted(hello["versions"].items()))
            click.echo(f"  {name}: {versions}")
            click.echo(f"    can: {', '.join(sorted(hello['capabilities']))}")
            for library in hello["libraries"]:
                click.echo(f"    uses: {library}")
    return well
