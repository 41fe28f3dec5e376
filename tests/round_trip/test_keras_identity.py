"""What only Keras 2 reads in a SavedModel survives a load and a save (GOAL-12, NG-04)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import reference_impl
from reference_impl.format import schema
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow
EXPORT = Path(__file__).parents[2] / "fixtures_v1" / "keras_functional_save" / "model"


def described(directory: Path) -> dict[str, Any]:
    """Path of an object -> its SavedUserObject, for objects of Keras."""
    nodes = layout.read(directory).saved_model.meta_graphs[0].object_graph_def.nodes
    out, paths = {}, {0: "root"}
    for number in paths_in_order(nodes, paths):
        if nodes[number].user_object.identifier.startswith("_tf_keras_"):
            out[paths[number]] = nodes[number].user_object
    return out


def paths_in_order(nodes: Any, paths: dict[int, str]) -> list[int]:
    order = [0]
    for number in order:
        for child in sorted(nodes[number].children, key=lambda child: child.local_name):
            if child.node_id not in paths:
                paths[child.node_id] = f"{paths[number]}.{child.local_name}"
                order.append(child.node_id)
    return order


def test_NG_04_descriptions_inside_of_the_graph_are_kept(tmp_path):
    reference_impl.save(reference_impl.load(EXPORT), tmp_path / "copy")
    before, after = described(EXPORT), described(tmp_path / "copy")
    assert len(before) > 3 and before == after


@pytest.fixture
def newer(tmp_path):
    """The same as a release from 2.5 on writes it: descriptions in a file beside."""
    directory = tmp_path / "newer"
    shutil.copytree(EXPORT, directory)
    saved_model = layout.read(EXPORT).saved_model
    metadata = schema.KerasMetadata()
    for number, node in enumerate(saved_model.meta_graphs[0].object_graph_def.nodes):
        saved = node.user_object
        if saved.identifier.startswith("_tf_keras_"):
            metadata.nodes.add(
                node_id=number,
                identifier=saved.identifier,
                metadata=saved.metadata,
                version=saved.version,
            )
            saved.metadata = ""
    (directory / "saved_model.pb").write_bytes(saved_model.SerializeToString())
    (directory / layout.KERAS_METADATA).write_bytes(metadata.SerializeToString())
    return directory


def test_NG_04_descriptions_beside_the_graph_are_kept_inside(newer, tmp_path):
    reference_impl.save(reference_impl.load(newer), tmp_path / "copy")
    assert described(tmp_path / "copy") == described(EXPORT)


def test_NG_04_damaged_descriptions_cost_nothing_but_themselves(newer, tmp_path):
    (newer / layout.KERAS_METADATA).write_bytes(b"\x0a\xff")
    with pytest.warns(UserWarning, match=r"keras_metadata\.pb"):
        model = reference_impl.load(newer)
    reference_impl.save(model, tmp_path / "copy")
    assert described(tmp_path / "copy").keys() == described(EXPORT).keys()


def test_a_part_of_a_keras_model_is_none(tmp_path):
    options = reference_impl.LoadOptions(only=["signatures"])
    reference_impl.save(reference_impl.load(EXPORT, options=options), tmp_path / "part")
    assert described(tmp_path / "part") == {}
