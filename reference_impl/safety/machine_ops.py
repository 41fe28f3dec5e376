"""Report or refuse the effects of a load on the machine, before anything runs.

RFC: RP-04, V1-08
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Optional

from reference_impl.errors import LimitError, MachineOpError, listed
from reference_impl.format import schema
from reference_impl.format.container.layout import Layout
from reference_impl.graph.graph_view import GraphView
from reference_impl.graph.object_graph import Paths
from reference_impl.graph.references import FunctionIndex
from reference_impl.safety.effect import Effect
from reference_impl.safety.effects import LOAD, Search, Start, object_starts
from reference_impl.safety.op_effects import UNKNOWN, WRITES
from reference_impl.safety.path_origins import (
    ASSET,
    COMPUTED_PATH,
    GIVEN_PATH,
    Origin,
    may_lead_below,
)

WARN, REFUSE, ALLOW = "warn", "refuse", "allow"
CHOICES = (WARN, REFUSE, ALLOW)


class MachineOpWarning(UserWarning):
    """Loading this model does more to the machine than read the model."""


class Running(NamedTuple):
    """A function that a load runs, with the known parts of its arguments.

    Attributes:
      label: its name in a report, for example ``init op``.
      function: its name in the file.
      given: the number of arguments that the loader gives. The other arguments are captures.
      captured: for each capture, the name of the asset file whose path it is, or None.
      restores: whether it restores a checkpoint, so that the loader gives it the path of a file.
    """

    label: str
    function: str
    given: int
    captured: Sequence[Optional[str]]
    restores: bool = False


def may_run(
    choice: str,
    directory: Layout,
    meta_graph: schema.MetaGraphDef,
    library: FunctionIndex,
    *,
    objects: Optional[schema.SavedObjectGraph] = None,
    functions: Iterable[Running] = (),
) -> None:
    """Return if a load may run its initialisers and restore functions on this machine.

    Every load asks this once, before anything of the model runs. Nothing runs here: the functions,
    and all functions that they call, are searched for ops that act on the machine.

    - Tensors that are known to be too large are refused in any case.
    - "refuse" refuses every op that acts on the machine, for example `WriteFile`, and every custom
      op.
    - "warn" warns of ops that act on the machine, and refuses those that may write on the model
      itself. It ignores custom ops: they only run if the program has loaded their library.
    - "allow" searches for large tensors only.

    Args:
      choice: `LoadOptions.machine_ops`.
      objects: an object graph; the load runs the functions of its tables and other resources.
      functions: the functions that the load of a TF 1.x MetaGraph runs.

    Raises: MachineOpError, LimitError.
    """
    starts = [_start(running) for running in functions]
    if objects is not None:
        starts += object_starts(objects, Paths(objects.nodes))
    graph = schema.SavedObjectGraph() if objects is None else objects
    _check(choice, directory, meta_graph, graph, library, starts)


def _start(running: Running) -> Start:
    captured = [
        COMPUTED_PATH if name is None else frozenset({Origin(ASSET, name)})
        for name in running.captured
    ]
    return Start(
        running.label,
        LOAD,
        function=running.function,
        arguments=(GIVEN_PATH,) * running.given + tuple(captured),
        checkpoint=running.restores,
    )


def _check(
    choice: str,
    directory: Layout,
    meta_graph: schema.MetaGraphDef,
    objects: schema.SavedObjectGraph,
    library: FunctionIndex,
    starts: Iterable[Start],
) -> None:
    at_load = [start for start in starts if start.when == LOAD]
    _check_sizes(directory, meta_graph, objects, library, at_load)
    if choice == ALLOW:
        return
    search = Search(
        GraphView(meta_graph, library), objects, directory.asset_definitions(meta_graph)
    )
    for start in at_load:
        search.follow(start)
    found = search.results()
    if choice == WARN:
        found = tuple([effect for effect in found if effect.kind != UNKNOWN])
    if not found and search.complete:
        return
    own = {function.signature.name for function in meta_graph.graph_def.library.function}
    reason = (
        f"loading this model {_told(found, own)}"
        if found
        else "the ops that loading this model runs are too many to follow"
    )
    overwriting = _writes_on_model(search, at_load, directory.directory)
    if choice == REFUSE or overwriting is not None:
        if overwriting is None:
            fix = "machine_ops='warn' in LoadOptions loads it all the same"
        else:
            fix = (
                "that may change the model itself. machine_ops='allow' in LoadOptions loads it all"
                " the same: use a copy"
            )
        raise MachineOpError(
            f"{reason}: {fix}",
            file=str(directory.file),
            node=overwriting or (found[0].node if found else None),
        )
    fix = (
        "load it only if you trust it; machine_ops='refuse' in LoadOptions refuses such models,"
        " 'allow' says nothing"
    )
    warnings.warn(f"{directory.file}: {reason}: {fix}", MachineOpWarning, stacklevel=3)


def _check_sizes(
    directory: Layout,
    meta_graph: schema.MetaGraphDef,
    objects: schema.SavedObjectGraph,
    library: FunctionIndex,
    starts: Sequence[Start],
) -> None:
    """Raise a LimitError if the functions make a tensor that is known to be too large."""
    search = Search(GraphView(meta_graph, library), objects, ())
    for item in search.follow_sizes(starts):
        if item.bytes:
            function = f" in function {item.function!r}" if item.function else ""
            reason = f"loading this model runs {item.node.op}{function}, which {item.reason}"
            raise LimitError(
                reason, file=str(directory.file), node=item.node.name, limit="LOAD_TENSOR_BYTES"
            )


def _writes_on_model(search: Search, starts: Iterable[Start], directory: Path) -> Optional[str]:
    """Return a node that may write on the model's own files, or None."""
    top = os.path.realpath(directory)
    handed = {start.label for start in starts if search.is_handed_files(start)}
    for sighting in search.found.values():
        gets_paths = not handed.isdisjoint(sighting.labels[LOAD])
        if sighting.effect.kind == WRITES and may_lead_below(
            frozenset(sighting.origins), top, gets_paths
        ):
            return sighting.node
    return None


def _told(found: Iterable[Effect], own: Collection[str]) -> str:
    """Describe the effects. A function that is not in `own` counts as part of the main graph."""
    texts = []
    for effect in found:
        paths = f" {', '.join(map(repr, effect.paths))}" if effect.paths else ""
        function = f" in function {effect.function!r}" if effect.function in own else ""
        started = f", run by {effect.at_load[0]!r}" if effect.at_load else ""
        texts.append(
            f"{effect.does}{paths} (op {effect.op!r}, node {effect.node!r}{function}{started})"
        )
    return listed(texts, 3, "; ")
