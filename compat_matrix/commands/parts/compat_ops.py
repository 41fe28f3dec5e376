"""``savedmodel-compat compat --ops``: which releases have all ops of a model, for every loader."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from compat_matrix.commands.parts.models import answers, tell_skipped
from compat_matrix.common.exit_codes import ExitCode
from compat_matrix.common.printable import printable, told

if TYPE_CHECKING:
    from compat_matrix.models.find import Found
    from compat_matrix.skew.history import History
    from compat_matrix.skew.needs import GraphNeeds

SHOWN_LACKS = 3  # of one release


def show_needs(found: Found, as_json: bool, full: bool, follow_links: bool) -> int:
    """Print what the ops of the models need; the exit code is 1 when a part runs in no release, or a model cannot be read."""
    from compat_matrix.skew.history import history
    from compat_matrix.skew.needs import needs, to_json

    table = history()
    code = ExitCode.UNEXPECTED if found.skipped else ExitCode.AS_EXPECTED
    described: list[dict[str, Any]] = []
    alone = len(found.models) == 1 and not found.skipped
    for model, answer in answers(found.models, lambda path: needs(path, follow_links=follow_links)):
        graphs = [] if isinstance(answer, Exception) else answer
        if isinstance(answer, Exception):
            if alone:
                raise answer
            described.append({"path": model.name, "error": told(answer)})
            code = ExitCode.UNEXPECTED
        else:
            described.append({"path": model.name, **to_json(graphs, table)})
            code = code if all(part.members for graph in graphs for part in graph.parts) else ExitCode.UNEXPECTED
        if as_json:
            continue
        if not alone:
            click.echo(printable(": ".join(filter(None, [model.name, described[-1].get("error")])), newlines=False))
        for graph in graphs:
            _show(graph, table, full)
    if as_json:
        one = {key: value for key, value in described[0].items() if key != "path"} if alone else None
        click.echo(json.dumps(one or {"schema": 1, "models": described, "skipped": [item._asdict() for item in found.skipped]}))
        return code
    tell_skipped(found.skipped)
    if not described:
        return code
    click.echo("Only ops are looked at: not Python objects, checkpoints or libraries of custom ops.")
    if not all(release.has_kernels for release in table.releases):
        names = ", ".join(release.name for release in table.releases if not release.has_kernels)
        click.echo(f"The kernels of {names} are not known.")
    return code


def _show(graph: GraphNeeds, table: History, full: bool) -> None:
    from compat_matrix.skew.advice import words

    tags = ", ".join(graph.tags) or "(no tags)"
    click.echo(printable(f"MetaGraph {tags}  TensorFlow {graph.written_by or '?'}, GraphDef {graph.producer}", newlines=False))
    width = max(len(part.name) for part in graph.parts)
    last: Any = None
    for part in graph.parts:
        releases = words(table.text(part.members)) if part.members else "no release of the table"
        click.echo(printable(f"  {part.name:<{width}}  {releases}", newlines=False))
        if part.reasons == last:
            continue
        last = part.reasons
        for index, lacks in part.reasons:
            release = table.releases[index].name
            for lack in lacks if full else lacks[:SHOWN_LACKS]:
                where = ", ".join(filter(None, [lack.what, part.where(lack)]))
                click.echo(printable(f"    {release} lacks {where}", newlines=False))
            if not full and len(lacks) > SHOWN_LACKS:
                click.echo(f"    {release} lacks {len(lacks) - SHOWN_LACKS} more: --full")
