"""Which checkpoint key ends in which variable, of genuine models and of ones that are hard to
follow.
"""

import model_edits as edits
import pytest

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from reference_impl.graph.node_defs import string_tensor
from reference_impl.views.model import restore_plan

CASES = sorted({path.parent.name for path in edits.FIXTURES.glob("*/model")} - {"v1_checkpoint"})
# Exported with a saver that goes by other names, or takes some of the variables.
OF_THEIR_OWN = {"custom_saver", "keras_experimental_export"}
_VARIABLES = ("VarHandleOp", "VariableV2", "Variable")


@pytest.mark.parametrize("case", CASES)
def test_what_is_restored(case):
    """The restore plan asks for exactly what the checkpoint holds, with its dtype; each target is a
    node that holds state.
    """
    model = layout.read(edits.fixture(case))
    wanted, stored = set(), {}
    if model.has_checkpoint:
        with BundleReader(model.checkpoint_prefix) as reader:
            stored = dict(reader.entries())
    for graph in model.saved_model.meta_graphs:
        nodes = {node.name: node for node in graph.graph_def.node}
        for item in restore_plan(graph):
            wanted.add(item.key)
            assert nodes[item.node].op == item.op
            assert item.op in _VARIABLES or "Table" in item.op or "Boosted" in item.op
            assert item.dtype == stored[item.key].dtype.name
            if item.fetch is not None:
                assert item.fetch.rpartition(":")[0] in nodes
            assert bool(item.fetch) == (item.op in _VARIABLES)
    stored.pop("_CHECKPOINTABLE_OBJECT_GRAPH", None)
    assert wanted == set(stored)


def without_saver(graph):
    bare = schema.MetaGraphDef()
    bare.CopyFrom(graph)
    bare.ClearField("saver_def")
    return bare


@pytest.mark.clause("V1-08")
@pytest.mark.parametrize("case", [case for case in CASES if case not in OF_THEIR_OWN])
def test_without_a_saver_variables_are_restored_by_name(case):
    """As the saver of all global variables does it, which fixtures were exported with: parts too,
    no local ones
    """
    graphs = layout.read(edits.fixture(case)).saved_model.meta_graphs
    assert graphs
    for graph in graphs:
        if graph.HasField("object_graph_def"):
            assert restore_plan(without_saver(graph)) == []
            continue
        by_op = [item for item in restore_plan(graph) if item.op in _VARIABLES]
        assert sorted(restore_plan(without_saver(graph)), key=str) == sorted(by_op, key=str)


@pytest.mark.clause("V1-08")
def test_without_a_saver_and_collections_every_variable_is_meant():
    graph = layout.read(edits.fixture("half_plus_two")).saved_model.meta_graphs[0]
    bare = without_saver(graph)
    bare.ClearField("collection_def")
    assert [(item.key, item.node, item.fetch) for item in restore_plan(bare)] == [
        ("a", "a", "a:0"),
        ("b", "b", "b:0"),
    ]
    (node,) = [node for node in bare.graph_def.node if node.name == "a"]
    del node.attr["dtype"]
    before = bare.SerializeToString(deterministic=True)
    with pytest.raises(errors.SavedModelError, match="dtype"):
        restore_plan(bare)
    assert (
        bare.SerializeToString(deterministic=True) == before
    )  # looking at a model does not change it
    broken = without_saver(graph)
    broken.collection_def["variables"].bytes_list.value.append(b"\xff")
    with pytest.raises(errors.MalformedError, match=r"file: .*cut off"):
        restore_plan(broken, "file")


