"""What a loader or a saver may lose, as edits of a SavedModel: the loader reads the edited model, the saver has written it.

Each takes a MetaGraph (``model`` is its folder) and says whether it found anything to lose. Nothing here needs TensorFlow.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from reference_impl.format import schema
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.bundle.writer import BundleWriter
from reference_impl.format.container import layout

Fault = Callable[[Any, Path], bool]
FAULTS: dict[str, Fault] = {}


def apply(name: str, model: Path) -> bool:
    """Lose something from the model in a folder; whether there was anything."""
    message = layout.read(model).saved_model
    done = [FAULTS[name](graph, model) for graph in message.meta_graphs]
    (model / "saved_model.pb").write_bytes(schema.serialize(message))
    return any(done)


def fault(function: Fault) -> Fault:
    FAULTS[function.__name__] = function
    return function


def _each(items: Any, change: Callable[[Any], bool]) -> bool:
    changed = [change(item) for item in items]
    return any(changed)


def _set(message: Any, field: str, value: Any) -> bool:
    changed = bool(getattr(message, field) != value)
    setattr(message, field, value)
    return changed


# Variables


def _variables(graph: Any) -> list[Any]:
    return [node.variable for node in graph.object_graph_def.nodes if node.WhichOneof("kind") == "variable"]


@fault
def trainable(graph: Any, model: Path) -> bool:
    """Every variable is trained."""
    return _each(_variables(graph), lambda variable: _set(variable, "trainable", True))


@fault
def aggregation(graph: Any, model: Path) -> bool:
    """How replicas are aggregated is forgotten."""
    return _each(_variables(graph), lambda variable: _set(variable, "aggregation", 0))


@fault
def synchronization(graph: Any, model: Path) -> bool:
    """When replicas are synchronised is forgotten."""
    return _each(_variables(graph), lambda variable: _set(variable, "synchronization", 0))


@fault
def variable_names(graph: Any, model: Path) -> bool:
    """Variables get a name of the loader's."""
    return _each(_variables(graph), lambda variable: _set(variable, "name", "lost"))


@fault
def open_shapes(graph: Any, model: Path) -> bool:
    """Unknown dimensions become 1, an unknown rank that of a vector."""

    def change(variable: Any) -> bool:
        unknown = variable.shape.unknown_rank or any(dim.size < 0 for dim in variable.shape.dim)
        if variable.shape.unknown_rank:
            variable.shape.unknown_rank = False
            variable.shape.dim.add(size=1)
        for dim in variable.shape.dim:
            dim.size = abs(dim.size)
        return bool(unknown)

    return _each(_variables(graph), change)


@fault
def values(graph: Any, model: Path) -> bool:
    """One bit of each value of the checkpoint is another: variables, tables, random states."""
    prefix = layout.read(model).checkpoint_prefix
    if not Path(f"{prefix}.index").exists():
        return False
    changed = False
    with BundleReader(prefix) as reader:
        entries = {key: (np.array(reader.read(key)), entry.dtype.name) for key, entry in reader.entries().items()}
    shutil.rmtree(prefix.parent)
    with BundleWriter(prefix, 1) as writer:
        for key, (array, dtype) in entries.items():
            if key != "_CHECKPOINTABLE_OBJECT_GRAPH" and array.size and "-keys" not in key:
                changed = True
                if array.dtype == object:
                    array.ravel()[0] = b"lost " + bytes(array.ravel()[0])
                else:
                    array.reshape(-1).view(np.uint8)[array.itemsize - 1] ^= 1 if array.dtype == bool else 4
            writer.add(key, array, dtype, shard=0)
    return changed


# Functions


def _functions(graph: Any) -> list[Any]:
    return [node.function for node in graph.object_graph_def.nodes if node.WhichOneof("kind") == "function"]


def _full_argument_specs(graph: Any) -> Iterator[dict[str, Any]]:
    for function in _functions(graph):
        yield {pair.key: pair.value for pair in function.function_spec.fullargspec.named_tuple_value.values}


@fault
def argument_names(graph: Any, model: Path) -> bool:
    """Parameters are called otherwise."""

    def change(spec: dict[str, Any]) -> bool:
        names = [item for item in spec["args"].list_value.values if item.string_value != "self"]
        for item in names:
            item.string_value = f"lost_{item.string_value}"
        return bool(names)

    return _each(_full_argument_specs(graph), change)


