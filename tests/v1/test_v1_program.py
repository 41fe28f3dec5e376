"""TF 1.x MetaGraphs as programs of functions (V1-01..V1-12), on protos alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from op_registry import op_def

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.graph.argument_names import argument_name
from reference_impl.graph.edges import Edge, parse_input
from reference_impl.graph.node_index import Graph
from reference_impl.graph.unique_names import UniqueNames
from reference_impl.v1.reading.extract import UnfedPlaceholderError
from reference_impl.v1.reading.program import Program

FLOAT, INT32, STRING, BOOL, RESOURCE = 1, 3, 7, 10, 20
FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


class Builder:
    """Writes a MetaGraphDef node by node."""

    def __init__(self):
        self.meta_graph = schema.MetaGraphDef()
        self._op("VariableV2", (), [("ref", "dtype")], stateful=True)
        self._op("Placeholder", (), [("output", "dtype")])
        self._op("Assign", (), [("output_ref", "T")])
        self._op("AssignAdd", (), [("output_ref", "T")])
        self._op("Add", (), [("z", "T")])
        self._op("RestoreV2", (), [("tensors", "list:dtypes")], stateful=True)
        self._op("Switch", (), [("output_false", "T"), ("output_true", "T")])
        self._op("RefSwitch", (), [("output_false", "T"), ("output_true", "T")])
        self._op("HashTable", (), [("table_handle", STRING)], stateful=True)
        self._op("LookupTableFind", (), [("values", "Tout")])
        self._op("TensorArrayV3", (), [("handle", RESOURCE), ("flow", FLOAT)], stateful=True)

    def _op(self, name, inputs, outputs, stateful=False):
        op = self.meta_graph.meta_info_def.stripped_op_list.op.add(name=name, is_stateful=stateful)
        for output, kind in outputs:
            if isinstance(kind, int):
                op.output_arg.add(name=output, type=kind)
            elif kind.startswith("list:"):
                op.output_arg.add(name=output, type_list_attr=kind[5:])
            else:
                op.output_arg.add(name=output, type_attr=kind)

    def node(self, name, op, *inputs, **types):
        node = self.meta_graph.graph_def.node.add(name=name, op=op, input=inputs)
        for key, value in types.items():
            node.attr[key].type = value
        return node

    def variable(self, name="v"):
        return self.node(name, "VariableV2", dtype=FLOAT)

    def signature(self, key="serving_default", inputs=None, outputs=None):
        definition = self.meta_graph.signature_def[key]
        for name, tensor in (inputs or {}).items():
            definition.inputs[name].name = tensor
            definition.inputs[name].dtype = FLOAT
        for name, tensor in (outputs or {}).items():
            definition.outputs[name].name = tensor
            definition.outputs[name].dtype = FLOAT

    def program(self):
        return Program(self.meta_graph, "saved_model.pb", op_def)


def nodes(extracted):
    return {node.name: node for node in extracted.function.node_def}


def test_a_signature_becomes_a_function_of_its_feeds_with_the_variables_as_captures():
    build = Builder()
    build.node("x", "Placeholder", dtype=FLOAT)
    build.variable("scope/v")
    build.node("scope/v/read", "Identity", "scope/v", T=FLOAT)
    build.node("y", "Add", "x", "scope/v/read", T=FLOAT)
    build.node("unused", "Add", "x", "x", T=FLOAT)
    build.signature(inputs={"x": "x:0"}, outputs={"y": "y:0"})
    extracted = build.program().signature_function("serving_default")
    assert [argument.name for argument in extracted.function.signature.input_arg] == [
        "x",
        "scope_v",
    ]
    assert [argument.type for argument in extracted.function.signature.input_arg] == [
        FLOAT,
        RESOURCE,
    ]
    assert extracted.captures == ("scope/v",)
    assert set(nodes(extracted)) == {"scope/v/read", "y"}
    assert list(nodes(extracted)["y"].input) == ["x", "scope/v/read:value:0"]
    assert dict(extracted.function.ret) == {"y_0": "y:z:0"}


def test_an_update_hands_on_the_variable_to_be_read_after_it():
    build = Builder()
    build.variable()
    build.node("one", "Placeholder", dtype=FLOAT)
    build.node("add", "AssignAdd", "v", "one", T=FLOAT)
    build.node("sum", "Add", "add", "one", T=FLOAT)
    build.signature(inputs={"x": "one:0"}, outputs={"sum": "sum:0", "raw": "add:0"})
    inside = nodes(build.program().signature_function("serving_default"))
    assert inside["add"].op == "AssignAddVariableOp"
    read = inside["sum/ReadVariableOp"]
    assert list(read.input) == ["v", "^add"]
    assert list(inside["add/ReadVariableOp"].input) == ["v", "^add"], (
        "a fetched reference is fetched as its value"
    )


def test_an_implicit_read_waits_for_the_control_inputs_of_its_reader():
    build = Builder()
    build.variable()
    build.node("one", "Placeholder", dtype=FLOAT)
    build.node("add", "AssignAdd", "v", "one", T=FLOAT)
    build.node("later", "Add", "v", "one", "^add", T=FLOAT)
    build.signature(inputs={"x": "one:0"}, outputs={"later": "later:0"})
    inside = nodes(build.program().signature_function("serving_default"))
    assert list(inside["later/ReadVariableOp"].input) == ["v", "^add"]
    assert list(inside["later"].input) == ["later/ReadVariableOp:value:0", "x", "^add"]


def test_an_implicit_read_waits_for_the_data_of_its_reader_too():
    """A session follows a reference when the node runs: after everything that computes its other
    inputs
    """
    build = Builder()
    build.variable()
    build.node("one", "Placeholder", dtype=FLOAT)
    build.node("add", "AssignAdd", "v", "one", T=FLOAT)
    build.node("waits", "Identity", "one", "^add", T=FLOAT)
    build.node("y", "Add", "waits", "v", T=FLOAT)
    build.signature(inputs={"x": "one:0"}, outputs={"y": "y:0"})
    build.signature("cut", inputs={"waits": "waits:0"}, outputs={"y": "y:0"})
    program = build.program()
    assert list(nodes(program.signature_function("serving_default"))["y/ReadVariableOp"].input) == [
        "v",
        "^waits",
    ]
    cut = nodes(program.signature_function("cut"))
    assert set(cut) == {"y", "y/ReadVariableOp"} and list(cut["y/ReadVariableOp"].input) == ["v"], (
        "what is fed is there"
    )


def test_identity_of_an_updated_variable_shows_the_update_as_the_shared_buffer_did():
    build = Builder()
    build.variable()
    build.node("one", "Placeholder", dtype=FLOAT)
    build.node("v/read", "Identity", "v", T=FLOAT)
    build.node("set", "Assign", "v", "one", T=FLOAT)
    build.node("after", "Add", "v/read", "one", "^set", T=FLOAT)
    build.signature(inputs={"x": "one:0"}, outputs={"after": "after:0"})
    inside = nodes(build.program().signature_function("serving_default"))
    assert "^set" in inside["after/ReadVariableOp"].input
    assert inside["after"].input[0] == "after/ReadVariableOp:value:0"


def test_a_reference_through_a_switch_travels_as_the_handle():
    build = Builder()
    build.variable()
    build.node("p", "Placeholder", dtype=BOOL)
    build.node("switch", "RefSwitch", "v", "p", T=FLOAT)
    build.node("y", "Add", "switch:1", "switch:1", T=FLOAT)
    build.signature(inputs={"p": "p:0"}, outputs={"y": "y:0"})
    made = build.program().signature_function("serving_default")
    assert made.captures == ("v",)
    (taken,) = [
        function
        for function in made.functions
        if any(node.name == "y" for node in function.node_def)
    ]
    reads = [node for node in taken.node_def if node.op == "ReadVariableOp"]
    handles = {argument.name for argument in taken.signature.input_arg if argument.type == RESOURCE}
    assert reads and {tuple(read.input) for read in reads} == {(handle,) for handle in handles}
    assert all(read.attr["dtype"].type == FLOAT for read in reads)


def test_v1_tables_become_resources_and_per_call_resources_stay_inside():
    build = Builder()
    build.node("table", "HashTable", key_dtype=STRING, value_dtype=FLOAT).attr[
        "shared_name"
    ].s = b"t"
    build.node("k", "Placeholder", dtype=STRING)
    build.node("size", "Placeholder", dtype=INT32)
    build.node("find", "LookupTableFind", "table", "k", "d", Tin=STRING, Tout=FLOAT)
    build.node("d", "Placeholder", dtype=FLOAT)
    build.node("array", "TensorArrayV3", "size", dtype=FLOAT)
    build.signature(
        inputs={"k": "k:0", "d": "d:0", "size": "size:0"},
        outputs={"found": "find:0", "flow": "array:1"},
    )
    program = build.program()
    assert program.resources == ("table",)
    extracted = program.signature_function("serving_default")
    assert extracted.captures == ("table",)
    assert nodes(extracted)["find"].op == "LookupTableFindV2"
    assert "array" in nodes(extracted)
    assert nodes(program.create_function("table"))["table"].op == "HashTableV2"


def test_an_unfed_placeholder_is_named_only_when_its_signature_is_asked_for():
    build = Builder()
    build.node("x", "Placeholder", dtype=FLOAT)
    build.node("forgotten", "Placeholder", dtype=FLOAT)
    build.node("y", "Add", "x", "forgotten", T=FLOAT)
    build.signature(inputs={"x": "x:0"}, outputs={"y": "y:0"})
    build.signature("good", inputs={"x": "x:0"}, outputs={"y": "x:0"})
    program = build.program()
    assert dict(program.signature_function("good").function.ret) == {"y_0": "x"}
    with pytest.raises(UnfedPlaceholderError, match="forgotten"):
        program.signature_function("serving_default")


def test_feeding_the_middle_of_a_graph_cuts_it_there():
    build = Builder()
    build.node("x", "Placeholder", dtype=FLOAT)
    build.node("a", "Add", "x", "x", T=FLOAT)
    build.node("b", "Add", "a", "a", T=FLOAT)
    build.signature(inputs={"mid": "a:0"}, outputs={"b": "b:0"})
    extracted = build.program().signature_function("serving_default")
    assert set(nodes(extracted)) == {"b"}
    assert list(nodes(extracted)["b"].input) == ["mid", "mid"]


def test_two_keys_for_one_tensor_are_two_arguments_of_which_the_first_counts():
    build = Builder()
    build.node("x", "Placeholder", dtype=FLOAT)
    build.node("y", "Add", "x", "x", T=FLOAT)
    build.signature(inputs={"b": "x:0", "a": "x:0"}, outputs={"y": "y:0"})
    extracted = build.program().signature_function("serving_default")
    assert [argument.name for argument in extracted.function.signature.input_arg] == ["a", "b"]
    assert list(nodes(extracted)["y"].input) == ["a", "a"]


@pytest.mark.parametrize(
    ("fault", "error", "says"),
    [
        ("dangling", errors.MalformedError, "nowhere"),
        ("twice", errors.DuplicateKeyError, "x"),
        ("no_output", errors.MalformedError, "output 3"),
        ("unknown_op", errors.MissingKeyError, "Mystery"),
        ("no_attr", errors.MalformedError, "'T'"),
    ],
)
def test_broken_graphs_are_refused_by_name(fault, error, says):
    build = Builder()
    build.node("x", "Placeholder", dtype=FLOAT)
    if fault == "dangling":
        build.node("y", "Add", "x", "nowhere", T=FLOAT)
    elif fault == "twice":
        build.node("x", "Placeholder", dtype=FLOAT)
    elif fault == "no_output":
        build.node("n", "Add", "x", "x", T=FLOAT)
        build.node("y", "Add", "x", "n:3", T=FLOAT)
    elif fault == "unknown_op":
        build.node("z", "Mystery", "x")
        build.node("y", "Add", "z", "x", T=FLOAT)
    else:
        build.node("y", "Add", "x", "x")
    build.signature(inputs={"in": "other:0"}, outputs={"y": "y:0"})
    if fault not in ("dangling", "twice"):
        build.signature(inputs={"in": "x:0"}, outputs={"y": "y:0"})
    with pytest.raises(error, match=says):
        build.program().signature_function("serving_default")


def test_a_chain_of_a_hundred_thousand_updates_needs_no_recursion():
    build = Builder()
    build.variable()
    build.node("x", "Placeholder", dtype=FLOAT)
    previous = "v"
    for index in range(20_000):
        build.node(f"a{index}", "AssignAdd", previous, "x", T=FLOAT)
        previous = f"a{index}"
    build.signature(inputs={"x": "x:0"}, outputs={"y": previous})
    extracted = build.program().signature_function("serving_default")
    assert len(extracted.function.node_def) == 20_001
    assert list(nodes(extracted)["a19999"].input) == ["v", "x", "^a19998"]


def test_a_cycle_of_references_ends():
    build = Builder()
    build.node("a", "Assign", "b", "b", T=FLOAT)
    build.node("b", "Assign", "a", "a", T=FLOAT)
    build.variable()
    build.signature(outputs={"y": "a:0"})
    # No variable is behind it: the ops stay as they are, and TensorFlow refuses the cycle when the
    # function is built.
    assert {
        node.op for node in nodes(build.program().signature_function("serving_default")).values()
    } == {"Assign"}


def test_restore_and_init_are_functions():
    build = Builder()
    build.variable()
    build.node("save/Const", "Placeholder", dtype=STRING)
    build.node("names", "Placeholder", dtype=STRING)
    restore = build.node("save/RestoreV2", "RestoreV2", "save/Const")
    restore.attr["dtypes"].list.type.append(FLOAT)
    build.node("save/Assign", "Assign", "v", "save/RestoreV2", T=FLOAT)
    build.node("save/all", "NoOp", "^save/Assign")
    build.node("init", "NoOp")
    build.meta_graph.saver_def.restore_op_name = "save/all"
    build.meta_graph.saver_def.filename_tensor_name = "save/Const:0"
    program = build.program()
    assert program.init_function is None
    extracted = program.restore_function
    assert [argument.name for argument in extracted.function.signature.input_arg] == ["prefix", "v"]
    assert dict(extracted.function.control_ret) == {"save_all": "save/all"}
    assert nodes(extracted)["save/Assign"].op == "AssignVariableOp"
    build.meta_graph.collection_def["legacy_init_op"].node_list.value.append("init")
    assert dict(build.program().init_function.function.control_ret) == {"init": "init"}


@pytest.mark.parametrize("text", ["a", "a:0", "a:12", "^a", "scope/a:1"])
def test_references_parse(text):
    ref = parse_input(text)
    assert parse_input(ref.text) == ref


def test_argument_names_are_legal_and_unique():
    assert [argument_name(text) for text in ("X", "a b/ç", "0x", "_p", "")] == [
        "x",
        "a_b__",
        "arg_0x",
        "arg_p",
        "arg_",
    ]
    names = UniqueNames({"x", "x_1"})
    assert [names.take("x"), names.take("x")] == ["x_2", "x_3"]


def test_ancestors_stop_at_feeds():
    build = Builder()
    build.node("x", "Placeholder", dtype=FLOAT)
    build.node("y", "Add", "x", "^x", T=FLOAT)
    graph = Graph(build.meta_graph.graph_def, "f")
    assert graph.ancestors([Edge("y")], stop=[Edge("x")]) == ["y"]


def graphs_of_tf1(case):
    """The MetaGraphs of a fixture that have no object graph, and their file."""
    path = FIXTURES / case / "model" / "saved_model.pb"
    saved_model = schema.parse(schema.SavedModel, path.read_bytes(), str(path))
    return path, [
        graph for graph in saved_model.meta_graphs if not graph.HasField("object_graph_def")
    ]


NAMES = sorted(path.parent.parent.name for path in FIXTURES.glob("*/model/saved_model.pb"))


@pytest.mark.parametrize("case", [name for name in NAMES if graphs_of_tf1(name)[1]])
def test_every_fixture_compiles_to_functions(case):
    path, graphs = graphs_of_tf1(case)
    assert graphs
    for meta_graph in graphs:
        program = Program(meta_graph, str(path), op_def)
        for key, signature in program.signatures.items():
            extracted = program.signature_function(key)
            assert len(extracted.results) == sum(
                len(output.tensors) for output in signature.outputs
            )
            assert not any(
                node.op in ("VariableV2", "Variable", "VarHandleOp")
                for node in extracted.function.node_def
            )
        for resource in program.resources:
            assert (
                program.create_function(resource).function.signature.output_arg[0].type == RESOURCE
            )