def restoring(graph, *, nested=False, keys=("k",)):
    """A MetaGraph that restores like TF 2.x: a function assigns its arguments, a table in a
    function called by it.
    """
    nodes = graph.graph_def.node
    nodes.add(name="prefix", op="Placeholder")
    nodes.add(name="v", op="VarHandleOp")
    nodes.add(name="table", op="MutableHashTableV2")
    nodes.add(name="read", op="ReadVariableOp", input=["v"])
    start = nodes.add(
        name="restore", op="StatefulPartitionedCall", input=["prefix", "v", "table", "^v"]
    )
    start.attr["f"].func.name = "restore_all"
    graph.saver_def.restore_op_name = "restore"
    body = graph.graph_def.library.function.add()
    body.signature.name = "restore_all"
    for name in ("prefix", "variable", "table"):
        body.signature.input_arg.add(name=name)
    names = body.node_def.add(name="names", op="Const").attr["value"].tensor
    slices = body.node_def.add(name="slices", op="Const").attr["value"].tensor
    for tensor in (names, slices):
        tensor.dtype = schema.DT_STRING
        tensor.tensor_shape.dim.add(size=len(keys) + 2)
    names.string_val.extend([key.encode() for key in (*keys, "t-keys", "t-values")])
    slices.string_val.append(b"")  # stands for the others, too
    read = body.node_def.add(
        name="read", op="RestoreV2", input=["prefix", "names:output:0", "slices:output:0"]
    )
    read.attr["dtypes"].list.type.extend([schema.DT_FLOAT, schema.DT_STRING, schema.DT_INT64])
    body.node_def.add(name="copy", op="Identity", input=["read:tensors:0"])
    body.node_def.add(name="assign", op="AssignVariableOp", input=["variable", "copy:output:0"])
    inner = body.node_def.add(
        name="inner", op="PartitionedCall", input=["table", "read:tensors:1", "read:tensors:2"]
    )
    inner.attr["f"].func.name = "restore_all" if nested else "restore_table"
    table = graph.graph_def.library.function.add()
    table.signature.name = "restore_table"
    for name in ("handle", "a", "b"):
        table.signature.input_arg.add(name=name)
    table.node_def.add(name="import", op="LookupTableImportV2", input=["handle", "a", "b"])
    return graph


def test_restore_functions():
    found = restore_plan(restoring(edits.new_model()[1]))
    assert [(item.key, item.dtype, item.node, item.by, item.fetch) for item in found] == [
        ("k", "float32", "v", "AssignVariableOp", "read:0"),
        ("t-keys", "string", "table", "LookupTableImportV2", None),
        ("t-values", "int64", "table", "LookupTableImportV2", None),
    ]


@pytest.mark.parametrize("field", ["string_val", "tensor_content"])
def test_keys_in_every_form_of_a_constant(field):
    """The last listed key stands for those that follow; keys may also be written as content:
    lengths, then characters.
    """
    graph = restoring(edits.new_model()[1])
    names = (
        next(node for node in graph.graph_def.library.function[0].node_def if node.name == "names")
        .attr["value"]
        .tensor
    )
    names.ClearField("string_val")
    if field == "string_val":
        names.string_val.extend([b"k", b"t"])
    else:
        names.tensor_content = b"\1\1\1ktt"
    assert [item.key for item in restore_plan(graph)] == ["k", "t", "t"]


def test_a_restore_function_that_calls_itself():
    with pytest.raises(errors.LimitError, match="too deeply"):
        restore_plan(restoring(edits.new_model()[1], nested=True), "file")


def test_restore_functions_that_double():
    """2^60 calls: given up, not followed."""
    graph = edits.new_model()[1]
    for number in range(60):
        body = graph.graph_def.library.function.add()
        body.signature.name = f"f{number}"
        for name in "ab":
            body.node_def.add(name=name, op="PartitionedCall").attr[
                "f"
            ].func.name = f"f{number + 1}"
    graph.graph_def.node.add(name="start", op="PartitionedCall").attr["f"].func.name = "f0"
    graph.saver_def.restore_op_name = "start"
    with pytest.raises(errors.LimitError, match="too many"):
        restore_plan(graph)


def test_what_is_restored_is_not_known(tmp_path):
    """Names that are computed, inputs that are not there: left out."""
    graph = restoring(edits.new_model()[1], keys=())  # one name too few for three tensors
    assert [item.key for item in restore_plan(graph)] == ["t-keys", "t-values"]
    graph.graph_def.library.function[0].node_def[0].op = "ComputeNames"
    assert restore_plan(graph) == []
    assert restore_plan(edits.new_model()[1]) == []
    dangling = edits.new_model()[1]
    dangling.graph_def.node.add(name="a", op="Assign", input=["nowhere", "neither:3"])
    dangling.saver_def.restore_op_name = "a"
    assert restore_plan(dangling) == []
    endless = edits.new_model()[1]
    endless.graph_def.node.add(name="i", op="Identity", input=["i"])
    endless.graph_def.node.add(name="a", op="Assign", input=["i", "i"])
    endless.saver_def.restore_op_name = "a"
    with pytest.raises(errors.LimitError):
        restore_plan(endless)


