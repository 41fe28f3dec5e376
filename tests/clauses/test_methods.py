"""Methods that make variables (METH-*)."""

from __future__ import annotations

import numpy as np
import pytest

import reference_impl
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def net(tf, tmp_path_factory):
    """The example of the RFC, section Methods."""

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.y = None

        @tf.function
        def add(self, x):
            if self.y is None:
                self.y = tf.Variable(2.0)
            return x + self.y

    root = tf.Module()
    root.one, root.two = Net(), Net()
    root.one.add(3.0)
    root.one.add([3.0])
    root.two.add(tf.constant(1.0))
    root.two.y.assign(10.0)
    directory = tmp_path_factory.mktemp("net") / "net"
    reference_impl.save(root, directory)
    return directory


def test_METH_01_a_method_makes_its_variable_once_for_each_instance(tf, net, both):
    for loaded in both(net):
        assert (loaded.one.y.numpy(), loaded.two.y.numpy()) == (2.0, 10.0)
        assert loaded.two.add(tf.constant(1.0)).numpy() == 11.0
    names = [variable.path for variable in reference_impl.inspect(net).meta_graphs[0].variables]
    assert sorted(names) == ["one.y", "two.y"]
    library = layout.read(net).meta_graph(None).graph_def.library
    makers = [
        function.signature.name
        for function in library.function
        for node in function.node_def
        if node.op == "VarIsInitializedOp"
    ]
    assert makers == []  # the trace that makes the variable is not the one that is exported


def test_METH_02_and_METH_03_methods_are_bound_and_share_the_variable(net, both):
    for loaded in both(net):
        add = loaded.one.add
        assert add(3.0).numpy() == 5.0 and add([3.0]).numpy().tolist() == [5.0]
        loaded.one.y.assign(3.0)
        assert add(3.0).numpy() == 6.0 and add([3.0]).numpy().tolist() == [6.0]


def test_METH_04_the_python_type_is_not_preserved(net, both):
    for loaded in both(net):
        assert "Net" not in repr(loaded.one) and "Net" not in type(loaded.one).__name__
    np.testing.assert_equal(type(reference_impl.load(net).one).__name__, "LoadedObject")
