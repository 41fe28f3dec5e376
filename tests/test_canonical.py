"""The canonical form: equal for what means the same, different for everything else, named where they part."""

import re
import shutil
from pathlib import Path

import model_edits as edits
import numpy as np
import pytest

from reference_impl.format import errors, layout, schema
from reference_impl.format.bundle import BundleReader
from reference_impl.format.bundle_writer import BundleWriter
from reference_impl.format.canonical import canonical
from reference_impl.format.canonical_values import tensor

MODELS = [
    "collections",
    "control_flow_v2",
    "default_attrs_stripped",
    "defun_gradient",
    "estimator_dnn_classifier",
    "hash_table_v2",
    "keras_compiled_save",
    "module_functions",
    "nested_loops",
    "partitioned_variables",
    "ragged_io",
    "serve_and_train",
]
WITH_OBJECTS = ["keras_compiled_save", "module_functions"]


@pytest.fixture(scope="module")
def base():
    """Canonical forms of the fixtures, each made once."""
    known = {}

    def get(case):
        if case not in known:
            known[case] = canonical(edits.fixture(case))
        return known[case]

    return get


def changed(base, case, tmp_path, edit):
    """The sections whose hash an edit of the protos changes."""
    after = canonical(edits.edited(edits.fixture(case), tmp_path / "edited", edit))
    before = base(case)
    sections = {name for name, value in after.sections.items() if value != before.sections[name]}
    assert bool(sections) == (after.hash != before.hash) == bool(before.diff(after)) == bool(after.diff(before))
    assert {difference.section for difference in before.diff(after)} == sections
    return sections


# Equal


@pytest.mark.parametrize("edit", edits.NEUTRAL, ids=lambda edit: edit.__name__)
def test_edits_that_mean_nothing(edit, base, tmp_path):
    touched = 0
    for case in MODELS:
        source = layout.read(edits.fixture(case)).saved_model
        model = edits.edited(edits.fixture(case), tmp_path / case, edits.neutral(edit, seed=3))
        touched += layout.read(model).saved_model != source
        found = canonical(model)
        assert found.hash == base(case).hash, [str(item) for item in base(case).diff(found)]
        assert found.diff(base(case)) == []
    assert touched, "the edit has found nothing to do"


@pytest.mark.parametrize("case", WITH_OBJECTS)
def test_node_names_of_a_graph_with_objects(case, base, tmp_path):
    model = edits.edited(edits.fixture(case), tmp_path / "model", edits.neutral(edits.rename_graph))
    assert canonical(model).hash == base(case).hash


def test_all_edits_together(base, tmp_path):
    for case in MODELS:
        names = [edit.__name__ for edit in edits.NEUTRAL]
        model = edits.fixture(case)
        for number, name in enumerate(names):
            model = edits.edited(model, tmp_path / f"{case}-{number}", edits.neutral(name, seed=number))
        assert canonical(model).hash == base(case).hash


def test_order_of_meta_graphs(base, tmp_path):
    def turn(message):
        graphs = [type(graph).FromString(graph.SerializeToString()) for graph in message.meta_graphs]
        del message.meta_graphs[:]
        message.meta_graphs.extend(reversed(graphs))

    assert changed(base, "serve_and_train", tmp_path, turn) == set()


def test_order_of_assets(tmp_path):
    """Objects refer to assets by number; the order of the files is nobody's concern."""

    def build(order, ids):
        def made(graph):
            for name in order:
                graph.asset_file_def.add(filename=name).tensor_info.name = f"{name[0]}:0"
                graph.graph_def.node.add(name=name[0], op="Placeholder")
            root = graph.object_graph_def.nodes.add()
            for number, child in zip(ids, ("first", "second")):
                root.children.add(node_id=len(graph.object_graph_def.nodes), local_name=child)
                graph.object_graph_def.nodes.add().asset.asset_file_def_index = number
            root.user_object.identifier = "_generic_user_object"

        return made

    first = model(tmp_path, build(["a.txt", "b.txt"], [0, 1]), "1")
    assert model(tmp_path, build(["b.txt", "a.txt"], [1, 0]), "2").hash == first.hash
    assert model(tmp_path, build(["b.txt", "a.txt"], [0, 1]), "3").hash != first.hash


