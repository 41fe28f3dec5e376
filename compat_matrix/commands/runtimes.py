"""``savedmodel-compat runtimes``: what can be asked on this machine."""

from __future__ import annotations

import click

from compat_matrix.outcomes import ExitCode


@click.group()
def runtimes() -> None:
    """The TensorFlow runtimes of this machine and the consumers that run in them."""


@runtimes.command("list")
def list_runtimes() -> None:
    """Show the runtimes, the consumers and the producers, without starting anything."""
    from compat_matrix.consumers import CONSUMERS
    from compat_matrix.producers import PRODUCERS
    from compat_matrix.runtimes import local_runtime

    runtime = local_runtime()
    click.echo(f"{runtime.name}: TensorFlow {runtime.tensorflow_version or 'is not installed'}, {runtime.python}")
    for title, table in (("consumers", CONSUMERS), ("producers", PRODUCERS)):
        click.echo(f"{title}:")
        for name, member in table.items():
            click.echo(f"  {name:<12} {member.summary}")
            if member.capabilities:
                click.echo(f"  {'':<12} can: {', '.join(sorted(member.capabilities))}")


@runtimes.command()
def doctor() -> int:
    """Start a worker for each consumer and show what it says it is. Exit code 4 when one does not start."""
    import tempfile
    from pathlib import Path

    from compat_matrix.consumers import CONSUMERS
    from compat_matrix.runtimes import Host, local_runtime
    from compat_matrix.runtimes.worker import NotStarted

    runtime = local_runtime()
    code = ExitCode.AS_EXPECTED
    with tempfile.TemporaryDirectory() as folder, Host(Path(folder)) as host:
        for name, consumer in CONSUMERS.items():
            try:
                hello = host.worker(runtime.name, consumer.program).hello()
            except NotStarted as error:
                click.echo(f"{name}: {error}")
                code = ExitCode.HARNESS_ERROR
                continue
            versions = ", ".join(f"{part} {version}" for part, version in sorted(hello["versions"].items()))
            click.echo(f"{name}: {versions}")
            click.echo(f"  can: {', '.join(sorted(hello['capabilities']))}")
            for library in hello["libraries"]:
                click.echo(f"  uses: {library}")
    return int(code)
