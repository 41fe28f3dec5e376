"""The canonical form: every change shows, in the section where it belongs."""

import re
import shutil

import model_edits as edits
import neutral_edits
import numpy as np
import pytest

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.container import layout
from savedmodel_tools.canonical.form import canonical
from savedmodel_tools.comparison import form_changes

# Different: every field of the protos, by itself

# Fields whose change need not change the hash, and why.
WITHOUT_MEANING = re.compile(
    # who wrote the file, and how
    r"meta_info_def\.(tensorflow_version|tensorflow_git_version|stripped_default_attrs)$"
    r"|meta_info_def\.stripped_op_list\."  # declarations of ops that the graph uses anyway
    r"|graph_def\.versions\.producer$"
    # names inside a function, here of what nobody uses
    r"|signature\.(control_output|input_arg\.name|output_arg\.name)$"
    r"|node_def\.name$"
    r"|ret$|control_ret$"
    # the object graph says what callers may call an argument; this is the tracer's note
    r"|attr\[_user_specified_name\]\.s$"
)


def fields(message, path=()):
    """(path, field kind) of every scalar in a message."""
    for field, value in message.ListFields():
        if edits.is_map(field):
            items = [(key, value[key]) for key in sorted(value)]
        else:
            items = list(enumerate(value)) if edits.is_repeated(field) else [(None, value)]
        for key, item in items:
            if hasattr(item, "ListFields"):
                yield from fields(item, (*path, (field.name, key)))
            else:
                yield (*path, (field.name, key))


def kind(path):
    """The field a path ends in, attributes by name."""
    return ".".join(
        name if name != "attr" or not isinstance(key, str) else f"attr[{key}]" for name, key in path
    )


def change_field(message, path):
    for name, key in path[:-1]:
        message = getattr(message, name) if key is None else getattr(message, name)[key]
    name, key = path[-1]
    value = getattr(message, name) if key is None else getattr(message, name)[key]
    if isinstance(value, bool):
        new = not value
    elif isinstance(value, (int, float)):
        new = value + 1
    else:
        new = value + ("q" if isinstance(value, str) else b"q")
    if key is None:
        setattr(message, name, new)
    else:
        getattr(message, name)[key] = new