def test_defaults_that_are_written_out(base, tmp_path):
    """Equal as long as the file says what the defaults are, and only when asked for."""
    stripped = edits.fixture("default_attrs_stripped")
    written = edits.edited(stripped, tmp_path / "written", edits.neutral(edits.write_defaults))
    assert layout.read(written).saved_model != layout.read(stripped).saved_model
    assert canonical(written).hash == base("default_attrs_stripped").hash
    exact = canonical(written, ignore_defaults=False)
    assert exact.hash != canonical(stripped, ignore_defaults=False).hash
    assert {item.section for item in exact.diff(canonical(stripped, ignore_defaults=False))} == {"graph"}


def test_text_and_binary(base, tmp_path):
    shutil.copytree(edits.fixture("while_loop"), tmp_path / "text")
    (tmp_path / "text" / "saved_model.pb").unlink()
    message = layout.read(edits.fixture("while_loop")).saved_model
    (tmp_path / "text" / "saved_model.pbtxt").write_text(schema.to_text(message), encoding="utf-8")
    assert canonical(tmp_path / "text").hash == base("while_loop").hash


def copy_checkpoint(model, change, shards=1):
    """Write the checkpoint of ``model`` again, value by value, ``change(key, array)`` giving the arrays."""
    prefix = layout.read(model).checkpoint_prefix
    with BundleReader(prefix) as reader:
        values = {key: (np.array(reader.read(key)), entry.dtype.name) for key, entry in reader.entries().items()}
    shutil.rmtree(prefix.parent)
    with BundleWriter(prefix, shards) as writer:
        for number, (key, (array, dtype)) in enumerate(values.items()):
            item = change(key, array)
            if item is not None:
                writer.add(key, item, dtype if item.dtype == array.dtype else None, shard=number % shards)


@pytest.mark.parametrize("case", ["half_plus_two", "module_functions", "partitioned_variables", "dtypes_resource"])
def test_layout_of_the_checkpoint(case, base, tmp_path):
    """Other shards, partitioned tensors in one piece: the same values."""
    shutil.copytree(edits.fixture(case), tmp_path / "model")
    copy_checkpoint(tmp_path / "model", lambda key, array: array, shards=3)
    assert canonical(tmp_path / "model").hash == base(case).hash


def test_files_about_the_model(base, tmp_path):
    """Fingerprint, debug info and files that are no part of the format."""
    shutil.copytree(edits.fixture("module_functions"), tmp_path / "model")
    (tmp_path / "model" / "fingerprint.pb").write_bytes(schema.serialize(schema.FingerprintDef(checkpoint_hash=7)))
    (tmp_path / "model" / "debug").mkdir()
    (tmp_path / "model" / "debug" / "saved_model_debug_info.pb").write_bytes(b"")
    (tmp_path / "model" / "keras_metadata.pb").write_bytes(b"x")
    assert canonical(tmp_path / "model").hash == base("module_functions").hash


def test_a_table_has_no_order(tmp_path, base):
    """What a mutable table holds is saved in the order of its hashes."""
    model = edits.fixture("mutable_hash_table")
    with BundleReader(layout.read(model).checkpoint_prefix) as reader:
        keys = [key for key in reader.keys() if key.endswith("keys") and reader.entry(key).elements > 1]  # noqa: SIM118
    assert keys
    tables = [key[: -len("keys")] for key in keys]

    def turned(key, array):
        return array[::-1] if key.endswith(("keys", "values")) and key.startswith(tuple(tables)) else array

    shutil.copytree(model, tmp_path / "turned")
    copy_checkpoint(tmp_path / "turned", turned)
    assert canonical(tmp_path / "turned").hash == base("mutable_hash_table").hash
    shutil.copytree(model, tmp_path / "mixed")
    copy_checkpoint(tmp_path / "mixed", lambda key, array: array[::-1] if key in keys else array)
    assert canonical(tmp_path / "mixed").hash != base("mutable_hash_table").hash


# Different: every field of the protos, by itself

