"""Tables and other resources: created, filled and destroyed by functions of the model (PRIM-04, PRIM-08, RES-03, RP-04)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import MissingKeyError
from reference_impl.format.names import CREATE, DESTROY, INITIALIZE
from reference_impl.graph import function_builder
from reference_impl.graph.node_defs import string_scalar
from reference_impl.kinds.concrete_function import LoadedConcreteFunction

TENSORS = ".TENSORS"  # the key in SavedObject.saveable_objects of the functions that exchange a dict of tensors


class LoadedResource(api.Resource):
    """A resource whose life is in the hands of loaded functions. It may be captured and saved again (RP-04).

    ``functions`` holds ``_create_resource``, ``_initialize`` and ``_destroy_resource`` as far as the model has them;
    ``content`` the functions that save and restore what is in it.
    """

    def __init__(self, device: str = ""):
        self.functions: dict[str, Callable[..., Any]] = {}
        self.content: Optional[tuple[LoadedConcreteFunction, LoadedConcreteFunction]] = None
        super().__init__(device=device)

    def create(self) -> tf.Tensor:
        if CREATE not in self.functions:
            raise MissingKeyError("the resource has no function that creates it", node=CREATE, clause="RES-03")
        return self.functions[CREATE]()

    def initialize(self) -> Any:
        function = self.functions.get(INITIALIZE)
        return None if function is None else function()

    def destroy(self) -> Any:
        function = self.functions.get(DESTROY)
        return None if function is None else function()

    def set_content(self, save: LoadedConcreteFunction, restore: LoadedConcreteFunction) -> None:
        """Name the functions that give and take the content, as a dict of tensors; checkpoints then hold it (RES-15).

        They become what TensorFlow calls on objects that have content.
        """
        self.content = (save, restore)
        self.set_content_hooks(save, restore)

    def restore(self, read: Callable[[str], tf.Tensor], keys: Mapping[str, str]) -> None:
        """Fill the resource with what the checkpoint has of it.

        Args:
          read: checkpoint key -> tensor.
          keys: checkpoint keys of this object by attribute name; of an attribute that stands for several tensors the object
            graph knows only the beginning of their keys.

        Raises:
          MissingValueError: the checkpoint lacks a part.
        """
        if self.content is not None:
            save, restore = self.content
            # The names are in the signature; the function itself may only run once there is something to save.
            restore({name: read(_key(name, keys)) for name in save.structured_outputs})


def _key(name: str, keys: Mapping[str, str]) -> str:
    escaped = name.replace(".", "..").replace("/", ".S")  # dots and slashes have a meaning in keys
    if escaped in keys:
        return keys[escaped]
    beginnings = [attribute for attribute in keys if name.startswith(attribute)]
    return keys[beginnings[0]] + name[len(beginnings[0]) :] if beginnings else name


def _run_once(save: LoadedConcreteFunction, key: str, owners: Sequence[Any]) -> Any:
    """The result of a save function, also while a graph is being built: then with a resource that is made for the purpose."""
    if tf.executing_eagerly():
        return save(tf.constant(key))
    with api.eager_mode():
        twin = LoadedConcreteFunction(save.library, save.saved_name, save.signature)
        twin.capture([owner().create() for owner in owners])
        return twin(tf.constant(key))


def named_content(
    key: str, save: LoadedConcreteFunction, restore: LoadedConcreteFunction, owners: Sequence[Any]
) -> tuple[LoadedConcreteFunction, LoadedConcreteFunction]:
    """The older form of save and restore functions brought into the form with a dict.

    There the save function takes a checkpoint key and gives a list of {name, slice_spec, tensor}; the restore function takes the
    tensors in that order. The names come out of running the save function once.

    Args:
      key: what the names begin with (`table`).
      save, restore: the functions of the file.
      owners: what both capture.
    """
    library = save.library
    parts = _run_once(save, key, owners)
    names = [part["name"].numpy().decode() for part in parts]
    order = sorted(range(len(names)), key=names.__getitem__)
    specs = {names[i]: tf.TensorSpec(None, parts[i]["tensor"].dtype) for i in order}

    saver = library.get(save.saved_name)
    handles = [f"resource_{i}" for i in range(len(owners))]
    fields = sorted(parts[0])  # the results are flat, in the order of the sorted keys
    results = [(names[i], len(fields) * i + fields.index("tensor")) for i in order]
    outer_save = library.add(function_builder.wrap("save_content", saver, [string_scalar(key.encode()), *handles], results))

    wrapped = function_builder.wrap("restore_content", library.get(restore.saved_name), [*names, *handles], [])
    outer_restore = library.add(function_builder.reorder(wrapped, order))
    new_save = LoadedConcreteFunction(library, outer_save, lambda: (((), {}), specs))
    new_restore = LoadedConcreteFunction(library, outer_restore, lambda: (((specs,), {}), None))
    for function in (new_save, new_restore):
        function.capture(owners)
    return new_save, new_restore
