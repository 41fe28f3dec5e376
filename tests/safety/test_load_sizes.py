"""What a load makes that is larger than memory should be, where its size follows from constants."""

import pytest

from property_tests.attacks import forge, sizes
from property_tests.attacks.attempt import ATTACKS
from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.safety.known_tensors import OPS, PARTS
from reference_impl.safety.size_operands import BOUNDED, OPERANDS, UNMEASURED
from reference_impl.views.model import inspect
from savedmodel_tools.verify.findings import Severity
from savedmodel_tools.verify.run import verify

ATTACKS_BY_SIZE = [name for name, made in ATTACKS.items() if made.__module__ == sizes.__name__]


def findings(folder):
    return [item for item in verify(folder).findings if item.rule == "SMC601"]


@pytest.mark.parametrize("name", ATTACKS_BY_SIZE)
def test_verify_finds_what_a_load_makes(name, tmp_path):
    ATTACKS[name](tmp_path / "model")
    found = findings(tmp_path / "model")
    assert [item.severity for item in found] == [Severity.ERROR]
    assert "bytes" in found[0].message


@pytest.mark.parametrize("name", ATTACKS_BY_SIZE)
def test_inspect_names_it(name, tmp_path):
    ATTACKS[name](tmp_path / "model")
    (effect,) = [
        effect for graph in inspect(tmp_path / "model").meta_graphs for effect in graph.effects
    ]
    assert effect.kind == "takes memory"
    assert effect.at_load


@pytest.mark.parametrize("name", ATTACKS_BY_SIZE)
@pytest.mark.parametrize("choice", ["warn", "allow"])
def test_load_refuses_it(name, choice, tmp_path):
    pytest.importorskip("tensorflow")
    import reference_impl

    ATTACKS[name](tmp_path / "model")
    with pytest.raises(errors.LimitError, match=r"bytes") as caught:
        reference_impl.load(
            tmp_path / "model", options=reference_impl.LoadOptions(machine_ops=choice)
        )
    assert caught.value.limit == "LOAD_TENSOR_BYTES"
    assert caught.value.node


def test_a_higher_limit_lets_it_pass(tmp_path, monkeypatch):
    ATTACKS["fill_in_initializer"](tmp_path / "model")
    monkeypatch.setattr(limits, "LOAD_TENSOR_BYTES", 2**33)
    assert not findings(tmp_path / "model")


def test_what_fits_is_not_found(tmp_path, monkeypatch):
    """Half of the size of the attack, so that neither the tensor nor all together are too large."""
    monkeypatch.setattr(sizes, "GIGA", 400_000_000)
    for name in ("fill_in_initializer", "fill_by_captured_shape", "fill_at_init"):
        ATTACKS[name](tmp_path / name)
        assert not findings(tmp_path / name)


def nested(folder, depth):
    """A TF 1 model whose init op calls a function that calls a function, and so on."""
    message = forge.model()
    graph = message.meta_graphs[0]
    for number in range(depth):
        forge.function(
            graph, f"level_{number}", *([f"level_{number + 1}"] if number + 1 < depth else [])
        )
    forge.call(forge.node_of(graph.graph_def, "evil", "StatefulPartitionedCall"), "level_0")
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"
    forge.constant(graph.graph_def, "x", b"y")
    forge.signature(graph, kind=schema.DT_STRING)
    return forge.write(folder, message)


def test_what_is_too_deep_to_follow_is_said(tmp_path):
    assert not findings(nested(tmp_path / "some", 20))
    (found,) = findings(nested(tmp_path / "many", 200))
    assert found.severity is Severity.ERROR
    assert "too much" in found.message


# What is not measured
# --------------------------------------------------------------------------------------------------


def unmeasured(folder):
    return [item for item in verify(folder).findings if item.rule == "SMC605"]


