"""What a SavedModel holds, read without TensorFlow, and what of it another one lacks.

The content of tables needs TensorFlow.
"""

from __future__ import annotations

import collections
import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Any, Optional, Union

import numpy as np

from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from reference_impl.views import model as inspect_module
from reference_impl.views.types import MetaGraph, Signature, SignatureArgument

TABLE_OPS = ("HashTable", "MutableHash", "MutableDense")
INTERNAL = "__saved_model_"


def of(path: Union[str, Path], tags: Optional[Collection[str]] = None) -> dict[str, Any]:
    """Tags, signatures, variables with their values, files with their bytes, the paths of objects
    and functions.
    """
    info = inspect_module.inspect(path, tags)
    graph = info.meta_graphs[0]
    return {
        "tags": set(graph.tags),
        "signatures": {
            item.key: _signature(item)
            for item in graph.signatures
            if not item.key.startswith(INTERNAL)
        },
        "variables": _variables(layout.read(path), graph),
        "unstored": sorted(item.name for item in graph.variables if not item.stored),
        "assets": _assets(layout.read(path), graph),
        "extra": _extra_assets(layout.read(path)),
        **_details(layout.read(path).meta_graph(tags)),
        "tree": [
            ({child.name: child.id for child in item.children}, item.kind) for item in graph.objects
        ],
        "functions": {
            item.id: [_text(trace.signature) for trace in item.traces] for item in graph.functions
        },
    }


def _details(meta_graph: Any) -> dict[str, Any]:
    """What the messages of a MetaGraph say beside that: of signatures, of objects by number, of
    functions by name.
    """
    nodes, library = meta_graph.object_graph_def.nodes, meta_graph.graph_def.library.function
    implementations = [function.attr for function in library if "api_implements" in function.attr]
    return {
        "defaults": {
            (key, name) for key, item in meta_graph.signature_def.items() for name in item.defaults
        },
        "aliases": collections.Counter(meta_graph.meta_info_def.function_aliases.values()),
        "implementations": collections.Counter(
            (a["api_implements"].s, a["api_preferred_device"].s) for a in implementations
        ),
        "nodes": [_node(node) for node in nodes],
        "traces": [_trace_names(node) for node in nodes],
        "bodies": {function.signature.name: _body(function) for function in library},
    }


def _node(node: Any) -> Any:
    """Of an object what is neither its kind nor its children."""
    if node.HasField("variable"):
        kept = node.variable
        return (
            kept.dtype,
            str(kept.shape),
            kept.trainable,
            kept.synchronization,
            kept.aggregation,
            kept.name,
        )
    if node.HasField("bare_concrete_function"):
        return (
            list(node.bare_concrete_function.argument_keywords),
            node.bare_concrete_function.allowed_positional_arguments,
        )
    return node.resource.device, len(node.slot_variables), len(node.saveable_objects)


def _trace_names(node: Any) -> list[str]:
    if node.HasField("bare_concrete_function"):
        return [node.bare_concrete_function.concrete_function_name]
    return list(node.function.concrete_functions)


def _body(function: Any) -> set[Any]:
    """Attributes of a function and of its arguments, its nodes and where they run, what must be
    done before it returns.
    """
    hints = {
        node.name for node in function.node_def if node.op == "DisableCopyOnRead"
    }  # left out on purpose
    found: set[Any] = {("attribute", name) for name in function.attr}
    found |= {
        ("argument", index, name)
        for index, known in function.arg_attr.items()
        for name in known.attr
    }
    found |= {
        ("node", node.name, node.device) for node in function.node_def if node.name not in hints
    }
    return found | {
        ("control result", name) for name in function.control_ret.values() if name not in hints
    }


def _text(signature: str) -> str:
    return signature[signature.index("(") :]


def _signature(item: Signature) -> dict[str, Any]:
    return {
        "method": item.method_name,
        "inputs": _arguments(item.inputs),
        "outputs": _arguments(item.outputs),
    }


def _arguments(items: tuple[SignatureArgument, ...]) -> dict[str, Any]:
    found = {}
    for item in items:
        parts = [(item.name, item.dtype, item.shape)]
        if item.kind != "dense":
            parts = [
                (f"{item.name}/{number}", slot.dtype, slot.shape)
                for number, slot in enumerate(item.tensors)
            ]
        found.update(
            {name: (str(dtype).removesuffix("_ref"), shape) for name, dtype, shape in parts}
        )
    return found


