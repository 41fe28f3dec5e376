"""Make the Keras 2 models that the cache lacks."""

from __future__ import annotations

import sys
from collections import Counter

import click

from savedmodel_migration.keras_models import material


@click.command(help=material.__doc__)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--release",
    "releases",
    multiple=True,
    type=click.Choice(material.RELEASES),
    help="Default: all of them.",
)
@click.option("--small", is_flag=True, help="The small set of CI.")
def main(names: tuple[str, ...], releases: tuple[str, ...], small: bool) -> None:
    selected = material.select((*names, *(material.SMALL if small else ())))
    absent = False
    for release in releases or material.RELEASES:
        try:
            for name, state in material.make(release, selected):
                click.echo(f"{release}: {name}: {state}")
        except material.RuntimeTrouble as error:
            click.echo(f"{release}: skipped: {error}", err=True)
            absent = True
            continue
        found = [material.stored(release, name) for name in selected]
        states = Counter("made" if m and m.usable else "not made" for m in found)
        click.echo(f"{release}: {dict(states)}")
    sys.exit(4 if absent else 0)


if __name__ == "__main__":
    main()
