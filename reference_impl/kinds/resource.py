"""Resources such as tables, which functions of the model create, fill and destroy.

RFC: PRIM-04, PRIM-08, RES-03, RP-04
"""

from __future__ import annotations

import contextlib
import logging
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.drop_in import graph_mode, hidden_children
from reference_impl.errors import (
    MalformedError,
    MissingKeyError,
    SavedModelError,
    UnsupportedModelError,
)
from reference_impl.format import schema
from reference_impl.format.names import CREATE, DESTROY, INITIALIZE, escape
from reference_impl.functions.devices import checked_device
from reference_impl.functions.load_context import LoadContext
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.functions.unknown_ops import UnknownOpError
from reference_impl.graph import function_builder, node_kinds
from reference_impl.graph.node_defs import string_tensor
from reference_impl.graph.object_references import traces
from reference_impl.kinds import user_object
from reference_impl.kinds.kind import Export, Kind, SavedNode

_log = logging.getLogger(__name__)

# the key in SavedObject.saveable_objects of the functions that exchange a dict of tensors
TENSORS = ".TENSORS"


class ResourceKind(Kind):
    """Resources. The functions that create, initialise and destroy them are children.

    A table is read in four steps: the object (`read`), its functions (`attach`), its content from
    the checkpoint (`restore`, which calls the function that restores it), its initialiser.
    Saving writes the same functions and the current content, which the save function returns.
    """

    message = node_kinds.RESOURCE

    def read(self, load: LoadContext, number: int, node: schema.SavedObject) -> LoadedResource:
        """Make the object of a `resource` node, without its functions."""
        device = checked_device(node.resource.device, load.file, load.path(number))
        return LoadedResource(device=device)

    def attach(self, load: LoadContext, number: int, node: schema.SavedObject) -> None:
        """Give a resource the functions that manage its lifetime, and attributes."""
        resource = load.objects[number]
        taken = hidden_children.taken(resource)
        for name, child in load.children(number).items():
            if name in (CREATE, INITIALIZE, DESTROY):
                resource.functions[name] = child
            elif hidden_children.shadows(resource, name, taken):
                hidden_children.hide(resource, name, child)
            elif child is not None:  # the map of signatures of a root
                user_object.attach(resource, name, child)

    def restore(self, load: LoadContext, number: int, node: schema.SavedObject) -> None:
        """Restore the content from the checkpoint; see `_fill`."""
        with _needing_its_ops(load, number):
            _fill(load, number)

    def initialize(self, load: LoadContext, number: int, node: schema.SavedObject) -> None:
        """Run the initialiser, unless the resource could not be filled."""
        if load.objects[number].unfilled is None:
            with _needing_its_ops(load, number):
                _run_initializer(load, number)

    def matches(self, obj: object) -> bool:
        return isinstance(obj, api.CapturableResource)

    def write(self, export: Export, node: SavedNode, out: schema.SavedObject) -> None:
        """Write the device. The functions are children with reserved names."""
        out.resource.device = api.resource_device(node.object)
        out.resource.SetInParent()


def owned_functions(graph: schema.SavedObjectGraph) -> dict[str, set[int]]:
    """Return the functions that manage the lifetime of resources: function name -> the numbers of
    the resources.
    """
    owned: dict[str, set[int]] = {}
    for number, node in enumerate(graph.nodes):
        if node.WhichOneof("kind") != "resource":
            continue
        members = [child.node_id for child in node.children]
        for pair in node.saveable_objects.values():
            members += (pair.save_function, pair.restore_function)
        for member in members:
            for name in traces(graph.nodes[member]):
                owned.setdefault(name, set()).add(number)
    return owned


@contextlib.contextmanager
def _needing_its_ops(load: LoadContext, number: int) -> Iterator[None]:
    """Leave a resource unfilled if it needs an unknown op; its users get the error.

    RFC: DR-05
    """
    resource = load.objects[number]
    try:
        yield
    except tf.errors.NotFoundError as error:
        if "Op type not registered" not in error.message:
            raise
        reason = getattr(error, "reason", error.message.partition(". ")[0])
        resource.unfilled = UnknownOpError(
            f"it is not filled: {reason}", file=load.file, node=load.path(number)
        )
        _log.warning("%s", resource.unfilled)
        if load.watch is not None:
            said, rule = resource.unfilled.reason, resource.unfilled.clause
            load.watch.tell("initializer", load.file, load.label(number), said, rule)
    except SavedModelError as error:
        error.file = error.file or load.file
        raise