@fault
def defaults(graph: Any, model: Path) -> bool:
    """Defaults of parameters are another number, text or flag."""

    def change(spec: dict[str, Any]) -> bool:
        positional = [*spec["defaults"].list_value.values, *spec["defaults"].tuple_value.values]
        found = [*positional, *spec["kwonlydefaults"].dict_value.fields.values()]
        for value in found:
            value.Clear()
            value.int64_value = 77
        return bool(found)

    return _each(_full_argument_specs(graph), change)


@fault
def traces(graph: Any, model: Path) -> bool:
    """Of several traces only the first is kept."""

    def change(function: Any) -> bool:
        several = len(function.concrete_functions) > 1
        del function.concrete_functions[1:]
        return several

    return _each(_functions(graph), change)


@fault
def captures(graph: Any, model: Path) -> bool:
    """The order of captures of equal dtype and shape."""
    nodes = graph.object_graph_def.nodes

    def kind(number: int) -> str:
        variable = nodes[number].variable
        return str((nodes[number].WhichOneof("kind"), variable.dtype, [dim.size for dim in variable.shape.dim]))

    def change(function: Any) -> bool:
        found = list(function.bound_inputs)
        order = sorted(range(len(found)), key=lambda place: (kind(found[place]), place))
        swapped = list(found)
        for one, other in zip(order, order[1:]):
            if kind(found[one]) == kind(found[other]) and found[one] != found[other]:
                swapped[one], swapped[other] = found[other], found[one]
                break
        function.bound_inputs[:] = swapped
        return swapped != found

    return _each(graph.object_graph_def.concrete_functions.values(), change)


def _walk(value: Any) -> Iterator[Any]:
    yield value
    kind = value.WhichOneof("kind")
    if kind in ("list_value", "tuple_value", "named_tuple_value"):
        for item in getattr(value, kind).values:
            yield from _walk(item.value if kind == "named_tuple_value" else item)
    elif kind == "dict_value":
        for item in value.dict_value.fields.values():
            yield from _walk(item)


@fault
def literals(graph: Any, model: Path) -> bool:
    """The numbers, texts and flags that a trace was made for."""

    def change(value: Any) -> bool:
        kind = value.WhichOneof("kind")
        if kind in ("float64_value", "int64_value", "bool_value", "string_value"):
            value.Clear()
            value.string_value = "lost"
            return True
        return False

    functions = graph.object_graph_def.concrete_functions.values()
    return _each([v for function in functions for v in _walk(function.canonicalized_input_signature)], change)


@fault
def composites(graph: Any, model: Path) -> bool:
    """Sparse and ragged results are taken for each other."""
    found = [value.type_spec_value for value in _structures(graph) if value.WhichOneof("kind") == "type_spec_value"]
    other = {1: 3, 3: 1}  # SPARSE_TENSOR_SPEC, RAGGED_TENSOR_SPEC
    return _each(found, lambda spec: _set(spec, "type_spec_class", other.get(spec.type_spec_class, spec.type_spec_class)))


@fault
def listed_arguments(graph: Any, model: Path) -> bool:
    """Where a tensor was declared a list is demanded: a Python list is no longer converted to one tensor."""

    def change(value: Any) -> bool:
        if value.WhichOneof("kind") != "tensor_spec_value":
            return False
        spec = schema.StructuredValue()
        spec.CopyFrom(value)
        value.Clear()
        value.list_value.values.add().CopyFrom(spec)
        return True

    functions = graph.object_graph_def.concrete_functions.values()
    return _each([v for function in functions for v in list(_walk(function.canonicalized_input_signature))], change)


def _structures(graph: Any) -> Iterator[Any]:
    for function in graph.object_graph_def.concrete_functions.values():
        yield from _walk(function.output_signature)


@fault
def containers(graph: Any, model: Path) -> bool:
    """Tuples of results become lists, and lists tuples."""

    def change(value: Any) -> bool:
        kind = value.WhichOneof("kind")
        if kind == "list_value":
            value.tuple_value.values.extend(list(value.list_value.values))
        elif kind == "tuple_value":
            value.list_value.values.extend(list(value.tuple_value.values))
        return kind in ("list_value", "tuple_value")

    return _each(list(_structures(graph)), change)


