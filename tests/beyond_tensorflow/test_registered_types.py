"""Objects of registered types come back as what they were (REV-*)."""

from __future__ import annotations

import numpy as np
import pytest
from extensions import rewrite
from model_edits import differences

import reference_impl
from reference_impl import errors
from reference_impl.format.container import layout
from savedmodel_tools.canonical.form import canonical

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def has_python(tf):
    class HasPython(tf.Module):
        phase = 0

        def __init__(self, scale=1):
            super().__init__()
            self.v = tf.Variable(1.0)
            self.scale = scale

        @tf.function
        def do(self, x, learning_phase):
            if learning_phase == 0:
                return x
            return x + self.v

        def __call__(self, x):
            return self.do(x, learning_phase=type(self).phase) * self.scale

    return HasPython


@pytest.fixture
def python_export(tf, has_python, registered, tmp_path):
    registered(
        "tests.HasPython",
        has_python,
        serialize=lambda obj: {"scale": obj.scale, "raw": b"\xff\x00", "nest": (1, [None, "a"])},
    )
    root = tf.Module()
    root.child = has_python(3)
    root.child.do(tf.constant(1.0), learning_phase=0)
    root.child.do(tf.constant(1.0), learning_phase=1)
    reference_impl.save(root, tmp_path / "m")
    return tmp_path / "m"


@pytest.mark.clause("REV-01", "REV-02", "REV-03", "REV-06")
def test_REV_01_each_object_has_a_type_of_its_own_with_functions_and_variables(
    tf, has_python, tmp_path
):
    root = has_python()
    root.do(tf.constant(1.0), learning_phase=0)
    root.do(tf.constant(1.0), learning_phase=1)
    root.inner = tf.Module()
    root.inner.__call__ = tf.function(
        lambda x: x * 2.0, input_signature=[tf.TensorSpec([], tf.float32)]
    )
    reference_impl.save(root, tmp_path / "m")
    loaded = reference_impl.load(tmp_path / "m")
    assert type(loaded) is not type(loaded.inner)
    module = reference_impl.load(tmp_path / "m", options=reference_impl.LoadOptions(modules=True))
    assert isinstance(module, tf.Module) and type(module) is not type(module.inner)
    assert isinstance(loaded.v, tf.Variable)
    assert loaded.inner(3.0).numpy() == 6.0 and not callable(
        loaded
    )  # the Python __call__ needs a registration
    assert [loaded.do(tf.constant(1.0), learning_phase=phase).numpy() for phase in (0, 1)] == [
        1.0,
        2.0,
    ]
    with pytest.raises(errors.FunctionMatchError):
        loaded.do(tf.constant(1.0), learning_phase=2)


@pytest.mark.clause("REV-05", "RP-02")
def test_REV_05_python_call_around_a_function_works_after_loading(tf, has_python, python_export):
    loaded = reference_impl.load(python_export)
    assert type(loaded.child) is has_python
    assert loaded.child(tf.constant(1.0)).numpy() == 3.0
    has_python.phase = 1
    try:
        assert loaded.child(tf.constant(1.0)).numpy() == 6.0
        loaded.child.v.assign(5.0)
        assert loaded.child(tf.constant(1.0)).numpy() == 18.0
    finally:
        has_python.phase = 0
    assert (loaded.child.scale, loaded.child.raw, loaded.child.nest) == (
        3,
        b"\xff\x00",
        (1, [None, "a"]),
    )


def test_REV_04_registered_name_is_written_as_shipped_files_have_it(tf, python_export, tmp_path):
    nodes = layout.read(python_export).saved_model.meta_graphs[0].object_graph_def.nodes
    assert [node.registered_name for node in nodes if node.registered_name] == ["tests.HasPython"]
    assert all(
        node.user_object.identifier == "_generic_user_object"
        for node in nodes
        if node.registered_name
    )
    shipped = tf.saved_model.load(str(python_export))
    assert shipped.child.do(tf.constant(1.0), learning_phase=1).numpy() == 2.0
    reference_impl.save(reference_impl.load(python_export), tmp_path / "again")
    assert not differences(canonical(python_export), canonical(tmp_path / "again"))