def _fill(load: LoadContext, number: int) -> None:
    """Set the functions that save and restore a resource's content, and restore the content from
    the checkpoint.

    Raises MalformedError, UnsupportedModelError if the file does not describe the content with one
    pair of functions, MissingValueError if the checkpoint lacks a part of it.
    """
    resource, pairs = load.objects[number], load.graph.nodes[number].saveable_objects
    if len(pairs) > 1:
        raise UnsupportedModelError(
            "a resource with several contents", file=load.file, node=load.path(number)
        )
    for name, pair in pairs.items():
        functions = load.objects[pair.save_function], load.objects[pair.restore_function]
        if not all(isinstance(function, RegisteredFunction) for function in functions):
            reason = "its save and restore functions are not concrete functions"
            raise MalformedError(reason, file=load.file, node=load.path(number), rule="SM-KIND-10")
        if name != TENSORS:
            functions = named_content(name, *functions, [weakref.ref(resource)])
        if not isinstance(functions[0].structured_outputs, Mapping):
            raise MalformedError(
                "its save function does not return a dict of tensors",
                file=load.file,
                node=load.path(number),
            )
        resource.set_content(*functions)
    if not load.options.skip_checkpoint and resource.content is not None:
        resource.resource_handle  # noqa: B018  created here, so that only the filling is noted
        (save, restore), keys = resource.content, load.checkpoint.keys.get(number, {})
        with graph_mode.initializer_ops():
            # The names are in the signature. The function itself may only run once there is content
            # to save.
            restore(
                {name: load.checkpoint.read(_key(name, keys)) for name in save.structured_outputs}
            )
        if load.watch is not None:
            for name in save.structured_outputs:
                said = f"content from {load.checkpoint.described(_key(name, keys))}"
                load.watch.tell("state", load.checkpoint.index, load.label(number), said, "RES-15")


def _run_initializer(load: LoadContext, number: int) -> None:
    """Initialise a resource; in a graph, record the call for the session."""
    resource = load.objects[number]
    if not tf.executing_eagerly():  # in eager mode, the first use creates the resource and may fail
        resource.resource_handle  # noqa: B018  created here, so that only the filling is noted
    with graph_mode.initializer_ops():
        resource.initialize()
    if load.watch is not None:
        said = "ran" if tf.executing_eagerly() else "waits for the session"
        said = said if INITIALIZE in resource.functions else "none: the resource has no initialiser"
        load.watch.tell("initializer", load.file, load.label(number), said, "RP-09")


class LoadedResource(api.Resource):
    """A resource whose lifetime loaded functions manage.

    It may be captured and saved again.

    ``functions`` holds those of ``_create_resource``, ``_initialize`` and ``_destroy_resource``
    that the model has. ``content`` holds the functions that save and restore the content.
    ``unfilled``: the error of a load that could not fill it. ``fails``: why its initialiser fails,
    if that did not fail the load.
    """

    def __init__(self, device: str = ""):
        self.functions: dict[str, Any] = {}
        self.content: Optional[tuple[RegisteredFunction, RegisteredFunction]] = None
        self.unfilled: Optional[UnknownOpError] = None
        self.fails = ""
        super().__init__(device=device)

    def create(self) -> tf.Tensor:
        if CREATE not in self.functions:
            raise MissingKeyError(
                "the resource has no function that creates it", node=CREATE, clause="RES-03"
            )
        made = self.functions[CREATE]()
        if not isinstance(
            made, tf.Tensor
        ):  # of any dtype: TensorFlow saves a number for the initialiser of a TF 1.x model
            reason = "creates a resource and does not return a handle"
            raise MalformedError(reason, node=self.functions[CREATE].saved_name, clause="RES-03")
        return made

    def initialize(self) -> Any:
        function = self.functions.get(INITIALIZE)
        return None if function is None else function()

    def destroy(self) -> Any:
        function = self.functions.get(DESTROY)
        return None if function is None else function()

    def set_content(self, save: RegisteredFunction, restore: RegisteredFunction) -> None:
        """Set the functions that return and take the content as a dict of tensors, for checkpoints.

        They become TensorFlow's hooks for objects with content.

        RFC: RES-15
        """
        self.content = (save, restore)
        self.set_content_hooks(save, restore)