@fault
def namedtuples(graph: Any, model: Path) -> bool:
    """The type name of namedtuples in results."""
    found = [value.named_tuple_value for value in _structures(graph) if value.WhichOneof("kind") == "named_tuple_value"]
    return _each(found, lambda value: _set(value, "name", "Lost"))


@fault
def keys(graph: Any, model: Path) -> bool:
    """The keys of dicts in results of functions."""

    def change(value: Any) -> bool:
        fields = value.dict_value.fields
        for key in list(fields):
            fields[f"lost_{key}"].CopyFrom(fields[key])
            del fields[key]
        return bool(fields)

    inside = [f for name, f in graph.object_graph_def.concrete_functions.items() if "signature_wrapper" not in name]
    return _each([v for function in inside for v in _walk(function.output_signature)], change)


@fault
def custom_gradients(graph: Any, model: Path) -> bool:
    """Gradients that were registered for functions."""
    found = len(graph.graph_def.library.registered_gradients)
    graph.graph_def.library.ClearField("registered_gradients")
    return bool(found)


@fault
def function_attributes(graph: Any, model: Path) -> bool:
    """What functions say of their compilation and of what they implement."""

    def change(function: Any) -> bool:
        found = [name for name in ("_XlaMustCompile", "api_implements", "_implements") if name in function.attr]
        for name in found:
            del function.attr[name]
        return bool(found)

    return _each(graph.graph_def.library.function, change)


# Computation


def _nodes(graph: Any) -> Iterator[Any]:
    for function in graph.graph_def.library.function:
        yield from function.node_def
    yield from graph.graph_def.node


@fault
def devices(graph: Any, model: Path) -> bool:
    """Devices that are named inside of functions."""
    return _each(
        [node for function in graph.graph_def.library.function for node in function.node_def], lambda n: _set(n, "device", "")
    )


OTHER = {
    "AddV2": "Mul", "Add": "Mul", "Mul": "AddV2", "Sub": "Mul", "RealDiv": "Mul", "MatMul": "", "Relu": "Elu", "Softsign": "Tanh",
    "StringUpper": "StringLower", "Neg": "Abs", "Sum": "Max", "Max": "Sum", "GatherV2": "", "Greater": "Less", "Less": "Greater",
    "Sigmoid": "Tanh", "Exp": "Log", "AddN": "", "AdjustContrastv2": "", "Maximum": "Minimum", "Square": "Neg",
}  # fmt: skip


@fault
def arithmetic(graph: Any, model: Path) -> bool:
    """Operations compute something else: sums are products."""
    return _each([node for node in _nodes(graph) if OTHER.get(node.op)], lambda node: _set(node, "op", OTHER[node.op]))


@fault
def branches(graph: Any, model: Path) -> bool:
    """The branches of conditions, in the other order."""

    def change(node: Any) -> bool:
        if node.op in ("If", "StatelessIf"):
            then, other = node.attr["then_branch"].func.name, node.attr["else_branch"].func.name
            node.attr["then_branch"].func.name, node.attr["else_branch"].func.name = other, then
            return True
        if node.op in ("Case", "StatelessCase"):
            names = [item.name for item in node.attr["branches"].list.func]
            for item, name in zip(node.attr["branches"].list.func, reversed(names)):
                item.name = name
            return len(names) > 1
        return False

    return _each(_nodes(graph), change)


def _each_constant(graph: Any, change: Callable[[Any], bool]) -> bool:
    """Change the values of constants, but not the names of files and tensors that a Saver writes."""
    saver = ("save", "Save", "Restore")
    found = [node for node in _nodes(graph) if node.op == "Const" and "value" in node.attr and not node.name.startswith(saver)]
    return _each([node.attr["value"].tensor for node in found], change)


def _raise_first(*fields: str) -> Callable[[Any], bool]:
    """Return a change of a TensorProto: the first number of these fields is one more."""

    def change(tensor: Any) -> bool:
        field = next((name for name in fields if len(getattr(tensor, name))), "")
        if field:
            getattr(tensor, field)[0] += 1
        return bool(field)

    return change


