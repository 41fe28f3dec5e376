"""A model without what serving does not need: optimizers and their slots, functions for training,
and what nobody can reach.

Reachability proves that the removed parts are not needed (`slim_graph`). The captures and ops in
the file show what only training needs (`slim_objects`, `slim_optimizers`). Signatures, what a
loader runs first, assets, tables and every weight that a signature, a function or an object still
has stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Optional

from reference_impl.errors import listed
from reference_impl.format import schema
from reference_impl.graph.restore_plan import restore_plan
from savedmodel_common.printable import counted
from savedmodel_tools.edits import slim_graph, slim_objects
from savedmodel_tools.edits.draft import Draft
from savedmodel_tools.edits.objects import Objects
from savedmodel_tools.edits.proof import RefusedError
from savedmodel_tools.edits.slim_optimizers import optimizer_state, recognise
from savedmodel_tools.edits.slim_savers import drop_keys

PARTS = ("optimizer", "training")  # what may be kept
_OTHERS = frozenset({"train", "eval"})
_SHOWN = 3
_some = partial(listed, most=_SHOWN)


def slim(
    draft: Draft, keep: Collection[str] = (), serving_only: bool = False, tags: Optional[str] = None
) -> None:
    """Take away what serving does not need.

    Args:
      keep: some of PARTS. Without ``training``: functions and traces for training, collections of
        TF 1.x that training reads.
      serving_only: functions that only Python can call go too; signatures stay.
      tags: of the MetaGraph, separated by commas. Without them all that are not for training or
        evaluation alone.

    Raises RefusedError: an optimizer's state is restored in a way that cannot be changed safely;
      NoMetaGraphError.
    """
    for index, graph in _chosen(draft, tags):
        objects = draft.objects(index)
        if "training" not in keep:
            _drop_collections(draft, graph)
        if objects is not None:
            state = _slim_objects(draft, index, objects, keep, serving_only)
        else:
            state = _drop_state(draft, graph) if "optimizer" not in keep else set()
        _prune(draft, graph, objects, state)
    _keep_shared(draft)


def _chosen(draft: Draft, tags: Optional[str]) -> list[tuple[int, schema.MetaGraphDef]]:
    if tags is not None:
        return [draft.graph(tags)]
    chosen = []
    for index, graph in enumerate(draft.message.meta_graphs):
        found = set(graph.meta_info_def.tags)
        if len(draft.message.meta_graphs) > 1 and found and found <= _OTHERS:
            draft.kept.append(
                f"the MetaGraph {', '.join(sorted(found))}, which is not for serving (--tags"
                " chooses it)"
            )
        else:
            chosen.append((index, graph))
    return chosen


def _slim_objects(
    draft: Draft, index: int, objects: Objects, keep: Collection[str], serving_only: bool
) -> set[str]:
    """Slim the object graph; the variables of the main graph that went with it."""
    before = [objects.paths.label(number) for number in range(len(objects.saved.nodes))]
    training = "training" not in keep
    if serving_only:
        gone = slim_objects.cut_functions(objects)
        many = (
            f"{counted(len(gone), 'function')} that only Python can call {_are(len(gone))} dropped"
        )
        draft.changes += gone if len(gone) <= _SHOWN else [many]
    elif training:
        draft.changes += slim_objects.cut_training_traces(objects)
    if "optimizer" not in keep:
        _drop_optimizers(draft, index, objects, training)
    new, keys = draft.collect(index, everything=True)
    draft.removed["objects"] += [label for number, label in enumerate(before) if number not in new]
    graph = draft.message.meta_graphs[index]
    plan = restore_plan(graph, draft.file)
    holders = {item.node for item in plan if item.key in keys} - {
        item.node for item in plan if item.key not in keys
    }
    needed = slim_graph.needed(
        graph, slim_graph.roots(draft.model, graph, skip=holders, savers=False)
    )
    for name in sorted(holders & needed.keys()):
        reason = (
            f"no object has the variable any more, but {needed[name]} needs it (--keep optimizer"
            " slims the rest)"
        )
        raise RefusedError(reason, file=draft.file, node=name)
    _drop_keys(draft, graph, keys)
    return holders


def _drop_optimizers(draft: Draft, index: int, objects: Objects, training: bool) -> None:
    found, doubtful = recognise(objects, draft.message.meta_graphs[index].graph_def.library)
    for number, missing in sorted(doubtful.items()):
        draft.kept.append(
            f"{objects.paths.label(number)}, which has the attributes of an optimizer: {missing}"
        )
    if not found:
        return
    if objects.tracked is None:
        draft.kept.append("optimizers: the checkpoint does not say which values are theirs")
        return
    changes, kept = slim_objects.cut_optimizers(objects, found, training)
    draft.changes += changes
    draft.kept += kept


def _drop_keys(draft: Draft, graph: schema.MetaGraphDef, keys: set[str]) -> None:
    if keys:
        draft.dropped_keys |= keys
        draft.edited_functions |= drop_keys(graph, graph.saver_def, keys, draft.file)
        draft.removed["keys"] += sorted(keys)
        what = (
            f"{counted(len(keys), 'value')} of the checkpoint {_are(len(keys))} neither restored"
            " nor stored"
        )
        draft.changes.append(f"{what}: {_some(sorted(keys))}")


def _drop_collections(draft: Draft, graph: schema.MetaGraphDef) -> None:
    found = [key for key in slim_graph.TRAINING if key in graph.collection_def]
    for key in found:
        del graph.collection_def[key]
    if found:
        draft.changes.append(f"collections that training reads are dropped: {', '.join(found)}")


def _drop_state(draft: Draft, graph: schema.MetaGraphDef) -> set[str]:
    """Optimizer state of a model of TF 1.x; the variables that are not needed any more."""
    state = optimizer_state(graph)
    if not state:
        return state
    needed = slim_graph.needed(
        graph, slim_graph.roots(draft.model, graph, skip=state, savers=False)
    )
    for name in sorted(state & needed.keys()):
        draft.kept.append(f"variable {name}, which an optimizer changes: {needed[name]} needs it")
    state -= needed.keys()
    plan = restore_plan(graph, draft.file)
    theirs = {item.key for item in plan if item.node in state}
    theirs -= {item.key for item in plan if item.node not in state}
    if state:
        draft.changes.append(
            f"{counted(len(state), 'variable')} of optimizers {_are(len(state))} dropped:"
            f" {_some(sorted(state))}"
        )
    _drop_keys(draft, graph, theirs & set(draft.keys))
    return state


def _prune(
    draft: Draft, graph: schema.MetaGraphDef, objects: Optional[Objects], state: set[str]
) -> None:
    """Remove unreachable nodes and functions."""
    needed = slim_graph.needed(graph, slim_graph.roots(draft.model, graph, skip=state))
    draft.removed["nodes"] += [
        node.name for node in graph.graph_def.node if node.name not in needed
    ]
    count = slim_graph.prune_nodes(graph, needed.__contains__)
    if count:
        draft.changes.append(
            f"{counted(count, 'node')} of the graph that nobody needs {_are(count)} dropped"
        )
    gone = slim_graph.prune_functions(graph, objects.extension if objects is not None else None)
    draft.removed["functions"] += gone
    if gone:
        draft.changes.append(
            f"{counted(len(gone), 'function')} that nobody calls {_are(len(gone))} dropped:"
            f" {_some(gone)}"
        )
    if count or gone:
        slim_graph.prune_ops(graph)


def _keep_shared(draft: Draft) -> None:
    """Keep the values that another MetaGraph restores from the shared checkpoint."""
    wanted: set[str] = set()
    for graph in draft.message.meta_graphs:
        wanted.update(item.key for item in restore_plan(graph, draft.file))
    shared = draft.dropped_keys & wanted
    if shared:
        draft.dropped_keys -= shared
        draft.removed["keys"] = [key for key in draft.removed["keys"] if key not in shared]
        draft.kept.append(
            f"{len(shared)} values in the checkpoint, which another MetaGraph restores:"
            f" {_some(sorted(shared))}"
        )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