def initialised(folder, build):
    """A TF 1 model whose init op waits for what `build` adds to the main graph."""
    message = forge.model()
    graph = message.meta_graphs[0]
    forge.node_of(graph.graph_def, "evil", "NoOp", f"^{build(graph.graph_def)}")
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"
    forge.constant(graph.graph_def, "x", b"y")
    forge.signature(graph, kind=schema.DT_STRING)
    return forge.write(folder, message)


def of_file(graph):
    """A tensor as large as the number in a file says."""
    forge.constant(graph, "path", b"number")
    forge.node_of(graph, "text", "ReadFile", "path")
    forge.node_of(graph, "count", "StringToNumber", "text").attr["out_type"].type = schema.DT_INT32
    return filled(graph, "count")


def of_checkpoint(graph):
    forge.constant(graph, "path", b"checkpoint")
    forge.constant(graph, "name", b"count")
    forge.constant(graph, "slices", b"")
    forge.node_of(graph, "count", "RestoreV2", "path", "name", "slices").attr[
        "dtypes"
    ].list.type.append(schema.DT_INT32)
    return filled(graph, "count")


def of_caller(graph):
    """A tensor as large as a placeholder says, which no load gives."""
    forge.node_of(graph, "count", "Placeholder").attr["dtype"].type = schema.DT_INT32
    return filled(graph, "count")


def of_caller_or_file(graph):
    """The same, but for a Merge that runs with the other input, too."""
    of_file(graph)
    forge.node_of(graph, "given", "Placeholder").attr["dtype"].type = schema.DT_INT32
    forge.node_of(graph, "either", "Merge", "given", "count").attr["N"].i = 2
    return filled(graph, "either", "merged")


def filled(graph, count, name="filled"):
    node = forge.node_of(
        graph, name, "Fill", count, forge.numbers(graph, f"{name}_one", 1, scalar=True)
    )
    node.attr["T"].type = node.attr["index_type"].type = schema.DT_INT32
    return name


def decoded(graph):
    forge.constant(graph, "image", b"an image")
    forge.node_of(graph, "decoded", "DecodePng", "image")
    return "decoded"


@pytest.mark.parametrize(
    ("build", "depends"),
    [
        (of_file, "input 0, whose value is not known before the load"),
        (of_checkpoint, "input 0, whose value is not known before the load"),
        (of_caller_or_file, "input 0, whose value is not known before the load"),
        (decoded, "what its input unpacks to"),
    ],
)
def test_a_size_that_is_not_followed_is_said(build, depends, tmp_path):
    found = unmeasured(initialised(tmp_path / "model", build))
    assert found
    assert {item.severity for item in found} == {Severity.ERROR}
    assert all(f"which depends on {depends}" in item.message for item in found)


def test_what_waits_for_a_feed_makes_nothing_at_load(tmp_path):
    assert not unmeasured(initialised(tmp_path / "model", of_caller))


def test_load_goes_on_where_a_size_is_not_followed(tmp_path):
    pytest.importorskip("tensorflow")
    import reference_impl

    model = initialised(tmp_path / "model", decoded)
    with pytest.raises(Exception, match=r"PNG|image") as caught:
        reference_impl.load(model)
    assert not isinstance(caught.value, errors.LimitError)


@pytest.mark.parametrize(("buckets", "large"), [(1 << 20, False), (1 << 30, True)])
def test_a_table_reserves_its_buckets(buckets, large, tmp_path):
    def table(graph):
        key = forge.numbers(graph, "key", -1, scalar=True)
        node = forge.node_of(graph, "table", "MutableDenseHashTableV2", key, key)
        node.attr["value_dtype"].type = schema.DT_INT64
        node.attr["initial_num_buckets"].i = buckets
        return "table"

    assert bool(findings(initialised(tmp_path / "model", table))) is large


def test_the_tables_of_ops_are_disjoint():
    known = [set(OPS) | PARTS, set(UNMEASURED), set(BOUNDED)]
    assert sum(map(len, known)) == len(set().union(*known))
    assert set(OPERANDS) <= set(OPS)
