"""Hooks of a save: the extension takes part only if the objects have something that it saves."""

from __future__ import annotations

import sys

import pytest

import reference_impl
from reference_impl.format import extension
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow
EXTENSION = "reference_impl.extension"


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def entered():
    """The modules of the extension whose functions ran, while the test's saves are watched."""
    modules = set()

    def seen(frame, event, _):
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith(EXTENSION):
            modules.add(module)

    def watch(save):
        sys.setprofile(seen)
        try:
            save()
        finally:
            sys.setprofile(None)
        return modules

    return watch


def plain(tf):
    root = tf.Module()
    root.v = tf.Variable(1.0)
    root.f = tf.function(lambda: root.v + 1.0, input_signature=[])
    return root


def with_initializer(tf):
    root = plain(tf)
    reference_impl.initializer(root.v, lambda: tf.ones([]))
    return root


def with_variable_of_a_function(tf):
    root = plain(tf)
    root.made = []

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def make(x):
        if not root.made:
            root.made.append(tf.Variable(x * 2.0))
        return root.made[0] + x

    root.make = make
    root.make(tf.constant(1.0))
    return root


def with_optimizer(tf):
    root = plain(tf)
    root.optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    root.optimizer.build([root.v])
    return root


def with_registered_class(tf):
    class Thing(tf.Module):
        pass

    root = plain(tf)
    root.thing = reference_impl.register("test_hooks.Thing", Thing)()
    return root


@pytest.fixture
def unregistered():
    yield
    try:
        reference_impl.unregister("test_hooks.Thing")
    except KeyError:
        pass  # the test registered nothing


def test_a_plain_save_does_not_enter_the_extension(tf, entered, tmp_path):
    root = plain(tf)
    reference_impl.save(root, tmp_path / "first")  # imports what it needs
    assert entered(lambda: reference_impl.save(root, tmp_path / "m")) == set()
    assert extension.KEY not in layout.read(tmp_path / "m").meta_graph(None).collection_def
    loaded = reference_impl.load(tmp_path / "m")
    assert entered(lambda: reference_impl.save(loaded, tmp_path / "again")) == set()


@pytest.mark.usefixtures("unregistered")
@pytest.mark.parametrize(
    "make",
    [with_initializer, with_variable_of_a_function, with_optimizer, with_registered_class],
)
def test_a_save_of_what_the_shipped_format_lacks_enters_it(tf, entered, tmp_path, make):
    root = make(tf)
    assert f"{EXTENSION}.save_hook" in entered(lambda: reference_impl.save(root, tmp_path / "m"))
    if make is with_registered_class:
        from reference_impl.extension.registered_objects import RegistrationWarning

        reference_impl.unregister("test_hooks.Thing")  # the loaded object keeps its name
        with pytest.warns(RegistrationWarning):
            loaded = reference_impl.load(tmp_path / "m")
        reference_impl.save(loaded, tmp_path / "again")
        nodes = layout.read(tmp_path / "again").meta_graph(None).object_graph_def.nodes
        assert "test_hooks.Thing" in {node.registered_name for node in nodes}


def test_an_optimizer_of_a_kind_of_the_program_has_no_update_rule(tf, tmp_path):
    class OwnOptimizer(tf.keras.optimizers.SGD):
        pass

    class OwnKind(reference_impl.ObjectKind):
        identifier = "test_hooks.optimizer"

        def matches(self, obj):
            return type(obj) is OwnOptimizer

    root = with_optimizer(tf)
    root.own = OwnOptimizer(0.1)
    root.own.build([root.v])
    options = reference_impl.SaveOptions(functional_optimizers=True, kinds=[OwnKind()])
    reference_impl.save(root, tmp_path / "m", options=options)
    meta_graph = layout.read(tmp_path / "m").meta_graph(None)
    nodes = meta_graph.object_graph_def.nodes
    own = {child.local_name: child.node_id for child in nodes[0].children}["own"]
    assert nodes[own].user_object.identifier == OwnKind.identifier
    with_rules = [item for item in extension.read(meta_graph).optimizers if item.updates]
    assert with_rules and own not in {item.node_id for item in with_rules}