# Fields whose change need not change the hash, and why.
WITHOUT_MEANING = re.compile(
    r"meta_info_def\.(tensorflow_version|tensorflow_git_version|stripped_default_attrs)$"  # who wrote the file, and how
    r"|meta_info_def\.stripped_op_list\."  # declarations of ops that the graph uses anyway
    r"|graph_def\.versions\.producer$"
    r"|signature\.(control_output|input_arg\.name|output_arg\.name)$"  # names inside a function, here of what nobody uses
    r"|node_def\.name$"
    r"|ret$|control_ret$"
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
    return ".".join(name if name != "attr" or not isinstance(key, str) else f"attr[{key}]" for name, key in path)


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


@pytest.mark.parametrize("case", ["module_functions", "defun_gradient", "mutable_hash_table", "ragged_io"])
def test_every_field_counts(case, base, tmp_path):
    """One scalar of each kind (three of those that occur more often) is changed; all but a few must change the hash."""
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
                same = canonical(tmp_path / "model").hash == base(case).hash
            except errors.SavedModelError:  # a contradiction, such as two nodes of one name
                same = False
            if same and not WITHOUT_MEANING.search(name):
                silent.append(path)
    assert len(kinds) > 70
    assert silent == []


# Different: one change, in the section where it belongs


def graph_of(message):
    return message.meta_graphs[0]


def node(message, op, number=0):
    return [item for nodes in edits.bodies(graph_of(message)) for item in nodes if item.op == op][number]


def set_field(name, value):
    return lambda item: setattr(item, name, value)


def weight_shape(message):
    graph_of(message).object_graph_def.nodes[1].variable.shape.dim.add(size=4)


def swap_inputs(message):
    first, second = node(message, "Mul").input[:2]
    assert first != second
    node(message, "Mul").input[:2] = [second, first]


def drop_control_edge(message):
    found = next(item for item in graph_of(message).graph_def.node if any(text.startswith("^") for text in item.input))
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
    variable = next(item.variable for item in graph_of(message).object_graph_def.nodes if item.HasField("variable"))
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
    trace = next(item for key, item in sorted(objects.concrete_functions.items()) if "multiply" in key)
    variables = [number for number, item in enumerate(objects.nodes) if item.HasField("variable")]
    trace.bound_inputs[0] = next(number for number in variables if number != trace.bound_inputs[0])


def order_of_traces(message):
    found = next(item.function for item in graph_of(message).object_graph_def.nodes if len(item.function.concrete_functions) > 1)
    found.concrete_functions[:] = list(reversed(found.concrete_functions))


def literal_argument(message):
    traces = graph_of(message).object_graph_def.concrete_functions
    literals = [
        part for key in sorted(traces) for part in edits.messages(traces[key].canonicalized_input_signature)
        if isinstance(part, schema.StructuredValue) and part.HasField("bool_value")
    ]  # fmt: skip
    literals[0].bool_value = not literals[0].bool_value


def gradient_function(message):
    item = graph_of(message).graph_def.library.gradient[0]
    item.gradient_func = "Cube"


def function_op(message):
    function = next(item for item in graph_of(message).graph_def.library.function if "multiply" in item.signature.name)
    next(item for item in function.node_def if item.op == "Mul").op = "AddV2"


def branch_op(message):
    """In a function that only a While in another function reaches."""
    library = graph_of(message).graph_def.library
    function = next(item for item in library.function if "body" in item.signature.name or "true" in item.signature.name)
    found = next(item for item in function.node_def if item.op not in ("Identity", "Const", "NoOp", "Placeholder"))
    found.op += "X"


def slot(message):
    slots = [item for found in graph_of(message).object_graph_def.nodes for item in found.slot_variables]
    slots[0].slot_name = "momentum"


def tag(message):
    graph_of(message).meta_info_def.tags.append("gpu")


def restore_op(message):
    saver = graph_of(message).saver_def
    saver.restore_op_name = "init" if "init" in {item.name for item in graph_of(message).graph_def.node} else "save/Const"


CHANGES = [
    # change, fixture, sections that change; with "+" others may change as well
    (lambda message: set_field("op", "Sub")(node(message, "Mul")), "half_plus_two", "graph"),
    (lambda message: node(message, "MatMul").attr["transpose_a"].CopyFrom(schema.AttrValue(b=True)), "serve_and_train", "graph"),
    (lambda message: set_field("device", "/device:GPU:1")(node(message, "Mul")), "half_plus_two", "graph"),
    (lambda message: node(message, "Const").attr["value"].tensor.float_val.__setitem__(0, 9.5), "half_plus_two", "graph"),
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
    ("edit", "case", "sections"), CHANGES, ids=[f"{number}-{item[2]}" for number, item in enumerate(CHANGES)]
)
def test_one_change(edit, case, sections, base, tmp_path):
    expected = set(sections.split())
    found = changed(base, case, tmp_path, edit)
    if "+" in expected:
        assert expected - {"+"} <= found
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("case", "change"),
    [
        ("half_plus_two", lambda key, array: np.nextafter(array, np.float32(9)) if key == "a" else array),
        ("half_plus_two", lambda key, array: array.astype(np.float64) if key == "a" else array),
        ("half_plus_two", lambda key, array: array.reshape(1) if key == "a" else array),
        ("half_plus_two", lambda key, array: None if key == "a" else array),
        (
            "partitioned_variables",
            lambda key, array: array + (np.arange(array.size).reshape(array.shape) == 0).astype(array.dtype),
        ),
        ("module_functions", lambda key, array: np.array(b"changed", object) if key.startswith("named/right/.A") else array),
    ],
)
def test_one_weight(case, change, base, tmp_path):
    shutil.copytree(edits.fixture(case), tmp_path / "model")
    copy_checkpoint(tmp_path / "model", change)
    after = canonical(tmp_path / "model")
    assert {name for name in after.sections if after.sections[name] != base(case).sections[name]} == {"variables"}
    assert {item.section for item in base(case).diff(after)} == {"variables"}


