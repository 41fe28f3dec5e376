"""Generic objects and containers: what becomes of user objects, lists, tuples and dicts (PRIM-02, PRIM-05, PRIM-06, REV-01..03).

Nothing of the author's Python code is known; a user object becomes an object of a class of its own, whose attributes are its
children. Containers come back as what they were, tuples and namedtuples included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import LimitError
from reference_impl.format import limits
from reference_impl.graph.object_roles import index_of
from reference_impl.kinds import containers, listed_variables, specs

# Attributes of a loaded object that are not parts of the model.
_IGNORED = frozenset(("_slots", "signatures", "_kept", "_optimizer", listed_variables.UNLISTED))


class Slot(NamedTuple):
    """What an optimizer keeps for a variable; ``listed``: the slot is a child of some object as well (Keras 3)."""

    variable: tf.Variable
    name: str
    value: tf.Variable
    listed: bool = False


class Computed:
    """A property that an attribute of the same name hides: a model may call one of its children `variables`."""

    def __init__(self, get: Callable[[Any], Any]):
        self._get = get

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else self._get(instance)


def _functions(root: Any) -> dict[str, Any]:
    """Path -> function, for all functions that are reachable from an object, signatures excluded (GOAL-07)."""
    found: dict[str, Any] = {}
    queue: list[tuple[str, Any]] = [("", root)]
    seen, ignored = {id(root)}, api.unsearched(LoadedObject)
    for path, parent in queue:
        inside = vars(parent) if isinstance(parent, LoadedObject) else parent
        items = inside.items() if isinstance(inside, Mapping) else ((str(index), item) for index, item in enumerate(inside))
        for name, child in items:
            if isinstance(child, (api.Function, api.ConcreteFunction)):
                found[f"{path}{name}"] = child
            elif isinstance(child, (LoadedObject, list, tuple, dict)) and id(child) not in seen:
                if not name.startswith("_self_") and name not in ignored:
                    queue.append((f"{path}{name}.", child))
                seen.add(id(child))
    return dict(sorted(found.items()))


class LoadedObject(api.Module):
    """A user object. Its variables are visible to itself and to what it becomes a part of (GOAL-02, GOAL-03).

    ``variables``, ``trainable_variables``, ``submodules``, … are those of a `tf.Module`; ``functions`` maps paths like
    ``encoder.call`` to the functions. A child of the model that has such a name comes first; where the model lists
    ``variables`` and ``trainable_variables``, containers see these (see `reference_impl.kinds.listed_variables`).
    Its class takes no arguments and makes another object like it, whose variables have no values yet (INIT-02, see
    `reference_impl.loading.new_objects`).
    """

    _unsearched = _IGNORED
    _origin: ClassVar[Optional[tuple[Any, int]]] = None  # what it was loaded from, and its number there

    name = Computed(tf.Module.name.fget)
    name_scope = Computed(tf.Module.name_scope.fget)
    submodules = Computed(tf.Module.submodules.fget)
    variables = Computed(listed_variables.variables)
    trainable_variables = Computed(listed_variables.trainable_variables)
    non_trainable_variables = Computed(listed_variables.non_trainable_variables)
    functions = Computed(_functions)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(name="loaded")
        if type(self)._origin is not None:
            origin, number = type(self)._origin
            origin.construct(number, self, args, kwargs)
        elif args or kwargs:
            raise TypeError(f"{type(self).__name__}() takes no arguments")

    def unsearched_attributes(self) -> frozenset[str]:
        return listed_variables.unlisted(self)

    def adopted(self, container: Any) -> None:
        containers.adopted(self, container)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {', '.join(sorted(k for k in vars(self) if not k.startswith('_'))) or 'nothing'}>"


def user_class(callable_: bool, left_out: frozenset[str] = frozenset(), base: type = LoadedObject) -> type:
    """A class for one object; only a class can make its objects callable (REV-01, REV-03).

    Args:
      callable_: it has a child ``__call__``.
      left_out: attributes that it would have in a load of everything (DR-03).
      base: LoadedObject or a class derived from it.
    """
    members: dict[str, Any] = {"__call__": call} if callable_ else {}
    if left_out:

        def absent(self: Any, name: str) -> Any:
            why = "LoadOptions(only=...) left it out of this load" if name in left_out else "the model has no such attribute"
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}: {why}")

        members["__getattr__"] = absent
    return type(base.__name__, (base,), members)


def user_object(cls: type) -> Any:
    """An object of such a class without children."""
    obj = cls.__new__(cls)
    tf.Module.__init__(obj, name="loaded")
    return obj


@tf.autograph.experimental.do_not_convert
def call(self: Any, *args: Any, **kwargs: Any) -> Any:
    return vars(self)["__call__"](*args, **kwargs)


def attach(parent: LoadedObject, name: str, child: Any) -> None:
    """Make `child` an attribute and a dependency of `parent`."""
    # Not by setattr, which would look for an old value of that name, wrap containers that are wrapped, and could be led astray
    # by a name like __class__.
    vars(parent)[name] = child
    api.track(parent, name, child)


def new_list() -> Any:
    return api.wrap([])


class _Root:
    """The attributes of a root for a proxy, which only keeps those its class knows."""

    signatures = tensorflow_version = tensorflow_git_version = graph_debug_info = extra_assets = None


class _RootDict(_Root, api.TrackableDict):  # type: ignore[misc]
    pass


class _RootTuple(_Root, api.TrackableTuple):  # type: ignore[misc]
    pass


def new_dict(root: bool = False) -> Any:
    return _RootDict({}) if root else api.wrap({})


def set_plain(obj: Any, name: str, value: Any) -> None:
    """Set an attribute that is no dependency, whatever setattr would do with it."""
    if isinstance(obj, _Root):
        setattr(obj, name, value)
    else:
        object.__setattr__(obj, name, value)


def fill_list(container: Any, children: Mapping[str, Any]) -> None:
    """Children are named by their index; what was not trackable left a gap, which is None."""
    numbered = _numbered(children.items())
    for index in range(max(numbered, default=-1) + 1):
        container.append(numbered.get(index))


def fill_dict(container: Any, children: Mapping[str, Any]) -> None:
    for name, child in children.items():
        container[name] = child


def new_tuple(children: Sequence[tuple[str, int]], objects: Sequence[Any], root: bool = False) -> Any:
    """A tuple, or a namedtuple when its children are also stored under names (PRIM-06).

    Args:
      children: name and node of each child.
      objects: the loaded nodes.
    """
    numbered = _numbered(children)
    size = max(numbered, default=-1) + 1
    items = [objects[numbered[index]] if index in numbered else None for index in range(size)]
    fields = _fields([(name, node) for name, node in children if not name.isdecimal()], numbered, size)
    made = tuple(items) if fields is None else specs.named_tuple("NamedTuple", fields)._make(items)
    return _RootTuple(made) if root else api.wrap(made)


def _numbered(children: Iterable[tuple[str, Any]]) -> dict[int, Any]:
    numbered = {index: child for name, child in children if (index := index_of(name)) is not None}
    if max(numbered, default=0) >= limits.LIST_ELEMENTS:
        raise LimitError(f"a list or tuple of {max(numbered) + 1} elements", limit="LIST_ELEMENTS")
    return numbered


def _fields(named: Sequence[tuple[str, int]], numbered: Mapping[int, int], size: int) -> Optional[tuple[str, ...]]:
    """The fields in order, found by the nodes they share with the numbered children; None for a plain tuple.

    Of a field that holds nothing trackable the file has only the position.
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
    usable = len(set(fields)) == size and all(field.isidentifier() and not field.startswith("_") for field in fields)
    return tuple(fields) if named and not left and usable else None
