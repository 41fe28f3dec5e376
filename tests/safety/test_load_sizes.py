"""What a load makes that is larger than memory should be, where its size follows from constants."""

import pytest

from compat_matrix.models.verify.findings import Severity
from compat_matrix.models.verify.run import verify
from property_tests.attacks import forge, sizes
from property_tests.attacks.attempt import ATTACKS
from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.views.model import inspect

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
    assert "too much to follow" in found.message
