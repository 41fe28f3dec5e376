"""A number in a file that is too large for a rule never switches the rule off: it is found, and the
exit code says so.
"""

import model_edits as edits
import pytest
import verify_planted

from property_tests.attacks import bombs, forge
from reference_impl.errors import LimitError
from reference_impl.format import limits, schema
from reference_impl.format.container import layout
from reference_impl.graph.graph_view import GraphView
from savedmodel_tools import compat
from savedmodel_tools.edits import slim_graph, slim_savers
from savedmodel_tools.obstacles import obstacles
from savedmodel_tools.returned_handles import ReturnedHandles
from savedmodel_tools.skew import arguments
from savedmodel_tools.skew.history import history
from savedmodel_tools.skew.needs import MAX_LACKS, needs
from savedmodel_tools.verify import assignments
from savedmodel_tools.verify.findings import Severity
from savedmodel_tools.verify.rules import file
from savedmodel_tools.verify.run import verify

COUNTS = [3, 100_000, 131_072, 250_000_000, 2**63 - 1]


def found(report, rule):
    return [finding for finding in report.findings if finding.rule == rule]


@pytest.mark.parametrize("count", COUNTS)
def test_a_claimed_number_of_inputs_is_compared_however_large(count, tmp_path):
    message, graph = edits.new_model()
    forge.pack(graph.graph_def, count)
    path = edits.write(message, tmp_path / "model")
    (finding,) = found(verify(path), "SMC529")
    assert finding.severity is Severity.ERROR and "'Pack' with 2 inputs" in finding.message
    assert all(not part.members for graph in needs(path) for part in graph.parts)


def test_the_main_graph_of_a_model_with_objects_counts_too(tmp_path):
    """Sessions and servers import it, though tf.saved_model.load does not."""

    def edit(graph):
        forge.pack(graph.graph_def, 131_072)

    verify_planted.graph_edit("module_functions", edit)(tmp_path / "model")
    assert found(verify(tmp_path / "model"), "SMC529")


def test_unknown_ops_do_not_hide_what_no_release_accepts(tmp_path):
    message, graph = edits.new_model()
    for number in range(MAX_LACKS + 5):
        forge.node_of(graph.graph_def, f"n{number}", f"OpOfNobody{number}")
    forge.pack(graph.graph_def, 7)
    report = verify(edits.write(message, tmp_path / "model"))
    assert [finding.severity for finding in found(report, "SMC529")] == [Severity.ERROR]


def test_outputs_are_counted_not_listed():
    op = history().op("Split").definition(len(history().releases) - 1)
    outputs = arguments.outputs(op, {"num_split": 2**63 - 1})
    assert (
        outputs.total == 2**63 - 1
        and outputs.kind(2**62) == "T"
        and outputs.kind(2**63 - 1) is None
    )


def test_a_rule_that_a_limit_stops_is_an_error(tmp_path):
    verify_planted.PLANTED["SMC100"](tmp_path / "model")
    (finding,) = verify(tmp_path / "model").findings
    assert (finding.rule, finding.severity) == (
        "SMC100",
        Severity.ERROR,
    ) and "LimitError" in finding.message


def reshaping(count):
    """A model that gives two elements a shape of ``count`` ones."""
    message, graph = edits.new_model()
    given = verify_planted.node(graph, "x", "Placeholder")
    given.attr["dtype"].type = schema.DT_FLOAT
    given.attr["shape"].shape.dim.add(size=2)
    sizes = verify_planted.node(graph, "sizes", "Const")
    sizes.attr["dtype"].type = schema.DT_INT32
    tensor = sizes.attr["value"].tensor
    tensor.dtype = schema.DT_INT32
    tensor.tensor_shape.dim.add(size=count)
    tensor.int_val.append(1)
    node = verify_planted.node(graph, "y", "Reshape", "x", "sizes")
    node.attr["T"].type, node.attr["Tshape"].type = schema.DT_FLOAT, schema.DT_INT32
    return message


@pytest.mark.parametrize(
    ("count", "rule"),
    [
        (65, "SMC531"),
        (limits.SHAPE_INTEGERS, "SMC531"),
        (limits.SHAPE_INTEGERS + 1, "SMC100"),
        (2**40, "SMC100"),
    ],
)
def test_a_long_shape_is_compared_or_named(count, rule, tmp_path):
    report = verify(edits.write(reshaping(count), tmp_path / "model"))
    (finding,) = found(report, rule)
    assert rule == "SMC531" or finding.severity is Severity.ERROR


