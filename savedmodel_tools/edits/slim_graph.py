"""Find the reachable part of a graph and its functions, and remove the rest. The roots are
signatures, the ops that a loader runs first, the saver, assets, constants and functions of the
object graph, and collections. From there the search follows edges, functions in attributes, custom
gradients, and functions named in strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Optional

from reference_impl import errors
from reference_impl.format import extension, schema
from reference_impl.format.container import layout
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import parse_input
from reference_impl.graph.references import FunctionIndex, all_nodes
from reference_impl.graph.signature_tensors import tensor_names
from savedmodel_tools.canonical.meta_graph import COLLECTION_MESSAGES
from savedmodel_tools.edits.objects import functions_in, keep_only


def _collections_of(*messages: str) -> tuple[str, ...]:
    return tuple(key for key, message in COLLECTION_MESSAGES.items() if message in messages)


VARIABLES = _collections_of("VariableDef")
CONTEXTS = _collections_of("CondContextDef", "WhileContextDef")
SAVERS = _collections_of("SaverDef")
TRAINING = (
    "train_op",
    "losses",
    "regularization_losses",
    "update_ops",
    "summaries",
    "summary_op",
    "queue_runners",
    "eval_step",
)
_NAMES = ("variable_name", "initializer_name", "initial_value_name", "snapshot_name")
_READS = frozenset({"ReadVariableOp", "VarIsInitializedOp"})


class Root(NamedTuple):
    """A node with a reference from outside of the graph, and the source of the reference."""

    node: str
    who: str


def _described(graph: schema.MetaGraphDef, keys: Iterable[str]) -> Iterator[tuple[str, int, Any]]:
    """Yield the collection, position and message of each item of these collections that can be
    parsed.
    """
    for key in keys:
        for position, value in enumerate(
            graph.collection_def[key].bytes_list.value if key in graph.collection_def else ()
        ):
            try:
                yield key, position, schema.parse(getattr(schema, COLLECTION_MESSAGES[key]), value)
            except errors.SavedModelError:
                continue


def roots(
    model: layout.Layout, graph: schema.MetaGraphDef, skip: Iterable[str] = (), savers: bool = True
) -> Iterator[Root]:
    """Yield all references to nodes of the main graph, but for entries of collections about the
    variables ``skip``.
    """
    for key, signature in graph.signature_def.items():
        for infos in (signature.inputs, signature.outputs):
            for name in tensor_names(infos):
                yield Root(parse_input(name).source, f"signature {key}")
    for asset in model.asset_definitions(graph):
        yield Root(parse_input(asset.tensor_info.name).source, f"asset {asset.filename}")
    for number, node in enumerate(graph.object_graph_def.nodes):
        if node.HasField("constant"):
            yield Root(node.constant.operation, f"object {number}")
    if savers:
        saver = graph.saver_def
        for text in (saver.filename_tensor_name, saver.save_tensor_name, saver.restore_op_name):
            if text:
                yield Root(parse_input(text).source, "the saver")
    skipped = set(skip)
    for _, _, definition in _described(graph, VARIABLES):
        if parse_input(definition.variable_name).source not in skipped:
            for name in _NAMES:
                if getattr(definition, name):
                    yield Root(
                        parse_input(getattr(definition, name)).source,
                        f"variable {definition.variable_name}",
                    )
    yield from _collections(graph)


def _collections(graph: schema.MetaGraphDef) -> Iterator[Root]:
    """Other collections may hold names in plain text; what only looks like one does no harm."""
    for key, collection in graph.collection_def.items():
        texts = [*collection.node_list.value]
        if key not in (*VARIABLES, *CONTEXTS, *SAVERS, extension.KEY):
            texts += [value.decode("utf-8", "replace") for value in collection.bytes_list.value]
        for text in texts:
            yield Root(parse_input(text.removeprefix("^")).source, f"collection {key}")


def needed(graph: schema.MetaGraphDef, starts: Iterable[Root]) -> dict[str, str]:
    """The nodes of the main graph that some roots need, each with the first who does.

    Contexts of loops that stay count too.
    """
    nodes = {node.name: node for node in graph.graph_def.node}
    who: dict[str, str] = {}
    stack: list[Root] = []

    def follow(items: Iterable[Root]) -> None:
        stack.extend(items)
        while stack:
            name, why = stack.pop()
            if name in nodes and name not in who:
                who[name] = why
                stack.extend(Root(parse_input(text).source, why) for text in nodes[name].input)

    def has_inputs(node: schema.NodeDef) -> bool:
        return all(parse_input(text).source in who for text in node.input)

    follow(starts)
    while True:
        before = len(who)
        for key, _, context in _described(graph, CONTEXTS):
            pivot = parse_input(context.pivot_name).source
            if pivot in who:
                follow(
                    Root(parse_input(text).source, f"collection {key}")
                    for text in context_names(context)
                )
        follow(
            Root(node.name, "reads a variable")
            for node in nodes.values()
            if node.op in _READS and node.name not in who and has_inputs(node)
        )
        if len(who) == before:
            return who


def context_names(context: Any) -> Iterator[str]:
    """The tensors that a reader of a context looks up in the graph, those of contexts inside
    included.
    """
    for field, value in context.ListFields():
        if field.name in ("context_name", "values_def", "nested_contexts"):
            continue
        yield from (
            value
            if schema.is_repeated(field) and field.message_type is None
            else [value]
            if isinstance(value, str)
            else ()
        )
    for inner in context.nested_contexts:
        yield from (
            context_names(getattr(inner, inner.WhichOneof("ctxt")))
            if inner.WhichOneof("ctxt")
            else ()
        )


def prune_nodes(graph: schema.MetaGraphDef, keep: Callable[[str], bool]) -> int:
    """Remove the other nodes of the main graph, what collections say of them, and colocation with
    them; how many these were.
    """
    gone = {node.name for node in graph.graph_def.node if not keep(node.name)}
    if not gone:
        return 0
    for position in reversed(range(len(graph.graph_def.node))):
        node = graph.graph_def.node[position]
        if node.name in gone:
            del graph.graph_def.node[position]
        elif "_class" in node.attr:
            _without(node, gone)
    left = {node.name for node in graph.graph_def.node}
    lost = {
        (key, at)
        for key, at, item in _described(graph, VARIABLES)
        if _node(item.variable_name) in gone
    }
    lost |= {
        (key, at) for key, at, item in _described(graph, CONTEXTS) if _node(item.pivot_name) in gone
    }
    for key, at, saver in _described(
        graph, SAVERS
    ):  # older savers, which only a collection still names
        if (
            not {_node(text) for text in (saver.save_tensor_name, saver.restore_op_name) if text}
            <= left
        ):
            lost.add((key, at))
    for key, at in sorted(lost, reverse=True):
        del graph.collection_def[key].bytes_list.value[at]
    for key, position, item in list(_described(graph, CONTEXTS)):
        if _trim(item, gone):
            graph.collection_def[key].bytes_list.value[position] = schema.serialize(item)
    for key in [key for key in (*VARIABLES, *CONTEXTS, *SAVERS) if key in graph.collection_def]:
        if (
            not graph.collection_def[key].bytes_list.value
            and graph.collection_def[key].WhichOneof("kind") == "bytes_list"
        ):
            del graph.collection_def[key]
    return len(gone)


def _trim(context: Any, gone: set[str]) -> bool:
    """Take what is gone out of what a context says of its inside: readers look every name up."""
    values = context.values_def
    inside = [text for text in values.values if parse_input(text).source not in gone]
    outside = {
        key: text
        for key, text in values.external_values.items()
        if not {_node(key), _node(text)} & gone
    }
    changed = len(inside) < len(values.values) or len(outside) < len(values.external_values)
    if changed:
        values.values[:] = inside
        values.external_values.clear()
        values.external_values.update(outside)
    for position in reversed(range(len(context.nested_contexts))):
        inner = context.nested_contexts[position]
        held = getattr(inner, inner.WhichOneof("ctxt")) if inner.WhichOneof("ctxt") else None
        if held is not None and _node(held.pivot_name) in gone:
            del context.nested_contexts[position]
            changed = True
        elif held is not None:
            changed |= _trim(held, gone)
    return changed


def _node(text: str) -> str:
    return parse_input(text).source


def _without(node: schema.NodeDef, gone: set[str]) -> None:
    values = [
        item
        for item in node.attr["_class"].list.s
        if item.decode("utf-8", "replace").partition("@")[2] not in gone
    ]
    if len(values) < len(node.attr["_class"].list.s):
        node.attr["_class"].list.s[:] = values
        if not values:
            del node.attr["_class"]


def prune_functions(graph: schema.MetaGraphDef, extra: Optional[schema.Extension]) -> list[str]:
    """Remove the functions that nothing can reach, and what is said of them; their names."""
    gone = unreached_functions(graph, extra)
    if gone:
        remove_functions(graph, set(gone))
    return gone


def unreached_functions(graph: schema.MetaGraphDef, extra: Optional[schema.Extension]) -> list[str]:
    """Return the names of the functions that nothing can reach, nor swap in for a function that
    something can reach.
    """
    library = FunctionIndex(graph.graph_def.library)
    starts: dict[str, None] = {}
    for node in graph.graph_def.node:
        starts.update(
            dict.fromkeys([*library.references(node), *sorted(library.in_strings(node.attr))])
        )
    for item in graph.object_graph_def.nodes:
        starts.update(dict.fromkeys(functions_in(item)))
    if extra is not None:
        starts.update(dict.fromkeys(item.function for item in extension.functions(extra)))
    edges = library.calls()
    for name, function in library.functions.items():
        attributes = [function.attr, *(inner.attr for inner in function.node_def)]
        strings = map(library.in_strings, attributes)
        edges[name] = [
            *edges[name],
            *library.may_run([name]),
            *sorted(set(library.attribute_references(function.attr)).union(*strings)),
        ]
    live = reachable([name for name in starts if name in library.functions], edges)
    return [name for name in library.functions if name not in live]


def remove_functions(graph: schema.MetaGraphDef, gone: set[str]) -> None:
    """Remove functions, and what is said of them."""
    library = graph.graph_def.library
    keep_only(library.function, lambda item: item.signature.name not in gone)
    keep_only(library.gradient, lambda item: item.function_name not in gone)
    keep_only(library.registered_gradients, lambda item: item.gradient_func not in gone)
    described, aliases = (
        graph.object_graph_def.concrete_functions,
        graph.meta_info_def.function_aliases,
    )
    for name in gone:
        if name in described:
            del described[name]
        if name in aliases:
            del aliases[name]


def prune_ops(graph: schema.MetaGraphDef) -> None:
    """Take ops that nobody uses any more out of the list of those whose defaults were stripped."""
    used = {node.op for node in all_nodes(graph.graph_def)}
    keep_only(graph.meta_info_def.stripped_op_list.op, lambda item: item.name in used)
