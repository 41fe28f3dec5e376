"""Which TensorFlow releases load which part of a model, and why not.

Task: Look at models
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.lists import Choice, list_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import counted, printable, told
from savedmodel_tools.commands.parts.models import (
    answers,
    jobs_of_models,
    model_options,
    models_named,
    tell_skipped,
)

if TYPE_CHECKING:
    from savedmodel_tools.compat import GraphCompat, Use, Verdict
    from savedmodel_tools.find import Found, Model
    from savedmodel_tools.skew.history import History
    from savedmodel_tools.skew.needs import GraphNeeds

LOADERS = ("session", "c++", "objects")
LOADER_HELP = (
    "session (tf.compat.v1 in Python), c++ (Serving, Go, Java), objects (tf.saved_model.load)"
)
SHOWN_REASONS = 3  # of one release
SHOWN_PARTS = 12


@claims(
    green="every part loads: in each release of --target; without, in one release at least",
    asked=lambda: _claimed(),
    not_asked=(
        "whether the answers are the same (`gate`, `check`); GPU kernels; what ops do to a machine"
        " (`verify`)"
    ),
    codes={
        ExitCode.UNEXPECTED: "a part does not load, or loses something, or the model cannot be read"
    },
)
@click.command()
@model_options
@click.option(
    "--target",
    metavar="VERSIONS",
    help='Releases to ask about: "tensorflow>=1.15,<2.22", 2.4; default: all that are known.',
)
@list_option("--for", "loaders", type=Choice(LOADERS), help=f"Only {LOADER_HELP}; default: all.")
@click.option(
    "--ops",
    is_flag=True,
    help=(
        "Ask only which releases have all ops, attrs, values, dtypes and CPU kernels of each part."
    ),
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object (docs/compat.md).")
@click.option(
    "--full", is_flag=True, help="Show all parts, and all that the nearest other releases lack."
)
@click.option(
    "--summary",
    is_flag=False,
    flag_value="table",
    type=Choice(["table", "csv"]),
    help="One line for each model: the releases in which all its parts load; as a table or as CSV.",
)
@jobs_of_models
def compat(
    models: tuple[str, ...],
    lists: tuple[str, ...],
    follow_links: bool,
    ops: bool,
    target: str | None,
    loaders: tuple[str, ...],
    as_json: bool,
    full: bool,
    summary: str | None,
    jobs: int,
) -> int:
    """Show which TensorFlow releases load the SavedModels at MODELS..., part by part, and what
    keeps the others from it.

    Exit code 1: with --target, when a part does not load, or loses something, in one of these
    releases; without, when a part loads in no release at all; and for a model that cannot be read.
    With --ops: when a part has all its ops in no release.

    \b
    Examples:
      savedmodel-compat compat model
      savedmodel-compat compat models --summary csv
      savedmodel-compat compat model --target 'tensorflow>=2.12,<2.16'
    """
    from functools import partial

    from savedmodel_tools import targets
    from savedmodel_tools.jobs import Died, ordered
    from savedmodel_tools.skew.history import history

    found = models_named(models, lists, follow_links)
    if ops:
        if target or loaders or summary or jobs > 1:
            raise click.UsageError(
                "--ops goes with --json and --full alone: it asks all releases about the ops, for"
                " every loader"
            )
        return show_needs(found, as_json, full, follow_links)
    if summary and (as_json or full):
        raise click.UsageError("--summary is a form of its own: without --json and --full")
    table = history()
    try:
        asked = targets.releases(target, table) if target else tuple(range(len(table.releases)))
    except targets.NoTarget as error:
        raise click.UsageError(printable(str(error))) from error
    names = [table.releases[index].name for index in asked]
    chosen = loaders or LOADERS
    code = ExitCode.AS_EXPECTED
    out: list[dict[str, Any]] = []
    rows: list[list[str]] = []
    ask = partial(
        _asked, asked=asked, follow_links=follow_links, advise=not as_json and not summary
    )
    for model, answer in zip(found.models, ordered(ask, found.models, jobs)):
        if isinstance(answer, (Died, str)):
            failure = answer.reason if isinstance(answer, Died) else answer
            code = ExitCode.UNEXPECTED
            out.append({"path": model.name, "error": failure})
            rows.append([model.name, *["?"] * len(chosen), failure])
            if not as_json and not summary:
                click.echo(printable(f"{model.name}\n  {failure}"))
            continue
        graphs, rewritable, sound = answer
        uses = [use for graph in graphs for use in graph.uses if use.loader in chosen]
        good = all(_good(use, bool(target)) for use in uses)
        code = code if good else ExitCode.UNEXPECTED
        line = {
            "path": model.name,
            "ok": good,
            "meta_graphs": [_json(graph, chosen, table) for graph in graphs],
        }
        if len(asked) == 1 and not good:
            line["rewritable"] = rewritable
        out.append(line)
        rows.append([model.name, *(_cell(_whole(uses, loader), table) for loader in chosen), ""])
        if not as_json and not summary:
            _show(model.name, graphs, chosen, table, full)
            stopped = [
                loader
                for loader in chosen
                if any(use.loader == loader and not _loads(use, True) for use in uses)
            ]
            if "rewritable" in line and stopped:
                click.echo(f"    {_advice(rewritable, chosen, stopped, asked[0], sound, table)}")
    rows.insert(0, ["model", *chosen, "error"])
    if summary == "table" and not any(row[-1] for row in rows[1:]):
        rows = [row[:-1] for row in rows]
    if summary == "csv":
        click.echo(_csv(rows), nl=False)
    elif summary:
        _print_table(rows)
    if not as_json and summary != "csv" and len(found.models) > 1:
        click.echo(_summary(out, names, bool(target)))
    skipped = [item._asdict() for item in found.skipped]
    if as_json:
        click.echo(json.dumps({"schema": 1, "releases": names, "models": out, "skipped": skipped}))
    else:
        tell_skipped(found.skipped)
    return code if not skipped else ExitCode.UNEXPECTED


_Answer = tuple[list["GraphCompat"], list[str], dict[str, set[int]]]


def _asked(model: Model, asked: tuple[int, ...], follow_links: bool, advise: bool) -> _Answer | str:
    """Return what `_graphs` says of a model, or why it cannot be read."""
    from reference_impl.errors import SavedModelError

    try:
        return _graphs(model, asked, follow_links, advise)
    except (SavedModelError, OSError) as error:
        return told(error)


def _whole(uses: list[Use], loader: str) -> Use | None:
    """All parts of a model through one loader as one: it loads where every part does."""
    from savedmodel_tools.compat import Use

    mine = [use for use in uses if use.loader == loader]
    if not mine:
        return None
    found: dict[int, list[Verdict]] = {}
    for use in mine:
        for index, verdict in use.verdicts.items():
            found.setdefault(index, []).append(verdict)
    verdicts = {index: _together(each) for index, each in found.items()}
    return Use(
        *("model", loader, verdicts),
        tuple(why for use in mine for why in use.untold),
        tuple(why for use in mine for why in use.refused),
    )


def _together(verdicts: list[Verdict]) -> Verdict:
    """Return the verdict on several parts as one."""
    from savedmodel_tools.compat import Verdict

    reasons = tuple(reason for verdict in verdicts for reason in verdict.reasons)
    risks = tuple(risk for verdict in verdicts for risk in verdict.risks)
    return Verdict(all(verdict.loads for verdict in verdicts), reasons, risks)


def _csv(rows: list[list[str]]) -> str:
    import csv
    import io

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [printable(field, newlines=False) for field in row] for row in rows
    )
    return text.getvalue()


def _print_table(rows: list[list[str]], indent: str = "") -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        line = "  ".join(f"{text:<{width}}" for text, width in zip(row, widths))
        click.echo(printable(f"{indent}{line}".rstrip(), newlines=False))


def _graphs(model: Model, asked: tuple[int, ...], follow_links: bool, advise: bool) -> _Answer:
    """Return what each MetaGraph needs.

    If one release is asked about and not all is well there, add the loaders for which `downgrade`
    could rewrite the model. To ``advise``, add for each loader the releases of the op history that
    load all of it, which takes as long as to ask them all.
    """
    from reference_impl.format.container import layout
    from savedmodel_tools.compat import of_graph, of_model
    from savedmodel_tools.skew.history import history

    with model.local() as path:
        found = layout.read(path, follow_links=follow_links)
        graphs = of_model(found, asked, history())
    if len(asked) != 1 or all(_good(use, True) for graph in graphs for use in graph.uses):
        return graphs, [], {}
    from savedmodel_tools.downgrade.model import plan

    planned = plan(found, asked[0])
    refused = {loader for _, loaders in planned.refused for loader in loaders}
    refused.update(
        use.loader for graph in graphs for use in graph.uses if use.refused
    )  # no rewrite of ops mends that
    after = [of_graph(graph, asked, history()) for graph in planned.message.meta_graphs]
    bad, still_bad = _bad(graphs), _bad(after)
    rewritable = [
        loader
        for loader in LOADERS
        if loader not in refused and (not bad[loader] or still_bad[loader] < bad[loader])
    ]
    if not advise:
        return graphs, rewritable, {}
    everywhere = of_model(found, range(len(history().releases)), history())
    return graphs, rewritable, {loader: _sound(everywhere, loader) for loader in LOADERS}


def _sound(graphs: list[GraphCompat], loader: str) -> set[int]:
    """Return the releases in which every part loads through a loader and loses nothing."""
    whole = _whole([use for graph in graphs for use in graph.uses], loader)
    return (
        set()
        if whole is None
        else {index for index in whole.members if not whole.verdicts[index].risks}
    )


def _bad(graphs: list[GraphCompat]) -> dict[str, set[tuple[int, str]]]:
    """Loader -> the parts, as (number of the MetaGraph, name), that do not load, or lose something,
    in a release asked about.
    """
    bad: dict[str, set[tuple[int, str]]] = {loader: set() for loader in LOADERS}
    for number, graph in enumerate(graphs):
        for use in graph.uses:
            if not _loads(use, True):
                bad[use.loader].add((number, use.part))
    return bad


def _advice(
    rewritable: list[str],
    loaders: tuple[str, ...],
    stopped: list[str],
    index: int,
    sound: dict[str, set[int]],
    table: History,
) -> str:
    """Return what `downgrade` can do for the loaders that the model stops, or which releases load
    it if no newer one does.
    """
    from savedmodel_tools.skew.advice import words

    release = table.releases[index].name
    fit = [loader for loader in loaders if loader in rewritable]
    helped = [loader for loader in fit if loader in stopped]
    if helped:
        which = "" if len(fit) == len(LOADERS) else "".join(f" --for {loader}" for loader in fit)
        return (
            f"downgrade --target {release}{which} rewrites it for {', '.join(helped)}, and"
            " proves it"
        )
    there = sorted(set.intersection(*(sound[loader] for loader in stopped)))
    if any(other > index for other in there):
        return f"downgrade cannot rewrite it for {release}"
    if there:
        return (
            f"only older releases load all of it for {', '.join(stopped)}:"
            f" {words(table.text(there))}"
        )
    return f"no release loads all of it for {', '.join(stopped)}"


def _summary(lines: list[dict[str, Any]], releases: list[str], all_asked: bool) -> str:
    """How many of the models are well."""
    failed = sum("error" in line for line in lines)
    good = sum(line.get("ok", False) for line in lines)
    where = (
        f"in {releases[0]}"
        if len(releases) == 1
        else "in every release asked about"
        if all_asked
        else "in some release"
    )
    unreadable = f", {failed} cannot be read" if failed else ""
    return f"{good} of {counted(len(lines), 'model')} load {where} with all parts{unreadable}"


def _good(use: Use, all_asked: bool) -> bool:
    """Whether a part does, and it is told, in every release that was asked about; or, where none
    was named, in any.
    """
    return _loads(use, all_asked) and not use.untold


def _loads(use: Use, all_asked: bool) -> bool:
    if not all_asked:
        return bool(use.members) or not use.verdicts
    return all(verdict.loads and not verdict.risks for verdict in use.verdicts.values())


def _json(graph: GraphCompat, loaders: tuple[str, ...], table: History) -> dict[str, Any]:
    uses = [
        {
            "part": use.part,
            "loader": use.loader,
            "releases": table.text(use.members),
            "fails": {
                table.releases[index].name: list(item.reasons)
                for index, item in use.verdicts.items()
                if not item.loads
            },
            "risks": {
                table.releases[index].name: list(item.risks)
                for index, item in use.verdicts.items()
                if item.risks
            },
            **({"not_told": list(use.untold)} if use.untold else {}),
        }
        for use in graph.uses
        if use.loader in loaders
    ]
    return {
        "tags": list(graph.tags),
        "tensorflow_version": graph.written_by,
        "producer": graph.producer,
        "uses": uses,
    }


def _show(
    name: str, graphs: list[GraphCompat], loaders: tuple[str, ...], table: History, full: bool
) -> None:
    click.echo(printable(name, newlines=False))
    for graph in graphs:
        click.echo(f"  {_head(graph)}")
        parts: dict[str, dict[str, Use]] = {}
        for use in graph.uses:
            if use.loader in loaders:
                parts.setdefault(use.part, {})[use.loader] = use
        shown = list(parts) if full else list(parts)[:SHOWN_PARTS]
        cells = {
            part: [_cell(parts[part].get(loader), table) for loader in loaders] for part in shown
        }
        _print_table([["", *loaders], *([part, *cells[part]] for part in shown)], "    ")
        if len(shown) < len(parts):
            click.echo(f"    {len(parts) - len(shown)} more parts: --full")
        for line in _untold([use for items in parts.values() for use in items.values()]):
            click.echo(printable(f"    {line}", newlines=False))
        for line in _reasons(
            [use for items in parts.values() for use in items.values()], table, full
        ):
            click.echo(printable(f"    {line}", newlines=False))


def _head(graph: GraphCompat | GraphNeeds) -> str:
    from reference_impl.format.container.layout import tags_text

    return printable(
        f"MetaGraph {tags_text(graph.tags)}  TensorFlow {graph.written_by or '?'}, GraphDef"
        f" {graph.producer}",
        newlines=False,
    )


def _cell(use: Use | None, table: History) -> str:
    from savedmodel_tools.skew.advice import words

    if use is None:
        return ""
    if not use.verdicts:
        return "(no such loader)"
    if use.untold and use.members:
        refused = [index for index in use.verdicts if use.refused and index not in use.members]
        return f"not told; not in {words(table.text(refused))}" if refused else "not told"
    if len(use.verdicts) == 1:
        return "yes" if use.members else "no"
    if len(use.members) == len(use.verdicts):
        return "all asked"
    return words(table.text(use.members)) if use.members else "none"


def _untold(uses: list[Use]) -> list[str]:
    """Why parts are not told."""
    lines: dict[str, dict[str, None]] = {}
    for use in uses:
        for why in use.untold if use.members else ():
            lines.setdefault(why, {})[use.loader] = None
    return [f"not told: {why}  ({', '.join(loaders)})" for why, loaders in lines.items()]


def _reasons(uses: list[Use], table: History, full: bool) -> list[str]:
    """Return what the releases next to those that load it lack, or what the newest lacks; then what
    is lost silently.
    """
    lines: dict[tuple[int, str], dict[str, None]] = {}
    for use in uses:
        members, asked = set(use.members), sorted(use.verdicts)
        edges = [
            at
            for place, at in enumerate(asked)
            if at not in members and members & set(asked[max(place - 1, 0) : place + 2])
        ]
        for index in edges if members else asked[-1:]:
            for reason in use.verdicts[index].reasons:
                lines.setdefault((index, reason), {})[use.loader] = None
        for index in [index for index in asked if use.verdicts[index].risks][-1:]:
            for risk in use.verdicts[index].risks:
                lines.setdefault((index, f"loads, but {risk}"), {})[use.loader] = None
    out, count = [], dict.fromkeys((index for index, _ in lines), 0)
    for (index, reason), loaders in sorted(lines.items(), key=lambda item: -item[0][0]):
        count[index] += 1
        if full or count[index] <= SHOWN_REASONS:
            out.append(f"{table.releases[index].name} {reason}  ({', '.join(loaders)})")
        elif count[index] == SHOWN_REASONS + 1:
            out.append(f"{table.releases[index].name} lacks more: --full")
    return out


def show_needs(found: Found, as_json: bool, full: bool, follow_links: bool) -> int:
    """Print what the ops of the models need; the exit code is 1 when a part runs in no release, or
    a model cannot be read.
    """
    from savedmodel_tools.skew.history import history
    from savedmodel_tools.skew.needs import needs, to_json

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
            code = (
                code
                if all(part.members for graph in graphs for part in graph.parts)
                else ExitCode.UNEXPECTED
            )
        if as_json:
            continue
        if not alone:
            click.echo(
                printable(
                    ": ".join(filter(None, [model.name, described[-1].get("error")])),
                    newlines=False,
                )
            )
        for graph in graphs:
            _show_graph_needs(graph, table, full)
    if as_json:
        one = (
            {key: value for key, value in described[0].items() if key != "path"} if alone else None
        )
        click.echo(
            json.dumps(
                one
                or {
                    "schema": 1,
                    "models": described,
                    "skipped": [item._asdict() for item in found.skipped],
                }
            )
        )
        return code
    tell_skipped(found.skipped)
    if not described:
        return code
    click.echo(
        "Only ops are looked at: not Python objects, checkpoints or libraries of custom ops."
    )
    if not all(release.has_kernels for release in table.releases):
        names = ", ".join(release.name for release in table.releases if not release.has_kernels)
        click.echo(f"The kernels of {names} are not known.")
    return code


def _show_graph_needs(graph: GraphNeeds, table: History, full: bool) -> None:
    from savedmodel_tools.skew.advice import words

    click.echo(_head(graph))
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
            for lack in lacks if full else lacks[:SHOWN_REASONS]:
                where = ", ".join(filter(None, [lack.what, part.where(lack)]))
                click.echo(printable(f"    {release} lacks {where}", newlines=False))
            if not full and len(lacks) > SHOWN_REASONS:
                click.echo(f"    {release} lacks {len(lacks) - SHOWN_REASONS} more: --full")


def _claimed() -> str:
    from savedmodel_tools.skew.history import history

    names = [release.name for release in history().releases]
    return (
        f"the op history of {names[0]} to {names[-1]}, for the loaders {', '.join(LOADERS)};"
        " nothing is run"
    )
