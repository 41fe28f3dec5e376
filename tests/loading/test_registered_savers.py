"""State that a registered checkpoint saver wrote (`tensorflow.python.saved_model.registration`, as its users call it)."""

from __future__ import annotations

import itertools

import pytest

import reference_impl

pytestmark = pytest.mark.tensorflow
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


class World:
    """Two classes of a user, and a checkpoint saver for them, under names that no other test has.

    TensorFlow's writer takes only savers that read through functions of the object, and variables that copy themselves.
    """

    def __init__(self, tf, strict):
        from tensorflow.python.ops.resource_variable_ops import ResourceVariable

        self.registration = pytest.importorskip("tensorflow.python.saved_model.registration")
        self.tf, number = tf, next(_NUMBERS)

        @self.registration.register_serializable("tests", f"Part{number}")
        class Part(ResourceVariable):
            def __init__(self, value):
                self._init_from_args(value)

            @classmethod
            def _deserialize_from_proto(cls, object_proto, **_options):
                return cls(tf.zeros([size.size for size in object_proto.variable.shape.dim]))

            def _export_to_saved_model_graph(self, object_map, tensor_map, **_options):
                object_map[self] = copy = Part(tf.zeros(self.shape, self.dtype))
                tensor_map[self.handle] = copy.handle
                return [self.handle]

        @self.registration.register_serializable("tests", f"Holder{number}")
        class Holder(tf.Module):
            @tf.function(input_signature=[])
            def value(self):
                return -self.v

        self.name, self.holder, self.part = f"tests.Saver{number}", Holder, Part
        self.classes = {f"tests.Part{number}": Part, f"tests.Holder{number}": Holder}
        self.registration.register_checkpoint_saver(
            "tests", f"Saver{number}", lambda obj: isinstance(obj, (Part, Holder)), self.save, self.restore, strict
        )

    def save(self, trackables, file_prefix):
        found = self.holders(trackables)
        values = [holder.value() for holder in found.values()]
        self.tf.raw_ops.SaveV2(prefix=file_prefix, tensor_names=list(found), shape_and_slices=[""] * len(found), tensors=values)
        return file_prefix

    def restore(self, trackables, merged_prefix):
        found = self.holders(trackables)
        dtypes = [self.tf.float32] * len(found)
        read = self.tf.raw_ops.RestoreV2(
            prefix=merged_prefix, tensor_names=list(found), shape_and_slices=[""] * len(found), dtypes=dtypes
        )
        for holder, value in zip(found.values(), read):
            holder.v.assign(-value)

    def holders(self, trackables):
        return {f"{name}/negated": obj for name, obj in sorted(trackables.items()) if not isinstance(obj, self.tf.Variable)}

    def model(self, value):
        root = self.tf.Module()
        root.deep = self.holder()
        root.deep.v, root.plain = self.part(value), self.tf.Variable(5.0)
        root.f = self.tf.function(lambda x: x * root.deep.v, input_signature=[self.tf.TensorSpec([])])
        return root

    def forget(self, monkeypatch):
        from tensorflow.python.saved_model.registration import registration

        monkeypatch.delitem(registration._saver_registry._registered_map, self.name)
        monkeypatch.delitem(registration._saver_registry._registered_predicates, self.name)


@pytest.fixture
def register():
    """``register(world)``: register its classes, for this test."""
    names = []

    def add(world):
        for name, cls in world.classes.items():
            reference_impl.register(name, cls)
            names.append(name)

    yield add
    for name in names:
        reference_impl.unregister(name)


@pytest.mark.parametrize("strict", [True, False])
def test_what_a_registered_saver_wrote_is_restored_by_it(tf, tmp_path, register, strict):
    world = World(tf, strict)
    tf.saved_model.save(world.model([1.0, 2.0]), str(tmp_path / "m"))
    assert tf.saved_model.load(str(tmp_path / "m")).deep.v.numpy().tolist() == [1.0, 2.0]
    register(world)
    loaded = reference_impl.load(tmp_path / "m")
    assert type(loaded.deep) is world.holder and type(loaded.deep.v) is world.part
    assert loaded.deep.v.numpy().tolist() == [1.0, 2.0] and float(loaded.plain) == 5.0
    assert loaded.f(2.0).numpy().tolist() == [2.0, 4.0]
    reference_impl.save(loaded, tmp_path / "again")
    for load in (reference_impl.load, lambda path: tf.saved_model.load(str(path))):
        assert load(tmp_path / "again").deep.v.numpy().tolist() == [1.0, 2.0]


def test_the_root_itself_may_be_such_an_object(tf, tmp_path, register):
    world = World(tf, strict=True)
    tf.saved_model.save(world.model([1.0, 2.0]).deep, str(tmp_path / "m"))
    register(world)
    assert reference_impl.load(tmp_path / "m").v.numpy().tolist() == [1.0, 2.0]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("strict", [True, False])
def test_what_no_saver_restores_is_an_error_and_never_a_variable_without_a_value(tf, tmp_path, monkeypatch, strict):
    """TensorFlow passes over it where it does not find the saver."""
    world = World(tf, strict)
    tf.saved_model.save(world.model([1.0, 2.0]), str(tmp_path / "m"))
    errors = reference_impl.errors
    with pytest.raises(errors.MissingValueError, match=rf"root\.deep.*{world.name}.*the class by reference_impl\.register"):
        reference_impl.load(tmp_path / "m")
    world.forget(monkeypatch)
    assert tf.saved_model.load(str(tmp_path / "m")).deep.v.numpy().tolist() == [0.0, 0.0]
    with pytest.raises(errors.MissingValueError, match=rf"root\.deep.*{world.name}.*register the saver"):
        reference_impl.load(tmp_path / "m")
    for option in ("skip_checkpoint", "allow_partial_checkpoint"):
        loaded = reference_impl.load(tmp_path / "m", options=reference_impl.LoadOptions(**{option: True}))
        assert not loaded.deep.v.is_initialized()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_in_a_graph_no_saver_runs(tf, tmp_path):
    tf.saved_model.save(World(tf, strict=False).model([1.0, 2.0]), str(tmp_path / "m"))
    with tf.Graph().as_default():
        with pytest.raises(NotImplementedError, match="registered checkpoint saver is not supported in graph mode"):
            tf.saved_model.load(str(tmp_path / "m"))
        with pytest.raises(reference_impl.errors.UnsupportedModelError, match="is not supported in graph mode"):
            reference_impl.load(tmp_path / "m")
