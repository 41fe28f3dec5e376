"""User objects and containers: lists, tuples, dicts, and generic objects for everything else.

The file does not hold the author's Python code. A user object becomes an object of a new class,
with its children as attributes. Containers keep their type, including tuples and namedtuples.

RFC: PRIM-02, PRIM-05, PRIM-06, REV-01, REV-02, REV-03
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.drop_in import keras_identity
from reference_impl.errors import LimitError, StructureError
from reference_impl.format import limits, schema
from reference_impl.format import names as reserved
from reference_impl.functions import specs
from reference_impl.functions.load_context import Load
from reference_impl.graph.object_references import index_of
from reference_impl.kinds import containers, hidden_children, signature_map
from reference_impl.load_options import LoadOptions


def read(load: Load, number: int, node: schema.SavedObject, base: Optional[type] = None) -> Any:
    """Make the object of a `user_object` node.

    `attach_children` adds its children later, except those of a tuple.

    `base` is the class of a generic object, LoadedObject by default.
    """
    identifier = node.user_object.identifier
    if identifier == reserved.LIST:
        return api.wrap([])
    if identifier == reserved.DICT:
        return _RootDict({}) if number == 0 else api.wrap({})
    if identifier == reserved.TUPLE:
        elements = [
            (c.local_name, c.node_id)
            for c in node.children
            if not signature_map.is_signature_map(load.graph.nodes[c.node_id])
        ]
        return _new_tuple(elements, load.objects, root=number == 0)
    if identifier == reserved.SIGNATURES:
        return None  # `signature_map` makes it from its children, which are made later
    is_callable = any(child.local_name == "__call__" for child in node.children)
    base = base or LoadedObject
    made = new_object(
        _new_class(base.__name__, bases(base, load.options), is_callable, load.left_out(number))
    )
    if identifier.startswith(keras_identity.PREFIX) and load.is_complete:
        keras_identity.keep(made, node.user_object, load.keras_metadata.get(number))
    return made


def is_container(node: schema.SavedObject) -> bool:
    """Return whether a `user_object` node is a list, dict, tuple or the map of signatures."""
    return node.user_object.identifier in (
        reserved.LIST,
        reserved.DICT,
        reserved.TUPLE,
        reserved.SIGNATURES,
    )


def made_of(node: schema.SavedObject) -> Iterator[int]:
    """Return the numbers of the nodes that must be made before a node."""
    if node.WhichOneof("kind") == "user_object":
        is_tuple = node.user_object.identifier == reserved.TUPLE
        yield from (item.node_id for item in (node.children if is_tuple else node.dependencies))


def attach_children(load: Load, number: int, node: schema.SavedObject) -> None:
    """Add children as the elements of a container, or as the attributes of any other object."""
    parent, children = load.objects[number], load.children(number)
    identifier = node.user_object.identifier
    if number == 0 and isinstance(
        parent, (list, dict)
    ):  # the signatures of a root container are not an element
        for child in node.children:
            if signature_map.is_signature_map(load.graph.nodes[child.node_id]):
                children.pop(child.local_name, None)
    if identifier == reserved.LIST:
        # A gap, left by an element that was not trackable, is None.
        numbered = _numbered(children.items())
        api.fill(parent, [numbered.get(index) for index in range(max(numbered, default=-1) + 1)])
    elif identifier == reserved.DICT:
        api.fill(parent, children)
    elif identifier not in (reserved.TUPLE, reserved.SIGNATURES) and parent is not None:
        attach_attributes(load, number, node)
        if isinstance(parent, LoadedObject):
            containers.note_unlisted(parent, load.graph, number)


def attach_attributes(load: Load, number: int, node: schema.SavedObject) -> None:
    """Set all children as attributes of an object.

    A variable has children only if it is the root: its signatures.
    """
    parent = load.objects[number]
    taken = hidden_children.taken(parent) if node.children else frozenset()
    for child in node.children:
        if hidden_children.shadows(parent, child.local_name, taken):
            _hide_node(load, parent, child)
        else:
            _attach_node(load, parent, child)


def _hide_node(
    load: Load, parent: object, child: schema.TrackableObjectGraph.TrackableObject.ObjectReference
) -> None:
    """Make a child that would take the place of an attribute of TensorFlow or Python reachable by
    `obj[name]` only.
    """
    if signature_map.is_signature_map(load.graph.nodes[child.node_id]):
        hidden_children.hide(parent, child.local_name, signature_map.read(load, child.node_id))
    else:
        hidden_children.hide(parent, child.local_name, load.objects[child.node_id])


def _attach_node(load: Load, parent: Any, child: Any) -> None:
    if signature_map.is_signature_map(load.graph.nodes[child.node_id]):
        # Not a dependency: a save of the object chooses its signatures from the map itself
        # (ATTR-06).
        set_plain(parent, child.local_name, signature_map.read(load, child.node_id))
    else:
        attach(parent, child.local_name, load.objects[child.node_id])


class Computed:
    """A property that an attribute of the same name overrides: a model may have a child with the
    name `variables`.
    """

    def __init__(self, get: Callable[[Any], Any]):
        self._get = get

    def __get__(self, instance: object, owner: object = None) -> Any:
        return self if instance is None else self._get(instance)


def _functions(root: object) -> dict[str, Any]:
    """Return path -> function for all functions reachable from an object, except signatures."""
    found: dict[str, Any] = {}
    queue: list[tuple[str, Any]] = [("", root)]
    seen, ignored = {id(root)}, api.unsearched(LoadedObject)
    for path, parent in queue:
        inside = (
            {**vars(parent), **hidden_children.of(parent)}
            if isinstance(parent, LoadedObject)
            else parent
        )
        items = (
            inside.items()
            if isinstance(inside, Mapping)
            else ((str(index), item) for index, item in enumerate(inside))
        )
        for name, child in items:
            if isinstance(child, (api.Function, api.ConcreteFunction)):
                found[f"{path}{name}"] = child
            elif isinstance(child, (LoadedObject, list, tuple, dict)) and id(child) not in seen:
                if not name.startswith("_self_") and name not in ignored:
                    queue.append((f"{path}{name}.", child))
                seen.add(id(child))
    return dict(sorted(found.items()))


class LoadedObject(api.Searchable):
    """A user object.

    ``variables``, ``trainable_variables`` and ``submodules`` are like those of a `tf.Module`;
    ``functions`` maps paths like ``encoder.call`` to the functions. A child of the model with one
    of these names takes precedence. A child whose name is that of another attribute of Python or
    TensorFlow is not an attribute: ``obj["_trackable_children"]`` returns it, as ``obj[name]``
    returns every child. Calling the class makes another object like this one (see
    `reference_impl.extension.new_objects`).

    With ``LoadOptions(modules=True)`` it is a `tf.Module` too, whose variables a module or a layer
    of Keras 2 around it trains.

    RFC: GOAL-02, GOAL-03, GOAL-07
    """

    _unsearched = frozenset({containers.UNLISTED})
    _constructor: ClassVar[Optional[Callable[..., None]]] = None  # see set_constructor

    submodules = Computed(
        lambda self: tuple(leaf for leaf in containers.leaves(self) if containers.is_module(leaf))
    )
    variables = Computed(containers.variables)
    trainable_variables = Computed(containers.trainable_variables)
    non_trainable_variables = Computed(containers.non_trainable_variables)
    functions = Computed(_functions)

    def __init__(self, *args: object, **kwargs: object) -> None:
        if isinstance(self, tf.Module):
            tf.Module.__init__(self, name="loaded")
        constructor = type(self)._constructor
        if constructor is not None:
            constructor(self, args, kwargs)
        elif args or kwargs:
            raise TypeError(f"{type(self).__name__}() takes no arguments")

    __iter__ = None  # objects with items can be iterated otherwise

    def __getitem__(self, name: str) -> Any:
        """Return the child of this name. Raises KeyError."""
        found = {**vars(self), **hidden_children.of(self)}
        if name not in found or name.startswith(reserved.PRIVATE):
            raise KeyError(name)
        return found[name]

    def hidden_children(self) -> dict[str, Any]:
        return hidden_children.of(self)

    def unsearched_attributes(self) -> frozenset[str]:
        return containers.unlisted(self)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} with"
            f" {', '.join(sorted(k for k in vars(self) if not k.startswith('_'))) or 'nothing'}>"
        )


def set_constructor(
    cls: type[LoadedObject], constructor: Callable[[Any, tuple[Any, ...], dict[str, Any]], None]
) -> None:
    """Set the function that fills an object made by calling `cls`.

    It takes the object and the arguments of the call.
    """
    cls._constructor = staticmethod(constructor)


class _AsModule(tf.Module):
    """A `tf.Module` whose other attributes give way to children of the model, as those of
    `LoadedObject` do.
    """

    name = Computed(tf.Module.name.fget)
    name_scope = Computed(tf.Module.name_scope.fget)


def bases(base: type, options: LoadOptions) -> tuple[type, ...]:
    """Return the base classes of a loaded object of a class, which the options may make a
    `tf.Module`.
    """
    return (base, _AsModule) if options.modules else (base,)


def _new_class(
    name: str, bases: tuple[type, ...], is_callable: bool, left_out: frozenset[str]
) -> type:
    """Return a new class for one object, since only a class can make its objects callable.

    `left_out` has the attributes that the object would have if everything were loaded.

    RFC: REV-01, REV-03, DR-03
    """
    members: dict[str, Any] = {"__call__": call} if is_callable else {}
    if left_out:

        def absent(self: Any, name: str) -> Any:
            why = (
                "LoadOptions(only=...) left it out of this load"
                if name in left_out
                else "the model has no such attribute"
            )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}: {why}")

        members["__getattr__"] = absent
    return type(name, bases, members)


def new_object(cls: Any) -> Any:
    """Return an object of a class that `read` made, without children."""
    obj = cls.__new__(cls)
    if isinstance(obj, tf.Module):
        tf.Module.__init__(obj, name="loaded")
    return obj


@api.without_autograph
def call(self: Any, *args: object, **kwargs: object) -> Any:
    """Call the child ``__call__``: this function is the ``__call__`` of a class."""
    return vars(self)["__call__"](*args, **kwargs)


def attach(parent: LoadedObject, name: str, child: object) -> None:
    """Make `child` an attribute and a dependency of `parent`."""
    # setattr is not used: it would look up an old value, wrap wrapped containers again, and a name
    # like __class__ could mislead it.
    parent.__dict__[name] = child
    api.track(parent, name, child)


class _Root:
    """The attributes of a root, for the proxies of TensorFlow's containers, which keep only
    attributes of their class.
    """

    signatures = tensorflow_version = tensorflow_git_version = graph_debug_info = extra_assets = (
        None
    )


class _RootDict(_Root, api.TrackableDict):
    pass


class _RootTuple(_Root, api.TrackableTuple):
    pass


def set_plain(obj: object, name: str, value: object) -> None:
    """Set an attribute that is not a dependency, bypassing the object's own setattr."""
    if isinstance(obj, _Root):
        setattr(obj, name, value)
    else:
        object.__setattr__(obj, name, value)


