"""The content of tables and the like: the functions that put it out and take it in, and what it is now (RES-15, FMT-09, FMT-10).

The file knows two forms. In the older one, which the tables of TensorFlow still have, the save function takes the checkpoint key and
gives a list of names and tensors; in the newer one it gives a dict. What was loaded is written in the newer one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.format.errors import SavedModelError
from reference_impl.loading.resources import TENSORS, LoadedResource

KEYS, VALUES = "-keys", "-values"


@dataclass
class Content:
    """One pair of functions of an object.

    Attributes:
      name: in SavedObject.saveable_objects.
      save, restore: concrete functions.
      parts: names of the tensors, as they follow ``<path>/.ATTRIBUTES/`` in checkpoint keys.
      values: the tensors now.
    """

    name: str
    save: Any
    restore: Any
    parts: list[str]
    values: Callable[[], list[tf.Tensor]]

    @property
    def takes_key(self) -> bool:
        return self.name != TENSORS

    @property
    def results(self) -> list[int]:
        """Where the tensors are among the results of the save function; the older form gives (name, slice, tensor) for each."""
        return [3 * i + 2 for i in range(len(self.parts))] if self.takes_key else list(range(len(self.parts)))

    def attributes(self) -> dict[str, str]:
        """Attribute name -> end of its checkpoint key, for the TrackableObjectGraph."""
        return {self.name: self.name} if self.takes_key else {part: part for part in self.parts}


def contents_of(obj: Any, path: str) -> list[Content]:
    """What an object has beside variables.

    Raises:
      SaveError: it has state that no function can put out.
    """
    if api.is_variable(obj):
        return []
    if isinstance(obj, LoadedResource):
        return [] if obj.content is None else [_loaded(*obj.content)]
    hooks = api.content_hooks(obj)
    try:
        if hooks is not None:
            return [_traced(*hooks, api.content_name(obj))]
        return [_of_factory(name, factory) for name, factory in sorted(api.content_factories(obj).items())]
    except SavedModelError:
        raise
    except Exception as error:  # hooks are anybody's code
        raise SaveError(f"its state cannot be saved by a function: {error}", node=path, clause="RES-15") from error


def _loaded(save: Any, restore: Any) -> Content:
    names = sorted(save.structured_outputs)
    return Content(TENSORS, save, restore, [escape(name) for name in names], lambda: [save()[name] for name in names])


def _traced(save: Callable[[], Any], restore: Callable[[Any], Any], legacy: str) -> Content:
    now = save()
    names = sorted(now)
    if any(not isinstance(now[name], tf.Tensor) for name in names):
        raise SaveError("has a state that is not made of tensors", clause="RES-15")
    specs = [tf.TensorSpec(None, now[name].dtype, f"restored_tensors_{i}") for i, name in enumerate(names)]
    values = lambda: [save()[name] for name in names]  # noqa: E731
    if not legacy:
        put_out = tf.function(lambda: dict(save()), autograph=False).get_concrete_function()
        take_in = tf.function(lambda tensors: _one(restore(tensors)), autograph=False).get_concrete_function(
            dict(zip(names, specs))
        )
        return Content(TENSORS, put_out, take_in, [escape(name) for name in names], values)
    return Content(legacy, _named_save(lambda key: [(key + n, t) for n, t in sorted(save().items())]),
                   _named_restore(lambda tensors: restore(dict(zip(names, tensors))), specs), [legacy + n for n in names], values)  # fmt: skip


def _of_factory(name: str, factory: Any) -> Content:
    """The oldest form: an object with `specs` (name and tensor of each part) and `restore(tensors, shapes)`."""
    if api.is_variable(factory) or not callable(factory):
        raise SaveError(f"{name!r} is of a kind that cannot be saved", clause="RES-15")
    now = factory(name)
    specs = [tf.TensorSpec(None, spec.dtype, f"restored_tensors_{i}") for i, spec in enumerate(now.specs)]
    parts = [spec.name if isinstance(spec.name, str) else spec.name.numpy().decode() for spec in now.specs]
    tensors = lambda key: [spec.tensor for spec in factory(key).specs]  # noqa: E731
    suffixes = [part[len(name) :] for part in parts]
    return Content(name, _named_save(lambda key: list(zip([key + s for s in suffixes], tensors(key)))),
                   _named_restore(lambda restored: factory(name).restore(restored, None), specs), parts, lambda: tensors(name))  # fmt: skip


def _named_save(entries: Callable[[tf.Tensor], Sequence[tuple[Any, tf.Tensor]]]) -> Any:
    def save_fn(checkpoint_key: tf.Tensor) -> Any:
        return [{"name": name, "slice_spec": tf.constant(""), "tensor": tensor} for name, tensor in entries(checkpoint_key)]

    return tf.function(save_fn, autograph=False).get_concrete_function(tf.TensorSpec([], tf.string, "checkpoint_key"))


def _named_restore(restore: Callable[[list[tf.Tensor]], Any], specs: Sequence[tf.TensorSpec]) -> Any:
    def restore_fn(*restored_tensors: tf.Tensor) -> Any:
        return _one(restore(list(restored_tensors)))

    return tf.function(restore_fn, autograph=False).get_concrete_function(*specs)


def escape(name: str) -> str:
    """A name as a part of a checkpoint key, where dots and slashes have a meaning."""
    return name.replace(".", "..").replace("/", ".S")


def _one(_: Any) -> tf.Tensor:
    return tf.constant(1)  # a function must give something


def in_order(parts: Sequence[str], arrays: list[Any]) -> list[Any]:
    """Entries of a table sorted by key: a table puts them out in an order that differs from one process to the next."""
    if len(parts) != 2 or not (parts[0].endswith(KEYS) and parts[1].endswith(VALUES)):
        return arrays
    keys, values = (np.asarray(array) for array in arrays)
    if keys.ndim == 0 or len(keys) < 2 or len(keys) != len(values):
        return arrays
    rows = [tuple(row) for row in keys.reshape(len(keys), -1)]
    if len(set(rows)) < len(rows):
        return arrays  # a dense table puts out its buckets, the empty ones too: there the place of an entry has a meaning
    order = sorted(range(len(keys)), key=rows.__getitem__)
    return [keys[order], values[order]]
