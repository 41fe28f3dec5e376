"""Edits of SavedModels that leave their meaning as it is."""

from __future__ import annotations

import random
import re
import struct

from model_edits import bodies, is_map, is_repeated, messages

from reference_impl.format import schema

COLLECTIONS = {
    "variables": schema.VariableDef,
    "trainable_variables": schema.VariableDef,
    "local_variables": schema.VariableDef,
    "model_variables": schema.VariableDef,
    "queue_runners": schema.QueueRunnerDef,
    "while_context": schema.WhileContextDef,
    "cond_context": schema.CondContextDef,
}


def shuffle(repeated, rng):
    items = list(repeated)
    rng.shuffle(items)
    copies = [type(item)() for item in items]
    for copy, item in zip(copies, items):
        copy.CopyFrom(item)
    del repeated[:]
    repeated.extend(copies)


def shuffle_nodes(graph, rng):
    for nodes in bodies(graph):
        shuffle(nodes, rng)


def shuffle_control_inputs(graph, rng):
    for nodes in bodies(graph):
        for node in nodes:
            control = [text for text in node.input if text.startswith("^")]
            rng.shuffle(control)
            data = [text for text in node.input if not text.startswith("^")]
            node.input[:] = data + control


def shuffle_functions(graph, rng):
    shuffle(graph.graph_def.library.function, rng)
    shuffle(graph.graph_def.library.gradient, rng)


def rename_functions(graph, rng):
    """New generated names for all functions, wherever they are mentioned."""
    library = graph.graph_def.library
    numbers = list(range(7000, 7000 + len(library.function)))
    rng.shuffle(numbers)
    names = {}
    for number, function in zip(numbers, library.function):
        names[function.signature.name] = f"__inference_f_{number}"

    def new(name):
        return names.get(name, name)

    for function in library.function:
        function.signature.name = new(function.signature.name)
    for item in library.gradient:
        item.function_name, item.gradient_func = new(item.function_name), new(item.gradient_func)
    for item in library.registered_gradients:
        item.gradient_func = new(item.gradient_func)
    for nodes in bodies(graph):
        for node in nodes:
            node.op = new(node.op)
    for message in messages(graph):
        if isinstance(message, schema.NameAttrList):
            message.name = new(message.name)
        if (
            isinstance(message, schema.AttrValue)
            and message.HasField("s")
            and message.s.decode("latin1") in names
        ):
            message.s = new(message.s.decode("latin1")).encode()
        if isinstance(message, schema.SavedFunction):
            message.concrete_functions[:] = [new(name) for name in message.concrete_functions]
        if isinstance(message, schema.SavedBareConcreteFunction):
            message.concrete_function_name = new(message.concrete_function_name)
        if isinstance(message, schema.CapturedTensor):
            message.concrete_function = new(message.concrete_function)
    concrete = graph.object_graph_def.concrete_functions
    held = {
        name: type(concrete[name]).FromString(concrete[name].SerializeToString())
        for name in concrete
        if name in names
    }
    for name in held:  # all go before the first comes: a new name may be an old one
        del concrete[name]
    for name, item in held.items():
        concrete[names[name]].CopyFrom(item)


def rename_bodies(graph, rng):
    """New names for the nodes and arguments of all functions."""
    for function in graph.graph_def.library.function:
        outputs = {item.name for item in function.signature.output_arg}
        numbers = list(range(500, 500 + len(function.node_def) + len(function.signature.input_arg)))
        rng.shuffle(numbers)
        names = {}
        for item in [*function.signature.input_arg, *function.node_def]:
            names[item.name] = f"n{numbers.pop()}"
            item.name = names[item.name]

        def new(text, names=names):
            mark, text = ("^", text[1:]) if text.startswith("^") else ("", text)
            name, colon, port = text.partition(":")
            return mark + names[name] + colon + port

        for node in function.node_def:
            node.input[:] = [new(text) for text in node.input]
            if "_class" in node.attr:
                places = [item.decode().partition("@")[2] for item in node.attr["_class"].list.s]
                node.attr["_class"].list.s[:] = [
                    b"loc:@" + names.get(name, name).encode() for name in places
                ]
        for key in outputs & set(function.ret):
            function.ret[key] = new(function.ret[key])
        for key in list(function.control_ret):
            function.control_ret[key] = names[function.control_ret[key]]
        captured = [
            item.captured_tensor
            for item in graph.object_graph_def.nodes
            if item.HasField("captured_tensor")
            and item.captured_tensor.concrete_function == function.signature.name
        ]
        for item in captured:
            item.name = new(item.name)


