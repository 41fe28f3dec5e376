"""MetaGraphs of one model that are equal but for their tags: the old one is asked once."""

from __future__ import annotations

import itertools
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from compat_matrix.runtimes.worker import Worker
from reference_impl.errors import LimitError
from reference_impl.format import schema
from savedmodel_common import fast
from savedmodel_compat import cli
from savedmodel_migration.migrate.same_graph import KnownGradients, content_of, model_content

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
TAGS = (["serve"], ["serve", "gpu"], ["train"])


def same_twice(folder, edit=lambda graph: None, tags=TAGS[:2]):
    """half_plus_two without its requests, whose MetaGraph is there twice; the second is edited."""
    shutil.copytree(FIXTURES / "half_plus_two/model", folder)
    path = folder / "saved_model.pb"
    found = schema.parse(schema.SavedModel, path.read_bytes())
    found.meta_graphs.add().CopyFrom(found.meta_graphs[0])
    for graph, own in zip(found.meta_graphs, tags):
        graph.meta_info_def.tags[:] = own
    edit(found.meta_graphs[1])
    path.write_bytes(schema.serialize(found))
    return folder


def other_constant(graph):
    """Another summand in the graph, with the same signatures."""
    node = next(node for node in graph.graph_def.node if node.name.endswith("initial_value"))
    node.attr["value"].tensor.float_val[:] = [7.0]


@pytest.fixture
def asked(monkeypatch):
    """What was asked of workers, ``(operation, role)`` -> how often."""
    counts = Counter()
    request = Worker.request

    def counting(self, op, *args, **fields):
        counts[op, fields.get("role", "")] += 1
        return request(self, op, *args, **fields)

    monkeypatch.setattr(Worker, "request", counting)
    return counts


def record_of(model, out):
    """The record of a migration without its times and the name of the output."""
    result = CliRunner().invoke(cli.main, ["migrate", str(model), "--out", str(out), "--json"])
    (record,) = json.loads(result.stdout)["models"]
    del record["seconds"]
    return record


READERS = ("reference", "tf2", "c_api")


@pytest.mark.tensorflow
def test_the_old_model_is_asked_once_and_every_reader_reads_both_new_ones(
    tmp_path, asked, monkeypatch
):
    model = same_twice(tmp_path / "m")
    found = record_of(model, tmp_path / "once")
    once = Counter(asked)
    asked.clear()
    monkeypatch.setenv(fast.PLAIN, "1")
    assert record_of(model, tmp_path / "plain") == found
    assert found["status"] == "migrated" and len(found["parts"]) == 2
    assert asked["load", "v1_session"] == 2 * once["load", "v1_session"] > 0
    assert asked["gradients", "v1_session"] == 2 * once["gradients", "v1_session"] > 0
    assert asked["gradients", "tf2"] == 2 * once["gradients", "tf2"] > 0
    for reader in READERS:
        assert asked["load", reader] == once["load", reader] > 0
        assert asked["call", reader] == once["call", reader] > 0


@pytest.mark.tensorflow
@pytest.mark.parametrize("how", ["another graph", "requests beside the model", "not served"])
def test_what_may_answer_otherwise_is_asked_again(tmp_path, asked, how):
    edit = other_constant if how == "another graph" else lambda graph: None
    tags = (TAGS[0], TAGS[2]) if how == "not served" else TAGS[:2]
    model = same_twice(tmp_path / "zoo" / "model", edit, tags)
    if how == "requests beside the model":
        shutil.copytree(FIXTURES / "half_plus_two/io", model.parent / "io")
    found = record_of(model, tmp_path / "out")
    assert [part["status"] for part in found["parts"]] == ["migrated"] * 2
    assert asked["load", "v1_session"] >= 4
    assert asked["gradients", "v1_session"] >= 2


def test_the_content_of_a_model_is_all_but_its_tags(tmp_path):
    one = same_twice(tmp_path / "one")
    other = same_twice(tmp_path / "other", tags=TAGS[1:])
    edited = same_twice(tmp_path / "edited", other_constant)
    assert model_content(one) == model_content(other) != model_content(edited)
    (other / "variables/extra").write_bytes(b"x")
    assert model_content(one) != model_content(other)


def test_the_content_of_a_meta_graph_does_not_change_it(tmp_path):
    path = same_twice(tmp_path / "m") / "saved_model.pb"
    graphs = schema.parse(schema.SavedModel, path.read_bytes()).meta_graphs
    assert content_of(graphs[0]) == content_of(graphs[1])
    assert list(graphs[1].meta_info_def.tags) == TAGS[1]


def test_models_that_are_too_large_for_a_message_are_not_equal(tmp_path, monkeypatch):
    def too_large(message):
        raise LimitError("too large", limit="SAVED_MODEL_BYTES")

    model = same_twice(tmp_path / "m")
    known, made = KnownGradients(), itertools.count()
    assert [known.of(model_content(model), ("x",), lambda: next(made)) for _ in range(2)] == [0, 0]
    monkeypatch.setattr(schema, "serialize", too_large)
    assert model_content(model) == b""
    assert [known.of(model_content(model), ("x",), lambda: next(made)) for _ in range(2)] == [1, 2]
