"""What TensorFlow computes while it imports a graph: `inspect` names it and `verify` reports an
error.
"""

import os
from pathlib import Path

import fresh_tensorflow
import pytest

from property_tests.attacks import forge, imports
from reference_impl.format import schema
from reference_impl.safety import folding_tables
from reference_impl.safety.op_effects import OP_EFFECTS
from reference_impl.views.model import inspect
from savedmodel_tools.skew.history import history
from savedmodel_tools.verify.findings import Severity
from savedmodel_tools.verify.run import verify

SUPPORT = Path(__file__).parents[1] / "support"
WRITING = ["write_at_import", "write_at_import_of_function"]
TAKING = ["memory_at_import", "outputs_at_import"]


def found(folder):
    return [effect for graph in inspect(folder).meta_graphs for effect in graph.effects]


def definitions(name):
    op = history().op(name)
    return [op.definition(index) for index in op.members]


def test_the_tables_follow_from_the_op_history():
    names = history().names
    stateless = {name for name in names if not all(op.stateful for op in definitions(name))}
    assert folding_tables.stateless_ops() == stateless
    counts = {}
    for name in names:
        sides = [op.signature.partition("->")[2] for op in definitions(name)]
        kinds = [item.strip().partition(": ")[2] for side in sides for item in side.split(", ")]
        counted = {kind.removeprefix("Ref(").partition("*")[0] for kind in kinds if "*" in kind}
        counts.update({name: sorted(counted)} if counted else {})
    assert {
        op: sorted(attributes) for op, attributes in folding_tables.output_counts().items()
    } == counts
    assert set(folding_tables.asked_inputs()) <= set(names)


def test_effects_of_ops_without_state_are_known():
    """These run where a graph is imported. The op history says which they are."""
    acting = set(OP_EFFECTS) & folding_tables.stateless_ops()
    assert {
        *[
            "Abort",
            "CacheDataset",
            "DebugIdentity",
            "DebugNanCount",
            "DebugNumericSummary",
            "DecodeProtoV2",
            "EncodeProto",
        ],
        *[
            "GenerateVocabRemapping",
            "ImmutableConst",
            "MatchingFiles",
            "ReadFile",
            "WriteFile",
            "XlaCustomCall",
            "XlaCustomCallV2",
        ],
    } <= acting


@pytest.mark.parametrize("attack", [*WRITING, *TAKING])
def test_verify_and_inspect_tell(tmp_path, attack):
    getattr(imports, attack)(tmp_path / "model")
    (effect,) = found(tmp_path / "model")
    assert effect.kind == ("writes files" if attack in WRITING else "takes memory")
    assert effect.at_load == ("the import of the graph",)
    assert effect.function == (None if attack == "write_at_import" else "__inference_unused")
    errors = [
        finding.rule
        for finding in verify(tmp_path / "model").findings
        if finding.severity == Severity.ERROR
    ]
    assert errors == (["SMC310", "SMC601"] if attack == "outputs_at_import" else ["SMC601"])


@pytest.mark.tensorflow
@pytest.mark.parametrize("attack", WRITING)
def test_tensorflow_writes_and_our_load_does_not(tmp_path, attack):
    import reference_impl

    getattr(imports, attack)(tmp_path / "model")
    reference_impl.load(tmp_path / "model")
    assert not (tmp_path / "outside" / "done").exists()
    code = "import sys, tensorflow as tf\ntf.saved_model.load(sys.argv[1])\n"
    fresh_tensorflow.run(code, tmp_path / "model")
    assert (tmp_path / "outside" / "done").exists()


@pytest.mark.tensorflow
@pytest.mark.parametrize("op", ["Reshape", "Fill", "Range", "StridedSlice", "MatMul", "AddV2"])
def test_the_inputs_that_shape_functions_ask_for(op):
    program = (
        f"import sys\nsys.path.insert(0, {str(SUPPORT)!r})\nimport"
        " asked_inputs\nasked_inputs.main(sys.argv[1:])\n"
    )
    measured = fresh_tensorflow.printed(program, op)
    assert sorted(measured.split()) == sorted(
        f"{op}:{place}" for place in folding_tables.asked_inputs().get(op, ())
    )


def model(tmp_path, add, function=False):
    """Return the effects of a model with the nodes that `add` makes in its main graph or a function
    of one argument.
    """
    message = forge.model()
    graph = message.meta_graphs[0].graph_def
    body = graph
    if function:
        body = imports.unused_function(message)
        body.signature.input_arg.add(name="argument", type=schema.DT_INT32)
        call = forge.node_of(graph, "call", "PartitionedCall", forge.numbers(graph, "given", 1))
        forge.call(call, "__inference_unused")
    add(body)
    return [(effect.op, effect.kind) for effect in found(forge.write(tmp_path / "model", message))]