def _key(name: str, keys: Mapping[str, str]) -> str:
    """Return the checkpoint key of a tensor.

    For an attribute with several tensors, `keys` has only the prefix of their keys.
    """
    if escape(name) in keys:
        return keys[escape(name)]
    beginnings = [attribute for attribute in keys if name.startswith(attribute)]
    return keys[beginnings[0]] + name[len(beginnings[0]) :] if beginnings else name


def _run_once(save: RegisteredFunction, key: str, owners: Sequence[Any]) -> Any:
    """Return the result of a save function.

    While a graph is being built, run it on a temporary resource.
    """
    if tf.executing_eagerly():
        return save(tf.constant(key))
    with api.eager_mode():
        twin = RegisteredFunction(save.library, save.saved_name, save.signature)
        twin.capture([owner().create() for owner in owners])
        return twin(tf.constant(key))


def _are_named(parts: object) -> bool:
    """Return whether the result of a save function is a list of dicts with the same fields, whose
    ``name`` is a string.
    """
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, Mapping) for part in parts):
        return False

    def is_named(part: Mapping[str, Any]) -> bool:
        return (
            part.keys() == parts[0].keys() >= {"name", "tensor"}
            and all(isinstance(value, tf.Tensor) for value in part.values())
            and (part["name"].dtype, part["name"].shape.rank) == (tf.string, 0)
        )

    return all(map(is_named, parts))


def named_content(
    key: str, save: RegisteredFunction, restore: RegisteredFunction, owners: Sequence[Any]
) -> tuple[RegisteredFunction, RegisteredFunction]:
    """Turn the older form of save and restore functions into the form with a dict.

    In the older form the save function takes a checkpoint key and returns a list of {name,
    slice_spec, tensor}; the restore function takes the tensors in that order. Running the save
    function once yields the names, which begin with `key` (`table`). Both functions capture
    `owners`.

    Raises MalformedError: the functions have another form.
    """
    library = save.library
    parts = _run_once(save, key, owners)
    taken = len(library.get(restore.saved_name).signature.input_arg)
    if not _are_named(parts) or taken != len(parts) + len(owners):
        reason = (
            f"does not return the names and tensors of the {taken - len(owners)} parts that the"
            " restore function takes"
        )
        raise MalformedError(reason, file=library.file, node=save.saved_name)
    names = [part["name"].numpy().decode("utf-8", "backslashreplace") for part in parts]
    order = sorted(range(len(names)), key=names.__getitem__)
    specs = {names[i]: tf.TensorSpec(None, parts[i]["tensor"].dtype) for i in order}

    saver = library.get(save.saved_name)
    handles = [f"resource_{i}" for i in range(len(owners))]
    fields = (
        sorted(parts[0]) if parts else []
    )  # the results are flat, in the order of the sorted keys
    results = [(names[i], len(fields) * i + fields.index("tensor")) for i in order]
    outer_save = library.add(
        function_builder.wrap(
            "save_content", saver, [string_tensor(key.encode()), *handles], results
        )
    )

    wrapped = function_builder.wrap(
        "restore_content", library.get(restore.saved_name), [*names, *handles], []
    )
    function_builder.select_arguments(
        wrapped, [*order, *range(len(order), len(order) + len(handles))]
    )
    outer_restore = library.add(wrapped)
    new_save = RegisteredFunction(library, outer_save, lambda: (((), {}), specs))
    new_restore = RegisteredFunction(library, outer_restore, lambda: (((specs,), {}), None))
    for function in (new_save, new_restore):
        function.capture(owners)
    return new_save, new_restore


KIND = ResourceKind()