def test_one_byte_of_an_asset(base, tmp_path):
    shutil.copytree(edits.fixture("module_functions"), tmp_path / "model")
    (file,) = (tmp_path / "model" / "assets").iterdir()
    data = bytearray(file.read_bytes())
    data[0] ^= 1
    file.write_bytes(data)
    differences = base("module_functions").diff(canonical(tmp_path / "model"))
    assert [str(item) for item in differences] == [f"assets: assets/{file.name}: content differs"]
    file.unlink()
    differences = base("module_functions").diff(canonical(tmp_path / "model"))
    assert differences[0].what.startswith("content")
    extra = tmp_path / "model" / "assets.extra" / "note"
    extra.parent.mkdir()
    extra.write_bytes(b"")
    assert "assets.extra/note" in {item.where for item in base("module_functions").diff(canonical(tmp_path / "model"))}


def test_the_path_of_an_asset_at_its_author_is_no_part(base, tmp_path):
    """The loader feeds the path where the model is; what stands in the graph is where the file once was."""

    def move(message):
        graph = graph_of(message)
        value = schema.AssetFileDef.FromString(graph.collection_def["saved_model_assets"].any_list.value[0].value)
        name = value.tensor_info.name.partition(":")[0]
        constant = next(item for item in graph.graph_def.node if item.name == name)
        assert constant.op == "Const"
        constant.attr["value"].tensor.string_val[0] = b"/another/home/words.txt"

    assert changed(base, "index_table_oov", tmp_path, move) == set()


# Structure


def call(nodes, name, callee, *inputs):
    made = nodes.add(name=name, op="PartitionedCall")
    made.attr["f"].func.name = callee
    made.input.extend(inputs)
    return made


def model(tmp_path, build, name="model"):
    message, graph = edits.new_model()
    build(graph)
    edits.write(message, tmp_path / name)
    return canonical(tmp_path / name)


def test_two_random_numbers_are_not_one_used_twice(tmp_path):
    def twice(graph):
        for name in ("a", "b"):
            graph.graph_def.node.add(name=f"random_{name}", op="RandomStandardNormal")
        graph.graph_def.node.add(name="sum", op="AddV2", input=["random_a", "random_b"])
        graph.signature_def["s"].outputs["y"].name = "sum:0"

    def once(graph):
        graph.graph_def.node.add(name="random_a", op="RandomStandardNormal")
        graph.graph_def.node.add(name="random_b", op="RandomStandardNormal")  # unused
        graph.graph_def.node.add(name="sum", op="AddV2", input=["random_a", "random_a"])
        graph.signature_def["s"].outputs["y"].name = "sum:0"

    for objects in (False, True):

        def with_objects(build, objects=objects):
            def made(graph):
                build(graph)
                if objects:
                    graph.object_graph_def.nodes.add().user_object.identifier = "_generic_user_object"

            return made

        assert model(tmp_path, with_objects(twice), "1").hash != model(tmp_path, with_objects(once), "2").hash
        shutil.rmtree(tmp_path / "1")
        shutil.rmtree(tmp_path / "2")


