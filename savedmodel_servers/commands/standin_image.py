"""Build the container image of the stand-in for TensorFlow Serving:
``python -m savedmodel_servers.commands.standin_image``.

`matrix run --servers-only` and `check --server standin` build it where it is missing.
"""

from __future__ import annotations

import click

from compat_matrix.commands.parts.refusing import refusing_trouble
from savedmodel_common.command_line import programs
from savedmodel_common.command_line.claims import claims
from savedmodel_common.exit_codes import ExitCode


@claims(
    green="the image is there",
    asked="whether it was built",
    not_asked="whether models work in it (`matrix run --servers-only`)",
)
@click.command()
@click.argument("runtime", default="local", metavar="[RUNTIME]")
@click.option("--tag", help="Name of the image. Default: savedmodel-compat-standin:VERSION.")
@refusing_trouble()
def image(runtime: str, tag: str | None) -> int:
    """Build the container image of the stand-in for TensorFlow Serving, with the TensorFlow of
    RUNTIME (default: local), from files of this machine.

    Nothing is downloaded. An existing image with the same content is kept.

    \b
    Examples:
      python -m savedmodel_servers.commands.standin_image
    """
    from savedmodel_servers.drivers import engine
    from savedmodel_standin.image import build

    client = engine.connect()
    try:
        with engine.asked("building the image"):
            number = build(client, tag, runtime)
            names = ", ".join(client.images.get(number).tags)
    finally:
        client.close()
    click.echo(f"{names}: {number}")
    return int(ExitCode.AS_EXPECTED)


if __name__ == "__main__":
    programs.run(image)