def _variables(model: layout.Layout, graph: MetaGraph) -> collections.Counter[Any]:
    """(name, dtype, shape, trainable, digest of the value) of every variable that the checkpoint
    has a value of.
    """
    stored = [item for item in graph.variables if item.stored]
    found: collections.Counter[Any] = collections.Counter()
    if not stored:
        return found
    with BundleReader(model.checkpoint_prefix) as reader:
        for item in stored:
            value = reader.read(item.key or "")
            if item.slice:
                value = value[_indices(item.slice)]
            data = (
                repr(value.tolist()).encode()
                if value.dtype == object
                else np.ascontiguousarray(value).tobytes()
            )
            digest = hashlib.sha256(data).hexdigest()[:16]
            found[
                item.name, item.dtype.removesuffix("_ref"), value.shape, item.trainable, digest
            ] += 1
    return found


def _indices(text: str) -> tuple[slice, ...]:
    out = []
    for part in text.split()[-1].split(":"):
        start, _, length = part.partition(",")
        out.append(slice(None) if part == "-" else slice(int(start), int(start) + int(length)))
    return tuple(out)


def _assets(model: layout.Layout, graph: MetaGraph) -> dict[str, str]:
    out = {}
    for item in graph.assets:
        path = model.asset_path(item.filename)
        out[item.filename] = (
            hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else "missing"
        )
    return out


def _extra_assets(model: layout.Layout) -> dict[str, str]:
    found = {name: model.directory / layout.ASSETS_EXTRA / name for name in model.extra_assets}
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for name, path in found.items()
    }


def compare(one: dict[str, Any], other: dict[str, Any], converted: bool) -> Optional[str]:
    """What of the first is not in the second; None when all is.

    Args:
      converted: the second is a TF 2 export of a TF 1.x model: there is no object tree to compare,
        and what was not trainable or not known to be may differ.
    """
    problems = []
    if not one["tags"] <= other["tags"]:
        problems.append(f"tags {sorted(one['tags'])} became {sorted(other['tags'])}")
    for key, signature in one["signatures"].items():
        problems += _signature_problems(key, signature, other["signatures"].get(key))
    problems += [
        f"signature {key} is new"
        for key in sorted(set(other["signatures"]) - set(one["signatures"]))
    ]
    lost = one["variables"] - other["variables"]
    problems += [f"variable {item} × {count}" for item, count in sorted(lost.items(), key=str)[:5]]
    if (
        not converted
    ):  # a variable of TF 1.x that nothing gives a value is left out: no checkpoint could hold it
        problems += [
            f"variable {name}, which has no value"
            for name in set(one["unstored"]) - set(other["unstored"])
        ][:5]
    for name, digest in one["assets"].items():
        if other["assets"].get(name) != digest:
            problems.append(f"asset {name} {digest}: {other['assets'].get(name)}")
    problems += [f"default {item}" for item in sorted(one["defaults"] - other["defaults"])]
    problems += [
        f"assets.extra/{name}"
        for name, digest in one["extra"].items()
        if other["extra"].get(name) != digest
    ]
    if not converted:
        problems += [
            f"{item} × {n}"
            for part in ("aliases", "implementations")
            for item, n in (one[part] - other[part]).items()
        ]
        problems += _tree_problems(one, other)[:5]
    return "; ".join(problems)[:2500] or None