def test_nodes_without_order_are_told_apart_by_their_surroundings(tmp_path):
    """Equal nodes that nobody asks for: which of them is connected how must not depend on the order in the file."""

    def build(order):
        def made(graph):
            graph.object_graph_def.nodes.add().user_object.identifier = "_generic_user_object"
            nodes = {
                "c1": ("Const", []),
                "c2": ("Const", []),
                "used": ("Neg", ["c1"]),
                "s1": ("Side", ["c1"]),
                "s2": ("Side", ["c2"]),
                "x": ("Other", ["c2"]),
            }
            for name in order:
                op, inputs = nodes[name]
                graph.graph_def.node.add(name=name, op=op, input=inputs)
            graph.signature_def["s"].outputs["y"].name = "used:0"

        return made

    first = model(tmp_path, build(["c1", "c2", "used", "s1", "s2", "x"]), "a")
    second = model(tmp_path, build(["x", "s2", "s1", "used", "c2", "c1"]), "b")
    assert first.hash == second.hash


def recursive(names, constants):
    """Functions that call each other in a circle, each with a constant of its own."""

    def made(graph):
        for position, name in enumerate(names):
            function = graph.graph_def.library.function.add()
            function.signature.name = name
            function.node_def.add(name="c", op="Const").attr["value"].tensor.CopyFrom(
                schema.TensorProto(dtype=schema.DT_INT64, int64_val=[constants[position]])
            )
            call(function.node_def, "next", names[(position + 1) % len(names)])
        call(graph.graph_def.node, "start", names[0])
        graph.signature_def["s"].outputs["y"].name = "start:0"

    return made


def test_functions_that_call_each_other(tmp_path):
    plain = model(tmp_path, recursive(["f", "g", "h"], [1, 2, 3]), "plain")
    assert model(tmp_path, recursive(["h_77", "a", "g"], [1, 2, 3]), "renamed").hash == plain.hash
    assert model(tmp_path, recursive(["f", "g", "h"], [1, 2, 4]), "other").hash != plain.hash
    assert model(tmp_path, recursive(["f", "g", "h"], [1, 3, 2]), "turned").hash != plain.hash
    assert model(tmp_path, recursive(["f", "g", "h"], [2, 3, 1]), "shifted").hash != plain.hash
    assert model(tmp_path, recursive(["f"], [1]), "self").hash != model(tmp_path, recursive(["f", "g"], [1, 1]), "pair").hash


def test_large_circles_end(tmp_path):
    """Circles of functions, of nodes and of objects: linear work, no recursion."""

    def made(graph):
        count = 3000
        recursive([f"f{number}" for number in range(count)], range(count))(graph)
        for number in range(count):
            graph.graph_def.node.add(name=f"n{number}", op="Merge", input=[f"n{(number + 1) % count}", f"n{number * 7 % count}"])
            child = graph.object_graph_def.nodes.add().children.add()
            child.node_id, child.local_name = (number + 1) % count, "next"

    first = model(tmp_path, made, "a")
    assert first.hash == canonical(edits.edited(tmp_path / "a", tmp_path / "b", edits.neutral(edits.shuffle_functions))).hash


def wrapped(layers, constant=False, residue=b""):
    """A function inside so many functions that pass everything on."""

    def made(graph):
        library = graph.graph_def.library
        core = library.function.add()
        core.signature.name = "__inference_core_1"
        core.signature.input_arg.add(name="x", type=schema.DT_FLOAT)
        core.signature.output_arg.add(name="y", type=schema.DT_FLOAT)
        core.node_def.add(name="neg", op="Neg", input=["x"])
        core.ret["y"] = "neg:y:0"
        for layer in range(layers):
            wrapper = library.function.add()
            wrapper.signature.name = f"__inference_wrapper_{layer + 2}"
            wrapper.signature.input_arg.add(name=f"arg_{layer}", type=schema.DT_FLOAT)
            wrapper.signature.output_arg.add(name="identity", type=schema.DT_FLOAT)
            made = call(wrapper.node_def, "PartitionedCall", library.function[layer].signature.name, f"arg_{layer}")
            made.attr["config"].s = residue if layer == layers - 1 else b""
            if constant:
                wrapper.node_def.add(name="Const", op="Const").attr["value"].tensor.int_val.append(1)
            source = "Const:output:0" if constant else "PartitionedCall:output:0"
            wrapper.node_def.add(name="Identity", op="Identity", input=[source])
            wrapper.ret["identity"] = "Identity:output:0"
        graph.graph_def.node.add(name="x", op="Placeholder")
        call(graph.graph_def.node, "call", library.function[-1].signature.name, "x")
        graph.signature_def["s"].outputs["y"].name = "call:0"

    return made


