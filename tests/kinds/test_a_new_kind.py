"""A kind that a program adds: read, children, state, written, and what other readers make of it."""

from __future__ import annotations

import pytest

import reference_impl
from reference_impl import LoadOptions, SaveOptions, errors

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def counter_class(tf):
    class Counter(tf.Module):
        def __init__(self, calls=0):
            super().__init__()
            self.calls = calls
            self.total = tf.Variable(0.0)

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def add(self, x):
            return self.total.assign_add(x)

        def twice(self):
            return 2 * self.calls

    return Counter


@pytest.fixture(scope="module")
def kind(tf, counter_class):
    class Counters(reference_impl.ObjectKind):
        identifier = "my_package.counter"

        def matches(self, obj):
            return type(obj) is counter_class

        def make(self):
            return counter_class()

        def state(self, obj):
            return {"calls": tf.constant(obj.calls)}

        def set_state(self, obj, state):
            obj.calls = int(state["calls"])

    return Counters()


@pytest.fixture(scope="module")
def saved(tf, counter_class, kind, tmp_path_factory):
    model = tf.Module()
    model.counter = counter_class(calls=3)
    model.counter.total.assign(2.5)
    path = tmp_path_factory.mktemp("new_kind") / "model"
    reference_impl.save(model, path, options=SaveOptions(kinds=[kind]))
    return path


def test_an_object_comes_back_with_its_children_and_state(counter_class, kind, saved):
    counter = reference_impl.load(saved, options=LoadOptions(kinds=[kind])).counter
    assert type(counter) is counter_class
    assert (counter.calls, counter.twice(), counter.total.numpy()) == (3, 6, 2.5)
    assert counter.add(1.0).numpy() == 3.5  # the loaded function, on the loaded variable
    assert counter.total.numpy() == 3.5


def test_a_part_has_it_too(counter_class, kind, saved):
    options = LoadOptions(kinds=[kind], only="counter")
    assert type(reference_impl.load(saved, options=options).counter) is counter_class


def test_a_loaded_object_is_saved_again(kind, saved, tmp_path):
    loaded = reference_impl.load(saved, options=LoadOptions(kinds=[kind]))
    loaded.counter.calls = 8
    reference_impl.save(loaded, tmp_path / "again", options=SaveOptions(kinds=[kind]))
    again = reference_impl.load(tmp_path / "again", options=LoadOptions(kinds=[kind]))
    assert again.counter.calls == 8


def test_another_object_of_the_class_has_the_kind_too(counter_class, kind, saved):
    loaded = reference_impl.load(saved, options=LoadOptions(kinds=[kind]))
    assert type(type(loaded)().counter) is counter_class


def test_without_the_kind_it_is_a_generic_object(counter_class, saved):
    counter = reference_impl.load(saved).counter
    assert type(counter) is not counter_class
    assert counter.total.numpy() == 2.5


def test_tensorflow_loads_a_generic_object(tf, saved):
    counter = tf.saved_model.load(str(saved)).counter
    assert counter.total.numpy() == 2.5
    assert counter.add(1.0).numpy() == 3.5


def test_inspect_names_the_identifier(saved):
    (meta_graph,) = reference_impl.inspect(saved).meta_graphs
    assert "my_package.counter" in [node.details.get("identifier") for node in meta_graph.objects]


@pytest.mark.parametrize("name", ["counter", "tf.counter", "_generic_user_object", 3])
def test_an_identifier_is_a_package_and_a_name(kind, name):
    class Misnamed(type(kind)):
        identifier = name

    for options in (LoadOptions, SaveOptions):
        with pytest.raises((errors.OptionError, errors.SaveOptionError), match=r"identifier|kinds"):
            options(kinds=[Misnamed()])


def test_two_kinds_of_one_identifier_are_refused(kind):
    with pytest.raises(errors.OptionError, match="two kinds"):
        LoadOptions(kinds=[kind, kind])


def test_a_class_in_place_of_an_instance_is_refused(kind):
    with pytest.raises(errors.OptionError, match="instance"):
        LoadOptions(kinds=[type(kind)])
