"""Another release that answers for an old model where the installed TensorFlow cannot."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Sequence
from pathlib import Path

from packaging.version import Version

from compat_matrix.exports.release_proof import READER_OF
from compat_matrix.runtimes import registry
from compat_matrix.runtimes.resolve import resolve
from compat_matrix.runtimes.runtime import Runtime, local_runtime
from reference_impl.format.container import layout
from savedmodel_tools.compat import SESSION, GraphCompat, of_graph
from savedmodel_tools.skew.history import History, history

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
    verdicts = (use.verdicts[index] for use in graph.uses)
    lacks = list(
        itertools.chain.from_iterable(verdict.lacks for verdict in verdicts if not verdict.loads)
    )
    known = [table.op(lack.op) if lack.kind == "unknown_op" else None for lack in lacks]
    of_contrib = all(
        op is not None and op.at(index) and op.library(index).startswith("contrib/") for op in known
    )
    return of_contrib if lacks else graph.loads(index, (SESSION,))


def names_of(releases: Sequence[int]) -> list[str]:
    """Return the names of releases of the op history."""
    return [history().releases[index].name for index in releases]


def runtime_for(named: str) -> Runtime | None:
    """Return the runtime of ``--runtime``, or None for "".

    What else is installed on a machine does not matter: a migration has the same result everywhere.

    Raises RuntimeTrouble: the runtime cannot be used.
    """
    return resolve(named) if named else None


def _name(version: str | None) -> str:
    index = history().index(version or "")
    return "" if index is None else history().releases[index].name


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
    here = Path.cwd()
    place = out.relative_to(here) if out.is_relative_to(here) else out  # as it would be typed here
    words = ["savedmodel-compat", "migrate", model, "--runtime", name, "--out", str(place)]
    migrate = shlex.join(words)
    return f"savedmodel-compat runtimes install {name} && {migrate}"