@pytest.mark.parametrize(
    "case", ["module_functions", "defun_gradient", "mutable_hash_table", "ragged_io"]
)
def test_every_field_counts(case, tmp_path):
    """One scalar of each kind (three of those that occur more often) is changed; all but a few must
    change the hash.
    """
    source = layout.read(edits.fixture(case)).saved_model
    kinds = {}
    for path in fields(source.meta_graphs[0]):
        kinds.setdefault(kind(path), []).append(path)
    shutil.copytree(edits.fixture(case), tmp_path / "model")
    silent = []
    for name, paths in kinds.items():
        for path in {paths[0], paths[len(paths) // 2], paths[-1]}:
            message = schema.SavedModel.FromString(source.SerializeToString())
            change_field(message.meta_graphs[0], path)
            edits.write(message, tmp_path / "model")
            try:
                same = canonical(tmp_path / "model").hash == edits.form(case).hash
            except errors.SavedModelError:  # a contradiction, such as two nodes of one name
                same = False
            if same and not WITHOUT_MEANING.search(name):
                silent.append(path)
    assert len(kinds) > 70
    assert silent == []


# Different: one change, in the section where it belongs


def graph_of(message):
    return message.meta_graphs[0]


def set_field(name, value):
    return lambda item: setattr(item, name, value)


def weight_shape(message):
    graph_of(message).object_graph_def.nodes[1].variable.shape.dim.add(size=4)


def transpose(message):
    edits.node(message, "MatMul").attr["transpose_a"].b = True


def rename_node(message):
    """A node of TF 1.x under another name, everywhere: programs that fetch it by name would miss
    it.
    """
    neutral_edits.rename_nodes(graph_of(message), lambda name: "renamed" if name == "y" else name)


def swap_inputs(message):
    first, second = edits.node(message, "Mul").input[:2]
    assert first != second
    edits.node(message, "Mul").input[:2] = [second, first]


def drop_control_edge(message):
    found = next(
        item
        for item in graph_of(message).graph_def.node
        if any(text.startswith("^") for text in item.input)
    )
    found.input[:] = [text for text in found.input if not text.startswith("^")]


def swap_outputs(message):
    outputs = graph_of(message).signature_def["predict"].outputs
    first, second = outputs["logits"].name, outputs["probabilities"].name
    outputs["logits"].name, outputs["probabilities"].name = second, first


def rename_signature(message):
    signatures = graph_of(message).signature_def
    signatures["renamed"].CopyFrom(signatures["serving_default"])
    del signatures["serving_default"]


def rename_input(message):
    inputs = graph_of(message).signature_def["serving_default"].inputs
    inputs["renamed"].CopyFrom(inputs["x"])
    del inputs["x"]


def input_shape(message):
    graph_of(message).signature_def["serving_default"].inputs["x"].tensor_shape.dim[0].size = 7


def input_dtype(message):
    graph_of(message).signature_def["serving_default"].inputs["x"].dtype = schema.DT_DOUBLE


def method_name(message):
    graph_of(message).signature_def["serving_default"].method_name = "tensorflow/serving/regress"


def ragged_spec(message):
    spec = graph_of(message).signature_def["serving_default"].inputs["r"].composite_tensor.type_spec
    spec.type_state.tuple_value.values[2].int64_value += 1


def not_trainable(message):
    variable = next(
        item.variable
        for item in graph_of(message).object_graph_def.nodes
        if item.HasField("variable")
    )
    variable.trainable = not variable.trainable


def variable_def(message, change):
    values = graph_of(message).collection_def["variables"].bytes_list.value
    definition = schema.VariableDef.FromString(values[0])
    change(definition)
    values[0] = definition.SerializeToString()


def not_trainable_v1(message):
    variable_def(message, lambda item: setattr(item, "trainable", not item.trainable))


def other_initializer(message):
    nodes = {item.name for item in graph_of(message).graph_def.node}
    assert "b/Assign" in nodes
    variable_def(message, lambda item: setattr(item, "initializer_name", "b/Assign"))


def no_trainable_variables(message):
    del graph_of(message).collection_def["trainable_variables"]


def swap_variables(message):
    values = graph_of(message).collection_def["variables"].bytes_list.value
    assert len(values) > 1
    values[:] = [*values[1:], values[0]]


def no_main_op(message):
    del graph_of(message).collection_def["saved_model_main_op"]


def child_name(message):
    graph_of(message).object_graph_def.nodes[0].children[0].local_name = "renamed"


def no_alias(message):
    """A second object like the first where there was one object under two names."""
    objects = graph_of(message).object_graph_def
    first = next(child for child in objects.nodes[0].children if child.local_name == "scale")
    child = next(item for item in objects.nodes[0].children if item.local_name == "child")
    alias = objects.nodes[child.node_id].children[0]
    assert alias.node_id == first.node_id
    objects.nodes.add().CopyFrom(objects.nodes[first.node_id])
    alias.node_id = len(objects.nodes) - 1


def other_capture(message):
    objects = graph_of(message).object_graph_def
    trace = next(
        item for key, item in sorted(objects.concrete_functions.items()) if "multiply" in key
    )
    variables = [number for number, item in enumerate(objects.nodes) if item.HasField("variable")]
    trace.bound_inputs[0] = next(number for number in variables if number != trace.bound_inputs[0])


def order_of_traces(message):
    found = next(
        item.function
        for item in graph_of(message).object_graph_def.nodes
        if len(item.function.concrete_functions) > 1
    )
    found.concrete_functions[:] = list(reversed(found.concrete_functions))


def literal_argument(message):
    traces = graph_of(message).object_graph_def.concrete_functions
    literals = [
        part for key in sorted(traces) for part in
        edits.messages(traces[key].canonicalized_input_signature) if isinstance(part,
        schema.StructuredValue) and part.HasField("bool_value")
    ]  # fmt: skip
    literals[0].bool_value = not literals[0].bool_value


def gradient_function(message):
    item = graph_of(message).graph_def.library.gradient[0]
    item.gradient_func = "Cube"


def function_op(message):
    function = next(
        item
        for item in graph_of(message).graph_def.library.function
        if "multiply" in item.signature.name
    )
    next(item for item in function.node_def if item.op == "Mul").op = "AddV2"


def branch_op(message):
    """In a function that only a While in another function reaches."""
    library = graph_of(message).graph_def.library
    function = next(
        item
        for item in library.function
        if "body" in item.signature.name or "true" in item.signature.name
    )
    found = next(
        item
        for item in function.node_def
        if item.op not in ("Identity", "Const", "NoOp", "Placeholder")
    )
    found.op += "X"


def slot(message):
    slots = [
        item for found in graph_of(message).object_graph_def.nodes for item in found.slot_variables
    ]
    slots[0].slot_name = "momentum"


def tag(message):
    graph_of(message).meta_info_def.tags.append("gpu")


def restore_op(message):
    saver = graph_of(message).saver_def
    saver.restore_op_name = (
        "init"
        if "init" in {item.name for item in graph_of(message).graph_def.node}
        else "save/Const"
    )


CHANGES = [
    # change, fixture, sections that change; with "+" others may change as well
    (lambda message: set_field("op", "Sub")(edits.node(message, "Mul")), "half_plus_two", "graph"),
    (
        lambda message: (
            edits.node(message, "MatMul").attr["transpose_a"].CopyFrom(schema.AttrValue(b=True))
        ),
        "serve_and_train",
        "graph",
    ),
    (
        lambda message: set_field("device", "/device:GPU:1")(edits.node(message, "Mul")),
        "half_plus_two",
        "graph",
    ),
    (
        lambda message: (
            edits.node(message, "Const").attr["value"].tensor.float_val.__setitem__(0, 9.5)
        ),
        "half_plus_two",
        "graph",
    ),
    (rename_node, "half_plus_two", "graph"),
    (swap_inputs, "half_plus_two", "graph"),
    (drop_control_edge, "half_plus_two", "graph"),
    (swap_outputs, "estimator_dnn_classifier", "graph"),
    (restore_op, "half_plus_two", "graph"),
    (rename_signature, "half_plus_two", "signatures graph"),
    (rename_input, "half_plus_two", "signatures graph"),
    (input_shape, "half_plus_two", "signatures"),
    (input_dtype, "half_plus_two", "signatures"),
    (method_name, "half_plus_two", "signatures"),
    (ragged_spec, "ragged_io", "signatures"),
    (not_trainable, "module_functions", "objects"),
    (weight_shape, "module_functions", "objects"),
    (child_name, "module_functions", "objects"),
    (no_alias, "module_functions", "objects"),
    (other_capture, "module_functions", "objects"),
    (order_of_traces, "module_functions", "objects"),
    (literal_argument, "module_functions", "objects"),
    (slot, "keras_compiled_save", "objects"),
    (not_trainable_v1, "half_plus_two", "collections"),
    (other_initializer, "half_plus_two", "graph"),
    (no_trainable_variables, "half_plus_two", "collections graph"),
    (swap_variables, "half_plus_two", "graph"),
    (no_main_op, "main_op", "collections graph"),
    (function_op, "module_functions", "functions objects +"),
    (branch_op, "control_flow_v2", "functions +"),
    (gradient_function, "defun_gradient", "functions +"),
    (tag, "half_plus_two", "meta"),
]


@pytest.mark.parametrize(
    ("edit", "case", "sections"),
    CHANGES,
    ids=[f"{number}-{item[2]}" for number, item in enumerate(CHANGES)],
)
def test_one_change(edit, case, sections, tmp_path):
    expected = set(sections.split())
    found = edits.changed(case, tmp_path, edit)
    if "+" in expected:
        assert expected - {"+"} <= found
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("case", "change"),
    [
        (
            "half_plus_two",
            lambda key, array: np.nextafter(array, np.float32(9)) if key == "a" else array,
        ),
        ("half_plus_two", lambda key, array: array.astype(np.float64) if key == "a" else array),
        ("half_plus_two", lambda key, array: array.view(np.int32) if key == "a" else array),
        ("half_plus_two", lambda key, array: array.reshape(1) if key == "a" else array),
        ("half_plus_two", lambda key, array: None if key == "a" else array),
        (
            "partitioned_variables",
            lambda key, array: (
                array + (np.arange(array.size).reshape(array.shape) == 0).astype(array.dtype)
            ),
        ),
        (
            "module_functions",
            lambda key, array: (
                np.array(b"changed", object) if key.startswith("named/right/.A") else array
            ),
        ),
    ],
)
def test_one_weight(case, change, tmp_path):
    shutil.copytree(edits.fixture(case), tmp_path / "model")
    edits.copy_checkpoint(tmp_path / "model", change)
    after = canonical(tmp_path / "model")
    assert {
        name for name in after.sections if after.sections[name] != edits.form(case).sections[name]
    } == {"variables"}
    assert {change.section for change in form_changes(edits.form(case), after)} == {"variables"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda node: setattr(node, "op", "Sub"), "op: Mul → Sub"),
        (lambda node: node.attr["extra"].CopyFrom(schema.AttrValue(i=7)), "extra: now 7"),
        (lambda node: setattr(node, "device", "/device:GPU:1"), "device: (none) → /device:GPU:1"),
    ],
)
def test_what_changed_in_a_node_is_all_that_is_told_of_it(change, told, tmp_path):
    edits.changed("half_plus_two", tmp_path, lambda message: change(edits.node(message, "Mul")))
    differences = edits.differences(edits.form("half_plus_two"), canonical(tmp_path / "edited"))
    assert differences == [f"graph: 54 nodes: 1 changed (Mul (Mul): {told})"]