def rename_nodes(graph, name_of):
    """New names for the nodes of the main graph, wherever they are mentioned."""
    names = {node.name: name_of(node.name) for node in graph.graph_def.node}
    assert len(set(names.values())) == len(names)

    def new(text):
        mark, text = ("^", text[1:]) if text.startswith("^") else ("", text)
        name, colon, port = text.partition(":")
        return mark + names.get(name, name) + colon + port

    for node in graph.graph_def.node:
        node.name = names[node.name]
        node.input[:] = [new(text) for text in node.input]
        if "_class" in node.attr:
            places = [item.decode().partition("@")[2] for item in node.attr["_class"].list.s]
            node.attr["_class"].list.s[:] = [
                b"loc:@" + names.get(name, name).encode() for name in places
            ]
    for signature in graph.signature_def.values():
        for info in (*signature.inputs.values(), *signature.outputs.values()):
            rename_info(info, new)
    for item in graph.asset_file_def:
        rename_info(item.tensor_info, new)
    for item in graph.object_graph_def.nodes:
        if item.HasField("constant"):
            item.constant.operation = new(item.constant.operation)
    saver = graph.saver_def
    if graph.HasField("saver_def"):
        saver.filename_tensor_name, saver.save_tensor_name = (
            new(saver.filename_tensor_name),
            new(saver.save_tensor_name),
        )
        saver.restore_op_name = new(saver.restore_op_name)
    for key, collection in graph.collection_def.items():
        if collection.HasField("node_list"):
            collection.node_list.value[:] = [new(text) for text in collection.node_list.value]
        if key in COLLECTIONS:
            collection.bytes_list.value[:] = [
                renamed(COLLECTIONS[key], data, new) for data in collection.bytes_list.value
            ]
        if key == "saved_model_assets":
            for value in collection.any_list.value:
                value.value = renamed(schema.AssetFileDef, value.value, new)


def rename_info(info, new):
    if info.HasField("name"):
        info.name = new(info.name)
    coo = info.coo_sparse
    for field in ("values_tensor_name", "indices_tensor_name", "dense_shape_tensor_name"):
        if getattr(coo, field):
            setattr(coo, field, new(getattr(coo, field)))
    for component in info.composite_tensor.components:
        rename_info(component, new)


def without(kind, data, field):
    """A serialised message without one field."""
    message = schema.parse(kind, data)
    message.ClearField(field)
    return schema.serialize(message)


def renamed(kind, data, new):
    """A serialised message with every string that names a node replaced."""
    message = schema.parse(kind, data)
    for part in messages(message):
        for field, value in part.ListFields():
            if is_map(field):
                if not hasattr(next(iter(value.values())), "ListFields"):
                    pairs = {new(key): new(value[key]) for key in value}
                    part.ClearField(field.name)
                    getattr(part, field.name).update(pairs)
            elif isinstance(value, str):
                setattr(part, field.name, new(value))
            elif is_repeated(field) and value and isinstance(value[0], str):
                value[:] = [new(text) for text in value]
    return schema.serialize(message)


def renumber_names(graph, rng):
    """Other numbers at the end of names: ``add_3`` becomes ``add_1003``."""
    del rng
    rename_nodes(
        graph, lambda name: re.sub(r"_(\d+)(?=/|$)", lambda match: f"_{int(match[1]) + 1000}", name)
    )


def rename_graph(graph, rng):
    """Entirely new names, which mean nothing where there is an object graph."""
    numbers = list(range(len(graph.graph_def.node)))
    rng.shuffle(numbers)
    rename_nodes(graph, lambda _name: f"node{numbers.pop()}")


