"""Names of new nodes: free ones, found without asking again for those that were given out
before.
"""

from reference_impl.format import schema
from reference_impl.graph.argument_names import python_names
from reference_impl.graph.node_index import Graph
from reference_impl.graph.unique_names import UniqueNames

COUNT = 1000


def test_many_nodes_may_want_one_name(monkeypatch):
    asked = []
    contains = UniqueNames.__contains__
    monkeypatch.setattr(
        UniqueNames, "__contains__", lambda self, name: asked.append(name) or contains(self, name)
    )
    graph = Graph(
        schema.GraphDef(node=[schema.NodeDef(name=name) for name in ("save/read", "save/read_2")]),
        "model",
    )
    found = [graph.node("save/read", "ReadVariableOp").name for _ in range(COUNT)]
    assert found == ["save/read_1", *[f"save/read_{number}" for number in range(3, COUNT + 2)]]
    assert COUNT < len(asked) < 10 * COUNT


def test_a_name_with_a_number_may_be_wanted_too():
    graph = Graph(schema.GraphDef(node=[schema.NodeDef(name="read")]), "model")
    for wanted, given in (
        ("read", "read_1"),
        ("read_1", "read_1_1"),
        ("read", "read_2"),
        ("other", "other"),
    ):
        assert graph.node(wanted, "NoOp").name == given


def test_arguments_that_become_one_keyword_are_numbered():
    assert python_names(["a/b", "a_b", "a-b", "a_b_1"]) == {
        "a_b": "a_b",
        "a_b_1": "a_b_1",
        "a-b": "a_b_2",
        "a/b": "a_b_3",
    }
