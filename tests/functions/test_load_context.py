"""What the readers of one load share."""

from __future__ import annotations

import pytest

from reference_impl.errors import LimitError, MalformedError
from reference_impl.format import schema
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def context(tf, tmp_path):
    from reference_impl.functions.load_context import LoadContext
    from reference_impl.load_options import LoadOptions

    root = tf.Module()
    root.part = tf.Module()
    root.part.v = tf.Variable(1.0)
    tf.saved_model.save(root, str(tmp_path / "m"))
    folder = layout.read(tmp_path / "m")
    meta_graph = folder.meta_graph()
    return LoadContext(folder, meta_graph, LoadOptions(), meta_graph.object_graph_def)


def _number(context, kind):
    kinds = [node.WhichOneof("kind") for node in context.graph.nodes]
    return kinds.index(kind)


def test_a_node_is_named_by_its_path_from_the_root(context):
    number = _number(context, "variable")
    assert context.path(number) == "root.part.v" and context.name(number) == "v"
    assert context.label(number) == f"nodes[{number}] root.part.v"


def test_nothing_is_left_out_of_a_whole_load(context):
    assert context.is_complete and context.left_out(0) == frozenset()


def test_a_damaged_tensor_is_named_with_its_file(context):
    proto = schema.TensorProto(dtype=schema.DT_FLOAT, tensor_content=b"123")
    with pytest.raises(MalformedError) as raised:
        context.tensor(proto, "root.c")
    assert (raised.value.file, raised.value.node) == (context.file, "root.c")


def test_tensors_of_a_load_may_not_grow_without_end(context):
    context.count(1)
    with pytest.raises(LimitError):
        context.count(1 << 50)