def renumber_objects(graph, rng):
    """Another numbering of the object graph, and another order of children."""
    objects = graph.object_graph_def
    new = (
        [0, *rng.sample(range(1, len(objects.nodes)), len(objects.nodes) - 1)]
        if objects.nodes
        else []
    )
    old = [type(node)() for node in objects.nodes]
    for copy, node in zip(old, objects.nodes):
        copy.CopyFrom(node)
    for number, node in enumerate(old):
        for link in (*node.children, *node.dependencies):
            link.node_id = new[link.node_id]
        for slot in node.slot_variables:
            slot.original_variable_node_id = new[slot.original_variable_node_id]
            slot.slot_variable_node_id = new[slot.slot_variable_node_id]
        for item in node.saveable_objects.values():
            item.save_function, item.restore_function = (
                new[item.save_function],
                new[item.restore_function],
            )
        shuffle(node.children, rng)
        shuffle(node.dependencies, rng)
        objects.nodes[new[number]].CopyFrom(node)
    for trace in objects.concrete_functions.values():
        trace.bound_inputs[:] = [new[number] for number in trace.bound_inputs]


def spell_tensors(graph, rng):
    """Numbers of constants in the other of the two ways in which they can be written."""
    del rng
    for message in messages(graph):
        if not isinstance(message, schema.TensorProto) or message.dtype not in (
            schema.DT_FLOAT,
            schema.DT_INT32,
        ):
            continue
        code, values = (
            ("f", message.float_val) if message.dtype == schema.DT_FLOAT else ("i", message.int_val)
        )
        if message.tensor_content:
            values.extend(
                struct.unpack(f"<{len(message.tensor_content) // 4}{code}", message.tensor_content)
            )
            message.tensor_content = b""
        elif values:
            count = 1
            for dim in message.tensor_shape.dim:
                count *= dim.size
            full = [*values, *[values[-1]] * (count - len(values))]
            message.tensor_content = struct.pack(f"<{count}{code}", *full[:count])
            del values[:]


def write_defaults(graph, rng):
    """Every attribute that has a default, written out."""
    del rng
    defaults = {}
    for op in graph.meta_info_def.stripped_op_list.op:
        defaults[op.name] = {
            item.name: item.default_value for item in op.attr if item.HasField("default_value")
        }
    for nodes in bodies(graph):
        for node in nodes:
            for key, value in defaults.get(node.op, {}).items():
                if key not in node.attr:
                    node.attr[key].CopyFrom(value)


def rename_tables(graph, rng):
    """Other generated names for tables' contents, the same wherever the same was used."""
    del rng
    for nodes in bodies(graph):
        for node in nodes:
            name = node.attr["shared_name"].s.decode() if "shared_name" in node.attr else ""
            if "Table" in node.op and name:
                name = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-", "0f0f0f0f-0f0f-0f0f-0f0f-", name)
                name = re.sub(r"^hash_table_(?=\w+\.txt)", "hash_table_/somewhere/else/", name)
                node.attr["shared_name"].s = f"{name}_load_55".encode()


def other_producer(graph, rng):
    del rng
    graph.meta_info_def.tensorflow_version = "9.9.9"
    graph.meta_info_def.tensorflow_git_version = "unknown"
    graph.graph_def.versions.producer = 99999


def copy_function(graph, rng):
    """A copy of a function that nobody calls."""
    library = graph.graph_def.library
    if library.function:
        chosen = rng.choice(list(library.function))
        copy = type(chosen)()
        copy.CopyFrom(chosen)
        copy.signature.name = "__inference_copy_99"
        library.function.append(copy)
        for item in list(library.gradient):
            if item.function_name == chosen.signature.name:
                library.gradient.add(
                    function_name=copy.signature.name, gradient_func=item.gradient_func
                )


def leave_saver(graph, rng):
    """The saver of another export, as TF 1.x leaves it in a graph that is exported twice."""
    del rng
    nodes = [node for node in graph.graph_def.node if node.name.startswith("save/")]
    for node in nodes:
        copy = graph.graph_def.node.add()
        copy.CopyFrom(node)
        copy.name = node.name.replace("save/", "save_9/", 1)
        copy.input[:] = [re.sub(r"^(\^?)save/", r"\1save_9/", text) for text in node.input]


NEUTRAL = [
    shuffle_nodes,
    shuffle_control_inputs,
    shuffle_functions,
    rename_functions,
    rename_bodies,
    renumber_names,
    renumber_objects,
    spell_tensors,
    rename_tables,
    other_producer,
    copy_function,
    leave_saver,
]


def neutral(name, seed=0):
    """The edit ``name`` of all MetaGraphs of a SavedModel, for `edited`."""
    edit = (
        next(item for item in NEUTRAL if item.__name__ == name) if isinstance(name, str) else name
    )

    def apply(message):
        for graph in message.meta_graphs:
            edit(graph, random.Random(seed))

    return apply
