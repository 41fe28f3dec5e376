"""``migrate`` of models whose SignatureDefs the graph contradicts: a session follows the graph, and
so does the migrated model.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from reference_impl.format import schema
from reference_impl.format.container import layout
from savedmodel_compat import cli
from savedmodel_migration.migrate.false_statements import askable, corrected

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
TAGS = ("serve",)


def migrate(model, out):
    result = CliRunner().invoke(cli.main, ["migrate", str(model), "--out", str(out), "--json"])
    (record,) = json.loads(result.stdout)["models"]
    return result.exit_code, record


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("fixture", "tensor"),
    [("false_input_shape", "input 'x'"), ("false_output_shape", "output 'y'")],
)
def test_a_false_shape_is_corrected_and_noted(tmp_path, fixture, tensor):
    code, record = migrate(FIXTURES / fixture / "model", tmp_path / "out")
    (part,) = record["parts"]
    assert code == 0 and part["status"] == "migrated" and not part["not_asked"]
    assert {v["what"]: v["state"] for v in part["verdicts"]}["signatures"] == "equal"
    (note,) = [note for note in part["notes"] if "SignatureDef" in note]
    assert tensor in note and "'serving_default'" in note


@pytest.mark.tensorflow
def test_without_requests_they_are_made_up_by_the_true_shape(tmp_path):
    shutil.copytree(FIXTURES / "false_input_shape/model", tmp_path / "model")
    code, record = migrate(tmp_path / "model", tmp_path / "out")
    (part,) = record["parts"]
    assert code == 0 and sorted(part["asked"]) == ["exact", "serving_default"]


def spec(dtype, shape):
    return {"serving_default": {"inputs": {}, "outputs": {"y": {"dtype": dtype, "shape": shape}}}}


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        (("float32", [4]), ("float32", [2, 3]), ("float32", [2, 3])),  # the graph gives [2, 3]
        (("float32", [4]), ("float32", [None, 3]), ("float32", [None, 3])),
        (("float32", [4]), ("float32", [5]), ("float32", [4])),  # the new one is as false
        (("float32", [2, 3]), ("float32", [4]), ("float32", [2, 3])),  # the old one is true
        (("float32", [None, 3]), ("float32", None), ("float32", [None, 3])),  # it said more
        (("int64", [2, 3]), ("float32", [2, 3]), ("float32", [2, 3])),
        (("float32", [2, 3]), ("int64", [2, 3]), ("float32", [2, 3])),
        (("invalid", [2, 3]), ("float32", [2, 3]), ("invalid", [2, 3])),  # it stated nothing
    ],
)
def test_only_what_the_graph_contradicts_is_corrected(before, after, kept):
    found = layout.read(FIXTURES / "false_output_shape/model")
    told, sentences = corrected(found, TAGS, spec(*before), spec(*after))
    assert told == spec(*kept)
    assert len(sentences) == (before != kept)


def test_a_lost_signature_or_output_is_no_correction():
    found = layout.read(FIXTURES / "false_output_shape/model")
    before = spec("float32", [4])
    for after in ({}, {"serving_default": {"inputs": {}, "outputs": {}}}):
        assert corrected(found, TAGS, before, after) == (before, [])


def test_only_a_false_shape_of_an_input_is_changed_for_the_requests():
    found = layout.read(FIXTURES / "false_input_shape/model")
    stated = found.meta_graph(TAGS).SerializeToString()
    asked = askable(found).meta_graph(TAGS)
    assert [
        dim.size for dim in asked.signature_def["serving_default"].inputs["x"].tensor_shape.dim
    ] == [-1]
    asked.signature_def["serving_default"].CopyFrom(
        schema.parse(schema.MetaGraphDef, stated).signature_def["serving_default"]
    )
    assert asked == schema.parse(schema.MetaGraphDef, stated)
    assert found.meta_graph(TAGS).SerializeToString() == stated
    true = layout.read(FIXTURES / "half_plus_two/model")
    assert askable(true) is true
