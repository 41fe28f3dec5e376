"""Nodes of functions that contradict their ops: the load or the call that needs them refuses them
by name, and lives on.
"""

from __future__ import annotations

import fresh_tensorflow
import model_edits as edits
import pytest

from property_tests.attacks import nodes
from reference_impl.errors import StructureError
from reference_impl.format import schema
from reference_impl.format.container import layout
from reference_impl.format.wire import write_varint
from reference_impl.graph.node_defs import int_tensor

pytestmark = pytest.mark.tensorflow

LOAD = (
    "import sys, reference_impl\n"
    "try: reference_impl.load(sys.argv[1])\n"
    "except Exception as error: print(type(error).__name__, error)\n"
)
CALL = (
    "import sys, reference_impl, tensorflow as tf\ntry:"
    " print(reference_impl.load(sys.argv[1]).signatures['serving_default'](x=tf.constant(1.0)))\nexcept"
    " Exception as error: print(type(error).__name__, error)\n"
)


@pytest.mark.parametrize(
    ("attack", "error"),
    [
        (nodes.case_without_branches, "MalformedError"),
        (nodes.loop_without_a_body, "MissingKeyError"),
        (nodes.loop_of_a_nameless_body, "MissingKeyError"),
        (nodes.loop_of_all_steps_at_once, "LimitError"),
        (nodes.shape_of_2_to_the_62, "ShapeError"),
        (nodes.fewer_tensors_than_none, "MalformedError"),
        (nodes.two_billion_tensors, "LimitError"),
        (nodes.number_in_place_of_a_type, "MalformedError"),
        (nodes.constant_of_two_dtypes, "MalformedError"),
        (nodes.constant_reference, "MalformedError"),
        (nodes.damaged_tensor_list, "MalformedError"),
        (nodes.damaged_dataset_constant, "MalformedError"),
        (nodes.captured_tensor_list, "ShapeError"),
        (nodes.list_of_two_billion, "LimitError"),
        (nodes.shape_of_300_dimensions, "ShapeError"),
        (nodes.device_as_a_path, "MalformedError"),
        (nodes.device_of_a_node, "MalformedError"),
        (nodes.number_of_33_bits, "MalformedError"),
        (nodes.gather_of_many_batches, "MalformedError"),
        (nodes.paddings_that_nothing_asks_for, "MalformedError"),
    ],
)
def test_a_load_that_runs_such_a_node_refuses_it(tmp_path, attack, error):
    attack(tmp_path / "model")
    done = fresh_tensorflow.run(LOAD, tmp_path / "model")
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.startswith(error) and "saved_model.pb" in done.stdout


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\xff" * 10,
        write_varint(2) + write_varint(1) + write_varint(0),  # indices that go down
        write_varint(0) + write_varint(9999),
        nodes.empty_list() + b"\x07",
    ],
    ids=["empty", "varints without end", "indices", "dtype", "shape"],
)
def test_every_part_of_the_metadata_of_a_list_is_checked(tmp_path, metadata):
    nodes.initialised_by(tmp_path / "model", nodes.variant("run", metadata))
    done = fresh_tensorflow.run(LOAD, tmp_path / "model")
    assert done.returncode == 0 and done.stdout.startswith("MalformedError"), (
        done.stdout,
        done.stderr[-500:],
    )


def test_a_sound_list_of_tensors_loads(tmp_path):
    nodes.initialised_by(tmp_path / "model", nodes.variant("run", nodes.empty_list()))
    assert fresh_tensorflow.printed(LOAD, tmp_path / "model") == ""


def test_a_caller_cannot_hand_a_number_into_a_function_that_counts_tensors(tmp_path):
    one, pack = nodes.packed(1)
    pack.attr["N"].placeholder = "count"
    nodes.initialised_by(tmp_path / "model", one, pack)
    assert fresh_tensorflow.printed(LOAD, tmp_path / "model").startswith("MalformedError")


def without_name(node):
    node.input[0] = ""


def control_in_its_place(node):
    node.input[0] = "^" + node.input[0].partition(":")[0]


