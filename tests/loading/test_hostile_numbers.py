"""Numbers in a model that would end TensorFlow's process: `load` refuses them by name, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import model_edits as edits
import pytest

import reference_impl
from compat_matrix.cli import main
from reference_impl.errors import SavedModelError
from reference_impl.format import schema

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
    tensor.tensor_shape.dim.add(size=2**40)


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
    done = subprocess.run([sys.executable, "-c", LOAD, model], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.startswith(error) and "saved_model.pb" in done.stdout


@pytest.mark.parametrize(("attribute", "number"), [("vocab_size", 2**63 - 1), ("value_index", 2**31), ("key_index", -7)])
def test_numbers_of_a_table_that_a_file_fills_are_refused_by_name(tmp_path, attribute, number):
    def edit(message):
        for node in message.meta_graphs[0].graph_def.node:
            if node.op == "InitializeTableFromTextFileV2":
                node.attr[attribute].i = number

    model = edits.edited(edits.fixture("estimator_custom"), tmp_path / "model", edit)
    done = subprocess.run([sys.executable, "-c", LOAD, model], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.startswith("LimitError") and attribute in done.stdout


@pytest.mark.parametrize("port", ["²", "٣", "9" * 5000], ids=["superscript", "other digits", "thousands of digits"])
def test_a_signature_with_a_wrong_output_number_is_reported_and_the_rest_loads(tmp_path, port):
    """TensorFlow takes only ASCII digits for the number of an output; Python reads more, or refuses with an error of its own."""
    model = with_output(tmp_path / "model", port)
    loaded = reference_impl.load(model)
    with pytest.raises(SavedModelError, match="case/cond/Merge"):
        loaded.signatures["case"](x=[1.0])
    assert reference_impl.inspect(model).meta_graphs


def test_verify_reads_a_signature_with_an_output_number_of_thousands_of_digits(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["verify", str(with_output(tmp_path / "model", "9" * 5000))])
    said = capsys.readouterr().out
    assert "could not be looked at" not in said
    assert "SMC525" in said and "has 2 outputs" in said


def with_output(target, port):
    """Return a copy of a model whose signature `case` names an output of its node by another number."""

    def edit(message):
        for info in message.meta_graphs[0].signature_def["case"].outputs.values():
            info.name = info.name.partition(":")[0] + ":" + port

    return edits.edited(edits.fixture("cond_case"), target, edit)
