"""Numbers in a model that would end TensorFlow's process: `load` refuses them by name, in a process
of its own.
"""

from __future__ import annotations

import re

import fresh_tensorflow
import model_edits as edits
import pytest

import reference_impl
from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.names import CALLS
from savedmodel_compat.cli import main

pytestmark = pytest.mark.tensorflow

LOAD = (
    "import sys, reference_impl\n"
    "try: reference_impl.load(sys.argv[1])\n"
    "except Exception as error: print(type(error).__name__, error)\n"
)


def negative(tensor):
    tensor.tensor_shape.dim.add(size=-1)


def many_dimensions(tensor):
    for _ in range(300):
        tensor.tensor_shape.dim.add(size=1)


def beyond_64_bits(tensor):
    tensor.tensor_shape.dim.add(size=2**62)
    tensor.tensor_shape.dim.add(size=2**31)


def beyond_memory(tensor):
    tensor.tensor_shape.dim.add(size=2**35)


def other_bytes(tensor):
    tensor.tensor_content = b"\0" * 7


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (negative, "ShapeError"),
        (many_dimensions, "ShapeError"),
        (beyond_64_bits, "ShapeError"),
        (beyond_memory, "LimitError"),
        (other_bytes, "ShapeError"),
    ],
)
def test_a_constant_of_a_table_initialiser_is_refused_by_name(tmp_path, change, error):
    def edit(message):
        graph = message.meta_graphs[0]
        functions = [function.node_def for function in graph.graph_def.library.function]
        for nodes in (graph.graph_def.node, *functions):
            for node in nodes:
                if node.op == "Const" and node.attr["dtype"].type == schema.DT_INT64:
                    change(node.attr["value"].tensor)

    model = edits.edited(edits.fixture("hash_table_v2"), tmp_path / "model", edit)
    done = fresh_tensorflow.run(LOAD, model)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.startswith(error) and "saved_model.pb" in done.stdout


@pytest.mark.parametrize(
    ("attribute", "number", "error"),
    [
        ("vocab_size", 2**63 - 1, "LimitError"),
        ("value_index", 2**31, "LimitError"),
        ("key_index", -7, "MalformedError"),  # the op says the least value
    ],
)
def test_numbers_of_a_table_that_a_file_fills_are_refused_by_name(
    tmp_path, attribute, number, error
):
    def edit(message):
        for node in message.meta_graphs[0].graph_def.node:
            if node.op == "InitializeTableFromTextFileV2":
                node.attr[attribute].i = number

    model = edits.edited(edits.fixture("estimator_custom"), tmp_path / "model", edit)
    done = fresh_tensorflow.run(LOAD, model)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.startswith(error) and attribute in done.stdout


@pytest.mark.parametrize(
    "port", ["²", "٣", "9" * 5000], ids=["superscript", "other digits", "thousands of digits"]
)
def test_a_signature_with_a_wrong_output_number_is_reported_and_the_rest_loads(tmp_path, port):
    """TensorFlow takes only ASCII digits for the number of an output; Python reads more, or refuses
    with an error of its own.
    """
    model = with_output(tmp_path / "model", port)
    loaded = reference_impl.load(model)
    with pytest.raises(SavedModelError, match="case/cond/Merge"):
        loaded.signatures["case"](x=[1.0])
    assert reference_impl.inspect(model).meta_graphs


def test_verify_reads_a_signature_with_an_output_number_of_thousands_of_digits(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["verify", str(with_output(tmp_path / "model", "9" * 5000))])
    said = capsys.readouterr().out
    assert "could not be" not in said
    assert "SMC525" in said and "has 2 outputs" in said


def with_output(target, port):
    """Return a copy of a model whose signature `case` names an output of its node by another
    number.
    """

    def edit(message):
        for info in message.meta_graphs[0].signature_def["case"].outputs.values():
            info.name = info.name.partition(":")[0] + ":" + port

    return edits.edited(edits.fixture("cond_case"), target, edit)


CALL = (
    "import sys, reference_impl, tensorflow as tf\nfunction ="
    " reference_impl.load(sys.argv[1]).f\ndef call(tape):\n    try:\n        with tf.GradientTape()"
    " if tape else tf.device(None): print(function(tf.constant(1.0)))\n    except Exception as"
    " error: print(type(error).__name__, error)\ncall(False)\ncall(True)\n"
)


def without_value(function):
    next(node for node in function.node_def if node.op == "Const").attr.pop("value")


def one_argument_too_few(function):
    next(node for node in function.node_def if node.op in CALLS).input.pop()


def input_of_another_place(function):
    next(node for node in function.node_def if node.op in ("Mul", "AddV2")).input[0] = (
        "there/is/none:z:0"
    )


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (without_value, r"MalformedError .*Const node has no attribute 'value'"),
        (one_argument_too_few, "UnsupportedModelError .*node '.*' of function"),
        (input_of_another_place, r"MalformedError .*there is no tensor 'there/is/none:z:0'"),
    ],
)
def test_a_damaged_function_is_reported_by_the_call_that_needs_it(tmp_path, damage, error):
    """TensorFlow ends the process when a constant has no value; elsewhere its own errors name no
    file.
    """
    import tensorflow as tf

    root = tf.Module()
    inner = tf.function(lambda x, y: x * y)
    root.f = tf.function(
        lambda x: inner(x, x) + 2.0, input_signature=[tf.TensorSpec([], tf.float32)]
    )
    reference_impl.save(root, tmp_path / "whole")

    def edit(message):
        functions = message.meta_graphs[0].graph_def.library.function
        damage(
            next(
                function
                for function in functions
                if any(node.op in CALLS for node in function.node_def)
            )
        )

    model = edits.edited(tmp_path / "whole", tmp_path / "damaged", edit)
    done = fresh_tensorflow.run(CALL, model)
    assert done.returncode == 0, done.stderr[-500:]
    plain, under_a_tape = done.stdout.splitlines()[0], done.stdout.splitlines()[-1]
    assert re.match(error, under_a_tape) and "saved_model.pb" in under_a_tape, done.stdout
    assert "Error" in plain


def test_bytes_that_are_not_utf8_in_an_error_of_tensorflow_are_escaped(tmp_path):
    """TensorFlow itself raises a UnicodeDecodeError, which says nothing about the op."""
    import tensorflow as tf

    def edit(message):
        node = next(
            node
            for node in message.meta_graphs[0].graph_def.node
            if node.op == "MutableHashTableOfTensorsV2"
        )
        node.attr["container"].s = b"\xff\xfe"

    model = edits.edited(edits.fixture("mutable_hash_table"), tmp_path / "model", edit)
    with pytest.raises(tf.errors.OpError, match=r"\\xff\\xfe"):
        reference_impl.load(model)