def test_a_variable_is_read_without_waiting(tmp_path):
    """A read that waits for an assignment would run it when a session fetches the value."""
    graph = restoring(edits.new_model()[1])
    (read,) = [node for node in graph.graph_def.node if node.name == "read"]
    read.input.append("^restore")
    assert [item.fetch for item in restore_plan(graph)] == [None, None, None]


def test_a_table_that_a_function_makes():
    """A loaded table, saved again: its handle is the result of a call."""
    graph = restoring(edits.new_model()[1])
    (table,) = [node for node in graph.graph_def.node if node.name == "table"]
    table.op = "StatefulPartitionedCall"
    table.attr["f"].func.name = "make"
    make = graph.graph_def.library.function.add()
    make.signature.name = "make"
    make.signature.output_arg.add(name="handle")
    make.node_def.add(name="inside", op="MutableHashTableV2")
    make.ret["handle"] = "inside:table_handle:0"
    assert [(item.node, item.op) for item in restore_plan(graph)][1:] == [
        ("table", "StatefulPartitionedCall")
    ] * 2


def test_a_call_with_too_few_inputs():
    graph = restoring(edits.new_model()[1])
    (start,) = [node for node in graph.graph_def.node if node.name == "restore"]
    del start.input[1:]
    assert restore_plan(graph) == []


def test_only_what_the_restore_op_needs():
    """Another saver's assignments in the same graph are not part of it."""
    graph = edits.new_model()[1]
    nodes = graph.graph_def.node
    for scope in ("one", "two"):
        nodes.add(name=f"{scope}/v", op="VariableV2")
        names = nodes.add(name=f"{scope}/names", op="Const")
        names.attr["value"].tensor.CopyFrom(string_tensor(scope.encode()))
        read = nodes.add(name=f"{scope}/read", op="RestoreV2", input=["", f"{scope}/names"])
        read.attr["dtypes"].list.type.append(schema.DT_FLOAT)
        nodes.add(name=f"{scope}/assign", op="Assign", input=[f"{scope}/v", f"{scope}/read"])
        nodes.add(name=f"{scope}/all", op="NoOp", input=[f"^{scope}/assign"])
    graph.saver_def.restore_op_name = "two/all"
    assert [(item.key, item.node, item.fetch) for item in restore_plan(graph)] == [
        ("two", "two/v", "two/v:0")
    ]


def test_outputs_by_number_and_by_name():
    """IdentityN passes each input on; a call by op type names its outputs as the function does."""
    graph = edits.new_model()[1]
    nodes = graph.graph_def.node
    nodes.add(name="v", op="VarHandleOp")
    nodes.add(name="start", op="All", input=["v"])
    graph.saver_def.restore_op_name = "start"
    library = graph.graph_def.library
    pair = library.function.add()
    pair.signature.name = "Pair"
    for name in ("first", "second"):
        pair.signature.output_arg.add(name=name)
        constant = pair.node_def.add(name=f"name_{name}", op="Const")
        constant.attr["value"].tensor.CopyFrom(string_tensor(name.encode()))
        read = pair.node_def.add(name=name, op="RestoreV2", input=["", f"name_{name}:output:0"])
        read.attr["dtypes"].list.type.append(schema.DT_FLOAT)
        pair.ret[name] = f"{name}:tensors:0"
    body = library.function.add()
    body.signature.name = "All"
    body.signature.input_arg.add(name="handle")
    body.node_def.add(name="pair", op="Pair")
    body.node_def.add(name="both", op="IdentityN", input=["pair:first:0", "pair:second:0"])
    body.node_def.add(name="assign", op="AssignVariableOp", input=["handle", "both:output:1"])
    assert [(item.key, item.node) for item in restore_plan(graph)] == [("second", "v")]
