"""Steps that a watched load tells of an object graph: objects, their children, captures.

RFC: FMT-01, PRIM-03, RP-01, RP-02, RP-03, RP-04, RP-05, RP-07, RES-04, RES-07, FMT-14, OPT-02
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional

from reference_impl.errors import listed
from reference_impl.format import schema
from reference_impl.functions.load_context import LoadContext
from reference_impl.functions.steps import tell_library
from reference_impl.graph.node_kinds import BARE_CONCRETE_FUNCTION, FUNCTION
from reference_impl.graph.object_graph import Paths
from reference_impl.kinds.optimizer import LoadedOptimizer
from reference_impl.kinds.user_object import LoadedObject
from reference_impl.tracing import Watch
from reference_impl.views.objects import node_text


def tell_graph(watch: Watch, load: LoadContext) -> None:
    """Tell that the object graph was checked, and which functions are known."""
    nodes, functions = len(load.whole.nodes), len(load.whole.concrete_functions)
    said = f"checked; nodes: {nodes}, concrete functions: {functions}"
    watch.tell("object graph", load.file, "object_graph_def", said, "FMT-01")
    tell_library(watch, load.library)
    if load.options.skip_checkpoint:
        watch.tell("checkpoint", load.checkpoint.index, "", "not read: skip_checkpoint", "RP-08")


def tell_made(watch: Watch, load: LoadContext, number: int, made: Any) -> None:
    """Tell which object was made for a node."""
    node = load.graph.nodes[number]
    rule = load.kinds[number].message.clause
    if isinstance(made, LoadedOptimizer):
        rule = "OPT-02"
    elif rule == "RP-05" and node.registered_name and not isinstance(made, LoadedObject):
        rule = "RP-02"
    came = "made with its functions" if made is None else f"made as {type(made).__name__}"
    said = f"{_text(load, node)}, {came}"
    watch.tell("object", load.file, load.label(number), said, rule)


def tell_left_out(watch: Watch, load: LoadContext, numbers: Optional[frozenset[int]]) -> None:
    """Tell which nodes are not among those that ``only`` selects (None for all)."""
    if numbers is None:
        return
    paths = Paths(load.whole.nodes)
    for number, node in enumerate(load.whole.nodes):
        if number not in numbers:
            said = f"{_text(load, node)}, not loaded: LoadOptions(only=...) leaves it out"
            label = f"nodes[{number}] {paths.from_root(number)}"
            watch.tell("object", load.file, label, said, "DR-03")


def tell_children(watch: Watch, load: LoadContext, number: int) -> None:
    """Tell which children an object has got. The traces of a function are reported as objects."""
    if load.kinds[number].message in (FUNCTION, BARE_CONCRETE_FUNCTION):
        return
    names = list(load.children(number))
    if names:
        watch.tell("children", load.file, load.label(number), listed(names), "RP-01")


def tell_captures(watch: Watch, load: LoadContext, name: str, numbers: Iterable[int]) -> None:
    """Tell which objects a function captures."""
    paths = [load.path(number) for number in numbers]
    if paths:
        watch.tell("captures", load.file, name, listed(paths), "RP-07")


def _text(load: LoadContext, node: schema.SavedObject) -> str:
    """Return the kind of a node with the facts of its message."""
    index, assets = node.asset.asset_file_def_index, load.assets.definitions
    if node.HasField("asset") and 0 <= index < len(assets):
        return f"asset {assets[index].filename}"
    return node_text(node)