@pytest.mark.parametrize("constant", [False, True])
def test_wrappers_of_wrappers(constant, tmp_path):
    """Saving what was loaded adds a layer each time: from the second on the model is the same."""
    hashes = [model(tmp_path, wrapped(layers, constant), str(layers)).hash for layers in (1, 2, 5)]
    assert len(set(hashes)) == 1
    assert model(tmp_path, wrapped(0), "none").hash not in hashes
    assert model(tmp_path, wrapped(3, constant, b"other"), "odd").hash not in hashes
    assert model(tmp_path, wrapped(2, not constant), "mixed").hash not in hashes


def test_which_tables_share_their_contents(tmp_path):
    """Generated names do not count, but that two nodes have the same one does."""

    def build(*names):
        def made(graph):
            for number, name in enumerate(names):
                function = graph.graph_def.library.function.add()
                function.signature.name = f"f{number}"
                function.signature.output_arg.add(name=f"y{number}", type=schema.DT_RESOURCE)
                function.node_def.add(name="table", op="HashTableV2").attr["shared_name"].s = name
                function.node_def.add(name=f"n{number}", op=f"Op{number}")  # so that no two functions are equal
                function.ret[f"y{number}"] = "table:table_handle:0"

        return made

    same = model(tmp_path, build(b"table_3", b"table_3"), "same")
    apart = model(tmp_path, build(b"table_3", b"table_4"), "apart")
    assert same.hash != apart.hash
    assert model(tmp_path, build(b"table_8", b"table_8"), "same again").hash == same.hash
    assert model(tmp_path, build(b"table_9", b"table_1"), "apart again").hash == apart.hash
    assert model(tmp_path, build(b"x", b"x"), "named").hash != same.hash


# Values


def proto(dtype, shape=(), **lists):
    made = schema.TensorProto(dtype=getattr(schema, f"DT_{dtype}"), **lists)
    for size in shape:
        made.tensor_shape.dim.add(size=size)
    return made


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (proto("FLOAT", [4], float_val=[1, 2]), proto("FLOAT", [4], float_val=[1, 2, 2, 2])),
        (proto("FLOAT", [2], float_val=[1, 2]), proto("FLOAT", [2], tensor_content=np.float32([1, 2]).tobytes())),
        (proto("FLOAT", [2]), proto("FLOAT", [2], tensor_content=bytes(8))),
        (proto("HALF", [2], half_val=[15360, 0]), proto("HALF", [2], tensor_content=np.float16([1, 0]).tobytes())),
        (proto("INT8", [3], int_val=[-1, 2, 2]), proto("INT8", [3], tensor_content=np.int8([-1, 2, 2]).tobytes())),
        (proto("UINT16", [1], int_val=[65535]), proto("UINT16", [1], tensor_content=np.uint16([65535]).tobytes())),
        (proto("BOOL", [2], bool_val=[True]), proto("BOOL", [2], tensor_content=b"\1\1")),
        (proto("COMPLEX64", [], scomplex_val=[1, 2]), proto("COMPLEX64", [], tensor_content=np.complex64(1 + 2j).tobytes())),
        (proto("INT64", [2], int64_val=[5]), proto("INT64", [2], int64_val=[5, 5])),
        (proto("STRING", [3], string_val=[b"a", b""]), proto("STRING", [3], string_val=[b"a", b"", b""])),
        (proto("STRING", [], string_val=[b""]), proto("STRING", [])),
        (proto("FLOAT8_E5M2", [2], float8_val=b"\1\2"), proto("FLOAT8_E5M2", [2], tensor_content=b"\1\2")),
    ],
)
def test_two_ways_to_write_a_tensor(one, other):
    assert tensor(one) == tensor(other)