def one_too_many(node):
    node.input.append(node.input[0])


def of_no_output(node):
    node.input[0] = node.input[0].partition(":")[0] + ":nothing:0"


@pytest.mark.parametrize("damage", [without_name, control_in_its_place, one_too_many, of_no_output])
@pytest.mark.parametrize("fixture", ["half_plus_two", "module_functions"])
def test_an_input_of_a_wrong_form_is_named_by_an_error_of_ours(tmp_path, fixture, damage):
    """The list of damaged models of OpenVINO has these."""

    def edit(message):
        graph = message.meta_graphs[0].graph_def
        for body in (graph.node, *[function.node_def for function in graph.library.function]):
            for node in body:
                if node.op in ("Mul", "AddV2", "Add"):
                    damage(node)

    model = edits.edited(edits.fixture(fixture), tmp_path / "model", edit)
    done = fresh_tensorflow.run(CALL, model)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.startswith("MalformedError") and "saved_model.pb" in done.stdout, done.stdout


@pytest.mark.parametrize("between", [[], ["Relu"], ["Neg", "Identity"]])
def test_an_image_of_one_dimension_ends_no_process(tmp_path, between):
    """A convolution of oneDNN takes four for granted. Found by the live fuzz."""

    def edit(message):
        graph = message.meta_graphs[0].graph_def
        convolution = next(node for node in graph.node if node.op == "Conv2D")
        for node in graph.node:
            if node.op == "Placeholder":
                del node.attr["shape"].shape.dim[1:]
        for number, op in enumerate(between):
            made = graph.node.add(name=f"between_{number}", op=op, input=[convolution.input[0]])
            made.attr["T"].type = schema.DT_FLOAT
            convolution.input[0] = made.name

    model = edits.edited(edits.fixture("default_attrs_kept"), tmp_path / "model", edit)
    done = fresh_tensorflow.run(ANSWERS, model)
    assert done.returncode == 0, done.stderr[-500:]
    assert "refused" in done.stdout and "expected shape [?,?,?,?]" in done.stdout, done.stdout


ANSWERS = (
    "import sys, reference_impl, tensorflow as tf\nfor f in"
    " reference_impl.load(sys.argv[1]).signatures.values():\n    given = {k: tf.zeros([s or 1 for s"
    " in v.shape], v.dtype) for k, v in f.structured_input_signature[1].items()}\n    try:"
    " print('answers', sorted(f(**given)))\n    except tf.errors.InvalidArgumentError as error:"
    " print('refused', error)\n"
)


def reserved(size):
    return nodes.node(
        "list",
        "TensorListReserve",
        ("shape:output:0", size),
        element_dtype="type: DT_FLOAT",
        shape_type="type: DT_INT32",
    )


def array(size):
    return nodes.node("list", "TensorArrayV3", (size,), dtype="type: DT_FLOAT")


def through_an_identity():
    return "same:output:0", [nodes.node("same", "Identity", ("two:output:0",), T="type: DT_INT32")]


def by_an_addition():
    return "sum:z:0", [
        nodes.node("sum", "AddV2", ("two:output:0", "one:output:0"), T="type: DT_INT32")
    ]


def by_the_shape_of_nothing():
    sizes = nodes.node("many", "Const", dtype="type: DT_INT32")
    sizes.attr["value"].tensor.CopyFrom(int_tensor([2**31 - 1, 0]))
    wide = nodes.node(
        "wide",
        "Fill",
        ("many:output:0", "one:output:0"),
        T="type: DT_INT32",
        index_type="type: DT_INT32",
    )
    shape = nodes.node(
        "sizes", "Shape", ("wide:output:0",), T="type: DT_INT32", out_type="type: DT_INT32"
    )
    first = nodes.node(
        "first",
        "Max",
        ("sizes:output:0", "zero:output:0"),
        T="type: DT_INT32",
        Tidx="type: DT_INT32",
    )
    return "first:output:0", [sizes, wide, shape, first]


