"""Objects in roles that they cannot play: `verify` names them, `load` refuses them by file, node
and reason.
"""

import pytest
from model_edits import edited, fixture

from reference_impl.errors import MalformedError, SavedModelError
from savedmodel_tools.verify.run import verify


def numbers(graph):
    """Numbers of nodes by what they are."""
    found = {node.WhichOneof("kind"): number for number, node in enumerate(graph.nodes)}
    found["signatures"] = next(
        n for n, node in enumerate(graph.nodes) if node.user_object.identifier == "signature_map"
    )
    found["list"] = next(
        n
        for n, node in enumerate(graph.nodes)
        if node.user_object.identifier == "trackable_list_wrapper"
    )
    return found


def child(of, name, kind):
    """The child `name` becomes a node of another kind."""

    def change(graph):
        known = numbers(graph)
        next(
            item for item in graph.nodes[known[of]].children if item.local_name == name
        ).node_id = known[kind]

    return change


def captured(graph):
    function = next(item for item in graph.concrete_functions.values() if item.bound_inputs)
    function.bound_inputs[0] = numbers(graph)["function"]


def content(graph):
    known = numbers(graph)
    pair = graph.nodes[known["resource"]].saveable_objects["table"]
    pair.save_function = pair.restore_function = known["variable"]


def slot(graph):
    known = numbers(graph)
    item = graph.nodes[0].slot_variables.add(slot_name="m")
    item.original_variable_node_id, item.slot_variable_node_id = (
        known["variable"],
        known["function"],
    )


def long_list(graph):
    graph.nodes[numbers(graph)["list"]].children[0].local_name = "1000000000"


MISFITS = {
    "a table made by a variable": (
        child("resource", "_create_resource", "variable"),
        "_create_resource is object",
    ),
    "a table filled by a variable": (
        child("resource", "_initialize", "variable"),
        "_initialize is object",
    ),
    "a table destroyed by an asset": (
        child("resource", "_destroy_resource", "asset"),
        "_destroy_resource is object",
    ),
    "a signature that is a variable": (
        child("signatures", "serving_default", "variable"),
        "the signature 'serving_default' is",
    ),
    "a capture that is a function": (captured, "captures it in place of a variable"),
    "content saved by a variable": (content, "the save function of 'table' is object"),
    "a slot that is a function": (slot, "slot 'm' is object"),
}


def damaged(folder, change):
    return edited(
        fixture("module_functions"),
        folder,
        lambda message: change(message.meta_graphs[0].object_graph_def),
    )


@pytest.mark.parametrize("misfit", MISFITS)
def test_verify_names_it(misfit, tmp_path):
    change, message = MISFITS[misfit]
    found = [
        item for item in verify(damaged(tmp_path / "m", change)).findings if item.rule == "SMC313"
    ]
    assert message in found[0].message and {item.severity.word for item in found} == {"error"}


@pytest.mark.tensorflow
@pytest.mark.parametrize("misfit", MISFITS)
def test_load_refuses_it_by_file_node_and_reason(misfit, tmp_path):
    import reference_impl

    change, message = MISFITS[misfit]
    path = damaged(tmp_path / "m", change)
    with pytest.raises(MalformedError) as caught:
        reference_impl.load(str(path))
    assert (
        caught.value.node.startswith("root")
        and str(path) in str(caught.value.file)
        and message in str(caught.value)
    )


def test_verify_names_a_list_that_claims_more_elements_than_anyone_can_load(tmp_path):
    found = {
        item.rule: item.message for item in verify(damaged(tmp_path / "m", long_list)).findings
    }
    assert "1000000001 elements" in found["SMC313"]


@pytest.mark.tensorflow
def test_load_refuses_such_a_list(tmp_path):
    import reference_impl

    with pytest.raises(SavedModelError):
        reference_impl.load(str(damaged(tmp_path / "m", long_list)))


def test_verify_names_a_function_that_captures_more_than_it_takes(tmp_path):
    def change(graph):
        next(
            item for item in graph.concrete_functions.values() if item.bound_inputs
        ).bound_inputs.extend([1] * 50)

    found = {item.rule: item.message for item in verify(damaged(tmp_path / "m", change)).findings}
    assert "captures 5" in found["SMC313"] and "objects and takes" in found["SMC313"]


def hold_each_other(graph, *identifiers):
    """Add containers to the root, each in the one before and the first in the last."""
    first = len(graph.nodes)
    for number, identifier in enumerate(identifiers):
        node = graph.nodes.add()
        node.user_object.identifier = identifier
        node.user_object.version.producer = node.user_object.version.min_consumer = 1
        node.children.add(node_id=first + (number + 1) % len(identifiers), local_name="0")
    graph.nodes[0].children.add(node_id=first, local_name="circle")


CIRCLES = {
    "a list": ["trackable_list_wrapper"],
    "a dict": ["trackable_dict_wrapper"],
    "a tuple": ["trackable_tuple_wrapper"],
    "a tuple in a list": ["trackable_list_wrapper", "trackable_tuple_wrapper"],
}


@pytest.mark.parametrize("circle", CIRCLES)
def test_verify_names_containers_that_contain_themselves(circle, tmp_path):
    path = damaged(tmp_path / "m", lambda graph: hold_each_other(graph, *CIRCLES[circle]))
    (found,) = [item for item in verify(path).findings if item.rule == "SMC314"]
    assert found.message.startswith("circle contains itself") and found.severity.word == "error"
    assert ("2 containers" in found.message) == (len(CIRCLES[circle]) == 2)


@pytest.mark.tensorflow
@pytest.mark.parametrize("circle", CIRCLES)
def test_load_refuses_containers_that_contain_themselves(circle, tmp_path):
    import reference_impl
    from reference_impl.errors import CycleError

    path = damaged(tmp_path / "m", lambda graph: hold_each_other(graph, *CIRCLES[circle]))
    with pytest.raises(CycleError, match="contains itself"):
        reference_impl.load(str(path))


@pytest.mark.parametrize("value", ["no value", "no node"])
def test_verify_names_a_captured_constant_without_a_value(value, tmp_path):
    def change(message):
        graph = message.meta_graphs[0]
        name = next(
            node.constant.operation
            for node in graph.object_graph_def.nodes
            if node.HasField("constant")
        )
        node = next(node for node in graph.graph_def.node if node.name == name)
        if value == "no value":
            del node.attr["value"]
        else:
            node.name = "elsewhere"

    found = [
        item.message
        for item in verify(edited(fixture("module_functions"), tmp_path / "m", change)).findings
    ]
    assert any(
        ("without a value" if value == "no value" else "not there") in message for message in found
    )


def test_verify_names_dependencies_and_captured_tensors_of_nothing(tmp_path):
    def change(graph):
        known = numbers(graph)
        graph.nodes[known["variable"]].dependencies.add(node_id=-1, local_name="before")
        graph.nodes[known["constant"]].captured_tensor.concrete_function = "nobody"

    found = [
        item.message
        for item in verify(damaged(tmp_path / "m", change)).findings
        if item.rule == "SMC311"
    ]
    assert any("dependency 'before'" in message for message in found) and any(
        "'nobody'" in message for message in found
    )


def test_models_of_tensorflow_have_no_misfit():
    names = ("module_functions", "keras_compiled_save", "keras_functional_save")
    assert not [
        i
        for name in names
        for i in verify(fixture(name)).findings
        if i.rule in ("SMC311", "SMC313", "SMC314")
    ]
