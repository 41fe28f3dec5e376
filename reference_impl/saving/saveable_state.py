"""The state of objects beside variables: its current value, and the functions that save and restore
it.

The content of tables and other resources has such functions. Python state
(`tf.train.experimental.PythonState`) has none, since it is the code of its class that restores it.
It is in the checkpoint alone, from which a `tf.train.Checkpoint` restores it.

The format has two forms. In the older form, which TensorFlow's tables still use, the save function
takes the checkpoint key and returns a list of names and tensors. In the newer form it returns a
dict. Resources that we loaded are written in the newer form. Resources that TensorFlow loaded keep
their form and their functions, since otherwise each save would wrap them once more (GOAL-13).

RFC: RES-15, FMT-09, FMT-10
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SavedModelError, SaveError
from reference_impl.format.names import CREATE, escape
from reference_impl.graph.references import nodes_of
from reference_impl.kinds.resource import TENSORS, LoadedResource
from reference_impl.kinds.signature_map import SignatureMap
from reference_impl.kinds.user_object import PYTHON_STATE
from reference_impl.saving.node import Node
from reference_impl.saving.traces import is_function
from reference_impl.saving.tree import Tree, TreeBuilder
from reference_impl.saving.values import eager_tensor, of_tensors

_log = logging.getLogger(__name__)

_RESTORE = (
    "loaders cannot restore it,"
    ' `tf.train.Checkpoint(model).restore("<export>/variables/variables")` can'
)
_HASH_TABLES = {
    "MutableHashTable",
    "MutableHashTableV2",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
}


@dataclass(frozen=True, eq=False)
class SaveableState:
    """State of an object, with its pair of concrete functions.

    Attributes:
      name: in SavedObject.saveable_objects.
      save, restore: the functions; None for state that is in the checkpoint alone.
      parts: names of the tensors, as they follow ``<path>/.ATTRIBUTES/`` in checkpoint keys.
      values: the current tensors.
      unordered: whether the tensors are keys and values of a table, whose order differs between
        processes.
    """

    name: str
    save: Optional[Any]
    restore: Optional[Any]
    parts: Sequence[str]
    values: Sequence[tf.Tensor]
    unordered: bool = False

    @property
    def takes_key(self) -> bool:
        return self.name != TENSORS

    @property
    def results(self) -> list[int]:
        """Return the positions of the tensors in the results of the save function: the older form
        has (name, slice, tensor).
        """
        return (
            [3 * i + 2 for i in range(len(self.parts))]
            if self.takes_key
            else list(range(len(self.parts)))
        )

    def attributes(self) -> dict[str, str]:
        """Return attribute name -> end of its checkpoint key, for the TrackableObjectGraph."""
        return {self.name: self.name} if self.takes_key else {part: part for part in self.parts}


def add_states(tree: TreeBuilder) -> dict[int, list[SaveableState]]:
    """Return number of a node -> the state of its object.

    The functions that save and restore the state are added to the tree.
    """
    out: dict[int, list[SaveableState]] = {}
    for node in list(tree.nodes):
        stateless = node.is_variable or isinstance(node.object, SignatureMap)
        if not isinstance(node.object, api.Trackable) or is_function(node.object) or stateless:
            continue
        with api.eager_mode() if _is_eager(node.object) else contextlib.nullcontext():
            found = states_of(node, tree)
        if found:
            out[node.number] = found
        for state in found:
            if state.save is not None:
                tree.add(state.save, f"{node.path}.save")
                tree.add(state.restore, f"{node.path}.restore")
    return out


def _is_eager(obj: object) -> bool:
    """Return whether an object is a resource that was made eagerly; it may be saved while a graph
    is the default.
    """
    handle = api.resource_handle(obj) if isinstance(obj, api.CapturableResource) else None
    return handle is not None and eager_tensor(handle)


def states_of(node: Node, tree: Tree) -> list[SaveableState]:
    """Return the state of an object beside variables.

    Raises:
      SaveError: the state cannot be read, or (with ``strict``) no function can save and restore it.
    """
    obj, path = node.object, node.path
    if isinstance(obj, LoadedResource):
        return [] if obj.content is None else [_loaded(*obj.content, _is_hash_table(obj))]
    kept = node.kind.state(obj)
    if kept:
        return [SaveableState(name, None, None, [name], [value]) for name, value in kept.items()]
    if isinstance(obj, tf.train.experimental.PythonState):
        _log.warning(
            "%s: the Python state of a %s is in the checkpoint alone: %s",
            path,
            type(obj).__name__,
            _RESTORE,
        )
        return _in_checkpoint_alone(obj, path)
    try:
        return _with_functions(obj, path)
    except SavedModelError:
        raise
    except Exception as error:  # hooks are user code
        reason = f"its state cannot be saved by a function: {str(error) or type(error).__name__}"
        found = _in_checkpoint_alone(obj, path)
        tree.report_loss(
            SaveError(reason, node=path, clause="RES-15"),
            f"state is in the checkpoint alone: {_RESTORE}",
        )
        return found


def _in_checkpoint_alone(obj: object, path: str) -> list[SaveableState]:
    """Return the current state of an object, without functions.

    Raises SaveError if it cannot be read.
    """
    try:
        with api.eager_mode():
            if isinstance(obj, tf.train.experimental.PythonState):
                found = {PYTHON_STATE: {PYTHON_STATE: tf.constant(obj.serialize(), tf.string)}}
            else:
                found = api.checkpointed(obj)
    except Exception as error:  # hooks are user code
        reason = f"its state cannot be read: {str(error) or type(error).__name__}"
        raise SaveError(reason, node=path, clause="RES-15") from error
    return [
        SaveableState(name, None, None, [*map(escape, parts)], [*parts.values()])
        for name, parts in found.items()
    ]


def _with_functions(obj: object, path: str) -> list[SaveableState]:
    """Return the state of an object with functions that save and restore it.

    Raises what its hooks raise, which are user code.
    """
    hooks = api.content_hooks(obj)
    if hooks is not None and all(isinstance(hook, api.ConcreteFunction) for hook in hooks):
        return [_loaded(*hooks, False)]
    if hooks is not None:
        # Not a dense table, which exports all its buckets, including empty ones, whose positions
        # matter.
        unordered = isinstance(obj, tf.lookup.experimental.MutableHashTable)
        return [_traced(*hooks, api.content_name(obj), unordered)]
    return [
        _of_factory(name, factory, path)
        for name, factory in sorted(api.content_factories(obj).items())
    ]


def _loaded(
    save: tf.types.experimental.ConcreteFunction,
    restore: tf.types.experimental.ConcreteFunction,
    unordered: bool,
) -> SaveableState:
    names = sorted(save.structured_outputs)
    now = save()
    return SaveableState(
        TENSORS,
        save,
        restore,
        [escape(name) for name in names],
        [now[name] for name in names],
        unordered,
    )


def _is_hash_table(resource: LoadedResource) -> bool:
    created = resource.functions.get(CREATE)
    for trace in (
        api.traces(created)
        if isinstance(created, api.Function)
        else [created]
        if created is not None
        else []
    ):
        called = map(trace.library.get, trace.library.closure(trace.saved_name))
        return any(node.op in _HASH_TABLES for node in nodes_of(called))
    return False


def _traced(
    save: Callable[[], Any], restore: Callable[[Any], Any], legacy: str, unordered: bool
) -> SaveableState:
    now = save()
    names = sorted(now)
    if any(not isinstance(now[name], tf.Tensor) for name in names):
        raise TypeError("it is not made of tensors")
    specs = [
        tf.TensorSpec(None, now[name].dtype, f"restored_tensors_{i}")
        for i, name in enumerate(names)
    ]
    values = [now[name] for name in names]
    if not legacy:
        put_out = tf.function(lambda: dict(save()), autograph=False).get_concrete_function()
        take_in = tf.function(
            lambda tensors: _one(restore(tensors)), autograph=False
        ).get_concrete_function(dict(zip(names, specs)))
        parts = [escape(name) for name in names]
        return SaveableState(TENSORS, put_out, take_in, parts, values, unordered)
    put_out = _named_save(
        lambda key: [(key + name, tensor) for name, tensor in sorted(save().items())]
    )
    take_in = _named_restore(lambda tensors: restore(dict(zip(names, tensors))), specs)
    parts = [legacy + name for name in names]
    return SaveableState(legacy, put_out, take_in, parts, values, unordered)


def _of_factory(name: str, factory: object, path: str) -> SaveableState:
    """Return the content in the oldest form: an object with `specs` (names and tensors) and
    `restore(tensors, shapes)`.
    """
    if api.is_variable(factory) or not callable(factory):
        raise TypeError(f"{name!r} is of a kind that has none")
    now = factory(name=name)
    specs = [
        tf.TensorSpec(None, spec.dtype, f"restored_tensors_{i}") for i, spec in enumerate(now.specs)
    ]
    parts = [
        spec.name if isinstance(spec.name, str) else of_tensors([spec.name], path)[0].decode()
        for spec in now.specs
    ]
    functions = api.loaded_content(factory)
    if functions is not None:
        return SaveableState(name, *functions, parts, [spec.tensor for spec in now.specs])
    suffixes = [part[len(name) :] for part in parts]

    def entries(key: tf.Tensor) -> list[tuple[Any, tf.Tensor]]:
        names = [key + suffix for suffix in suffixes]
        return [(name, spec.tensor) for name, spec in zip(names, factory(name=key).specs)]

    put_out = _named_save(entries)
    take_in = _named_restore(lambda restored: now.restore(restored, None), specs)
    return SaveableState(name, put_out, take_in, parts, [spec.tensor for spec in now.specs])


def _named_save(entries: Callable[[tf.Tensor], Sequence[tuple[Any, tf.Tensor]]]) -> Any:
    def save_fn(checkpoint_key: tf.Tensor) -> Any:
        return [
            {"name": name, "slice_spec": tf.constant(""), "tensor": tensor}
            for name, tensor in entries(checkpoint_key)
        ]

    return tf.function(save_fn, autograph=False).get_concrete_function(
        tf.TensorSpec([], tf.string, "checkpoint_key")
    )


def _named_restore(
    restore: Callable[[list[tf.Tensor]], Any], specs: Sequence[tf.TensorSpec]
) -> Any:
    def restore_fn(*restored_tensors: tf.Tensor) -> Any:
        return _one(restore(list(restored_tensors)))

    return tf.function(restore_fn, autograph=False).get_concrete_function(*specs)


def _one(_: object) -> tf.Tensor:
    return tf.constant(1)  # a function must have a result


def read(state: SaveableState, path: str) -> list[tuple[str, Any, tf.DType]]:
    """Return name, current array and dtype of each part of the object at `path`.

    Entries of a hash table are sorted by key.
    """
    arrays = of_tensors(state.values, path)
    if state.unordered and len(arrays) == 2 and len(arrays[0]) == len(arrays[1]) > 1:
        keys = arrays[0].reshape(len(arrays[0]), -1).tolist()
        order = sorted(range(len(keys)), key=keys.__getitem__)
        arrays = [array[order] for array in arrays]
    return [
        (part, array, tensor.dtype)
        for part, array, tensor in zip(state.parts, arrays, state.values)
    ]
