"""Children whose names Python or TensorFlow call: they shadow nothing, are reachable by item, and
are saved under their names.
"""

from __future__ import annotations

import copy

import model_edits as edits
import pytest

import reference_impl
from reference_impl.format.container import layout
from reference_impl.graph import called_names

tf = pytest.importorskip("tensorflow")

pytestmark = pytest.mark.tensorflow
NAMES = sorted(
    {
        *called_names.RUN,
        *called_names.BROKEN,
        *called_names.LOOKED_UP,
        *dir(tf.Module),
        "_name",
        "_scope_name",
        "__deepcopy__",
    }
    - {"__call__"}
)
KINDS = ("function", "user_object", "variable")


def with_children(target, names):
    """Return a copy of a model whose root has a function, an object and a variable under such
    names, in turn.
    """

    def edit(message):
        nodes = message.meta_graphs[0].object_graph_def.nodes
        nodes.add().user_object.identifier = "_generic_user_object"
        nodes[-1].user_object.version.producer = nodes[-1].user_object.version.min_consumer = 1
        kinds = [node.WhichOneof("kind") for node in nodes]
        numbers = [kinds.index("function"), len(nodes) - 1, kinds.index("variable")]
        for index, name in enumerate(names):
            nodes[0].children.add(node_id=numbers[index % 3], local_name=name)

    return edits.edited(edits.fixture("module_functions"), target, edit)


def kind_of(child):
    if isinstance(child, tf.Variable):
        return "variable"
    return "function" if callable(child) else "user_object"


@pytest.mark.parametrize("turn", range(3))
def test_no_name_that_tensorflow_has_runs_breaks_or_loses_a_child(tmp_path, turn):
    names = NAMES[turn:] + NAMES[:turn]
    model = with_children(tmp_path / "model", names)
    loaded = reference_impl.load(model)
    reference_impl.save(loaded, tmp_path / "again")
    again = reference_impl.load(tmp_path / "again")
    for root in (loaded, again):
        for index, name in enumerate(names):
            assert kind_of(root[name]) == KINDS[index % 3], name
    graph = layout.read(tmp_path / "again").saved_model.meta_graphs[0].object_graph_def
    assert set(NAMES) <= {child.local_name for child in graph.nodes[0].children}


def test_tensorflow_saves_and_restores_such_an_object(tmp_path):
    names = [
        "_trackable_children",
        "_lookup_dependency",
        "_gather_saveables_for_checkpoint",
        "_serialize_to_tensors",
    ]
    loaded = reference_impl.load(with_children(tmp_path / "model", names))
    path = tf.train.Checkpoint(loaded).save(tmp_path / "checkpoint" / "of")
    tf.train.Checkpoint(loaded).restore(path).assert_consumed()
    tf.saved_model.save(loaded, str(tmp_path / "again"))
    again = reference_impl.load(tmp_path / "again")
    assert [kind_of(again[name]) for name in names] == [*KINDS, "function"]


def test_variables_below_a_hidden_child_are_variables_of_the_model(tmp_path):
    def edit(message):
        nodes = message.meta_graphs[0].object_graph_def.nodes
        for child in nodes[0].children:
            if nodes[child.node_id].WhichOneof("kind") != "function":
                child.local_name = f"_self_{child.local_name}"

    without_values = reference_impl.LoadOptions(
        skip_checkpoint=True
    )  # the checkpoint has the old names
    loaded = reference_impl.load(
        edits.edited(edits.fixture("module_functions"), tmp_path / "model", edit),
        None,
        without_values,
    )
    whole = reference_impl.load(edits.fixture("module_functions"))
    assert {v.name for v in loaded.variables} == {v.name for v in whole.variables}


def test_items_are_the_children(tmp_path):
    loaded = reference_impl.load(with_children(tmp_path / "model", ["plain", "_track_trackable"]))
    assert (
        loaded["plain"] is loaded.plain
        and loaded["_track_trackable"] is not loaded._track_trackable
    )
    with pytest.raises(KeyError, match="nothing"):
        loaded["nothing"]
    with pytest.raises(TypeError):
        iter(loaded)


def test_python_does_not_call_a_child(tmp_path):
    loaded = reference_impl.load(
        with_children(tmp_path / "model", ["__deepcopy__", "__reduce_ex__"])
    )
    assert "__deepcopy__" not in vars(loaded) and copy.copy(loaded) is not loaded