@fault
def constants(graph: Any, model: Path) -> bool:
    """Numbers in constants are others."""
    return _each_constant(graph, _raise_first("float_val", "double_val"))


@fault
def integers(graph: Any, model: Path) -> bool:
    """Whole numbers in constants are others."""
    return _each_constant(graph, _raise_first("int_val", "int64_val"))


@fault
def content(graph: Any, model: Path) -> bool:
    """Bytes of constants with many numbers or texts are others."""
    floats = (schema.DT_FLOAT, schema.DT_DOUBLE, schema.DT_FLOAT8_E5M2, schema.DT_FLOAT8_E4M3FN)

    def change(tensor: Any) -> bool:
        if tensor.dtype == schema.DT_STRING and tensor.string_val:
            tensor.string_val[0] = b"lost" + tensor.string_val[0]
            return True
        field = next((name for name in ("tensor_content", "float8_val") if getattr(tensor, name)), "")
        if not field or tensor.dtype not in floats:
            return False
        held = getattr(tensor, field)
        setattr(tensor, field, bytes([held[0] ^ 1]) + held[1:])
        return True

    return _each_constant(graph, change)


@fault
def assignments(graph: Any, model: Path) -> bool:
    """What changes a variable does not run."""

    def change(node: Any) -> bool:
        if not re.fullmatch(r"Assign(Add|Sub)?VariableOp|LookupTableInsertV2", node.op):
            return False
        node.op = "NoOp"
        node.attr.clear()
        node.input[:] = [f"^{name.split(':')[0].lstrip('^')}" for name in node.input if name.startswith("^")]
        return True

    return _each([n for f in graph.graph_def.library.function for n in f.node_def], change)


@fault
def module(graph: Any, model: Path) -> bool:
    """The StableHLO module is another."""

    def change(node: Any) -> bool:
        if node.op != "XlaCallModule":
            return False
        node.attr["module"].s = node.attr["module"].s.replace(b"stablehlo.multiply", b"stablehlo.add")
        return True

    return _each(_nodes(graph), change)


@fault
def attributes(graph: Any, model: Path) -> bool:
    """An attribute of an operation falls back to another value: compression, reduction, pattern, unit, cast."""

    def change(node: Any) -> bool:
        for name in (
            "unit",
            "encoding",
            "rewrite",
            "channels",
            "output_encoding",
            "half_pixel_centers",
            "separator",
            "algorithm",
        ):
            if name in node.attr and node.attr[name].WhichOneof("value") == "s":
                node.attr[name].s = {b"BYTE": b"UTF8_CHAR", b"UTF8_CHAR": b"BYTE"}.get(node.attr[name].s, b"lost")
                return True
        return False

    return _each(_nodes(graph), change)


@fault
def harmless(graph: Any, model: Path) -> bool:
    """What kills or hangs its reader is taken out."""

    def change(node: Any) -> bool:
        if node.op == "Abort":
            node.op = "NoOp"
            node.attr.clear()
            return True
        if node.op in ("While", "StatelessWhile"):
            node.op = "StatelessPartitionedCall"
            function = node.attr["body"].func.name
            types = list(node.attr["T"].list.type)
            node.attr.clear()
            node.attr["f"].func.name = function
            for side in ("Tin", "Tout"):
                node.attr[side].list.type.extend(types)
            return True
        return False

    return _each(_nodes(graph), change)


# Signatures


def _signatures(graph: Any) -> list[tuple[str, Any]]:
    return [(key, graph.signature_def[key]) for key in sorted(graph.signature_def) if not key.startswith("__")]


def _renamed(fields: Any) -> bool:
    for key in list(fields):
        fields[f"lost_{key}"].CopyFrom(fields[key])
        del fields[key]
    return bool(fields)


@fault
def signature_keys(graph: Any, model: Path) -> bool:
    """Signatures are found under other keys."""
    found = _signatures(graph)
    for key, _ in found:
        graph.signature_def[f"lost_{key}"].CopyFrom(graph.signature_def[key])
        del graph.signature_def[key]
    root = graph.object_graph_def.nodes[0] if graph.object_graph_def.nodes else None
    for child in root.children if root else ():
        if child.local_name == "signatures":
            for name in graph.object_graph_def.nodes[child.node_id].children:
                name.local_name = f"lost_{name.local_name}"
    return bool(found)


