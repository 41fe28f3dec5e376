"""Another release that answers for an old model where the installed TensorFlow cannot."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.version import Version

from compat_matrix.models.compat import SESSION, GraphCompat, of_graph
from compat_matrix.models.prove import READER_OF
from compat_matrix.runtimes import places, records, registry
from compat_matrix.runtimes.places import NotInstalled
from compat_matrix.runtimes.resolve import installed, resolve
from compat_matrix.runtimes.runtime import Runtime, local_runtime
from compat_matrix.skew.history import History, history
from reference_impl.format.container import layout

READER = READER_OF[SESSION]


def releases_that_can(model: Path, tags: Sequence[str]) -> list[int]:
    """Return the numbers of the releases whose sessions load a MetaGraph and can run every
    signature.

    Ops of ``tensorflow.contrib`` count where a release has them. The list is empty if the installed
    release is one of them: then the op history does not know what keeps the model from running
    here, for example a kernel for other devices. Raises SavedModelError.
    """
    table = history()
    graph = of_graph(
        layout.read(model).meta_graph(tags), range(len(table.releases)), table, (SESSION,)
    )
    members = [
        index for index in range(len(table.releases)) if graph.uses and _runs(graph, index, table)
    ]
    here = table.nearest(local_runtime().tensorflow_version or "")
    return [] if here in members else members


def _runs(graph: GraphCompat, index: int, table: History) -> bool:
    """Return whether a release supports all of a MetaGraph, after ``tensorflow.contrib`` was
    imported there.
    """
    lacks = [
        lack
        for use in graph.uses
        if not use.verdicts[index].loads
        for lack in use.verdicts[index].lacks
    ]
    known = [table.op(lack.op) if lack.kind == "unknown_op" else None for lack in lacks]
    of_contrib = all(
        op is not None and op.at(index) and op.library(index).startswith("contrib/") for op in known
    )
    return of_contrib if lacks else graph.loads(index, (SESSION,))


def names_of(releases: Sequence[int]) -> list[str]:
    """Return the names of releases of the op history."""
    return [history().releases[index].name for index in releases]


def runtime_for(releases: Sequence[str], named: str = "") -> Runtime | None:
    """Return the runtime that answers for a model which only some releases run; None if none of
    them is installed.

    Args:
      releases: names of the op history.
      named: the runtime of ``--with``, whatever the op history says; "" for the newest that is
        installed.

    Raises RuntimeTrouble: the runtime of ``--with`` cannot be used.
    """
    if named:
        return resolve(named)
    able = [
        one
        for one in _installed()
        if _name(one.tensorflow_version) in releases and READER not in one.lacks
    ]
    return max(able, key=lambda runtime: Version(runtime.tensorflow_version or "0"), default=None)


def _name(version: str | None) -> str:
    index = history().index(version or "")
    return "" if index is None else history().releases[index].name


def _installed() -> Iterator[Runtime]:
    """Yield the installed runtimes, those that were made of a requirement among them."""
    known = registry.read()
    for spec in (
        *known.stanzas,
        *(record.name for record in records.ad_hoc(places.environments()).values()),
    ):
        try:
            yield installed(spec, known)
        except NotInstalled:
            continue


def command(releases: Sequence[str], model: str, out: Path) -> str:
    """Return the command line that installs a release and migrates a model with it; "" if the
    registry has none of them.
    """
    able = [
        stanza
        for stanza in registry.read().stanzas.values()
        if _name(stanza.tensorflow) in releases
    ]
    if not able:
        return ""
    name = max(able, key=lambda stanza: Version(stanza.tensorflow)).name
    migrate = shlex.join(["savedmodel-compat", "migrate", model, "--with", name, "--out", str(out)])
    return f"savedmodel-compat runtimes install {name} && {migrate}"
