"""User objects: every object that is of no other kind.

The file does not hold the author's Python code. A user object becomes an object of a new class,
with its children as attributes. Its variables and tables are children and have their own kinds. Any
other state is a value of the checkpoint.

RFC: PRIM-02, REV-01, REV-02, REV-03, RES-15
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.drop_in import hidden_children, keras_identity, module_variables
from reference_impl.format import names as reserved
from reference_impl.format import schema
from reference_impl.functions.load_context import LoadContext
from reference_impl.graph import node_kinds
from reference_impl.kinds import signature_map
from reference_impl.kinds.kind import Export, Kind, SavedNode, write_dependencies
from reference_impl.load_options import LoadOptions

PYTHON_STATE = "py_state"  # the attribute of Python state in checkpoints
_STATE = f"{reserved.PRIVATE}state"  # of a loaded object: {attribute in the checkpoint: tensor}


class UserObjectKind(Kind):
    """Objects of any class. The children are the attributes; the file does not hold the class."""

    message = node_kinds.USER_OBJECT

    def __init__(self, base: type):
        """`base` is the base of the classes of loaded objects."""
        self.base = base

    def made_of(self, node: schema.SavedObject) -> Iterable[int]:
        """Return the objects that the class of an object needs to make it (RP-02)."""
        return [needed.node_id for needed in node.dependencies]

    def read(self, load: LoadContext, number: int, node: schema.SavedObject) -> Any:
        """Make the object of a `user_object` node, of a new class."""
        is_callable = any(child.local_name == "__call__" for child in node.children)
        cls: Any = _new_class(
            self.base.__name__,
            bases(self.base, load.options),
            is_callable,
            load.left_out(number),
        )
        load.origin.classes[number] = cls
        set_constructor(cls, functools.partial(load.origin.construct, load.origin, number))
        made = new_object(cls)
        identifier = node.user_object.identifier
        if identifier.startswith(keras_identity.PREFIX) and load.is_complete:
            keras_identity.keep(made, node.user_object, load.keras_metadata.get(number))
        return made

    def attach(self, load: LoadContext, number: int, node: schema.SavedObject) -> None:
        """Set the children as attributes."""
        parent = load.objects[number]
        attach_attributes(load, number, node)
        names = {child.local_name for child in node.children}
        if isinstance(parent, LoadedObject) and names >= module_variables.LISTS:
            module_variables.note_unlisted(parent, load.graph, number)

    def restore(self, load: LoadContext, number: int, node: schema.SavedObject) -> None:
        """Restore the state that no function restores; see `restore_plain_state`."""
        if not node.saveable_objects:
            restore_plain_state(load, number)

    def matches(self, obj: object) -> bool:
        return True  # any object, if it is of no other kind

    def state(self, obj: Any) -> Mapping[str, tf.Tensor]:
        """Return the state that a loaded object has kept for the next save."""
        return dict(vars(obj).get(_STATE, {})) if isinstance(obj, LoadedObject) else {}

    def write(self, export: Export, node: SavedNode, out: schema.SavedObject) -> None:
        """Write the object as Keras 2 describes it, or as a generic object."""
        described = keras_identity.kept(node.object)
        if described is not None:
            out.user_object.CopyFrom(described)
        else:
            write_identifier(out, reserved.GENERIC)
        write_dependencies(out, node.dependencies)


def write_identifier(out: schema.SavedObject, identifier: str) -> None:
    """Write a user object of a type that readers know by its identifier."""
    out.user_object.identifier = identifier
    out.user_object.version.producer = out.user_object.version.min_consumer = 1


def restore_plain_state(load: LoadContext, number: int) -> None:
    """Restore the state of an object that no function of the file restores.

    Python state (`tf.train.experimental.PythonState`) and its like is a value of the checkpoint
    that only the class of the object understands. An object of a registered class gets it back. Any
    other object keeps the value, so that saving it again loses nothing.

    Raises:
      SavedModelError: the checkpoint is damaged.
      Exception: what the class of an object raises.

    RFC: RES-15, REV-04, RP-08
    """
    keys = load.plain_state_keys(number)
    if not keys:
        return
    obj = load.objects[number]
    for attribute, key in keys.items():
        value = load.checkpoint.read(key)
        if attribute == PYTHON_STATE and isinstance(obj, tf.train.experimental.PythonState):
            obj.deserialize(value.numpy())
            came = "given to the object"
        elif isinstance(obj, LoadedObject):
            obj.__dict__.setdefault(_STATE, {})[attribute] = value
            came = "kept for the next save"
        else:
            came = "not loaded: no code reads it"
        if load.watch is not None:
            said = f"{attribute} from {load.checkpoint.described(key)}: {came}"
            load.watch.tell("state", load.checkpoint.index, load.label(number), said, "RES-15")


def attach_attributes(load: LoadContext, number: int, node: schema.SavedObject) -> None:
    """Set all children as attributes of an object.

    A child whose name TensorFlow or Python would call is hidden: only `obj[name]` returns it.
    """
    parent = load.objects[number]
    # Neither TensorFlow nor Python calls a public method of a module.
    is_module = isinstance(parent, (tf.Module, api.Searchable))
    if is_module and not any(child.local_name.startswith("_") for child in node.children):
        for child in node.children:
            _attach_child(load, parent, child)
    elif node.children:
        taken = hidden_children.taken(parent)
        for child in node.children:
            is_hidden = hidden_children.shadows(parent, child.local_name, taken)
            _attach_child(load, parent, child, is_hidden)


def _attach_child(
    load: LoadContext,
    parent: Any,
    child: schema.TrackableObjectGraph.TrackableObject.ObjectReference,
    is_hidden: bool = False,
) -> None:
    is_map = load.kinds[child.node_id].message is node_kinds.SIGNATURE_MAP
    value = signature_map.make(load, child.node_id) if is_map else load.objects[child.node_id]
    if is_hidden:
        hidden_children.hide(parent, child.local_name, value)
    elif is_map:
        # Not a dependency: a save of the object chooses its signatures from the map itself
        # (ATTR-06).
        set_plain(parent, child.local_name, value)
    else:
        attach(parent, child.local_name, value)


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
    of these names takes precedence. A child named like another attribute of Python or
    TensorFlow is not an attribute: ``obj["_trackable_children"]`` returns it, as ``obj[name]``
    returns every child. Calling the class makes another object like this one (see
    `reference_impl.extension.new_objects`).

    With ``LoadOptions(modules=True)`` it is a `tf.Module` too, whose variables a module or a layer
    of Keras 2 around it trains.

    RFC: GOAL-02, GOAL-03, GOAL-07
    """

    _unsearched = frozenset({module_variables.UNLISTED})
    _constructor: ClassVar[Optional[Callable[..., None]]] = None  # see set_constructor

    submodules = Computed(
        lambda self: tuple(
            leaf for leaf in module_variables.leaves(self) if module_variables.is_module(leaf)
        )
    )
    variables = Computed(module_variables.variables)
    trainable_variables = Computed(module_variables.trainable_variables)
    non_trainable_variables = Computed(module_variables.non_trainable_variables)
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
        return module_variables.unlisted(self)

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


class RootDict(_Root, api.TrackableDict):
    pass


class RootTuple(_Root, api.TrackableTuple):
    pass


def set_plain(obj: object, name: str, value: object) -> None:
    """Set an attribute that is not a dependency, bypassing the object's own setattr."""
    if isinstance(obj, _Root):
        setattr(obj, name, value)
    else:
        object.__setattr__(obj, name, value)


KIND = UserObjectKind(LoadedObject)
