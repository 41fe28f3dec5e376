"""Real SavedModels of other people: loaded, answered, saved again, read by the shipped loaders (see
zoo_driver).

A few minutes with SAVEDMODEL_COMPAT_ZOO_ALL=1; by default the smallest model of each sort.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import zoo
import zoo_driver

from reference_impl.errors import SavedModelError
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow


def sort(model: Path) -> tuple[object, ...]:
    """What makes a model different from another for a loader."""
    try:
        directory = layout.read(model)
    except SavedModelError as error:
        return (type(error),)
    graph = directory.saved_model.meta_graphs[0]
    ops = {node.op for node in graph.graph_def.node}
    ops.update(
        node.op for function in graph.graph_def.library.function for node in function.node_def
    )
    tables = any(op.startswith(("HashTable", "MutableHashTable")) for op in ops)
    slots = any(node.slot_variables for node in graph.object_graph_def.nodes)
    first = graph.meta_info_def.tensorflow_version[:1]
    return (
        first,
        bool(graph.object_graph_def.nodes),
        tables,
        slots,
        "Merge" in ops,
        bool(ops & {"VariableV2", "VarHandleOp"}),
    )


def chosen() -> list[Path]:
    if os.environ.get("SAVEDMODEL_COMPAT_ZOO_ALL"):
        return zoo.models()
    smallest: dict[tuple[object, ...], Path] = {}
    for model in sorted(
        zoo.models(),
        key=lambda path: sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
    ):
        smallest.setdefault(sort(model), model)
    return sorted(smallest.values())[:12]


@pytest.mark.skipif(not zoo.models(), reason=zoo.ABSENT)
@pytest.mark.parametrize("model", chosen(), ids=lambda path: path.name)
def test_a_real_model_is_loaded_answers_and_is_saved_again(model):
    tag_sets = zoo_driver.model_tags(model)
    assert tag_sets
    for tags in tag_sets:
        assert zoo_driver.unexpected(zoo_driver.separately(model, tags), model) == {}


@pytest.mark.parametrize(
    ("loads", "steps", "found"),
    [
        (True, {"load": "ok", "tables": "-: no session of the original: …", "save_s": "21"}, []),
        (True, {"load": "MissingFileError: variables"}, ["load"]),
        (
            True,
            {"load": "ok", "shipped_load": "NotFoundError: Op type not registered 'New'"},
            ["shipped_load"],
        ),
        (False, {"load": "MissingFileError: variables"}, []),
        (False, {"load": "KeyError: 3"}, ["load"]),
        (False, {"load": "ok", "save": "MissingFileError: assets/a"}, ["save"]),
        (
            False,
            {"load": "ok", "save": f"SignatureError: a: {zoo_driver._NOT_LOADED}: no 'threads'"},
            [],
        ),
        (
            True,
            {"load": "ok", "save": f"SignatureError: a: {zoo_driver._NOT_LOADED}: no 'threads'"},
            ["save"],
        ),
        (False, {"process": "ended with -11"}, ["process"]),
    ],
)
def test_little_is_excused(loads, steps, found, monkeypatch):
    monkeypatch.setattr(zoo_driver, "shipped_loads", lambda model, tags: loads)
    assert sorted(zoo_driver.unexpected({"tags": "serve", "steps": steps}, Path("model"))) == found