def test_a_padded_path_is_a_path(tmp_path):
    def edit(graph):
        forge.constant(graph.graph_def, "path", b"/" + b"./" * 1500 + b"etc/passwd")

    verify_planted.graph_edit("half_plus_two", edit)(tmp_path / "model")
    assert found(verify(tmp_path / "model"), "SMC413")


def test_what_a_fingerprint_was_not_compared_with_is_named(tmp_path, monkeypatch):
    verify_planted.PLANTED["SMC107"](tmp_path / "model")
    monkeypatch.setattr(file, "MAX_HASHED", 0)
    (finding,) = found(verify(tmp_path / "model"), "SMC107")
    assert "not compared with" in finding.message


def chain(nodes, first, last, count):
    """``count`` Identities between two nodes."""
    for number in range(count):
        node = nodes.add(
            name=f"{last}_{number}",
            op="Identity",
            input=[first if not number else f"{last}_{number - 1}"],
        )
        node.attr["T"].type = schema.DT_RESOURCE
    return f"{last}_{count - 1}"


def test_a_long_chain_before_an_assignment_is_followed():
    """It was followed for 10,000 nodes, and then taken for no assignment."""
    _, graph = edits.new_model()
    verify_planted.node(graph, "handle", "VarHandleOp")
    last = chain(graph.graph_def.node, "handle", "same", 10_001)
    verify_planted.node(graph, "assign", "AssignVariableOp", last, "value")
    view = GraphView(graph)
    assert assignments.Assignments(view.library, view.main.by_name).assigned(
        view.reached(["assign"])
    ) == {"handle"}


def test_assignments_have_a_limit_that_is_named(monkeypatch):
    monkeypatch.setattr(limits, "ASSIGNMENT_NODES", 100)
    with pytest.raises(LimitError, match="too many nodes"):
        test_a_long_chain_before_an_assignment_is_followed()


@pytest.mark.parametrize("count", [1, 99, 101, 5000])
def test_a_returned_handle_is_found_behind_any_number_of_identities(count):
    library = schema.FunctionDefLibrary()
    function = library.function.add()
    function.signature.name = "make"
    function.signature.output_arg.add(name="out")
    function.node_def.add(name="list", op="EmptyTensorList")
    last = "list:handle:0"
    for number in range(count):
        function.node_def.add(name=f"i{number}", op="Identity", input=[last])
        last = f"i{number}:output:0"
    function.ret["out"] = last
    assert ReturnedHandles(library)._find("make", 0).node.name == "list"
    function.node_def[1].input[:] = [last]  # a circle
    assert ReturnedHandles(library)._find("make", 0) is None


def test_a_saver_of_too_many_names_is_refused():
    node = schema.NodeDef(name="names", op="Const")
    tensor = node.attr["value"].tensor
    tensor.dtype = schema.DT_STRING
    tensor.tensor_shape.dim.add(size=2**40)
    tensor.string_val.append(b"x")
    with pytest.raises(LimitError, match="names"):
        slim_savers._texts(node)


def test_a_node_that_a_collection_names_is_kept_however_long_its_name():
    _, graph = edits.new_model()
    name = "n" * 5000
    graph.collection_def["of somebody"].bytes_list.value.append(name.encode())
    assert name in {root.node for root in slim_graph._collections(graph)}


def test_functions_beyond_those_that_are_told_are_told_together(tmp_path, monkeypatch):
    monkeypatch.setattr(compat, "MAX_FUNCTIONS", 0)
    (graph,) = schema.parse(
        schema.SavedModel, (forge.SEEDS / "fn_namedtuples.pb").read_bytes()
    ).meta_graphs
    names = [name for name, _ in compat._Asker(graph, [], history())._functions()]
    assert names == ["1 more functions"]


def test_compat_does_not_predict_where_a_limit_stops_a_rule(tmp_path):
    """A restore op of 2^60 calls: nobody can say which values it takes."""
    bombs.doubling_calls(tmp_path / "model")
    (found,) = obstacles(layout.read(tmp_path / "model"))
    assert any("LimitError" in reason for reason in found.unknown("session", "load"))
