"""Main graphs compared by names: what is decided so is what the hashes of their canonical form say,
and is explained as well.
"""

from __future__ import annotations

import itertools
import random

import model_edits
import neutral_edits
import pytest

from reference_impl.format.container import layout
from savedmodel_tools.canonical.form import meta_graphs_of
from savedmodel_tools.comparison.by_name import decide, same_collections
from savedmodel_tools.diff import Options, diff

CASES = (
    "half_plus_two",
    "dynamic_rnn",
    "hash_table_v1_op",
    "mutable_hash_table",
    "default_attrs_kept",
    "module_functions",
)


def verdict(one, other):
    """What is decided of two models' first MetaGraphs (None: nothing), and whether their hashes
    differ.
    """
    graphs = [meta_graphs_of(layout.read(path))[0] for path in (one, other)]
    same = same_collections(*graphs)
    decided = decide(*graphs, [graph.own_roots if same else graph.roots for graph in graphs])
    if same:
        assert graphs[0].entries["collections"] == graphs[1].entries["collections"]
    differs = graphs[0].sections["graph"] != graphs[1].sections["graph"]
    return None if decided is None else decided.alignment is not None, differs


def change_nodes(graph, rng):
    """A few nodes get another attribute, another op, another name, another input, or go; an edge at
    a time.
    """
    nodes = graph.graph_def.node
    for _ in range(rng.randrange(1, 4)):
        node = nodes[rng.randrange(len(nodes))]
        kind = rng.randrange(7)
        if kind == 0:
            node.attr["made_up"].i = rng.randrange(2)
        elif kind == 1:
            node.op = rng.choice((node.op, "Identity", "Sin"))
        elif kind == 2 and node.input:
            node.input[rng.randrange(len(node.input))] = nodes[rng.randrange(len(nodes))].name
        elif kind == 3:
            twin = nodes[rng.randrange(len(nodes))]
            node.name, twin.name = twin.name, node.name
        elif kind == 4:
            twin = nodes.add()
            twin.CopyFrom(node)
            twin.name = f"{node.name}_{rng.randrange(100, 999)}"
        elif kind == 5 and node.input:
            del node.input[-1]
        elif kind == 6:
            node.attr["shared_name"].s = rng.choice((b"one", b"other", b""))


EDITS = [*neutral_edits.NEUTRAL, change_nodes]


def test_what_is_decided_by_names_is_what_the_hashes_say(tmp_path):
    rng, found = random.Random(8), []
    for number, case in enumerate(CASES * 16):
        done = rng.sample(EDITS, rng.randrange(1, 3)) if number % 2 else [change_nodes]

        def edit(message, done=done):
            for change in done:
                change(message.meta_graphs[0], rng)

        target = model_edits.edited(model_edits.fixture(case), tmp_path / str(number), edit)
        decided, differs = verdict(model_edits.fixture(case), target)
        assert decided in (None, differs), (number, done)
        found.append(decided)
    assert min(found.count(decided) for decided in (None, True, False)) > 5


def main_graph(folder, *nodes, output, collection=()):
    """A model of TF 1.x of some nodes, each (name, op, inputs, value of its attribute)."""
    message, graph = model_edits.new_model()
    for name, op, inputs, value in nodes:
        node = graph.graph_def.node.add(name=name, op=op, input=inputs)
        if value is not None:
            node.attr["value"].i = value
    graph.signature_def["serving_default"].outputs["y"].name = f"{output}:0"
    if collection:
        graph.collection_def["train_op"].node_list.value.extend(collection)
    return model_edits.write(message, folder)


def graph_changes(one, other):
    """Of the main graph: kind and name of the nodes that changed."""
    changes = [
        change for change in diff(one, other).changes if change.section == "graph" and change.counts
    ]
    return [
        (node["kind"], node["node"])
        for change in changes
        for node in change.details.get("nodes", ())
    ]


def test_numbers_that_changed_places_are_no_difference(tmp_path):
    one = main_graph(
        tmp_path / "1",
        ("c", "Const", [], 1),
        ("c_1", "Const", [], 2),
        ("y", "Sub", ["c", "c_1"], None),
        output="y",
    )
    two = main_graph(
        tmp_path / "2",
        ("c", "Const", [], 2),
        ("c_1", "Const", [], 1),
        ("y", "Sub", ["c_1", "c"], None),
        output="y",
    )
    three = main_graph(
        tmp_path / "3",
        ("c", "Const", [], 2),
        ("c_1", "Const", [], 1),
        ("y", "Sub", ["c", "c_1"], None),
        output="y",
    )
    assert diff(one, two).verdict == "equal" and diff(one, two).equal
    assert diff(one, three).verdict == "different"
    assert verdict(one, two) == (None, False) and verdict(one, three) == (None, True)


