"""The canonical form of references of objects: what refers to what counts, by which name or number
does not.
"""

import pytest
from made_graphs import function, objects

from reference_impl.format import schema


def test_an_alias_of_which_object(hashes):
    def build(target, order=("a", "b", "c")):
        numbers = {"a": 1, "b": 2, "c": target}
        return lambda graph: objects(graph, {name: numbers[name] for name in order}, {}, {})

    assert len(hashes(build(1), build(2))) == 2
    assert len(hashes(build(1), build(1, "bca"), build(1, "cba"))) == 1


def test_slots_of_which_variable(hashes):
    def build(first, second, name="m"):
        def made(graph):
            nodes = objects(graph, {"optimizer": 1, "v": 2, "w": 3}, {}, {}, {}, {}, {})
            for variable, slot in ((first, 4), (second, 5)):
                nodes[1].slot_variables.add(
                    slot_name=name, original_variable_node_id=variable, slot_variable_node_id=slot
                )
            nodes[4].registered_name = "four"

        return made

    assert len(hashes(build(2, 3), build(3, 2), build(2, 2), build(2, 3, "n"))) == 4


@pytest.mark.parametrize("field", ["save_function", "restore_function"])
def test_functions_that_save_and_restore(hashes, field):
    def build(number):
        def made(graph):
            nodes = objects(graph, {"table": 1, "f": 2, "g": 3}, {}, {}, {})
            item = nodes[1].saveable_objects["table"]
            item.save_function, item.restore_function = 2, 3
            setattr(item, field, number)

        return made

    assert len(hashes(build(1), build(2), build(3))) == 3


def test_dependencies(hashes):
    def build(*needed):
        def made(graph):
            nodes = objects(graph, {"a": 1, "b": 2, "c": 3}, {}, {}, {})
            for name, number in needed:
                nodes[1].dependencies.add(local_name=name, node_id=number)

        return made

    assert (
        len(
            hashes(
                build(),
                build(("x", 2)),
                build(("x", 3)),
                build(("y", 2)),
                build(("x", 2), ("y", 3)),
            )
        )
        == 5
    )
    assert len(hashes(build(("x", 2), ("y", 3)), build(("y", 3), ("x", 2)))) == 1


def test_objects_that_nothing_refers_to(hashes):
    def build(*names):
        def made(graph):
            for number, node in enumerate(objects(graph, *[{} for _ in range(len(names) + 1)])):
                node.registered_name = ("root", *names)[number]

        return made

    assert len(hashes(build("a", "b"), build("b", "a"))) == 1
    assert len(hashes(build("a", "b"), build("a", "a"), build("a"), build())) == 4


def test_a_constant_is_which_node(hashes):
    def build(name):
        def made(graph):
            objects(graph, {"c": 1}, {})[1].constant.operation = name
            for number, node in enumerate(("x", "y")):
                graph.graph_def.node.add(name=node, op="Const").attr["value"].tensor.CopyFrom(
                    schema.TensorProto(dtype=schema.DT_INT32, int_val=[number])
                )

        return made

    assert len(hashes(build("x"), build("y"))) == 2


def test_captured_tensors(hashes):
    """A tensor inside a function, named by its node: the node counts, not its name."""

    def build(captured, names=("first", "second")):
        def made(graph):
            body = function(graph, "f", ["x"], {"y": f"{names[1]}:y:0"})
            body.node_def.add(name=names[0], op="Neg", input=["x"])
            body.node_def.add(name=names[1], op="Exp", input=[f"{names[0]}:y:0"])
            item = objects(graph, {"t": 1}, {})[1].captured_tensor
            item.name, item.concrete_function = f"{captured}:y:0", "f"

        return made

    assert len(hashes(build("first"), build("second"))) == 2
    assert len(hashes(build("first"), build("p", "pq"))) == 1


def test_unreferenced_concrete_functions(hashes):
    def build(*keywords):
        def made(graph):
            for keyword in keywords:
                trace = graph.object_graph_def.concrete_functions[f"f_{keyword}"]
                trace.canonicalized_input_signature.string_value = keyword

        return made

    assert len(hashes(build("a"), build("b"), build("a", "b"), build())) == 4
