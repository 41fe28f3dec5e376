"""The proof of an edit: facts about the model before, checked again in the edited model and in the files on disk.

A signature's fact is a hash of everything that its results are computed from, to any depth and through all functions, whatever
the names of functions are (`compat_matrix.canonical.form`); a function's is the hash of its body and of those it calls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from compat_matrix.canonical.body import Body
from compat_matrix.canonical.functions import Functions
from compat_matrix.canonical.graph import digest
from compat_matrix.models.edits.refused import RefusedError
from reference_impl.format import schema
from reference_impl.format.bundle.entry import Entry
from reference_impl.format.bundle.reader import OBJECT_GRAPH_KEY, BundleReader
from reference_impl.format.bundle.slices import slice_key
from reference_impl.format.container import layout
from reference_impl.graph.edges import parse_input
from reference_impl.graph.object_graph import Paths
from reference_impl.graph.object_references import dangling, dangling_captures
from reference_impl.graph.references import FunctionIndex, function_attributes, function_values
from reference_impl.inspection.restore_plan import restore_plan
from reference_impl.inspection.signatures import slots_of, tensor_names

Computed = dict[tuple[str, str], bytes]  # ("inputs", name) and so on -> hash


@dataclass(frozen=True)
class Facts:
    """The facts about a MetaGraph that an edit must not change.

    Attributes:
      signatures: key -> method, and for every input, default and output by name a hash of what it is computed from.
      functions: name -> hash of what it does.
      paths: for every object its path from the root.
      faults: dangling references that it had before the edit.
    """

    signatures: dict[str, Computed]
    functions: dict[str, bytes]
    paths: list[str]
    faults: frozenset[str]


def facts_of(graph: schema.MetaGraphDef, known: Optional[dict[bytes, bytes]] = None) -> Facts:
    """The facts of a MetaGraph. Raises DuplicateKeyError: two nodes share a name.

    Args:
      known: hashes of functions by how they are written (`Functions`); most functions are the same before and after an edit.
    """
    functions = Functions(FunctionIndex(graph.graph_def.library), known=known)
    body = Body(graph.graph_def.node, functions.values)
    needs = body.graph.needs(body.graph.base)
    signatures = {key: _signature(item, body, needs) for key, item in graph.signature_def.items()}
    paths = Paths(graph.object_graph_def.nodes)
    return Facts(signatures, functions.hashes, [paths.label(n) for n in range(len(graph.object_graph_def.nodes))],
                 frozenset(faults(graph)))  # fmt: skip


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
    return found | {("defaults", name): digest(schema.serialize(value)) for name, value in item.defaults.items()}


def prove_message(
    graph: schema.MetaGraphDef,
    before: Facts,
    signatures: Mapping[str, Computed],
    edited: Collection[str],
    file: str,
    known: Optional[dict[bytes, bytes]] = None,
) -> None:
    """Check that all remaining parts have their former meaning.

    Args:
      signatures: what is to be computed under which names, from what `before` says of the model as it was.
      edited: functions that were meant to change, as restoring does when it restores less, or that are new.
      known: as for `facts_of`.

    Raises:
      RefusedError: a meaning changed, by a defect of the edit or of the model.
    """
    after = facts_of(graph, known)
    for key in sorted(signatures.keys() | after.signatures.keys()):
        if key not in signatures or key not in after.signatures:
            raise RefusedError("the signature would be lost, or come from nowhere", file=file, node=key)
        if after.signatures[key] != signatures[key]:
            raise RefusedError("the signature would compute something else", file=file, node=key)
    for name, value in after.functions.items():
        if name not in edited and before.functions.get(name) != value:
            raise RefusedError("the function would do something else", file=file, node=name)
    for fault in sorted(after.faults - before.faults):
        raise RefusedError(f"the edit would break the model: {fault}", file=file)


def faults(graph: schema.MetaGraphDef) -> Iterator[str]:
    """Yield the dangling references in a MetaGraph."""
    names = {node.name for node in graph.graph_def.node}
    functions = {function.signature.name: function for function in graph.graph_def.library.function}
    yield from _inputs(graph.graph_def.node, names, False, "the graph")
    for function in functions.values():
        known = {node.name for node in function.node_def} | {arg.name for arg in function.signature.input_arg}
        yield from _inputs(function.node_def, known, True, function.signature.name)
        for text in [*function.ret.values(), *function.control_ret.values()]:
            if parse_input(text, True).source not in known:
                yield f"{function.signature.name} returns {text}, which is not there"
    for nodes in [graph.graph_def.node, *[function.node_def for function in functions.values()]]:
        for name in _called(nodes):
            if name not in functions:
                yield f"function {name} is called and not there"
    for key, signature in graph.signature_def.items():
        for infos in (signature.inputs, signature.outputs):
            for name in tensor_names(infos):
                if parse_input(name).source not in names:
                    yield f"signature {key} names {name}, which is not there"
    yield from _objects(graph, names, set(functions))
    for text in (graph.saver_def.filename_tensor_name, graph.saver_def.save_tensor_name, graph.saver_def.restore_op_name):
        if text and parse_input(text).source not in names:
            yield f"the saver names {text}, which is not there"


def _inputs(nodes: Iterable[Any], known: set[str], in_function: bool, where: str) -> Iterator[str]:
    for node in nodes:
        for text in node.input:
            if parse_input(text, in_function).source not in known:
                yield f"{where}: {node.name} needs {text}, which is not there"
        if "_class" in node.attr:
            for item in node.attr["_class"].list.s:
                prefix, _, name = item.decode("utf-8", "replace").partition("@")
                if prefix == "loc:" and name not in known:
                    yield f"{where}: {node.name} is to be placed beside {name}, which is not there"


def _called(nodes: Iterable[Any]) -> Iterator[str]:
    for node in nodes:
        for value in function_attributes(node.attr):
            yield from (function.name for function in function_values(value))


def _objects(graph: schema.MetaGraphDef, names: set[str], functions: set[str]) -> Iterator[str]:
    saved = graph.object_graph_def
    for number, _, other in dangling(saved):
        yield f"object {number} refers to object {other} of {len(saved.nodes)}"
    for number, node in enumerate(saved.nodes):
        concrete = [*node.function.concrete_functions, node.bare_concrete_function.concrete_function_name]
        for name in (name for name in concrete if name):
            if name not in functions or name not in saved.concrete_functions:
                yield f"object {number} is function {name}, which is not there"
        if node.HasField("constant") and node.constant.operation not in names:
            yield f"object {number} is constant {node.constant.operation}, which is not there"
    for name in saved.concrete_functions:
        if name not in functions:
            yield f"function {name} is described and not there"
    for name, other in dangling_captures(saved):
        yield f"{name} captures object {other} of {len(saved.nodes)}"


def prove_files(before: layout.Layout, directory: Path, message: Any, dropped: Collection[str]) -> None:
    """Read the written model again, and check that it equals the model in memory and has every weight and file.

    Raises:
      RefusedError: it differs. SavedModelError: it cannot be read: damaged weights of the source are found here too.
    """
    after = layout.read(directory)
    if after.saved_model != message:
        raise RefusedError("what was written is not what was to be written", file=after.file)
    old = {name for name in before.names if not name.startswith(f"{layout.VARIABLES}/")} - set(before.alternatives)
    lost = old - set(after.names) - {before.file.name}
    if lost:
        raise RefusedError(f"files were lost: {', '.join(sorted(lost)[:3])}", file=directory)
    if before.has_checkpoint:
        _prove_checkpoint(before, after, dropped)


def _value(entry: Entry) -> tuple[Any, ...]:
    return entry.dtype.name, entry.shape, entry.size, entry.crc32c, entry.slices


def _prove_checkpoint(before: layout.Layout, after: layout.Layout, dropped: Collection[str]) -> None:
    with BundleReader(before.checkpoint_prefix) as old, BundleReader(after.checkpoint_prefix) as new:
        new.verify_all()
        entries, found = old.entries(), new.entries()
        gone = {key.encode() for key in dropped}
        gone |= {slice_key(key.encode(), part) for key in dropped for part in entries[key].slices}
        one, other = ({raw: _value(entry) for raw, entry in side.stored().items() if raw not in gone} for side in (old, new))
        one.pop(OBJECT_GRAPH_KEY.encode(), None), other.pop(OBJECT_GRAPH_KEY.encode(), None)
        if one != other or gone & new.stored().keys():
            key = min([raw for raw in one.keys() | other.keys() if one.get(raw) != other.get(raw)] or gone)
            raise RefusedError("the checkpoint does not hold what it should", file=new.prefix, node=key.decode(errors="replace"))
        for graph in after.saved_model.meta_graphs:
            for item in restore_plan(graph, str(after.file)):
                if item.key in dropped:
                    raise RefusedError("the graph still restores what was left out", file=after.file, node=item.key)
        if OBJECT_GRAPH_KEY in found:
            for node in new.object_graph().nodes:
                for attribute in node.attributes:
                    if attribute.checkpoint_key not in found and attribute.checkpoint_key in entries:
                        raise RefusedError("an object still has a value that was left out", node=attribute.checkpoint_key)
