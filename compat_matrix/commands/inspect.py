"""Show what a SavedModel contains.

Task: Look at models
"""

from __future__ import annotations

import click

SECTIONS = ("signatures", "objects", "functions", "variables", "assets", "init", "effects", "collections", "sizes", "ops")


@click.command()
@click.argument("path", type=click.Path(exists=True))
@click.option("--json", "as_json", is_flag=True, help="One JSON object (schema in reference_impl/inspection/types.py).")
@click.option("--tags", help="Only the MetaGraph with exactly these tags, separated by commas.")
@click.option("--only", multiple=True, type=click.Choice(SECTIONS), help="Show only this section; may be repeated.")
@click.option("--full", is_flag=True, help="Abbreviate nothing.")
@click.option("--follow-links", is_flag=True, help="Accept symbolic links that lead out of the directory.")
def inspect(path: str, as_json: bool, tags: str | None, only: tuple[str, ...], full: bool, follow_links: bool) -> int:
    """Show what the SavedModel at PATH (a directory or a saved_model.* file) contains.

    Signatures, the object tree, functions with their Python signatures, variables, assets, initialisers, what acts on the
    machine (files, terminal, Python, network) and when, the ops of the graph and all its functions. Exits with 1 when
    something is damaged or missing; what it is stands under "problems".
    """
    from reference_impl.inspection.model import inspect as look

    wanted = None if tags is None else [tag.strip() for tag in tags.split(",") if tag.strip()]
    info = look(path, wanted, follow_links=follow_links)
    if as_json:
        import json

        click.echo(json.dumps(info.to_json(), separators=(",", ":")))
    else:
        from compat_matrix.commands.parts.inspect_tree import show

        show(info, only or SECTIONS, full)
    return 1 if info.problems else 0