def test_one_byte_of_an_asset(tmp_path):
    shutil.copytree(edits.fixture("module_functions"), tmp_path / "model")
    (file,) = (tmp_path / "model" / "assets").iterdir()
    data = bytearray(file.read_bytes())
    data[0] ^= 1
    file.write_bytes(data)
    before = edits.form("module_functions")
    assert edits.differences(before, canonical(tmp_path / "model")) == [
        f"assets: assets/{file.name}: content differs"
    ]
    file.unlink()
    assert edits.differences(before, canonical(tmp_path / "model"))[0].startswith(
        f"assets: assets/{file.name}: content"
    )
    extra = tmp_path / "model" / "assets.extra" / "note"
    extra.parent.mkdir()
    extra.write_bytes(b"")
    assert "assets: assets.extra/note: is new" in edits.differences(
        before, canonical(tmp_path / "model")
    )


def test_the_path_of_an_asset_at_its_author_is_no_part(tmp_path):
    """The loader feeds the path where the model is; what stands in the graph is where the file once
    was.
    """

    def move(message):
        graph = graph_of(message)
        value = schema.AssetFileDef.FromString(
            graph.collection_def["saved_model_assets"].any_list.value[0].value
        )
        name = value.tensor_info.name.partition(":")[0]
        constant = next(item for item in graph.graph_def.node if item.name == name)
        assert constant.op == "Const"
        constant.attr["value"].tensor.string_val[0] = b"/another/home/words.txt"

    assert edits.changed("index_table_oov", tmp_path, move) == set()