def test_REV_04_unknown_name_is_a_generic_object_and_a_warning(
    tf, has_python, python_export, tmp_path
):
    reference_impl.unregister("tests.HasPython")
    try:
        with pytest.warns(
            UserWarning,
            match=r"root\.child .*'tests\.HasPython'.*reference_impl\.register",
        ):
            loaded = reference_impl.load(python_export)
        assert loaded.child.do(tf.constant(1.0), learning_phase=1).numpy() == 2.0
        assert not callable(loaded.child)
        reference_impl.save(
            loaded, tmp_path / "again"
        )  # nothing is lost by who does not know the class
    finally:
        reference_impl.register("tests.HasPython", has_python)
    again = reference_impl.load(tmp_path / "again").child
    assert type(again) is has_python
    assert (again.scale, again.raw) == (3, b"\xff\x00")


def test_REV_04_registration_is_refused_for_taken_or_foreign_names(tf, has_python, registered):
    class Other(tf.Module):
        pass

    registered("tests.Taken", Other)
    for name, cls, error, text in [
        ("tests.Taken", has_python, ValueError, "is taken by"),
        ("tests.Second", Other, ValueError, "registered already, as 'tests.Taken'"),
        ("NoPackage", has_python, ValueError, "a package and a name"),
        ("tf.StaticHashTable", has_python, ValueError, "belong to TensorFlow"),
        ("tests.Third", "a string", TypeError, "only a class"),
    ]:
        with pytest.raises(error, match=text):
            reference_impl.register(name, cls)

    @reference_impl.register("tests.Decorated")
    class Decorated(tf.Module):
        pass

    assert isinstance(Decorated, type)
    reference_impl.unregister("tests.Decorated")


def test_REV_04_revive_makes_the_object_and_children_replace_what_it_made(tf, registered, tmp_path):
    class Scaler(tf.Module):
        def __init__(self, size):
            super().__init__()
            self.size = size
            self.w = tf.Variable(tf.zeros([size]))

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def __call__(self, x):
            return x * self.w

        def describe(self):
            return f"{self.size}: {self.w.numpy().tolist()}"

    registered(
        "tests.Scaler",
        Scaler,
        serialize=lambda obj: {"size": obj.size},
        revive=lambda cls, state: cls(**state),
    )
    scaler = Scaler(2)
    scaler.w.assign([3.0, 4.0])
    for generation in ("one", "two", "three"):
        reference_impl.save(scaler, tmp_path / generation)
        scaler = reference_impl.load(tmp_path / generation)
        assert isinstance(scaler, Scaler)
        assert scaler.describe() == "2: [3.0, 4.0]"
        assert scaler(2.0).numpy().tolist() == [6.0, 8.0]
        assert scaler.signatures["serving_default"](tf.constant(2.0))[
            "output_0"
        ].numpy().tolist() == [6.0, 8.0]
    assert not differences(canonical(tmp_path / "two"), canonical(tmp_path / "three"))


