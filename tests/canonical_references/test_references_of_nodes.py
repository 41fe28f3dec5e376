"""The canonical form of graphs: isomorphic ones have one, others have another."""

import itertools
import random

import pytest
from made_graphs import objects

from reference_impl.format import schema
from reference_impl.graph.references import FunctionIndex
from savedmodel_tools.canonical.body import Body
from savedmodel_tools.canonical.graph import digest
from savedmodel_tools.canonical.values import Values


def test_colocation(hashes):
    def build(*places, names=("a", "b", "c")):
        def made(graph):
            objects(graph, {})
            for name, op in zip(names, ("A", "B", "C")):
                graph.graph_def.node.add(name=name, op=op)
            if places:
                graph.graph_def.node[0].attr["_class"].list.s.extend(
                    f"loc:@{names['abc'.index(name)]}".encode() for name in places
                )

        return made

    assert len(hashes(build(), build("b"), build("c"), build("b", "c"))) == 4
    assert len(hashes(build(), build("a"))) == 1  # with itself
    assert len(hashes(build("b", "c"), build("c", "b"), build("b", "c", names="xyz"))) == 1


def test_equal_nodes_with_different_neighbours():
    """Both nodes a result waits for are constants; only what else their users need tells them
    apart.
    """
    nodes = [
        ("R", [], [1, 2]),
        ("C", [], []),
        ("C", [], []),
        ("Y", [1, 5], []),
        ("Y", [2, 6], []),
        ("Z", [], []),
        ("W", [], []),
    ]
    rng = random.Random(1)
    assert (
        len({form(nodes, rng.sample("abcdefg", 7), rng.sample(range(7), 7)) for _ in range(40)})
        == 1
    )


def test_full_types(hashes):
    def build(kind):
        def made(graph):
            graph.graph_def.node.add(name="n", op="A").experimental_type.type_id = kind

        return made

    assert len(hashes(build(schema.TFT_UNSET), build(schema.TFT_TENSOR))) == 2


def leftover(extra=(), user=False, constant=0):
    """A TF 1.x graph with one saver that it names and one that it does not."""

    def made(graph):
        nodes = graph.graph_def.node
        for scope in ("save", "save_1"):
            value = schema.TensorProto(
                dtype=schema.DT_INT32, int_val=[constant if scope == "save_1" else 5]
            )
            nodes.add(name=f"{scope}/Const", op="Const").attr["value"].tensor.CopyFrom(value)
            nodes.add(name=f"{scope}/RestoreV2", op="RestoreV2", input=[f"{scope}/Const"])
            nodes.add(name=f"{scope}/restore_all", op="NoOp", input=[f"^{scope}/RestoreV2"])
        for op in extra:
            nodes.add(name=f"save_1/{op}", op=op)
        if user:
            nodes.add(name="user", op="Print", input=["save_1/RestoreV2"])
        graph.saver_def.restore_op_name = "save/restore_all"

    return made


def test_a_forgotten_saver(hashes):
    assert len(hashes(leftover(), leftover(constant=1))) == 1
    assert len(hashes(leftover(), leftover(extra=["MatMul"]), leftover(user=True))) == 3
    # What is not merely a saver is looked at in full.
    assert len(hashes(leftover(extra=["MatMul"]), leftover(extra=["MatMul"], constant=1))) == 2
    assert len(hashes(leftover(user=True), leftover(user=True, constant=1))) == 2


def random_graph(rng, count):
    """(op, data inputs, control inputs) per node; cycles included, as in loops of TF 1.x."""
    nodes = []
    for _ in range(count):
        inputs = [rng.randrange(count) for _ in range(rng.choice([0, 1, 1, 2]))]
        control = sorted(set(rng.sample(range(count), rng.choice([0, 0, 1, 2]))))
        nodes.append((rng.choice("AB"), inputs, control))
    return nodes


def relabelled(nodes, new):
    made = [None] * len(nodes)
    for number, (op, inputs, control) in enumerate(nodes):
        made[new[number]] = (
            op,
            [new[item] for item in inputs],
            sorted(new[item] for item in control),
        )
    return made


def form(nodes, names, order, roots=(0,)):
    """The canonical form of a random graph whose nodes have these names and stand in the file in
    this order.
    """
    defs = []
    for number in order:
        op, inputs, control = nodes[number]
        texts = [f"{names[item]}:0" for item in inputs] + [f"^{names[item]}" for item in control]
        defs.append(schema.NodeDef(name=names[number], op=op, input=texts))
    body = Body(defs, Values(FunctionIndex(schema.FunctionDefLibrary()), lambda name: b""))
    body.arrange([body.index[names[root]] for root in roots])
    return digest(*body.lines())


def test_random_graphs_are_equal_exactly_when_they_are_isomorphic():
    """Against a search over all renumberings that keep the root."""
    rng = random.Random(5)
    known = {}
    for _ in range(1500):
        count = rng.choice([2, 3, 4])
        nodes = random_graph(rng, count)
        smallest = min(
            repr(relabelled(nodes, [0, *new])) for new in itertools.permutations(range(1, count))
        )
        names = rng.sample("abcdefgh", count)
        known.setdefault(smallest, set()).add(form(nodes, names, rng.sample(range(count), count)))
    assert len(known) > 300
    assert all(len(found) == 1 for found in known.values())
    assert len({next(iter(found)) for found in known.values()}) == len(known)


@pytest.mark.parametrize("loops", [False, True])
def test_larger_graphs_do_not_depend_on_names_and_order(loops):
    """Here no root needs most nodes, so that only what surrounds them tells them apart."""
    rng = random.Random(6)
    for _ in range(300):
        count = 14
        nodes = random_graph(rng, count)
        if not loops:
            before = [
                {n for n in (*inputs, *control) if n < number}
                for number, (_, inputs, control) in enumerate(nodes)
            ]
            nodes = [
                (op, [n for n in inputs if n in known], [n for n in control if n in known])
                for known, (op, inputs, control) in zip(before, nodes)
            ]
        names = [f"n{number}" for number in range(count)]
        found = {
            form(nodes, rng.sample(names, count), rng.sample(range(count), count), (3, 1, 5))
            for _ in range(3)
        }
        assert len(found) == 1


def test_equal_nodes_beside_equal_results():
    """Two results are computed alike; which side node belongs to which is seen from the order of
    the results.
    """
    nodes = [("A", [], []), ("A", [], []), ("B", [0], []), ("B", [1], []), ("B", [2], [])]
    names = "abcde"
    orders = itertools.permutations(range(5))
    assert (
        len({form(nodes, [names[number] for number in order], order, (0, 1)) for order in orders})
        == 1
    )
