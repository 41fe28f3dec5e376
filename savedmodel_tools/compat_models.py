"""Which releases load the models that a command names, and what `downgrade` could do about it.

:mod:`savedmodel_tools.compat` predicts for one part, one release and one loader; here the parts of
a model become one verdict.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from reference_impl.errors import SavedModelError
from reference_impl.format.container import layout
from savedmodel_common.printable import told
from savedmodel_tools.compat import LOADERS, GraphCompat, Use, Verdict, of_graph, of_model
from savedmodel_tools.downgrade.model import plan
from savedmodel_tools.find import Model
from savedmodel_tools.skew.history import History, history


class Answer(NamedTuple):
    """What is known of a model.

    ``rewritable``: the loaders for which `downgrade` can rewrite it, asked about one release only.
    ``sound``: loader -> the releases that load all of it, for advice.
    """

    graphs: list[GraphCompat]
    rewritable: list[str]
    sound: dict[str, set[int]]


def answer(model: Model, asked: tuple[int, ...], follow_links: bool, advise: bool) -> Answer | str:
    """Return what :func:`graphs_of` says of a model, or why it cannot be read."""
    try:
        return graphs_of(model, asked, follow_links, advise)
    except (SavedModelError, OSError) as error:
        return told(error)


def graphs_of(model: Model, asked: tuple[int, ...], follow_links: bool, advise: bool) -> Answer:
    """Return what each MetaGraph needs.

    If one release is asked about and not all is well there, add the loaders for which `downgrade`
    could rewrite the model. To ``advise``, add for each loader the releases of the op history that
    load all of it, which takes as long as to ask them all.
    """
    with model.local() as path:
        found = layout.read(path, follow_links=follow_links)
        graphs = of_model(found, asked, history())
    uses = uses_of(graphs)
    if len(asked) != 1 or all(good(use, True) for use in uses):
        return Answer(graphs, [], {})
    planned = plan(found, asked[0])
    refused = set(itertools.chain.from_iterable(loaders for _, loaders in planned.refused))
    refused.update(use.loader for use in uses if use.refused)  # no rewrite of ops mends that
    after = [of_graph(graph, asked, history()) for graph in planned.message.meta_graphs]
    bad, still_bad = bad_parts(graphs), bad_parts(after)
    rewritable = [
        loader
        for loader in LOADERS
        if loader not in refused and (not bad[loader] or still_bad[loader] < bad[loader])
    ]
    if not advise:
        return Answer(graphs, rewritable, {})
    everywhere = of_model(found, range(len(history().releases)), history())
    sound = {loader: sound_releases(everywhere, loader) for loader in LOADERS}
    return Answer(graphs, rewritable, sound)


def uses_of(graphs: list[GraphCompat]) -> list[Use]:
    """Return the uses of all MetaGraphs."""
    return list(itertools.chain.from_iterable(graph.uses for graph in graphs))


def whole(uses: list[Use], loader: str) -> Use | None:
    """All parts of a model through one loader as one: it loads where every part does."""
    mine = [use for use in uses if use.loader == loader]
    if not mine:
        return None
    found: dict[int, list[Verdict]] = {}
    for use in mine:
        for index, verdict in use.verdicts.items():
            found.setdefault(index, []).append(verdict)
    verdicts = {index: together(each) for index, each in found.items()}
    return Use(
        *("model", loader, verdicts),
        tuple(itertools.chain.from_iterable(use.unknown for use in mine)),
        tuple(itertools.chain.from_iterable(use.refused for use in mine)),
    )


def together(verdicts: list[Verdict]) -> Verdict:
    """Return the verdict on several parts as one."""
    reasons = tuple(itertools.chain.from_iterable(verdict.reasons for verdict in verdicts))
    risks = tuple(itertools.chain.from_iterable(verdict.risks for verdict in verdicts))
    return Verdict(all(verdict.loads for verdict in verdicts), reasons, risks)


def sound_releases(graphs: list[GraphCompat], loader: str) -> set[int]:
    """Return the releases in which every part loads through a loader and loses nothing."""
    of_all = whole(uses_of(graphs), loader)
    if of_all is None:
        return set()
    return {index for index in of_all.members if not of_all.verdicts[index].risks}


def bad_parts(graphs: list[GraphCompat]) -> dict[str, set[tuple[int, str]]]:
    """Loader -> the parts, as (number of the MetaGraph, name), that do not load, or lose something,
    in a release asked about.
    """
    bad: dict[str, set[tuple[int, str]]] = {loader: set() for loader in LOADERS}
    for number, graph in enumerate(graphs):
        for use in graph.uses:
            if not loads(use, True):
                bad[use.loader].add((number, use.part))
    return bad


def good(use: Use, all_asked: bool) -> bool:
    """Whether a part does, and it is told, in every release that was asked about; or, where none
    was named, in any.
    """
    return loads(use, all_asked) and not use.unknown


def loads(use: Use, all_asked: bool) -> bool:
    """Whether a part loads, and loses nothing, in every release that was asked about; or in any."""
    if not all_asked:
        return bool(use.members) or not use.verdicts
    return all(verdict.loads and not verdict.risks for verdict in use.verdicts.values())


def to_json(graph: GraphCompat, loaders: tuple[str, ...], table: History) -> dict[str, Any]:
    """Return a MetaGraph as an object of `compat --json`."""
    return {
        "tags": list(graph.tags),
        "tensorflow_version": graph.written_by,
        "producer": graph.producer,
        "uses": [_use_to_json(use, table) for use in graph.uses if use.loader in loaders],
    }


def _use_to_json(use: Use, table: History) -> dict[str, Any]:
    return {
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
        **({"unknown": list(use.unknown)} if use.unknown else {}),
    }