@pytest.mark.parametrize("value", [object(), {1: 2}, np.float32(1), {"a": b"deep"}])
def test_REV_04_what_serialize_gives_must_be_plain(tf, registered, tmp_path, value):
    class Odd(tf.Module):
        pass

    registered("tests.Odd", Odd, serialize=lambda obj: {"value": value})
    with pytest.raises(errors.SaveError, match=r"'value'.*bytes"):
        reference_impl.save(Odd(), tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_REV_04_revive_must_give_the_class(tf, has_python, python_export):
    reference_impl.unregister("tests.HasPython")
    reference_impl.register("tests.HasPython", has_python, revive=lambda cls, state: tf.Module())
    with pytest.raises(errors.UnsupportedModelError, match="of that class"):
        reference_impl.load(python_export)


@pytest.fixture
def made_of_parts(tf):
    """A class that TensorFlow's own hooks write and make: of a variable, a part and a message."""
    from google.protobuf import wrappers_pb2

    class Made(tf.Module):
        def __init__(self, v, part, title):
            super().__init__()
            self.v, self.part, self.title = v, part, title

        def _deserialization_dependencies(self, children):
            assert {"v", "part"} <= set(children)
            return {"v": self.v, "part": self.part}

        def _serialize_to_proto(self, object_proto=None, **kwargs):
            return wrappers_pb2.StringValue(value=self.title)

        @classmethod
        def _deserialize_from_proto(cls, proto, dependencies, **kwargs):
            title = wrappers_pb2.StringValue()
            assert proto.Unpack(title)
            return cls(dependencies["v"], dependencies["part"], title.value)

    return Made


@pytest.mark.clause("RP-02", "REV-04")
def test_RP_02_what_an_object_is_made_of_is_made_before_it(tf, registered, made_of_parts, tmp_path):
    registered("tests.Made", made_of_parts)
    root = tf.Module()
    # The inner object comes after the outer one in the walk, and before it when they are made.
    inner = made_of_parts(tf.Variable(2.0), [tf.Variable(3.0)], "inner")
    root.outer = made_of_parts(tf.Variable(1.0), inner, "outer")
    for generation in ("first", "second"):
        reference_impl.save(root, tmp_path / generation)
        root = reference_impl.load(tmp_path / generation)
        assert isinstance(root.outer, made_of_parts) and isinstance(root.outer.part, made_of_parts)
        assert (root.outer.title, root.outer.part.title) == ("outer", "inner")
        assert (
            root.outer.v.numpy(),
            root.outer.part.v.numpy(),
            root.outer.part.part[0].numpy(),
        ) == (1.0, 2.0, 3.0)
    reference_impl.unregister("tests.Made")
    with pytest.warns(UserWarning, match=r"tests\.Made"):
        unknown = reference_impl.load(tmp_path / "first")
    reference_impl.save(unknown, tmp_path / "third")
    reference_impl.register("tests.Made", made_of_parts)
    assert reference_impl.load(tmp_path / "third").outer.part.title == "inner"


def test_RP_02_what_is_no_part_of_the_export_is_refused(tf, registered, made_of_parts, tmp_path):
    class Lost(made_of_parts):
        def _deserialization_dependencies(self, children):
            return {"other": tf.Variable(1.0)}

    root = tf.Module()
    root.made = Lost(tf.Variable(1.0), None, "title")
    with pytest.raises(errors.SaveError, match=r"root\.made: .*'other'"):
        reference_impl.save(root, tmp_path / "m")


def test_RP_02_objects_that_are_made_of_each_other_are_a_cycle(
    tf, registered, made_of_parts, tmp_path
):
    class Circular(made_of_parts):
        def _deserialization_dependencies(self, children):
            return {} if self.part is None else {"part": self.part}

    registered("tests.Circular", Circular)
    root = tf.Module()
    root.a = Circular(None, None, "a")
    root.a.part = Circular(None, root.a, "b")
    with pytest.raises(errors.SaveError, match=r"cycle .*: root\.a, root\.a\.part"):
        reference_impl.save(root, tmp_path / "m")
    root.a.part = Circular(None, None, "b")
    reference_impl.save(root, tmp_path / "m")

    def circle(meta_graph):
        nodes = meta_graph.object_graph_def.nodes
        (outer,) = [number for number, node in enumerate(nodes) if node.dependencies]
        nodes[nodes[outer].dependencies[0].node_id].dependencies.add(
            node_id=outer, local_name="part"
        )

    rewrite(tmp_path / "m", circle)
    with pytest.raises(errors.CycleError, match="each other"):
        reference_impl.load(tmp_path / "m")


@pytest.mark.clause("REV-04")
def test_REV_04_attributes_that_tensorflow_wrapped_are_plain_for_serialize(
    tf, registered, tmp_path
):
    class Sized(tf.Module):
        def __init__(self, sizes, names, pair):
            super().__init__()
            self.sizes, self.names, self.pair = sizes, names, pair

    registered(
        "tests.Sized",
        Sized,
        serialize=lambda obj: {"sizes": obj.sizes, "names": obj.names, "pair": obj.pair},
    )
    sized = Sized([1, [2, 3]], {"a": ["b"]}, ([4], None))
    assert type(sized.sizes) is not list and type(sized.pair) is not tuple, (
        "otherwise this test shows nothing"
    )
    reference_impl.save(sized, tmp_path / "m")
    again = reference_impl.load(tmp_path / "m")
    assert (list(again.sizes), dict(again.names), tuple(again.pair)) == (
        [1, [2, 3]],
        {"a": ["b"]},
        ([4], None),
    )
