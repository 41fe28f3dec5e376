"""Handles that functions hand out: the releases whose importer dies of them, and what `downgrade`
makes of that.
"""

import pytest
from google.protobuf import text_format
from model_edits import edited, fixture

from reference_impl.format import schema
from reference_impl.format.container import layout
from savedmodel_tools import compat
from savedmodel_tools.downgrade import model as downgrading
from savedmodel_tools.returned_handles import ReturnedHandles
from savedmodel_tools.skew.history import history

TABLE = """op: 'MutableHashTableV2' attr { key: 'key_dtype' value { type: DT_INT64 } }
  attr { key: 'value_dtype' value { type: DT_INT64 } } attr { key: 'shared_name' value { s: 'table_7' } }"""
CALL = """op: 'StatefulPartitionedCall' attr { key: 'Tin' value { list {} } }
  attr { key: 'Tout' value { list { type: DT_RESOURCE } } } attr { key: 'f' value { func { name: 'NAME' } } }"""
FUNCTION = """function { signature { name: 'NAME' output_arg { name: 'o' type: DT_RESOURCE } is_stateful: true }
  node_def { name: 'h' BODY } node_def { name: 'i' op: 'Identity' input: 'h:OUT:0' attr { key: 'T' value { type: DT_RESOURCE } } }
  ret { key: 'o' value: 'i:output:0' } }"""
USE = """node { name: 'size' op: 'LookupTableSizeV2' input: 'restored' input: '^restored' }"""


def nest(made=TABLE, depth=2, used=True):
    """A table made ``depth`` calls deep, as one that was loaded and saved ``depth - 1`` times
    is.
    """

    def edit(message):
        graph = message.meta_graphs[0].graph_def
        text, out = made, "table_handle"
        for level in range(depth):
            function = (
                FUNCTION.replace("BODY", text)
                .replace("OUT", out)
                .replace("NAME", f"creator_{level}")
            )
            text_format.Merge("library { " + function + " }", graph)
            text, out = CALL.replace("NAME", f"creator_{level}"), "output"
        text_format.Merge("node { name: 'restored' " + text + " } " + (USE if used else ""), graph)

    return edit


def loads(path, release, loader):
    index = history().index(release)
    (graph,) = compat.compat(path, [index])
    (use,) = [use for use in graph.uses if use.part == "load" and use.loader == loader]
    return use.verdicts[index]


def test_releases_whose_importer_reads_freed_memory_are_told(tmp_path):
    model = edited(fixture("module_functions"), tmp_path / "m", nest())
    for release, safe in (
        ("1.13", True),
        ("1.14", False),
        ("1.15", False),
        ("2.2", False),
        ("2.3", True),
    ):
        for loader in ("session", "c++"):
            verdict = loads(model, release, loader)
            assert verdict.loads == safe or any(
                "safe memory" not in reason for reason in verdict.reasons
            ), (release, verdict)
            assert any("safe memory" in reason for reason in verdict.reasons) != safe
    # An object loader got through with it, with luck: a risk.
    assert (
        "creator_0" in loads(model, "2.1", "objects").risks[0]
        and not loads(model, "2.3", "objects").risks
    )


@pytest.mark.parametrize(
    "edit", [nest(used=False), nest(TABLE.replace("Mutable", ""))], ids=["unused", "no shapes"]
)
def test_handles_that_nobody_looks_at_and_tables_without_shapes_are_sound(edit, tmp_path):
    model = edited(fixture("module_functions"), tmp_path / "m", edit)
    assert not any("safe memory" in reason for reason in loads(model, "1.15", "session").reasons)


def test_the_main_graph_makes_the_handle_itself(tmp_path):
    model = edited(fixture("module_functions"), tmp_path / "m", nest())
    index = history().index("1.15")
    plan = downgrading.plan(layout.read(model), index, ["session", "c++"])
    assert not plan.refused and [change.kind for change, _ in plan.changes] == ["replace_op"]
    (graph,) = plan.message.meta_graphs
    nodes = {node.name: node for node in graph.graph_def.node}
    assert (
        nodes["restored"].op == "MutableHashTableV2"
        and nodes["restored"].attr["shared_name"].s == b"table_7"
    )
    assert "f" not in nodes["restored"].attr and list(nodes["size"].input) == [
        "restored",
        "^restored",
    ]
    # The object loader calls the functions: they stay.
    assert {function.signature.name for function in graph.graph_def.library.function} >= {
        "creator_0",
        "creator_1",
    }
    newer = downgrading.plan(layout.read(model), history().index("2.3"))
    assert not newer.refused and not newer.changes


@pytest.mark.parametrize(
    "edit", [nest(TABLE.replace("'table_7'", "''")), nest(TABLE + " input: 'seed'")]
)
def test_a_handle_that_would_be_another_one_is_refused(edit, tmp_path):
    model = edited(fixture("module_functions"), tmp_path / "m", edit)
    plan = downgrading.plan(layout.read(model), history().index("1.15"), ["session"])
    assert any("MutableHashTableV2" in reason for reason, _ in plan.refused)


def test_circles_and_gaps_are_no_handles():
    library = schema.FunctionDefLibrary()
    for name, called in (("a", "b"), ("b", "a"), ("c", "gone")):
        text_format.Merge(
            FUNCTION.replace("BODY", CALL.replace("NAME", called))
            .replace("OUT", "output")
            .replace("NAME", name),
            library,
        )
    graph = schema.GraphDef()
    for name in ("a", "c"):
        graph.node.add(name=f"use_{name}", op="Size", input=[name])
        text_format.Merge(f"node {{ name: '{name}' " + CALL.replace("NAME", name) + " }", graph)
    assert list(ReturnedHandles(library).used(graph.node)) == []