def test_an_op_in_front_that_renumbers_the_others_is_the_only_one_that_is_new(tmp_path):
    constants = [(f"c{number}", "Const", [], number) for number in range(4)]
    before = [
        ("add", "AddV2", ["c1", "c2"], None),
        ("add_1", "AddV2", ["add", "c3"], None),
        ("y", "Neg", ["add_1"], None),
    ]
    after = [
        ("add", "AddV2", ["c1", "c0"], None),
        ("add_1", "AddV2", ["add", "c2"], None),
        ("add_2", "AddV2", ["add_1", "c3"], None),
        ("y", "Neg", ["add_2"], None),
    ]
    one = main_graph(tmp_path / "1", *constants, *before, output="y")
    other = main_graph(tmp_path / "2", *constants, *after, output="y")
    assert verdict(one, other)[0] is None  # by names `add` would be another sum
    assert ("added", "add") in graph_changes(one, other)


def test_a_node_that_became_another_is_told_with_those_that_use_it(tmp_path):
    one = main_graph(
        tmp_path / "1",
        ("c", "Const", [], 1),
        ("Tanh", "Tanh", ["c"], None),
        ("y", "Neg", ["Tanh"], None),
        output="y",
    )
    other = main_graph(
        tmp_path / "2",
        ("c", "Const", [], 1),
        ("Sin", "Sin", ["c"], None),
        ("y", "Neg", ["Sin"], None),
        output="y",
    )
    assert verdict(one, other) == (True, True)
    assert sorted(graph_changes(one, other)) == [
        ("added", "Sin"),
        ("changed", "y"),
        ("removed", "Tanh"),
    ]
    result = diff(one, other)
    assert (result.first.content_hash, result.second.content_hash, result.equal) == (
        None,
        None,
        False,
    )
    hashed = diff(one, other, Options(hashes=True))
    assert (
        hashed.changes == result.changes
        and len({hashed.first.content_hash, hashed.second.content_hash, None}) == 3
    )


def test_a_collection_that_names_what_is_no_longer_there_is_looked_into(tmp_path):
    nodes = [("c", "Const", [], 1), ("y", "Neg", ["c"], None)]
    one = main_graph(
        tmp_path / "1", *nodes, ("train", "NoOp", [], None), output="y", collection=["train"]
    )
    other = main_graph(tmp_path / "2", *nodes, output="y", collection=["train"])
    result = diff(one, other)
    assert {change.section for change in result.changes if change.counts} == {
        "graph",
        "collections",
    }


def test_a_name_that_means_another_function_is_another_node(tmp_path):
    """Nodes written the same, of one name, that call functions of one name: which do different
    things.
    """

    def model(folder, op):
        message, graph = model_edits.new_model()
        function = graph.graph_def.library.function.add()
        function.signature.name = "f"
        function.signature.output_arg.add(name="y", type=1)
        function.node_def.add(name="node", op=op)
        function.ret["y"] = "node:y:0"
        node = graph.graph_def.node.add(name="call", op="PartitionedCall")
        node.attr["f"].func.name = "f"
        graph.graph_def.node.add(name="y", op="Neg", input=["call"])
        graph.signature_def["serving_default"].outputs["y"].name = "y:0"
        return model_edits.write(message, folder)

    one, other = model(tmp_path / "1", "Sin"), model(tmp_path / "2", "Cos")
    assert verdict(one, other) == (True, True)
    assert diff(one, other).verdict == "different"


@pytest.mark.parametrize(
    ("one", "other"), [*itertools.combinations([(b"a", b"a"), (b"a", b"b"), (b"a_1", b"a_1")], 2)]
)
def test_who_shares_a_resource_is_seen_whatever_its_name(one, other, tmp_path):
    def model(folder, names):
        message, graph = model_edits.new_model()
        for number, name in enumerate(names):
            node = graph.graph_def.node.add(name=f"t{number}", op="HashTableV2")
            node.attr["shared_name"].s = name
        graph.graph_def.node.add(name="y", op="Pack", input=["t0", "t1"])
        graph.signature_def["serving_default"].outputs["y"].name = "y:0"
        return model_edits.write(message, folder)

    decided, differs = verdict(model(tmp_path / "1", one), model(tmp_path / "2", other))
    assert decided in (None, differs) and diff(tmp_path / "1", tmp_path / "2").verdict == (
        "different" if differs else "equal"
    )
