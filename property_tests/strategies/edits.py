"""Single changes of a SavedModel on disk: such that change what it means.

`neutral_edits` has those that do not.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import model_edits
import numpy as np
from hypothesis import strategies as st

from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout

Choose = Callable[[list[Any]], Any]
# Each takes a model and a way to choose one of a list; it gives what it did, or None where the
# model has nothing to change.
Edit = Callable[[Path, Choose], Optional[str]]


def weight(model: Path, choose: Choose) -> Optional[str]:
    """One bit of one value."""
    prefix = layout.read(model).checkpoint_prefix
    with BundleReader(prefix) as reader:
        entries = {
            key: entry
            for key, entry in reader.entries().items()
            if key.endswith("VARIABLE_VALUE") and 0 not in entry.shape
        }
    if not entries:
        return None
    chosen = choose(sorted(entries))

    def change(key: str, array: Any) -> Any:
        if key != chosen:
            return array
        changed = array.copy()
        if changed.dtype == object:
            changed.ravel()[0] = b"q" + bytes(changed.ravel()[0])
        else:
            changed.reshape(-1).view(np.uint8)[0] ^= 1
        return changed

    model_edits.copy_checkpoint(model, change)
    return f"value of {chosen}"


def asset(model: Path, choose: Choose) -> Optional[str]:
    """One byte more."""
    files = sorted(path for path in (model / "assets").rglob("*") if path.is_file())
    if not files:
        return None
    chosen = choose(files)
    chosen.write_bytes(chosen.read_bytes() + b"q")
    return f"asset {chosen.name}"


def _message(edit: Callable[[Any, Choose], Optional[str]]) -> Edit:
    def apply(model: Path, choose: Choose) -> Optional[str]:
        message = layout.read(model).saved_model
        done = edit(message.meta_graphs[0], choose)
        model_edits.write(message, model)
        return done

    apply.__name__ = edit.__name__
    return apply


def attribute(graph: Any, choose: Choose) -> Optional[str]:
    """The value of a constant in a function that is used."""
    found = [
        (function.signature.name, node)
        for function in graph.graph_def.library.function
        for node in function.node_def
        if node.op == "Const"
        and len(node.attr["value"].tensor.float_val) == 1
        and "traced" not in function.signature.name
    ]
    if not found:
        return None
    name, node = choose(found)
    node.attr["value"].tensor.float_val[0] += 1
    return f"value of {node.name} in {name}"


def edge(graph: Any, choose: Choose) -> Optional[str]:
    """A child of an object under another name."""
    nodes = graph.object_graph_def.nodes
    found = [
        child
        for node in nodes
        for child in node.children
        if node.WhichOneof("kind") == "user_object"
    ]
    if not found:
        return None
    child = choose(found)
    child.local_name += "q"
    return f"name of the child {child.local_name[:-1]}"


def swap(graph: Any, choose: Choose) -> Optional[str]:
    """Two inputs of an op, the order of which matters."""
    found = [
        node
        for function in graph.graph_def.library.function
        for node in function.node_def
        if node.op in ("Sub", "Greater", "Less", "FloorMod")
        and len(set(_meanings(function, node))) == 2
    ]
    if not found:
        return None
    node = choose(found)
    node.input[:2] = [node.input[1], node.input[0]]
    return f"inputs of {node.name}"


def _meanings(function: Any, node: Any) -> list[bytes]:
    """Two constants of one value are one and the same, whatever they are called."""
    values = {
        f"{one.name}:output:0": one.attr["value"].SerializeToString()
        for one in function.node_def
        if one.op == "Const"
    }
    return [values.get(name, name.encode()) for name in node.input[:2]]


def signature_key(graph: Any, choose: Choose) -> Optional[str]:
    keys = [key for key in sorted(graph.signature_def) if key != "__saved_model_init_op"]
    if not keys:
        return None
    key = choose(keys)
    graph.signature_def[key + "q"].CopyFrom(graph.signature_def[key])
    del graph.signature_def[key]
    return f"key {key}"


def signature_output(graph: Any, choose: Choose) -> Optional[str]:
    """What an output is called."""
    keys = [
        key
        for key in sorted(graph.signature_def)
        if graph.signature_def[key].outputs and key != "__saved_model_init_op"
    ]
    if not keys:
        return None
    outputs = graph.signature_def[choose(keys)].outputs
    name = choose(sorted(outputs))
    outputs[name + "q"].CopyFrom(outputs[name])
    del outputs[name]
    return f"output {name}"


def trainable(graph: Any, choose: Choose) -> Optional[str]:
    found = [
        node.variable
        for node in graph.object_graph_def.nodes
        if node.WhichOneof("kind") == "variable"
    ]
    if not found:
        return None
    variable = choose(found)
    variable.trainable = not variable.trainable
    return f"trainable of {variable.name}"


def trace_order(graph: Any, choose: Choose) -> Optional[str]:
    """The order of a function's traces, which decides when two fit."""
    found = [
        node.function
        for node in graph.object_graph_def.nodes
        if len(set(node.function.concrete_functions)) > 1
    ]
    if not found:
        return None
    function = choose(found)
    function.concrete_functions[:] = list(function.concrete_functions)[::-1]
    return "order of traces"


MESSAGE_EDITS = (attribute, edge, swap, signature_key, signature_output, trainable, trace_order)
EDITS: tuple[Edit, ...] = (weight, asset, *[_message(edit) for edit in MESSAGE_EDITS])
edits = st.sampled_from(EDITS)
