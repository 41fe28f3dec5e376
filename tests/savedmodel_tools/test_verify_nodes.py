"""`verify` finds what ends a load: nodes that contradict their ops, names of children that
TensorFlow calls, devices.
"""

import functools

import model_edits as edits
import pytest
import verify_planted

from property_tests.attacks import forge, naming, nodes
from reference_impl.format import schema
from reference_impl.views.model import inspect
from savedmodel_tools.verify.findings import Severity
from savedmodel_tools.verify.run import verify

FOUND = {
    nodes.case_without_branches: ("SMC310", "'branches' has 0 items"),
    nodes.loop_without_a_body: ("SMC305", "While refers to the function 'nobody'"),
    nodes.loop_of_a_nameless_body: ("SMC310", "While: calls a function without a name"),
    nodes.loop_of_all_steps_at_once: ("SMC310", "'parallel_iterations' is 9223372036854775807"),
    nodes.shape_of_2_to_the_62: ("SMC310", "a shape has more than 1099511627776 elements"),
    nodes.fewer_tensors_than_none: ("SMC310", "'N' is -5"),
    nodes.two_billion_tensors: ("SMC310", "'N' asks for 2147483647 tensors"),
    nodes.number_in_place_of_a_type: ("SMC310", "'T' is not of type 'type', but 'i'"),
    nodes.constant_of_two_dtypes: (
        "SMC310",
        "a constant of the dtype 1 has a value of the dtype 23",
    ),
    nodes.constant_reference: ("SMC310", "a tensor has the dtype 101"),
    nodes.damaged_tensor_list: ("SMC310", "a list of tensors has 1099511627776 elements"),
    nodes.damaged_dataset_constant: ("SMC310", "WrappedDatasetVariant"),
    nodes.captured_tensor_list: ("SMC315", "a variant tensor has no value of its own"),
    nodes.list_of_two_billion: ("SMC310", "TensorListReserve makes a list of 2147483647 tensors"),
    nodes.shape_of_300_dimensions: ("SMC310", "a shape has 300 dimensions"),
    nodes.noted_shape_below_zero: ("SMC310", "'_output_shapes': a dimension has the size -7"),
    nodes.beside_a_node_of_nowhere: ("SMC310", "beside the node 'nowhere', which does not exist"),
    nodes.argument_of_no_dtype: ("SMC310", "the argument 'x' has the dtype 9999"),
    nodes.device_of_a_node: ("SMC316", "'/job:../../x:;'"),
    nodes.number_of_33_bits: ("SMC310", "a number of more than 32 bits"),
    nodes.paddings_that_nothing_asks_for: ("SMC310", "'explicit_paddings' has 1 items"),
    nodes.axis_of_no_number: ("SMC310", "takes a constant of shape [0] for one number"),
    nodes.gather_of_many_batches: ("SMC310", "a tensor has at most 254 dimensions"),
    nodes.keys_of_an_example: ("SMC310", "takes a constant of shape [3] for one text"),
    nodes.list_of_a_computed_length: (
        "SMC310",
        "makes a list whose computed length may be more than 33554432",
    ),
    nodes.array_of_a_computed_length: (
        "SMC310",
        "makes a list whose computed length may be more than 33554432",
    ),
    nodes.device_as_a_path: ("SMC316", "'/job:../../x:;'"),
    naming.child_that_a_load_calls: ("SMC317", "the loader of TensorFlow runs it"),
    naming.child_that_breaks_a_load: ("SMC317", "the loader of TensorFlow fails"),
}


@pytest.mark.parametrize("attack", FOUND, ids=lambda attack: attack.__name__)
def test_what_ends_a_load_is_an_error(tmp_path, attack):
    attack(tmp_path / "model")
    rule, words = FOUND[attack]
    found = [finding for finding in verify(tmp_path / "model").findings if finding.rule == rule]
    assert found and all(finding.severity is Severity.ERROR for finding in found)
    assert any(words in finding.message for finding in found), found


@pytest.mark.parametrize(
    "device",
    [
        "",
        "CPU",
        "/cpu:0",
        "/device:GPU:1",
        "/job:worker/replica:0/task:*/device:CPU:0",
        "/job:localhost",
        "TPU:*",
    ],
)
def test_devices_as_tensorflow_writes_them_are_no_finding(tmp_path, device):
    verify_planted.graph_edit(
        "module_functions", lambda graph: verify_planted.table_on(graph, device)
    )(tmp_path / "model")
    assert "SMC316" not in {finding.rule for finding in verify(tmp_path / "model").findings}


def test_an_item_of_a_dict_may_have_any_name(tmp_path):
    def edit(message):
        items = message.meta_graphs[0].object_graph_def.nodes
        named = next(
            item for item in items if item.user_object.identifier == "trackable_dict_wrapper"
        )
        named.children[0].local_name = "_trackable_children"

    edits.edited(edits.fixture("module_functions"), tmp_path / "model", edit)
    assert "SMC317" not in {finding.rule for finding in verify(tmp_path / "model").findings}


@pytest.mark.parametrize("name", ["_maybe_initialize_trackable", "_trackable_children"])
def test_a_function_that_tensorflow_runs_because_of_its_name_acts_at_load(tmp_path, name):
    """A child of any other name runs when somebody calls it. reference_impl.load runs neither."""

    def edit(wanted, message):
        graph = message.meta_graphs[0]
        nodes = graph.object_graph_def.nodes
        number = next(
            number for number, item in enumerate(nodes) if item.function.concrete_functions
        )
        trace = nodes[number].function.concrete_functions[0]
        body = next(
            item for item in graph.graph_def.library.function if item.signature.name == trace
        )
        path = forge.constant(body, "evil_path", b"/nowhere/done") + ":output:0"
        forge.node_of(body, "evil", "WriteFile", path, path)
        for item in nodes:
            for child in item.children:
                if child.node_id == number:
                    child.local_name = wanted.pop(0) if wanted else child.local_name

    for wanted, when in (([], "when called"), ([name], "at load")):
        model = edits.edited(
            edits.fixture("module_functions"), tmp_path / when, functools.partial(edit, wanted)
        )
        found = [
            effect
            for graph in inspect(model).meta_graphs
            for effect in graph.effects
            if effect.op == "WriteFile"
        ]
        assert [effect.when for effect in found] == [when], found
        rules = {finding.rule for finding in verify(model).findings}
        assert ("SMC601" in rules) == (when == "at load")


def test_the_length_of_what_a_loop_returns_is_no_finding(tmp_path):
    """A stacked LSTM reserves a list for the steps of the LSTM before it, whose loop takes large
    weights.
    """

    def stacked(graph):
        function = graph.graph_def.library.function.add()
        function.signature.name = "stacked"
        for name in ("kernel", "recurrent"):
            weights = function.node_def.add(name=name, op="Const")
            weights.attr["dtype"].type = weights.attr["value"].tensor.dtype = schema.DT_FLOAT
            weights.attr["value"].tensor.float_val.append(0)
            for _ in range(2):
                weights.attr["value"].tensor.tensor_shape.dim.add().size = 2048
        for name, op, inputs in (
            ("loop", "StatelessWhile", ["kernel:output:0", "recurrent:output:0"]),
            ("size", "Shape", ["loop:output:0"]),
            ("length", "Prod", ["size:output:0", "axis:output:0"]),
            ("list", "TensorListReserve", ["size:output:0", "length:output:0"]),
        ):
            function.node_def.add(name=name, op=op).input.extend(inputs)

    verify_planted.graph_edit("module_functions", stacked)(tmp_path / "model")
    assert not any(
        "computed length" in finding.message for finding in verify(tmp_path / "model").findings
    )
