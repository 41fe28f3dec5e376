"""The objects of an export: what can be reached from the root, each once, numbered breadth first (FN-01..FN-06, RP-01, PRIM-06).

Dependencies are asked for by TensorFlow's own hook where a class overrides it (Keras, tables, datasets). For plain modules,
functions are found without running properties (FN-03). Functions with an input signature that were never called are traced
before anything is numbered, since tracing may make variables; nothing else is ever traced or run (FN-10, FN-17).
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import NotTrackableError, SaveError, UntracedFunctionError
from reference_impl.extension import registered_objects
from reference_impl.format.names import CREATE, DESTROY, INITIALIZE
from reference_impl.kinds import traces
from reference_impl.kinds.export_library import is_function
from reference_impl.kinds.function import LoadedFunction
from reference_impl.kinds.resource import LoadedResource
from reference_impl.kinds.signature_map import SignatureMap, is_live_map
from reference_impl.saving import authorship

_log = logging.getLogger(__name__)
SIGNATURES = "signatures"


@dataclass
class Node:
    """An object of the export.

    Attributes:
      number: in the SavedObjectGraph.
      object: what it is: a trackable, a concrete function, a captured tensor.
      path: how Python reaches it, for messages.
      children: name -> number.
      dependencies: name -> number of what a loader needs to make the object.
      of_library: whether a library made it, rather than the user, while the children of its parent were listed.
    """

    number: int
    object: Any
    path: str
    children: dict[str, int] = field(default_factory=dict)
    dependencies: dict[str, int] = field(default_factory=dict)
    of_library: bool = False


class Tree:
    """The numbered objects.

    Args:
      root: a trackable.
      strict: what would be lost is an error.

    Raises:
      NotTrackableError: the root is none (API-02).
      SaveError, UntracedFunctionError: see the module.
    """

    def __init__(self, root: Any, strict: bool):
        if not isinstance(root, api.Trackable) or isinstance(root, (api.Function, api.ConcreteFunction)):
            what = "A function cannot be the root; put it on" if is_function(root) else "Give"
            reason = f"Expected an object of type `Trackable` to save, got {type(root).__name__}, which is not trackable. "
            reason += f"{what} a tf.Module or a tf.train.Checkpoint"
            raise NotTrackableError(reason, node="obj")
        self.root = root
        self.strict = strict
        self.nodes: list[Node] = []
        self.signatures: Optional[SignatureMap] = None
        self._numbers: dict[int, int] = {}
        self._resources: dict[int, dict[str, Any]] = {}
        self._cache: dict[Any, Any] = {}  # of Keras 2
        self._classes: dict[type, tuple[frozenset[str], frozenset[str]]] = {}
        self._known: dict[int, dict[str, Any]] = {}  # children, while nothing is traced; Keras traces a model when it is asked
        self._kept: list[Any] = []  # ids are those of living objects
        self._made: dict[int, list[Any]] = {}  # further traces of functions, for this export only

    def trace_signatures(self) -> None:
        """Trace every function with an input signature that has not been called, until there is none."""
        done: set[int] = set()
        while True:
            self._known.clear()
            found = [
                (path, f)
                for path, f in self.functions()
                if f.input_signature is not None and id(f) not in done and not api.traces(f)
            ]
            for _, function in found:
                done.add(id(function))
                self._kept.append(function)
                function.get_concrete_function()
            if not found:
                break
        self._check_traced()

    def _check_traced(self) -> None:
        """Functions that nobody could call, and traces that cannot be written down, are reported."""
        functions = list(self._functions())
        live = [(path, f, made) for path, f, made in functions if not (isinstance(f, LoadedFunction) or _loaded(f))]
        empty = [(path, made or authorship.is_private_helper(f)) for path, f, made in live if not api.traces(f)]
        helpers = [path for path, made in empty if made]
        if helpers:
            _log.info("functions that a library made and never traced are saved without a trace: %s", ", ".join(helpers))
        untraced = [path for path, made in empty if not made]
        if untraced:
            reason = (
                "functions that were never called would be saved without a trace, and nobody could call them. Call them once, "
                f"give them an input_signature, or save with strict=False: {', '.join(untraced)}"
            )
            self.lose(UntracedFunctionError(reason, node=untraced[0]))
        for path, function, _ in functions:
            for trace in api.traces(function):
                for name, why in traces.unserialisable(trace).items():
                    reason = f"the value of argument {name!r} in a call of the function cannot be stored: {why}. "
                    reason += "Numbers, strings, None, dtypes, shapes and nests of them can"
                    self.lose(SaveError(reason, node=path, clause="FN-09"))

    def lose(self, error: SaveError, what: str = "") -> None:
        """Something will be missing from the export: an error, or a warning without ``strict``, which may begin with `what`."""
        if self.strict:
            raise error
        warnings.warn(f"{what}: {error}" if what else str(error), stacklevel=2)

    def functions(self) -> Iterator[tuple[str, Any]]:
        """(path, tf.function) of everything reachable now, each once."""
        return ((path, function) for path, function, _ in self._functions())

    def _functions(self) -> Iterator[tuple[str, Any, bool]]:
        """(path, tf.function, whether a library made it for its own use) of everything reachable now, each once."""
        seen, queue = {id(self.root)}, deque([("root", self.root, False)])
        while queue:
            path, obj, made = queue.popleft()
            if isinstance(obj, api.Function):
                yield path, obj, made
                continue
            for name, child in self.children(obj, path).items():
                if id(child) not in seen:
                    seen.add(id(child))
                    queue.append((_step(path, obj, name), child, authorship.is_of_library(obj, name, made)))

    def add_traces(self, function: Any, made: list[Any]) -> None:
        """Export a tf.function with more traces than it has."""
        self._kept.append(function)
        self._made[id(function)] = made

    def traces(self, function: Any) -> list[Any]:
        """All traces of a tf.function in the export."""
        return [*api.traces(function), *self._made.get(id(function), ())]

    def number(self, signatures: Mapping[str, Any]) -> None:
        """Number all objects; `signatures` become the child of that name of the root."""
        self.signatures = SignatureMap(signatures)
        self.add(self.root, "root")
        for node in self.nodes:  # grows
            for name, child in self.children(node.object, node.path).items():
                found = self.number_of(child)
                node.children[name] = self.add(child, _step(node.path, node.object, name))
                if found is None:
                    of_library = authorship.is_of_library(node.object, name, node.of_library)
                    self.nodes[node.children[name]].of_library = of_library
            # A list or dict has room for its elements only: TensorFlow reads a child of another name as one and fails (FMT-11).
            if node.number == 0 and (self.signatures or not isinstance(node.object, (list, tuple, dict))):
                node.children[SIGNATURES] = self.add(self.signatures, "root.signatures")

        for node in self.nodes:
            node.dependencies = self._dependencies(node)
        self._check_order()

    def _check_order(self) -> None:
        """Raises SaveError: objects are made of each other, so no loader could make the first one (RP-02)."""
        waiting = {node.number for node in self.nodes if node.dependencies}
        while waiting:
            ready = {number for number in waiting if waiting.isdisjoint(self.nodes[number].dependencies.values())}
            if not ready:
                named = ", ".join(self.nodes[number].path for number in sorted(waiting))
                reason = f"there is a dependency cycle in the saved Trackable objects, which are made of each other: {named}"
                raise SaveError(reason, node=self.nodes[min(waiting)].path, clause="RP-02")
            waiting -= ready

    def _dependencies(self, node: Node) -> dict[str, int]:
        """What the object says it is made of (RP-02). Raises SaveError: that is no part of the export."""
        obj = node.object
        functions = (api.Function, api.ConcreteFunction, LoadedFunction)
        if not isinstance(obj, api.Trackable) or isinstance(obj, functions) or api.is_variable(obj):
            return {}
        kept = registered_objects.kept(obj)
        if kept is not None:  # its class, which has the hook, is unknown here
            named = {item.local_name: self.number_of(vars(obj).get(item.local_name)) for item in kept[0].dependencies}
            return {name: number for name, number in named.items() if number is not None}
        found = {}
        for name, needed in api.needed_before(obj, dict(self.children(obj, node.path))).items():
            number = self.number_of(needed)
            if number is None:
                reason = f"Found an untracked dependency: its _deserialization_dependencies names {name!r}, a "
                reason += f"{type(needed).__name__} that is not reachable from root; return objects that are attributes of it"
                raise SaveError(reason, node=node.path, clause="RP-02")
            found[name] = number
        return found

    def add(self, obj: Any, path: str) -> int:
        """The number of an object, a new one for an object that has none.

        Raises:
          SaveError: a reference variable of TF 1.x, or one that is made of shards.
        """
        _check_variable(obj, path)
        found = self._numbers.get(_identity(obj))
        if found is None:
            found = self._numbers[_identity(obj)] = len(self.nodes)
            self.nodes.append(Node(found, obj, path))
        return found

    def paths(self, names: Mapping[int, str]) -> dict[str, str]:
        """Names of functions, given by number of node, -> the path of the first node."""
        return {name: self.nodes[number].path for number, name in reversed(list(names.items()))}

    def number_of(self, obj: Any) -> Optional[int]:
        return self._numbers.get(_identity(obj))

    # Children

    def children(self, obj: Any, path: str) -> dict[str, Any]:
        """The children of an object by name."""
        if is_live_map(obj):
            return dict(obj.items())
        if isinstance(obj, api.Function):
            found = [*exported_traces(obj, self.strict), *self._made.get(id(obj), ())]
            return {f"trace_{i}": trace for i, trace in enumerate(found)}
        if not isinstance(obj, api.Trackable) or isinstance(obj, api.ConcreteFunction):
            return {}
        makes = isinstance(obj, api.CapturableResource) or _makes_children(obj)
        known = self._resources if makes else self._known  # a resource makes its functions anew each time it is asked
        if id(obj) not in known:
            known[id(obj)] = self._resource_children(obj) if makes else self._tracked(obj, path)
            self._kept.append(obj)
        return known[id(obj)]

    def _tracked(self, obj: Any, path: str) -> dict[str, Any]:
        try:
            found = _attributes(obj, self._classes) if api.tracks_attributes(obj) else api.trackable_children(obj, self._cache)
        except (ValueError, NotImplementedError) as error:
            raise SaveError(str(error), node=path, clause="PRIM-06") from error
        signatures = vars(obj).get(SIGNATURES) if hasattr(obj, "__dict__") else None
        if obj is self.root:
            found.pop(SIGNATURES, None)
        elif isinstance(signatures, SignatureMap):
            found[SIGNATURES] = signatures  # of a model that became a part of another one (ATTR-08)
        return {name: _trackable(child) for name, child in found.items() if child is not None and not holds_python_values(child)}

    def _resource_children(self, obj: Any) -> dict[str, Any]:
        if isinstance(obj, LoadedResource):
            functions = {name: obj.functions[name] for name in (CREATE, INITIALIZE, DESTROY) if name in obj.functions}
            return {**functions, **api.trackable_children(obj)}
        return api.trackable_children(obj, self._cache)


def _identity(obj: Any) -> int:
    """What makes an object the same one. A variable is its handle, whatever wrappers are around it (GOAL-09).

    Reference variables, which `_check_variable` refuses, have none.
    """
    if not api.is_variable(obj):
        return id(obj)
    component = api.variable_components(obj)[0]
    return id(getattr(component, "handle", component))


def _check_variable(obj: Any, path: str) -> None:
    if isinstance(obj, tf.Variable) and not hasattr(api.variable_components(obj)[0], "handle"):
        reason = f"{obj.name!r} is a reference variable, which functions cannot use and TF 2 does not load. Make it a resource "
        reason += "variable: tf.compat.v1.enable_resource_variables() before it is made, or use_resource=True"
        raise SaveError(reason, node=path, clause="COMPAT-01")
    if isinstance(obj, api.ShardedVariable):
        # Functions were traced over the shards; nothing but running their code again would make them use one variable (FN-10).
        reason = f"a variable of {len(obj.variables)} shards: save a copy of the model whose variables are whole, "
        reason += "`root.name = tf.Variable(tf.convert_to_tensor(sharded))`, and whose functions are traced over these"
        raise SaveError(reason, node=path, clause="DIST-02")


def exported_traces(function: Any, strict: bool) -> list[Any]:
    """The concrete functions of a tf.function that are exported."""
    found = api.traces(function)
    return traces.distinct(found if strict else [trace for trace in found if not traces.unserialisable(trace)])


def _attributes(obj: Any, classes: dict[type, tuple[frozenset[str], frozenset[str]]]) -> dict[str, Any]:
    """Dependencies and functions of a plain module. Functions are looked up in the classes, so that no property runs.

    Args:
      classes: what is known of classes so far.
    """
    found = api.trackable_children(obj)
    cls, members = type(obj), getattr(obj, "__dict__", {})
    if cls not in classes:
        classes[cls] = _class_attributes(cls)
    functions, descriptors = classes[cls]
    own = {name for name, value in members.items() if is_function(value) and name not in descriptors}
    for name in sorted(own | (functions - members.keys())):
        found[name] = getattr(obj, name)
    return found


def _class_attributes(cls: type) -> tuple[frozenset[str], frozenset[str]]:
    """Names of the functions of a class, and of what an instance cannot have another one of (properties, slots)."""
    functions, descriptors = set(), set()
    for name in {name for base in cls.__mro__ for name in vars(base)}:
        static = inspect.getattr_static(cls, name, None)
        if isinstance(static, (staticmethod, classmethod)):
            static = static.__func__
        if is_function(static):
            functions.add(name)
        if hasattr(type(static), "__set__"):
            descriptors.add(name)
    return frozenset(functions), frozenset(descriptors)


def _makes_children(obj: Any) -> bool:
    return isinstance(obj, tf.data.Dataset)


def _loaded(function: Any) -> bool:
    """Was it loaded by TensorFlow? What has no traces had none in the file."""
    return hasattr(function, "concrete_functions")


def holds_python_values(item: Any) -> bool:
    """Is it a container of Python values with nothing in it that can be tracked? It is no more saved than a number is (FN-14).

    Shipped TensorFlow leaves an empty list or dict in its place.
    """
    if not isinstance(item, (list, tuple, Mapping)) or is_live_map(item):
        return False
    left, seen, found = [item], set(), False
    while left:
        value = left.pop()
        if isinstance(value, (list, tuple, Mapping)):
            if id(value) not in seen:
                seen.add(id(value))
                left.extend(value.values() if isinstance(value, Mapping) else value)
        elif isinstance(value, api.Trackable) or is_function(value):
            return False
        else:
            found = found or value is not None
    return found


def _trackable(child: Any) -> Any:
    """Keras 3 has lists and dicts of its own, nested too, and gives plain ones of the outermost (3.13 on, at least)."""
    return api.wrap(_plain(child)) if isinstance(child, (list, dict, tuple)) and not isinstance(child, api.Trackable) else child


def _plain(value: Any) -> Any:
    if isinstance(value, api.Trackable) or not isinstance(value, (list, dict)):
        return value
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else [_plain(item) for item in value]


def _step(path: str, parent: Any, name: str) -> str:
    if isinstance(parent, api.Function):
        return path  # nobody knows its traces by name
    if isinstance(parent, Mapping):
        return f"{path}[{name!r}]"
    return f"{path}[{name}]" if name.isdecimal() else f"{path}.{name}"
