"""The proof of an edit: facts about the model before, checked again in the edited model and in the
files on disk.

A signature's fact is a hash of everything that its results are computed from, to any depth and
through all functions, whatever the names of functions are (`savedmodel_tools.canonical.form`); a
function's is the hash of its body and of those it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from reference_impl import errors
from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.bundle.entry import Entry
from reference_impl.format.bundle.reader import OBJECT_GRAPH_KEY, BundleReader
from reference_impl.format.bundle.slices import slice_key
from reference_impl.format.container import layout
from reference_impl.graph.edges import parse_input
from reference_impl.graph.object_graph import Paths
from reference_impl.graph.references import FunctionIndex
from reference_impl.graph.restore_plan import restore_plan
from reference_impl.views.signatures import slots_of
from savedmodel_tools.canonical.body import Body
from savedmodel_tools.canonical.functions import Functions
from savedmodel_tools.canonical.graph import digest
from savedmodel_tools.verify.model import Graph, Model
from savedmodel_tools.verify.rules.graph import (
    edge_from_nowhere,
    function_missing,
    loader_op_missing,
    signature_tensor_missing,
)
from savedmodel_tools.verify.rules.objects import object_reference

_REFERENCES = (
    signature_tensor_missing,
    loader_op_missing,
    edge_from_nowhere,
    function_missing,
    object_reference,
)
Computed = dict[tuple[str, str], bytes]  # ("inputs", name) and so on -> hash


class RefusedError(SavedModelError):
    """The edit would break the model, or names something that it does not have."""


@dataclass(frozen=True)
class Facts:
    """The facts about a MetaGraph that an edit must not change."""

    # Key -> method, and for every input, default and output by name a hash of what it is computed
    # from.
    signatures: dict[str, Computed]
    functions: dict[str, bytes]  # name -> hash of what it does
    paths: list[str]  # for every object its path from the root


class OtherTextError(RefusedError):
    """A meaning, by what is written, is not as before; its canonical form may be."""


def facts_of(graph: schema.MetaGraphDef, known: Optional[dict[bytes, bytes]] = None) -> Facts:
    """Return the facts of a MetaGraph.

    Raises DuplicateKeyError: two nodes share a name.

    ``known``: hashes of functions by how they are written (`Functions`); most functions are the
    same before and after an edit. None: functions are compared as they are written. That is faster,
    and finds a difference where nothing but the order of nodes or their names have changed.
    """
    functions = Functions(
        FunctionIndex(graph.graph_def.library), known=known, as_written=known is None
    )
    body = Body(graph.graph_def.node, functions.values)
    needs = body.graph.needs(body.graph.base)
    signatures = {key: _signature(item, body, needs) for key, item in graph.signature_def.items()}
    paths = Paths(graph.object_graph_def.nodes)
    return Facts(
        signatures,
        functions.hashes,
        [paths.label(n) for n in range(len(graph.object_graph_def.nodes))],
    )


def _signature(item: schema.SignatureDef, body: Body, needs: list[bytes]) -> Computed:
    found = {("method", ""): item.method_name.encode()}
    for kind, infos in (("inputs", item.inputs), ("outputs", item.outputs)):
        for name, info in infos.items():
            parts: list[bytes] = []
            for slot in slots_of(info)[1]:
                place = body.resolve(slot.tensor)
                where = slot.tensor.encode() if place is None else needs[place[0]] + place[1]
                parts += slot.part.encode(), str((slot.dtype, slot.shape)).encode(), where
            found[kind, name] = digest(*parts)
    return found | {
        ("defaults", name): digest(schema.serialize(value)) for name, value in item.defaults.items()
    }


def prove_message(
    found: layout.Layout,
    index: int,
    before: Facts,
    signatures: Mapping[str, Computed],
    edited: Collection[str],
    faults_before: Callable[[], Iterable[str]],
    known: Optional[dict[bytes, bytes]],
) -> None:
    """Check that all remaining parts of a MetaGraph of an edited model have their former meaning.

    Args:
      signatures: what is to be computed under which names, from what `before` says of the model as
        it was.
      edited: functions that were meant to change, as restoring does when it restores less, or that
        are new.
      faults_before: finds the dangling references of the model as it was; asked only if it has any
        now.
      known: as for `facts_of`.

    Raises:
      OtherTextError: a meaning changed, or only the way it is written.
      RefusedError: a meaning changed, by a defect of the edit or of the model.
    """
    after, file = facts_of(found.saved_model.meta_graphs[index], known), str(found.file)
    changed = OtherTextError if known is None else RefusedError
    for key in sorted(signatures.keys() | after.signatures.keys()):
        if key not in signatures or key not in after.signatures:
            raise RefusedError(
                "the signature would be lost, or come from nowhere", file=file, node=key
            )
        if after.signatures[key] != signatures[key]:
            raise changed("the signature would compute something else", file=file, node=key)
    for name, value in after.functions.items():
        if name not in edited and before.functions.get(name) != value:
            raise changed("the function would do something else", file=file, node=name)
    broken = set(faults(found, index))
    for fault in sorted(broken.difference(faults_before() if broken else ())):
        raise RefusedError(f"the edit would break the model: {fault}", file=file)


def faults(found: layout.Layout, index: int) -> Iterator[str]:
    """Yield the dangling references in a MetaGraph, as the rules of `verify` find them."""
    graph = Model(found).graphs[index]
    for rule in _REFERENCES:
        for fault in rule(graph.model, graph):
            where = (
                fault.function
                if fault.node is None
                else f"{fault.function or 'the graph'}: {fault.node}"
            )
            yield f"{where}: {fault.message}" if where else fault.message
    for body, names in zip(graph.bodies, graph.names):
        yield from _colocations(body.nodes, set(names).union(_arguments(graph, body.function)))
    saver = parse_input(graph.proto.saver_def.save_tensor_name).source
    if saver and saver not in graph.nodes:
        yield f"the saver saves with {saver}, which does not exist"


def _arguments(graph: Graph, function: Optional[str]) -> list[str]:
    return (
        []
        if function is None
        else [item.name for item in graph.library.functions[function].signature.input_arg]
    )


def _colocations(nodes: Iterable[schema.NodeDef], known: Collection[str]) -> Iterator[str]:
    for node in nodes:
        for item in node.attr["_class"].list.s if "_class" in node.attr else ():
            prefix, _, name = item.decode("utf-8", "replace").partition("@")
            if prefix == "loc:" and name not in known:
                yield f"{node.name} is to be placed beside {name}, which does not exist"


def prove_files(
    before: layout.Layout, directory: Path, message: Any, dropped: Collection[str]
) -> None:
    """Read the written model again: it must equal the model in memory and have every weight and
    file.

    Raises RefusedError: it differs; SavedModelError: it cannot be read. Damaged weights of the
    source are found here too.
    """
    after = layout.read(directory)
    if after.saved_model != message:
        raise RefusedError("what was written is not what was to be written", file=after.file)
    old = {name for name in before.names if not name.startswith(f"{layout.VARIABLES}/")} - set(
        before.alternatives
    )
    lost = old - set(after.names) - {before.file.name}
    if lost:
        raise RefusedError(f"files were lost: {', '.join(sorted(lost)[:3])}", file=directory)
    if before.has_checkpoint:
        _prove_checkpoint(before, after, dropped)


def _values(reader: BundleReader, without: Collection[bytes]) -> dict[bytes, tuple[Any, ...]]:
    """Return what a checkpoint holds by its raw keys."""
    return {raw: _value(entry) for raw, entry in reader.stored().items() if raw not in without}


def _value(entry: Entry) -> tuple[Any, ...]:
    return entry.dtype.name, entry.shape, entry.size, entry.crc32c, entry.slices


def _prove_checkpoint(
    before: layout.Layout, after: layout.Layout, dropped: Collection[str]
) -> None:
    with (
        BundleReader(before.checkpoint_prefix) as old,
        BundleReader(after.checkpoint_prefix) as new,
    ):
        try:
            new.verify_all()
        except errors.SavedModelError:
            old.verify_all()  # what the source lacks, or has damaged, is named there
            raise
        entries, found = old.entries(), new.entries()
        gone = {key.encode() for key in dropped}
        for key in dropped:
            gone.update(slice_key(key.encode(), part) for part in entries[key].slices)
        one, other = _values(old, gone), _values(new, gone)
        one.pop(OBJECT_GRAPH_KEY.encode(), None), other.pop(OBJECT_GRAPH_KEY.encode(), None)
        if one != other or gone & new.stored().keys():
            differing = [raw for raw in one.keys() | other.keys() if one.get(raw) != other.get(raw)]
            first = min(differing or gone)
            raise RefusedError(
                "the checkpoint does not hold what it should",
                file=new.prefix,
                node=first.decode(errors="replace"),
            )
        for graph in after.saved_model.meta_graphs:
            for item in restore_plan(graph, str(after.file)):
                if item.key in dropped:
                    raise RefusedError(
                        "the graph still restores a removed tensor", file=after.file, node=item.key
                    )
        if OBJECT_GRAPH_KEY in found:
            for node in new.object_graph().nodes:
                for attribute in node.attributes:
                    if (
                        attribute.checkpoint_key not in found
                        and attribute.checkpoint_key in entries
                    ):
                        raise RefusedError(
                            "an object still has a value that was left out",
                            node=attribute.checkpoint_key,
                        )