def _tree_problems(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Paths of the first that lead nowhere, or to something else, in the second."""
    problems, seen, pending = [], set(), [("root", 0, 0)]
    while pending:
        path, here, there = pending.pop()
        if (here, there) in seen:
            continue
        seen.add((here, there))
        (children, kind), (others, found) = one["tree"][here], other["tree"][there]
        if kind != found or one["functions"].get(here) != other["functions"].get(there):
            problems.append(
                f"{path}: {kind} {one['functions'].get(here)}: {found}"
                f" {other['functions'].get(there)}"
            )
        if one["nodes"][here] != other["nodes"][there]:
            problems.append(f"{path}: {one['nodes'][here]}: {other['nodes'][there]}")
        for mine, theirs in zip(one["traces"][here], other["traces"][there]):
            missing = one["bodies"].get(mine, set()) - other["bodies"].get(theirs, set())
            problems += [f"{path}: {mine}: {item}" for item in sorted(missing, key=str)[:2]]
        for name, child in children.items():
            if name in others:
                pending.append((f"{path}.{name}", child, others[name]))
            else:
                problems.append(f"{path}.{name} is not there")
    return problems


def _signature_problems(
    key: str, one: dict[str, Any], other: Optional[dict[str, Any]]
) -> list[str]:
    if other is None:
        return [f"signature {key}"]
    for part in ("inputs", "outputs"):
        # A TensorInfo without a dtype, as programs of others write it, says nothing about its
        # tensor.
        silent = {
            name
            for name, (dtype, _) in one[part].items()
            if dtype == "invalid" and name in other[part]
        }
        one = {**one, part: {**one[part], **{name: other[part][name] for name in silent}}}
    return [
        f"signature {key}: {part} {one[part]}: {other[part]}"
        for part in one
        if one[part] != other[part]
    ]


def compare_loaded(one: dict[str, Any], root: Any) -> Optional[str]:
    """What of an inventory a loaded object does not have."""
    problems = []
    for key, signature in one["signatures"].items():
        if key not in root.signatures:
            problems.append(f"signature {key}")
            continue
        found = root.signatures[key].structured_input_signature[1]
        wanted = {name.partition("/")[0] for name in signature["inputs"]}
        if not wanted <= set(found) and len(found) != len(signature["inputs"]):
            problems.append(f"signature {key}: inputs {sorted(wanted)}: {sorted(found)}")
    return "; ".join(problems)[:1500] or None


def compare_tables(one: list[Any], other: list[Any]) -> Optional[str]:
    """What tables of the first are not in the second.

    One that is empty since nobody fills it may be filled there.
    """
    left = list(other)
    lost = []
    for table in sorted(one, key=lambda item: item[2] is None):
        twin = next(
            (
                item
                for item in left
                if item == table or (table[2] is None and item[:2] == table[:2])
            ),
            None,
        )
        if twin is None:
            lost.append(table)
        else:
            left.remove(twin)
    return f"{len(lost)} of {len(one)} tables are lost: {str(lost)[:300]}" if lost else None


def tables(path: Union[str, Path], tags: list[str]) -> list[Any]:
    """The content of every table in a session of the shipped loader, sorted: (dtypes, entries);
    None for one nobody fills.
    """
    import tensorflow as tf

    found = []
    with tf.Graph().as_default() as graph, session() as running:
        tf.compat.v1.saved_model.load(running, tags, str(path))
        for handle, op, nodes in _handles(graph):
            kinds = [
                tf.dtypes.as_dtype(op.attr[name].type) for name in ("key_dtype", "value_dtype")
            ]
            export = (
                tf.raw_ops.LookupTableExportV2
                if op.op.endswith("V2")
                else tf.raw_ops.LookupTableExport
            )
            try:
                keys, values = running.run(
                    export(table_handle=handle, Tkeys=kinds[0], Tvalues=kinds[1])
                )
                entries = {repr(entry) for entry in zip(keys.tolist(), values.tolist())}
                reserved = _reserved(op, nodes)
                found.append(
                    (
                        *map(str, kinds),
                        sorted(entry for entry in entries if not entry.startswith(reserved)),
                    )
                )
            except tf.errors.OpError:
                found.append((*map(str, kinds), None))
    return sorted(found, key=str)


def _handles(graph: Any) -> list[Any]:
    """(handle, node that makes it, nodes by name) of every table of a graph, made there or in a
    function of its own.
    """
    import tensorflow as tf

    graph_def = graph.as_graph_def()
    created = {}
    for function in graph_def.library.function:
        nodes = {node.name: node for node in function.node_def}
        made = [node for node in function.node_def if node.op.startswith(TABLE_OPS)]
        if len(made) == 1 and [result.type for result in function.signature.output_arg] == [
            tf.resource.as_datatype_enum
        ]:
            created[function.signature.name] = made[0], nodes
    nodes = {node.name: node for node in graph_def.node}
    found = []
    for operation in graph.get_operations():
        node = nodes[operation.name]
        if node.op.startswith(TABLE_OPS):
            found.append((operation.outputs[0], node, nodes))
        elif node.op.endswith("PartitionedCall") and node.attr["f"].func.name in created:
            found.append((operation.outputs[0], *created[node.attr["f"].func.name]))
    return found


def _reserved(table: Any, nodes: dict[str, Any]) -> tuple[str, ...]:
    """How entries of a dense table begin that are no entries: the keys of empty and of deleted
    buckets.
    """
    import tensorflow as tf

    if not table.op.startswith("MutableDense"):
        return ()
    keys = [
        tf.make_ndarray(nodes[text.partition(":")[0]].attr["value"].tensor).tolist()
        for text in table.input
    ]
    return tuple(f"({form!r}, " for key in keys for form in (key, [key]))


def session() -> Any:
    """A session that runs on this machine what was meant for another."""
    import tensorflow as tf

    return tf.compat.v1.Session(config=tf.compat.v1.ConfigProto(allow_soft_placement=True))
