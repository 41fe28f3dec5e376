"""What `inspect` says of models that are damaged or made to confuse it."""

import re
import shutil

import model_edits as edits
import pytest

from reference_impl import errors
from reference_impl.views.model import inspect


@pytest.fixture(scope="module")
def sound():
    return inspect(edits.fixture("module_functions"))


def built(tmp_path, build):
    """What `inspect` says of the one MetaGraph of a hand-made model."""
    message, graph = edits.new_model()
    build(graph)
    return inspect(edits.write(message, tmp_path / "model")).meta_graphs[0]


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda folder: shutil.rmtree(folder / "variables"), "no value for 5 of 5 keys"),
        (
            lambda folder: (folder / "variables" / "variables.index").write_bytes(b"x" * 100),
            "CorruptTableError: .*variables.index",
        ),
        (
            lambda folder: (folder / "variables" / "variables.data-00000-of-00001").unlink(),
            "MissingFileError: .*data-00000",
        ),
        (
            lambda folder: (folder / "assets" / "vocabulary.txt").unlink(),
            "the asset vocabulary.txt is missing",
        ),
        (
            lambda folder: (folder / "fingerprint.pb").write_bytes(b"\xff"),
            "(Malformed|Truncated)Error: .*fingerprint.pb",
        ),
    ],
)
def test_damage_is_named_and_the_rest_is_shown(damage, problem, tmp_path, sound):
    shutil.copytree(edits.fixture("module_functions"), tmp_path / "model")
    damage(tmp_path / "model")
    info = inspect(tmp_path / "model")
    assert any(re.search(problem, item) for item in info.problems), info.problems
    assert info.meta_graphs[0].signatures == sound.meta_graphs[0].signatures
    assert len(info.meta_graphs[0].objects) == len(sound.meta_graphs[0].objects)


def test_a_checkpoint_in_the_old_format():
    info = inspect(edits.fixture("v1_checkpoint"))
    assert info.checkpoint is None
    first, second = info.problems
    assert first.startswith("V1CheckpointError: ") and "1 of 1 keys" in second


def test_an_asset_outside(tmp_path):
    message, graph = edits.new_model()
    for name in ("../secret", "/etc/hostname", "there"):
        graph.asset_file_def.add(filename=name).tensor_info.name = "a:0"
    edits.write(message, tmp_path / "model")
    (tmp_path / "secret").write_text("secret")
    info = inspect(tmp_path / "model")
    assert [(item.status, item.size) for item in info.meta_graphs[0].assets] == [
        ("escapes", None)
    ] * 2 + [("missing", None)]
    assert [item.partition(":")[0] for item in info.problems[:2]] == ["PathEscapeError"] * 2


def test_expected_keys_without_a_checkpoint(tmp_path, sound):
    shutil.copytree(edits.fixture("module_functions"), tmp_path / "model")
    shutil.rmtree(tmp_path / "model" / "variables")
    found = inspect(tmp_path / "model").meta_graphs[0].variables
    assert [(item.key, item.stored) for item in found] == [
        (item.key, False) for item in sound.meta_graphs[0].variables
    ]


def test_tags():
    assert [
        graph.tags for graph in inspect(edits.fixture("serve_and_train"), "train").meta_graphs
    ] == [("train",)]
    assert [graph.tags for graph in inspect(edits.fixture("empty_tags"), []).meta_graphs] == [()]
    with pytest.raises(errors.NoMetaGraphError, match=r"serve; train|train; serve"):
        inspect(edits.fixture("serve_and_train"), ["gpu"])


def test_a_directory_that_is_no_model(tmp_path):
    with pytest.raises(errors.NotASavedModelError):
        inspect(tmp_path)


def test_object_graphs_that_are_no_trees(tmp_path):
    def build(graph):
        nodes = graph.object_graph_def.nodes
        for children in (
            [("self", 0), ("a", 1), ("gone", 77), ("minus", -1)],
            [("up", 0), ("b", 2)],
            [("a", 1)],
            [],
        ):
            node = nodes.add()
            for name, number in children:
                node.children.add(local_name=name, node_id=number)

    found = built(tmp_path, build).objects
    assert [item.path for item in found] == ["", "a", "a.b", None]
    assert [item.kind for item in found] == ["none"] * 4
    assert [(child.name, child.id) for child in found[0].children] == [
        ("self", 0),
        ("a", 1),
        ("gone", 77),
        ("minus", -1),
    ]


def test_children_that_are_no_objects(tmp_path):
    message, graph = edits.new_model()
    children = graph.object_graph_def.nodes.add().children
    children.add(local_name="next", node_id=1)
    children.add(local_name="gone", node_id=77)
    found = inspect(edits.write(message, tmp_path / "model")).problems
    assert found == ("object 0 refers to object 1 of 1 and 1 more",)


def test_dependencies_slots_and_functions_of_resources_that_are_no_objects(tmp_path):
    message, graph = edits.new_model()
    node = graph.object_graph_def.nodes.add()
    node.dependencies.add(local_name="needed", node_id=7)
    node.slot_variables.add(slot_name="m", original_variable_node_id=0, slot_variable_node_id=-1)
    node.saveable_objects["table"].save_function = 9
    found = inspect(edits.write(message, tmp_path / "model")).problems
    assert found == ("object 0 refers to object 7 of 1 and 2 more",)


def test_large_graphs_take_no_recursion_and_no_quadratic_time(tmp_path):
    """20,000 objects in a chain, functions that call each other in a circle, one object with as
    many children.
    """
    count = 20_000

    def build(graph):
        objects = graph.object_graph_def
        for number in range(count):
            objects.nodes.add().children.add(local_name="next", node_id=number + 1)
            function = graph.graph_def.library.function.add()
            function.signature.name = f"f{number}"
            function.node_def.add(name="n", op=f"f{(number + 1) % count}")
            objects.nodes[0].children.add(local_name=f"c{number}", node_id=0)
        graph.graph_def.node.add(name="start", op="f0")
        graph.signature_def["s"].outputs["y"].name = "start:0"

    found = built(tmp_path, build)
    assert found.library[-1].reachable_from == ("s",)
    assert len(found.objects[-1].path) < 200
    assert found.objects[-1].path.startswith("….next.")


def test_many_signatures_over_many_nodes_are_not_followed(tmp_path):
    def build(graph):
        for number in range(5000):
            graph.graph_def.node.add(name=f"n{number}", op="A", input=[f"n{number + 1}"])
            graph.signature_def[f"s{number}"].outputs["y"].name = "n0:0"

    found = built(tmp_path, build)
    assert [item.reachable_from for item in found.ops] == [None]
    assert found.ops[0].count == 5000