def test_different_tensors():
    tensors = [
        proto("FLOAT", [2], float_val=[1, 2]),
        proto("FLOAT", [2], float_val=[1, 1]),
        proto("FLOAT", [1, 2], float_val=[1, 2]),
        proto("FLOAT", [3], float_val=[1, 2]),
        proto("FLOAT", [], float_val=[0.0]),
        proto("FLOAT", [], float_val=[-0.0]),
        proto("DOUBLE", [2], double_val=[1, 2]),
        proto("INT32", [2], int_val=[1, 2]),
        proto("INT32", [2], int_val=[1, 2**31 - 1]),
        proto("STRING", [2], string_val=[b"a", b"b"]),
        proto("STRING", [2], string_val=[b"ab", b""]),
        proto("FLOAT", [4], tensor_content=bytes(8)),  # too short
        proto("FLOAT", [2], tensor_content=bytes(7)),
        proto("FLOAT", [10**15], float_val=[3]),  # a huge shape costs nothing
        proto("RESOURCE", []),
        schema.TensorProto(dtype=77),
    ]
    assert len({tensor(item) for item in tensors}) == len(tensors)


# What is said


def test_differences_name_the_place(base, tmp_path):
    def edit(message):
        node(message, "Mul").op = "Sub"
        node(message, "ConcatV2").attr["N"].i = 7

    after = canonical(edits.edited(edits.fixture("half_plus_two"), tmp_path / "model", edit))
    text = sorted(str(item) for item in base("half_plus_two").diff(after))
    assert text[0] == "graph: Mul (Mul): op Mul in the first, Sub in the second"
    assert len(text) == 1  # not what follows from it: the concatenation needs the product


def test_number_of_differences_is_limited(base):
    found = base("half_plus_two").diff(base("module_functions"), limit=2)
    per_section = {}
    for item in found:
        per_section[item.section] = per_section.get(item.section, 0) + 1
    assert max(per_section.values()) <= 2
    assert "meta" not in per_section or per_section["meta"] <= 2


def test_json(base):
    found = base("serve_and_train").to_json()
    assert re.fullmatch("[0-9a-f]{64}", found["hash"])
    assert [item["tags"] for item in found["meta_graphs"]] == [["serve"], ["train"]]
    assert found["produced_by"][0]["tensorflow_version"] == "1.15.5"
    assert set(found["sections"]) == {"meta", "signatures", "graph", "functions", "objects", "collections", "variables", "assets"}


# What is refused


def test_two_nodes_of_one_name(tmp_path):
    def made(graph):
        graph.graph_def.node.add(name="n", op="A")
        graph.graph_def.node.add(name="n", op="B")

    with pytest.raises(errors.DuplicateKeyError, match="n"):
        model(tmp_path, made)


def test_an_asset_outside(tmp_path):
    with pytest.raises(errors.PathEscapeError):
        model(tmp_path, lambda graph: graph.asset_file_def.add(filename="../secret"))


def test_a_damaged_weight(tmp_path):
    shutil.copytree(edits.fixture("half_plus_two"), tmp_path / "model")
    (shard,) = (tmp_path / "model" / "variables").glob("*.data-*")
    data = bytearray(shard.read_bytes())
    data[0] ^= 1
    shard.write_bytes(data)
    with pytest.raises(errors.ChecksumError):
        canonical(tmp_path / "model")


def test_dangling_references_are_part_of_the_form(tmp_path):
    def build(name):
        def made(graph):
            graph.graph_def.node.add(name="n", op="A", input=[name])
            graph.signature_def["s"].outputs["y"].name = "nowhere:0"
            graph.object_graph_def.nodes.add().children.add(node_id=77, local_name="x")

        return made

    assert model(tmp_path, build("missing"), "a").hash != model(tmp_path, build("absent"), "b").hash


def test_zoo():
    import zoo

    models = zoo.models()
    if not models:
        pytest.skip(zoo.ABSENT)
    done = 0
    for path in models[::4]:
        try:
            first = canonical(path)
        except errors.SavedModelError as error:
            assert str(error)
        else:
            done += 1
            assert first.diff(first) == []
    assert done > len(models[::4]) * 0.9


def test_path_of_a_file(base):
    folder = Path(edits.fixture("half_plus_two"))
    assert canonical(folder / "saved_model.pb").hash == base("half_plus_two").hash
