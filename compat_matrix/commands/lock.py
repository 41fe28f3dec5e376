"""Write lock files of runtimes: ``python -m compat_matrix.commands.lock tf2.21``.

For people who work on this project: it writes into the package.
"""

from __future__ import annotations

import click

from compat_matrix.commands.parts.refusing import refusing_trouble
from compat_matrix.runtimes import places, registry
from savedmodel_common.command_line import programs
from savedmodel_common.command_line.claims import claims
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import unknown


@claims(
    green="the locks are written",
    asked="the registry of packages",
    not_asked="whether the environments work (`runtimes install`)",
)
@click.command()
@click.argument("names", metavar="RUNTIME...", nargs=-1, required=True)
@click.option(
    "--upgrade", is_flag=True, help="Take the newest versions, not those of the lock file."
)
@refusing_trouble()
def lock(names: tuple[str, ...], upgrade: bool) -> int:
    """Write the lock file of each RUNTIME of the registry: the exact versions of its packages, with
    hashes.

    \b
    Examples:
      python -m compat_matrix.commands.lock tf2.21
    """
    from compat_matrix.runtimes import locking

    known = registry.read()
    for name in names:
        stanza = known.find(name)
        if stanza is None:
            raise places.UnknownRuntime(unknown("runtime of the registry", [name], known.stanzas))
        changed = locking.lock(stanza, known, upgrade)
        click.echo(f"{stanza.name}: {'written' if changed else 'as it was'}")
    return int(ExitCode.AS_EXPECTED)


if __name__ == "__main__":
    programs.run(lock)
