"""Loaded models and saved functions under tf.distribute (issue 16: 14)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fresh_tensorflow
import pytest

pytestmark = pytest.mark.tensorflow

READERS = ("tf", "reference")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("tensorflow")
    pytest.importorskip("tensorflow_hub")
    script = Path(__file__).parents[1] / "support" / "strategy_parts.py"
    return json.loads(fresh_tensorflow.printed(script, tmp_path_factory.mktemp("strategies")))


@pytest.mark.parametrize("scope", ["inside", "outside"])
@pytest.mark.parametrize(
    ("kind", "value"), [("SUM", 3.0), ("MEAN", 1.5), ("ONLY_FIRST_REPLICA", 1.0)]
)
def test_DIST_04_an_update_of_a_local_variable_is_traced_by_save(found, kind, value, scope):
    """Of a sum as well, which no strategy updates outside of replicas.

    The numbers are those of `tf.saved_model.save`.
    """
    for reader in READERS:
        assert found["updated_at_save"][f"{kind} {scope} {reader}"] == [
            value,
            value + 1.0,
            value + 10.0,
        ]


@pytest.mark.parametrize("reader", READERS)
def test_A11_merged_functions_capture_a_variable_once_so_that_XLA_compiles_them(found, reader):
    merged = found["merged"]
    assert {name: merged[f"{name} {reader}"] for name in ("read", "nested", "update")} == {
        "read": 4.0,
        "nested": 4.0,
        "update": 6.0,
    }
    assert all(merged[f"{name} {reader} once"] for name in ("read", "nested", "update"))
    assert merged[f"signature {reader}"] == 4.0


@pytest.mark.parametrize("scope", ["inside", "outside"])
def test_GOAL_06_a_model_around_a_loaded_one_is_saved_in_and_outside_of_the_scope(found, scope):
    for reader in READERS:
        assert found["wrapped"][f"{scope} {reader}"] == [8.0, 1.0]


def test_DIST_01_a_loaded_function_outside_of_replicas_reads_what_is_the_same_in_all(found):
    called = found["called"]
    assert called["read"] == 3.0 and called["replicas"] == [3.0, 3.0]


@pytest.mark.parametrize("what", ["update", "local", "traced update"])
def test_DIST_01_a_loaded_function_outside_of_replicas_updates_nothing_by_halves(found, what):
    assert (
        "needs every replica" in found["called"][what] and "strategy.run" in found["called"][what]
    )
    assert found["called"]["value"] == 1.0


def test_DIST_01_a_hub_layer_is_built_trained_and_saved_in_a_scope(found):
    layer = found["hub_layer"]
    expected = layer["fit tf"]
    assert len(expected) == 4 and len(layer) == 6
    assert all(answer == pytest.approx(expected, rel=1e-6) for answer in layer.values())