@pytest.mark.parametrize("made", [reserved, array])
@pytest.mark.parametrize("size", [through_an_identity, by_an_addition, by_the_shape_of_nothing])
def test_a_computed_length_of_two_billion_takes_no_memory_and_ends_no_process(tmp_path, made, size):
    text, more = size()
    numbers = [
        nodes.number(name, value)
        for name, value in (("shape", -1), ("two", 2**31 - 2), ("one", 1), ("zero", 0))
    ]
    list_ = made(text)
    run = nodes.length("list:handle") if made is reserved else nodes.node("run", "NoOp", ("^list",))
    nodes.initialised_by(tmp_path / "model", *numbers, *more, list_, run)
    program = (
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))\n" + LOAD
    )
    program += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)"
    done = fresh_tensorflow.run(program, tmp_path / "model")
    assert done.returncode == 0, done.stderr[-500:]
    # Refused before it runs if the size follows from constants, else when it runs.
    assert done.stdout.startswith(("LimitError", "InvalidArgumentError")), done.stdout
    assert int(done.stdout.split()[-1]) < 2048, done.stdout


@pytest.mark.parametrize("sizes", [[3], [0], [1]])
def test_a_key_of_an_example_that_is_not_one_text_ends_no_process(tmp_path, sizes):
    """Found by the live fuzz."""

    def edit(message):
        for node in message.meta_graphs[0].graph_def.node:
            if node.name.endswith("sparse_keys_0"):
                for number in sizes:
                    node.attr["value"].tensor.tensor_shape.dim.add(size=number)

    model = edits.edited(edits.fixture("parse_example"), tmp_path / "model", edit)
    done = fresh_tensorflow.run(ANSWERS, model)
    assert done.returncode == 0, done.stderr[-500:]
    assert ("Reshape" in done.stdout or "reshape" in done.stdout) == (sizes != [1]), done.stdout


def many_batch_dimensions(node):
    if node.op == "GatherV2":
        node.attr["batch_dims"].i = 2**31 - 1
        return True
    return False


def axis_without_elements(node):
    if node.op == "Const" and node.name.endswith("concat/axis"):
        node.attr["value"].tensor.tensor_shape.dim.add(size=0)
        return True
    return False


def dtype_that_nobody_fills_in(node):
    if node.op.startswith("MutableHashTable"):
        node.attr["value_dtype"].placeholder = "T"
        return True
    return False


@pytest.mark.parametrize(
    ("fixture", "damage", "says"),
    [
        ("sparse_io", many_batch_dimensions, "a tensor has at most 254 dimensions"),
        ("partitioned_variables", axis_without_elements, "concat/element"),
        ("mutable_hash_table", dtype_that_nobody_fills_in, "is not of type 'type'"),
    ],
)
def test_a_number_that_the_graph_optimizer_trusts_ends_no_process(tmp_path, fixture, damage, says):
    """Found by the live fuzz."""
    found = []

    def edit(message):
        found.extend(filter(damage, message.meta_graphs[0].graph_def.node))

    model = edits.edited(edits.fixture(fixture), tmp_path / "model", edit)
    assert found
    done = fresh_tensorflow.run(ANSWERS, model)
    assert done.returncode in (0, 1), done.stderr[-500:]  # 1: an error ended the program
    assert says in done.stdout + done.stderr


def test_a_placeholder_whose_shape_is_no_shape_is_refused(tmp_path):
    """It becomes an argument of a function; a convolution of TensorFlow ends the process for an
    argument of another rank.
    """

    def edit(message):
        node = next(
            node for node in message.meta_graphs[0].graph_def.node if node.op == "Placeholder"
        )
        node.attr["shape"].tensor.dtype = schema.DT_FLOAT

    model = edits.edited(edits.fixture("default_attrs_stripped"), tmp_path / "model", edit)
    said = fresh_tensorflow.printed(LOAD, model)
    assert said.startswith("MalformedError") and "attribute 'shape'" in said and "'tensor'" in said


