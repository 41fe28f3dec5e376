"""What a model needs, against what genuine runtimes of 1.4 to 2.21 could and could not do with
it.
"""

import json

import pytest
import skew_models
from model_edits import FIXTURES
from packaging.specifiers import SpecifierSet
from skew_models import recorded

from reference_impl.format import schema
from savedmodel_tools.skew.history import history
from savedmodel_tools.skew.lacks import Use
from savedmodel_tools.skew.needs import (
    OBJECTS,
    SESSION,
    Walk,
    needs,
    to_json,
)

# What no registry tells: a request without a proper Example; kernels of 1.4 and 1.8; the v1 import
# of 2.0 to 2.3 and models without variables; a module without content; what 1.4 infers of shapes;
# the checkpoint; XLA_CPU, from which Python's wrapped graphs keep variables.
OTHER_REASONS = (
    "is required but could not be found",
    "Shape must be rank",
    "'NoneType' object is not subscriptable",
    "Cannot find 'main'",
    "module with `main`",
    "Checkpoint min consumer",
    "Cannot assign a device",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("models"), {}

    def parts(model):
        if model not in found:
            (graph,) = needs(skew_models.made(model, folder))
            found[model] = {part.name: part for part in graph.parts}
        return found[model]

    return parts


def observations():
    for consumer, model, step, error_class, message, versions in recorded():
        del error_class
        if consumer == "reference":
            continue  # it looks at ops when they are called, and adds nodes of its own
        for version in versions:
            yield consumer, model, step, message, version


def part_of(consumer, step, parts):
    if step != "load":
        return parts[step]
    return parts[OBJECTS if consumer == "tf2" else SESSION]


def harmless(consumer, step, version, kinds):
    """Where a runtime does without what it lacks, for now."""
    lazy = (
        consumer != "c_api" and step == "load" and kinds == {"missing_kernel"}
    )  # nothing runs while Python imports a graph
    ignored = kinds == {"unknown_attr"} and SpecifierSet(">=2.5").contains(
        version
    )  # and the answers may differ
    unchecked = (
        consumer == "v1_session" and step == "load" and version.startswith("1.4.")
    )  # 1.4 looks when it runs the graph
    unread = (
        kinds == {"op_version"} and step == "load"
    )  # the op reads it when its kernel is made, for the first call
    return lazy or ignored or unchecked or unread


@pytest.mark.parametrize("model", sorted({row[1] for row in recorded()}))
def test_what_is_predicted_is_what_the_runtimes_did(model, made):
    table = history()
    seen = set()
    for consumer, name, step, message, version in observations():
        if name != model:
            continue
        part = part_of(consumer, step, made(model))
        lacks = part.lacks[table.index(version)]
        seen.add(message is None)
        if message is None:
            assert not lacks or harmless(consumer, step, version, {lack.kind for lack in lacks}), (
                consumer,
                step,
                version,
                lacks,
            )
            continue
        unknown_kernels = version < "1.9" and "No OpKernel" in message
        assert lacks or unknown_kernels or any(text in message for text in OTHER_REASONS), (
            consumer,
            step,
            version,
            message,
        )
    assert seen


def test_both_answers_were_seen():
    rows = list(observations())
    assert (
        sum(row[3] is None for row in rows) > 300 and sum(row[3] is not None for row in rows) > 1000
    )


@pytest.mark.parametrize(
    "case", sorted(path.parent.name for path in FIXTURES.glob("*/provenance.json"))
)
def test_the_release_that_wrote_a_fixture_has_all_that_it_needs(case):
    written_by = json.loads((FIXTURES / case / "provenance.json").read_text())["producer"][
        "versions"
    ]["tensorflow"]
    table = history()
    for graph in needs(FIXTURES / case / "model"):
        for part in graph.parts:
            if part.name == OBJECTS:  # TensorFlow 2's loader
                continue
            if case.startswith("contrib"):
                assert part.members == () and "only" not in part.reasons[0][1][0].what
                assert "import tensorflow.contrib." in part.reasons[0][1][0].what
            else:
                assert table.index(written_by) in part.members, (graph.tags, part)


def only(graphs):
    (graph,) = graphs
    return {part.name: part for part in graph.parts}


def test_the_parts_of_a_model_are_told_apart(tmp_path):
    table = history()
    model = skew_models.model(tmp_path / "m", op="Relu", T="type:float32")
    skew_models.add_function(model, "lonely", "BesselJ0", T="type:float32")
    parts = only(needs(model))
    assert table.text(parts["signature serving_default"].members) == "1.4-"
    inner = only(
        needs(skew_models.model(tmp_path / "inner", op="BesselJ0", T="type:float32", inner=True))
    )
    # 1.12 and 1.13 look into a function when it is called.
    assert table.text(inner[SESSION].members) == "1.12-1.13,2.3-"
    assert table.text(inner["signature serving_default"].members) == "2.3-"


def test_what_decides_is_told_with_its_place(tmp_path):
    table = history()
    part = only(
        needs(skew_models.model(tmp_path / "m", op="BesselJ0", T="type:float32", inner=True))
    )["signature serving_default"]
    ((release, lacks),) = part.reasons
    assert table.releases[release].name == "2.2"
    assert [(lack.kind, lack.op) for lack in lacks] == [("unknown_op", "BesselJ0")]
    assert part.where(lacks[0]).startswith("node 'victim' of")


def test_a_kernel_that_went_decides_the_newest_release():
    (graph,) = needs(FIXTURES / "dtypes_removed_kernels" / "model")
    (session, *_) = graph.parts
    table = history()
    assert table.until(session.members) == "2.3"
    assert {lack.kind for _, lacks in session.reasons for lack in lacks} == {"missing_kernel"}
    assert table.until(session.reasons[0][1][0].members) == "2.3"


def test_an_attr_that_is_ignored_and_idle_does_not_count_one_that_matters_does(tmp_path):
    table = history()
    idle = skew_models.model(
        tmp_path / "idle", op="MatMul", inputs=("x", "x"), T="type:float32", grad_a=False
    )
    assert table.since(only(needs(idle))[SESSION].members) == "2.5"
    matters = skew_models.model(
        tmp_path / "matters", op="MatMul", inputs=("x", "x"), T="type:float32", grad_a=True
    )
    assert table.since(only(needs(matters))[SESSION].members) == "2.16"


def test_graph_versions_count(tmp_path):
    table = history()
    newer = skew_models.model(
        tmp_path / "newer", op="Relu", T="type:float32", producer=600, min_consumer=600
    )
    assert table.since(only(needs(newer))[SESSION].members) == "2.5"
    bad = skew_models.model(tmp_path / "bad", op="Relu", T="type:float32", bad=(2474,))
    assert table.until(only(needs(bad))[SESSION].members) == "2.20"


def test_a_form_with_another_number_of_inputs_counts(tmp_path):
    table = history()
    parts = only(needs(skew_models.model(tmp_path / "m", op="CrossReplicaSum", T="type:float32")))
    assert parts[SESSION].members == ()
    lists = {"op": "Pack", "inputs": ("x", "x", "x"), "T": "type:float32", "axis": 0}
    assert (
        table.text(
            only(needs(skew_models.model(tmp_path / "three", N=3, **lists)))[SESSION].members
        )
        == "1.4-"
    )
    assert only(needs(skew_models.model(tmp_path / "two", N=2, **lists)))[SESSION].members == ()
    call = {"op": "PartitionedCall", "inputs": ("x", "x"), "f": "func:nothing", "Tout": ["float32"]}
    two = skew_models.model(tmp_path / "call", Tin=["float32", "float32"], **call)
    assert table.since(only(needs(two))[SESSION].members) == "1.12"
    assert (
        only(needs(skew_models.model(tmp_path / "one", Tin=["float32"], **call)))[SESSION].members
        == ()
    )


def test_the_json_form(tmp_path):
    model = skew_models.model(tmp_path / "m", op="BesselJ0", T="type:float32")
    found = json.loads(json.dumps(to_json(needs(model), history())))
    (graph,) = found["meta_graphs"]
    assert (found["schema"], graph["tags"], graph["tensorflow_version"], graph["producer"]) == (
        1,
        ["serve"],
        "1.4.1",
        24,
    )
    session = next(part for part in graph["parts"] if part["name"] == SESSION)
    assert (session["releases"], session["min"], session["max"]) == ("2.3-", "2.3", None)
    (reason,) = session["reasons"]
    assert reason["release"] == "2.2"
    (lack,) = reason["lacks"]
    assert (lack["kind"], lack["op"], lack["releases"]) == ("unknown_op", "BesselJ0", "2.3-")


def test_an_op_with_more_inputs_than_a_number_may_ask_for(tmp_path):
    call, many = {"op": "PartitionedCall", "f": "func:nothing", "Tout": ["float32"]}, 100_001
    model = skew_models.model(
        tmp_path / "call", inputs=("x",) * many, Tin=["float32"] * many, **call
    )
    assert history().since(only(needs(model))[SESSION].members) == "1.12"


def test_the_attrs_of_a_node_are_looked_at_in_one_order():
    """A map of a message has another order in each process, and the first attr that a release lacks
    is the one named.
    """
    node = schema.NodeDef(name="n", op="While")
    for name in "hdbgfaec":
        node.attr[name].i = 1
    assert list(Use(node, history().op("While")).attrs) == list("abcdefgh")


def test_functions_with_the_same_ops_are_asked_once(monkeypatch):
    """Each signature runs all that is imported: what its cost depends on is how many different uses
    of ops there are.
    """
    graph = schema.MetaGraphDef()
    for number in range(50):
        function = graph.graph_def.library.function.add()
        function.signature.name = f"f{number}"
        for op in ("Mul", "Add"):
            node = function.node_def.add(name=op, op=op, input=["x", "x"])
            node.attr["T"].type = schema.DT_FLOAT
    walk = Walk(graph, history())
    assert len(walk.everything) == 2
    assert len(walk.bodies_of(walk.bodies)) == 2
    asked = []
    monkeypatch.setattr(walk, "_lacks", lambda key, *others: asked.append(key) or ())
    parts = [
        walk.part(f"signature s{number}", walk.everything, walk.everything[:1], releases=[0])
        for number in range(20)
    ]
    assert len(parts) == 20
    assert len(asked) == 2 + 20  # what is imported once, what is run for each