def _new_tuple(children: Sequence[tuple[str, int]], objects: Sequence[Any], root: bool) -> Any:
    """Return a tuple of the loaded `objects`, or a namedtuple if its `children` (number by name)
    are also stored under names.

    RFC: PRIM-06
    """
    numbered = _numbered(children)
    size = max(numbered, default=-1) + 1
    items = [objects[numbered[index]] if index in numbered else None for index in range(size)]
    fields = _fields(
        [(name, node) for name, node in children if not name.isdecimal()], numbered, size
    )
    made: Any = tuple(items)
    if fields is not None:
        with contextlib.suppress(
            StructureError
        ):  # names that are invalid in Python, which writers never use
            made = specs.named_tuple("NamedTuple", fields)._make(items)
    return _RootTuple(made) if root else api.wrap(made)


def _numbered(children: Iterable[tuple[str, Any]]) -> dict[int, Any]:
    numbered = {index: child for name, child in children if (index := index_of(name)) is not None}
    if max(numbered, default=0) >= limits.LIST_ELEMENTS:
        raise LimitError(f"a list or tuple of {max(numbered) + 1} elements", limit="LIST_ELEMENTS")
    return numbered


def _fields(
    named: Sequence[tuple[str, int]], numbered: Mapping[int, int], size: int
) -> Optional[tuple[str, ...]]:
    """Return the fields in order, found by the nodes they share with the numbered children; None
    for a plain tuple.

    A field whose value is not trackable has no name in the file.
    """
    left = list(named)
    fields = []
    for index in range(size):
        match = next((pair for pair in left if pair[1] == numbered.get(index)), None)
        if match is not None:
            left.remove(match)
        elif index in numbered:
            return None
        fields.append(match[0] if match is not None else f"field_{index}")
    return tuple(fields) if named and not left else None


def identifier(obj: object) -> str:
    """Return the identifier of the SavedUserObject for an object."""
    if signature_map.is_live_map(obj):
        return reserved.SIGNATURES
    if isinstance(obj, api.TrackableTuple):
        return reserved.TUPLE
    if isinstance(obj, list):
        return reserved.LIST
    return reserved.DICT if isinstance(obj, dict) else reserved.GENERIC


def write(out: schema.SavedObject, obj: object) -> None:
    """Write a user object into its SavedObject: as Keras 2 describes it, or as a generic object or
    container.
    """
    described = keras_identity.kept(obj)
    if described is not None:
        out.user_object.CopyFrom(described)
        return
    out.user_object.identifier = identifier(obj)
    out.user_object.version.producer = out.user_object.version.min_consumer = 1
