"""Shared by the tests of the kinds of saved objects: saves, loads and reads an object graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import reference_impl
from reference_impl.format import schema
from reference_impl.format.container import layout


@pytest.fixture(scope="session")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def round_trip(tmp_path) -> Callable[..., Any]:
    """Return a function that saves an object and returns what loading gives."""

    def trip(obj: object, **options: object) -> Any:
        reference_impl.save(obj, tmp_path / "model", **options)
        return reference_impl.load(tmp_path / "model")

    return trip


@pytest.fixture
def nodes(tmp_path) -> Callable[[], list[schema.SavedObject]]:
    """Return a function that reads the nodes of the model that `round_trip` saved."""

    def read() -> list[schema.SavedObject]:
        (meta_graph,) = layout.read(tmp_path / "model").saved_model.meta_graphs
        return list(meta_graph.object_graph_def.nodes)

    return read


@pytest.fixture
def by_name(nodes) -> Callable[[str], schema.SavedObject]:
    """Return a function that finds the node of a child of the root."""

    def find(name: str) -> schema.SavedObject:
        found = nodes()
        return next(found[child.node_id] for child in found[0].children if child.local_name == name)

    return find