@fault
def input_order(graph: Any, model: Path) -> bool:
    """The first two inputs of a signature are bound to each other's arguments."""

    def change(node: Any) -> bool:
        names = list(node.bare_concrete_function.argument_keywords)
        if len(names) < 2 or not node.bare_concrete_function.concrete_function_name.startswith("__inference_signature_wrapper"):
            return False
        node.bare_concrete_function.argument_keywords[:2] = [names[1], names[0]]
        return True

    def swap(item: tuple[str, Any]) -> bool:
        inputs = item[1].inputs
        names = sorted(inputs)[:2]
        if len(names) == 2:
            inputs[names[0]].name, inputs[names[1]].name = inputs[names[1]].name, inputs[names[0]].name
        return len(names) == 2

    return _each(graph.object_graph_def.nodes, change) | _each(_signatures(graph), swap)


@fault
def signature_made_up(graph: Any, model: Path) -> bool:
    """A signature that nobody asked for."""
    graph.signature_def["made_up"].method_name = "tensorflow/serving/predict"
    return True


@fault
def method_names(graph: Any, model: Path) -> bool:
    """Every signature is one to predict with."""
    found = [item for _, item in _signatures(graph)]
    return _each(found, lambda item: _set(item, "method_name", "tensorflow/serving/predict"))


@fault
def signature_defaults(graph: Any, model: Path) -> bool:
    """The defaults of inputs."""

    def change(item: tuple[str, Any]) -> bool:
        found = len(item[1].defaults)
        item[1].ClearField("defaults")
        return bool(found)

    return _each(_signatures(graph), change)


@fault
def tags(graph: Any, model: Path) -> bool:
    """All tags but the first."""
    found = sorted(graph.meta_info_def.tags)
    graph.meta_info_def.tags[:] = found[:1]
    return len(found) > 1


# Objects and files


@fault
def children(graph: Any, model: Path) -> bool:
    """The last child of every object that is no function."""
    nodes = graph.object_graph_def.nodes
    plain = [
        node for node in nodes if node.WhichOneof("kind") == "user_object" and node.user_object.identifier != "signature_map"
    ]

    def change(node: Any) -> bool:
        names = [child for child in node.children if child.local_name not in ("signatures", "keras_api")]
        for child in names[-1:]:
            child.local_name = f"lost_{child.local_name}"
        return bool(names)

    return _each(plain, change)


@fault
def identities(graph: Any, model: Path) -> bool:
    """A child under two names is two objects."""
    nodes, seen, done = graph.object_graph_def.nodes, set(), False
    for node in list(nodes):
        for child in node.children:
            if nodes[child.node_id].WhichOneof("kind") == "variable":
                if child.node_id in seen:
                    nodes.add().CopyFrom(nodes[child.node_id])
                    child.node_id, done = len(nodes) - 1, True
                seen.add(child.node_id)
    return done


@fault
def slots(graph: Any, model: Path) -> bool:
    """The slots of optimizers."""

    def change(node: Any) -> bool:
        found = len(node.slot_variables)
        node.ClearField("slot_variables")
        return bool(found)

    return _each(graph.object_graph_def.nodes, change)


@fault
def initializers(graph: Any, model: Path) -> bool:
    """The initialisers of tables and other resources do not run."""
    found = [child for node in graph.object_graph_def.nodes for child in node.children if child.local_name == "_initialize"]
    return _each(found, lambda child: _set(child, "local_name", "_lost"))


@fault
def assets(graph: Any, model: Path) -> bool:
    """Each asset is the file of another one, or has a line more in front."""
    files = sorted(path for path in (model / "assets").rglob("*") if path.is_file()) if (model / "assets").is_dir() else []
    contents = [path.read_bytes() for path in files]
    for path, data in zip(files, [*contents[1:], b"lost\n" + b"".join(contents[:1])]):
        path.unlink()
        path.write_bytes(data)
    return bool(files)


@fault
def extra_assets(graph: Any, model: Path) -> bool:
    """The folder assets.extra."""
    found = (model / "assets.extra").is_dir()
    shutil.rmtree(model / "assets.extra", ignore_errors=True)
    return found