def debugged(body, *inputs):
    node = forge.node_of(body, "evil", "DebugIdentity", *inputs)
    node.attr["debug_urls"].list.s.append(b"file://" + os.fsencode("/tmp/evil"))


AT_IMPORT = [("DebugIdentity", "writes files")]


def test_a_value_behind_a_placeholder_is_not_computed(tmp_path):
    def add(body):
        forge.node_of(body, "x", "Placeholder")
        debugged(body, "x")
        imports.reshape(body, forge.numbers(body, "value", 1), "evil")

    model(tmp_path, add)
    assert [effect.at_load for effect in found(tmp_path / "model")] == [()]


def test_nor_is_one_that_nothing_asks_for(tmp_path):
    def add(body):
        debugged(body, forge.numbers(body, "value", 1))
        imports.reshape(body, "evil", forge.numbers(body, "shape", 1))

    model(tmp_path, add)
    assert [effect.at_load for effect in found(tmp_path / "model")] == [()]


def test_a_part_of_a_shape_is_computed_where_the_rest_is_not_known(tmp_path):
    def add(body):
        forge.node_of(body, "x", "Placeholder")
        debugged(body, forge.numbers(body, "value", 1))
        forge.node_of(body, "shape", "Pack", "x", "evil").attr["N"].i = 2
        imports.reshape(body, "value", "shape")

    model(tmp_path, add)
    assert [effect.at_load for effect in found(tmp_path / "model")] == [
        ("the import of the graph",)
    ]


def test_arguments_of_functions_are_followed_into_them(tmp_path):
    def add(body):
        debugged(body, "argument")
        imports.reshape(body, forge.numbers(body, "value", 1), "evil:output:0")

    model(tmp_path, add, function=True)
    assert [effect.at_load for effect in found(tmp_path / "model")] == [
        ("the import of the graph",)
    ]


def test_and_what_functions_ask_for_is_followed_out_of_them(tmp_path):
    message = forge.model()
    graph = message.meta_graphs[0].graph_def
    body = imports.unused_function(message)
    body.signature.input_arg.add(name="argument", type=schema.DT_INT32)
    imports.reshape(body, forge.numbers(body, "value", 1), "argument")
    debugged(graph, forge.numbers(graph, "given", 1))
    forge.call(forge.node_of(graph, "call", "PartitionedCall", "evil"), "__inference_unused")
    (effect,) = found(forge.write(tmp_path / "model", message))
    assert effect.at_load == ("the import of the graph",)


def filled(body, sizes):
    forge.node_of(body, "filled", "Fill", sizes, forge.numbers(body, "one", 1, scalar=True))
    imports.reshape(body, forge.numbers(body, "value", 1), "filled")


def doubled(body):
    last = forge.numbers(body, "first", *range(100))
    axis = forge.numbers(body, "axis", 0, scalar=True)
    for number in range(30):
        last = forge.node_of(body, f"twice_{number}", "ConcatV2", last, last, axis).name
    imports.reshape(body, forge.numbers(body, "value", 1), last)


def powered(body):
    forge.numbers(body, "ten", 10)
    forge.node_of(body, "power", "Pow", "ten", "ten")
    filled(body, "power")


@pytest.mark.parametrize(
    ("add", "op"),
    [
        (lambda body: filled(body, forge.numbers(body, "sizes", 1000, 1000)), None),
        (lambda body: filled(body, forge.numbers(body, "sizes", 40_000, 40_000)), "Fill"),
        (doubled, "ConcatV2"),
        (powered, "Fill"),
    ],
)
def test_the_bounds_of_sizes(tmp_path, add, op):
    assert model(tmp_path, add) == ([(op, "takes memory")] if op else [])


def test_a_circle_and_a_deep_chain_end(tmp_path):
    def add(body):
        last = forge.numbers(body, "first", 1)
        for number in range(20_000):
            last = forge.node_of(body, f"next_{number}", "Identity", last).name
        imports.reshape(body, forge.numbers(body, "value", 1), last)
        forge.node_of(body, "one", "Identity", "other")
        forge.node_of(body, "other", "Identity", "one")
        forge.node_of(body, "again", "Reshape", "first", "one")

    assert model(tmp_path, add) == []