def test_a_device_of_a_variable_that_is_no_device_is_refused(tmp_path):
    def edit(message):
        for item in message.meta_graphs[0].object_graph_def.nodes:
            if item.HasField("variable"):
                item.variable.device = "/job:../../x:;"

    model = edits.edited(edits.fixture("module_functions"), tmp_path / "model", edit)
    program = LOAD.replace(
        "load(sys.argv[1])",
        "load(sys.argv[1], None, reference_impl.LoadOptions(keep_variable_devices=True))",
    )
    assert fresh_tensorflow.printed(LOAD, model) == ""
    said = fresh_tensorflow.printed(program, model)
    assert said.startswith("MalformedError") and "the device '/job:../../x:;'" in said


def test_parts_that_make_no_sparse_tensor_are_an_error_of_ours():
    import tensorflow as tf

    from reference_impl.functions import patterns

    count, pack = patterns.packer(tf.SparseTensorSpec([None], tf.float32))
    scalars = [tf.constant(0, tf.int64), tf.constant(1.0), tf.constant(2, tf.int64)]
    assert count == len(scalars)
    with pytest.raises(StructureError, match="SparseTensor"):
        pack(iter(scalars))


def test_the_rules_of_an_op_say_what_its_definition_says():
    from reference_impl import tensorflow_api as api
    from reference_impl.graph import op_rules

    rules = op_rules.of_definition(api.op_def("Pack"))
    assert {one.name: (one.least, one.counts) for one in rules.attributes} == {
        "N": (1, True),
        "T": (None, False),
        "axis": (None, False),
    }
    node = schema.NodeDef(op="Pack")
    assert rules.input_count(node) is None
    node.attr["N"].i = 3
    assert rules.input_count(node) == 3 and rules.outputs == {"output"}


def test_a_node_of_a_called_function_on_a_device_that_is_none_is_refused_by_name(tmp_path):
    """TensorFlow's own error names neither the file nor the node."""

    def edit(message):
        for function in message.meta_graphs[0].graph_def.library.function:
            for node in function.node_def:
                if node.op in ("Mul", "AddV2"):
                    node.device = "/job:../../x:;"

    model = edits.edited(edits.fixture("module_functions"), tmp_path / "model", edit)
    said = fresh_tensorflow.printed(CALL, model)
    assert (
        said.startswith("MalformedError")
        and "the device '/job:../../x:;'" in said
        and "saved_model.pb" in said
    ), said


def test_a_number_of_more_than_32_bits_in_a_list_is_refused(tmp_path):
    """The graph optimizer reads the lists of a pooling as 32 bits and ends the process if they are
    more.
    """

    def edit(message):
        for node in message.meta_graphs[0].graph_def.node:
            if node.op == "MaxPool":
                node.attr["ksize"].list.i[1] = 2**31

    model = edits.edited(edits.fixture("default_attrs_kept"), tmp_path / "model", edit)
    program = CALL.replace("(x=tf.constant(1.0))", "(**given)").replace(
        "try:",
        "f = reference_impl.load(sys.argv[1]).signatures['serving_default']\ngiven = {k:"
        " tf.zeros([s or 1 for s in v.shape], v.dtype) for k, v in"
        " f.structured_input_signature[1].items()}\ntry:",
    )
    done = fresh_tensorflow.run(program, model)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.startswith("MalformedError") and "more than 32 bits" in done.stdout, (
        done.stdout
    )


def test_guards_are_not_put_before_guards(tmp_path):
    """TensorFlow saves the functions of a loaded model with the guards in them."""
    import tensorflow as tf

    import reference_impl

    source, counts = edits.fixture("flow_gradients"), []
    for number in range(3):
        loaded = reference_impl.load(source)
        source = tmp_path / str(number)
        tf.saved_model.save(loaded, str(source), signatures=loaded.signatures)
        (graph,) = layout.read(source).saved_model.meta_graphs
        ops = [
            node.op for function in graph.graph_def.library.function for node in function.node_def
        ]
        counts.append(ops.count("SelectV2"))
    assert counts[0] == counts[1] == counts[2] > 0
