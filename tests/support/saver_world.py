"""Classes and a checkpoint saver of a user, registered with TensorFlow as its own tests do it."""

from __future__ import annotations

import contextlib
import itertools

import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable
from tensorflow.python.saved_model.registration import registration

import reference_impl

_NUMBERS = itertools.count()


class World:
    """Two classes of a user, and a checkpoint saver for them, under names that no other test has.

    TensorFlow's writer takes only savers that read through functions of the object, and variables
    that copy themselves.
    """

    def __init__(self, strict):
        number = next(_NUMBERS)

        @registration.register_serializable("tests", f"Part{number}")
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

        @registration.register_serializable("tests", f"Holder{number}")
        class Holder(tf.Module):
            @tf.function(input_signature=[])
            def value(self):
                return -self.v

        self.name, self.holder, self.part = f"tests.Saver{number}", Holder, Part
        self.classes = {f"tests.Part{number}": Part, f"tests.Holder{number}": Holder}
        registration.register_checkpoint_saver(
            "tests",
            f"Saver{number}",
            lambda obj: isinstance(obj, (Part, Holder)),
            self.save,
            self.restore,
            strict,
        )

    def save(self, trackables, file_prefix):
        found = self.holders(trackables)
        values = [holder.value() for holder in found.values()]
        tf.raw_ops.SaveV2(
            prefix=file_prefix,
            tensor_names=list(found),
            shape_and_slices=[""] * len(found),
            tensors=values,
        )
        return file_prefix

    def restore(self, trackables, merged_prefix):
        found = self.holders(trackables)
        dtypes = [tf.float32] * len(found)
        read = tf.raw_ops.RestoreV2(
            prefix=merged_prefix,
            tensor_names=list(found),
            shape_and_slices=[""] * len(found),
            dtypes=dtypes,
        )
        for holder, value in zip(found.values(), read):
            holder.v.assign(-value)

    def holders(self, trackables):
        return {
            f"{name}/negated": obj
            for name, obj in sorted(trackables.items())
            if not isinstance(obj, tf.Variable)
        }

    def model(self, value):
        root = tf.Module()
        root.deep = self.holder()
        root.deep.v, root.plain = self.part(value), tf.Variable(5.0)
        root.f = tf.function(lambda x: x * root.deep.v, input_signature=[tf.TensorSpec([])])
        return root

    @contextlib.contextmanager
    def registered(self):
        """Register the classes with `reference_impl` inside the context."""
        for name, cls in self.classes.items():
            reference_impl.register(name, cls)
        try:
            yield
        finally:
            for name in self.classes:
                reference_impl.unregister(name)

    @contextlib.contextmanager
    def unregistered(self):
        """Take the saver out of the registry inside the context: a process that has never heard of
        it.
        """
        registry = registration._saver_registry
        kept = (
            registry._registered_map.pop(self.name),
            registry._registered_predicates.pop(self.name),
        )
        try:
            yield
        finally:
            registry._registered_map[self.name], registry._registered_predicates[self.name] = kept
