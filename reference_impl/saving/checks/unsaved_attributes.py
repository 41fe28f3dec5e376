"""Find attributes of exported objects that hold numbers and would not be saved.

A SavedModel has places for variables, tables, functions, modules, and for lists, tuples and dicts
of these. All other attributes are lost. For plain Python values this is intended (FN-14). Arrays,
tensors, and variables in containers that TensorFlow does not search are state, and their loss must
be reported (PRIM-06).

An array is not lost if an exported function has its numbers. Two things must hold: the graph of the
function, or a function that it calls, has a constant with these numbers; and the Python code of the
same function may read this very array (`TracedCode`). Equal numbers alone mean nothing, since
``axis=[1]`` is a constant too. A tensor that a function captures is in the file.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import inspect
import itertools
import sys
import types
import weakref
from collections import UserDict, UserList, deque
from collections.abc import (
    Callable,
    ItemsView,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    Set,
    ValuesView,
)
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError, listed
from reference_impl.format.values import tensor_proto
from reference_impl.functions.concrete_function import LoadedConcreteFunction
from reference_impl.graph.references import nodes_of
from reference_impl.kinds.function import LoadedFunction
from reference_impl.saving.checks.authorship import is_installed_file, package
from reference_impl.saving.checks.traced_code import TracedCode
from reference_impl.saving.children import holds_python_values
from reference_impl.saving.exported_functions import ExportedFunctions
from reference_impl.saving.traces import is_function
from reference_impl.saving.tree import Node, Tree
from reference_impl.saving.values import eager_tensor, of_tensor

# Packages whose classes have internal attributes, which are not the user's state.
_FRAMEWORKS = frozenset({"keras", "tf_keras", "tensorflow", "reference_impl"})
_KERAS = frozenset({"keras", "tf_keras"})
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_VIEWS = (KeysView, ValuesView, ItemsView)
_CODE = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.GeneratorType,
)
# Objects whose attributes are not their state: these say themselves what is to be saved of them.
_STATED = (
    api.Function,
    api.ConcreteFunction,
    api.CapturableResource,
    tf.train.experimental.PythonState,
)
_HOLDERS = (
    UserDict,
    UserList,
    types.SimpleNamespace,
)  # of the standard library, whose other objects hold no model state


class Lost(NamedTuple):
    """A value that is not saved: its Python path, its kind ("" if it need not be reported), and its
    numbers.
    """

    place: str
    what: str
    arrays: Sequence[Any] = ()
    value: Any = None


def check(tree: Tree, functions: ExportedFunctions) -> None:
    """Report all values with numbers that an export leaves out.

    Raises:
      SaveError: there are such values (with ``strict``; otherwise a warning). The error names all
        attributes and elements.

    RFC: PRIM-06, FN-14
    """
    lost: list[Lost] = []
    for node in list(tree.nodes):
        lost += _of_node(tree, node)
    exported = [ExportedCode(tree, functions, node) for node in _with_code(tree)] if lost else []

    def is_exported(item: Lost) -> bool:
        return _is_captured(tree, item) or any(code.has(item) for code in exported)

    found = [item for item in lost if not is_exported(item)]
    if not found:
        return
    named = listed(f"{item.place} ({item.what})" if item.what else item.place for item in found)
    reason = (
        f"not trackable, so they would be missing after loading: {named}. Make variables of"
        " numbers "
    )
    reason += (
        "(trainable=False for constants), and keep variables in attributes, lists, tuples and"
        " dicts. "
    )
    reason += "Save with strict=False to leave them out."
    tree.report_loss(SaveError(reason, node=found[0].place, clause="PRIM-06"))


def _with_code(tree: Tree) -> Iterator[Node]:
    """Yield the functions that were traced in this process.

    The traces of a `tf.function` are not listed by themselves.
    """
    functions = [node for node in tree.nodes if isinstance(node.object, api.Function)]
    traces: set[int] = set()
    for node in functions:
        traces.update(id(tree.nodes[number].object) for number in node.children.values())
    for node in tree.nodes:
        function = getattr(node.object, "target", node.object)  # of a signature
        known = (
            isinstance(function, (LoadedFunction, LoadedConcreteFunction)) or id(function) in traces
        )
        if not known and is_function(function):
            yield node


def _is_captured(tree: Tree, item: Lost) -> bool:
    """Return whether all parts of a tensor are captured by functions."""
    parts = (
        tf.nest.flatten(item.value, expand_composites=True)
        if item.arrays and not isinstance(item.value, np.ndarray)
        else []
    )
    return bool(parts) and all(tree.number_of(part) is not None for part in parts)


class ExportedCode:
    """A function of the export: the constants of its graphs, and what its Python code reads."""

    def __init__(self, tree: Tree, functions: ExportedFunctions, node: Node):
        self._tree, self._functions, self._node = tree, functions, node

    def has(self, item: Lost) -> bool:
        """Return whether the function has the numbers of an item because it reads the item."""
        return (
            bool(item.arrays)
            and all(map(self._has_constant, item.arrays))
            and self._code.reads(item.value)
        )

    def _has_constant(self, array: np.ndarray[Any, Any]) -> bool:
        return any(_same(array, constant()) for constant in self._constants.get(array.shape, ()))

    @functools.cached_property
    def _constants(self) -> dict[tuple[int, ...], list[Callable[[], Any]]]:
        """The constants of the traces of the function and of the functions that they call, by
        shape; also captured ones.
        """
        found: dict[tuple[int, ...], list[Callable[[], Any]]] = {}
        library, numbers = (
            self._functions.library,
            (self._node.number, *self._node.children.values()),
        )
        by_number = self._functions.by_number
        traces = [by_number[number] for number in numbers if number in by_number]
        names: dict[str, None] = {}
        for trace in traces:
            names.update(dict.fromkeys(library.closure(trace.name)))
        bound = itertools.chain.from_iterable(trace.captures for trace in traces)
        for captured in (self._tree.nodes[number].object for number in bound):
            if eager_tensor(captured) and not api.is_variable(captured):
                found.setdefault(tuple(captured.shape), []).append(
                    functools.partial(of_tensor, captured)
                )
        for node in nodes_of(library.definitions[name] for name in names):
            if node.op != "Const":
                continue
            proto = node.attr["value"].tensor
            shape = tuple(dim.size for dim in proto.tensor_shape.dim)
            found.setdefault(shape, []).append(functools.partial(tensor_proto.decode, proto))
        return found

    @functools.cached_property
    def _code(self) -> TracedCode:
        function, nodes = getattr(self._node.object, "target", self._node.object), self._tree.nodes
        of_function = isinstance(function, api.Function)
        owners = [
            node.object
            for node in nodes
            if not of_function or self._node.number in node.children.values()
        ]
        return TracedCode(function, owners, self._inside)

    def _inside(self, obj: object) -> list[Any]:
        number = self._tree.number_of(obj)
        return (
            []
            if number is None
            else [
                self._tree.nodes[child].object
                for child in self._tree.nodes[number].children.values()
            ]
        )


def _same(array: np.ndarray[Any, Any], constant: object) -> bool:
    """Return whether a constant has the numbers of an array, of any dtype that can hold them."""
    constant = np.asarray(constant)
    if array.dtype.kind == "U":
        array = np.char.encode(array, "utf-8").astype(object)
    if array.dtype.kind in "fc" and constant.dtype.kind not in "fcV":  # V: of ml_dtypes
        return np.array_equal(array, constant)
    try:
        return np.array_equal(
            array.astype(constant.dtype), constant, equal_nan=constant.dtype.kind in "fc"
        )
    except (TypeError, ValueError):
        return False


def _of_node(tree: Tree, node: Node) -> Iterator[Lost]:
    obj = node.object
    if node.is_variable:
        if _constraint(obj) is not None:
            yield Lost(f"{node.path}.constraint", "the constraint of a variable")
    elif isinstance(obj, (list, tuple, Mapping)):
        yield from _leaves(tree, node)
    elif isinstance(obj, api.Trackable) and not isinstance(obj, _STATED):
        found = [
            (f"{node.path}.{name}", value)
            for name, value in _attributes(obj)
            if name not in node.children
        ]
        yield from _lost(tree, found)


def _constraint(variable: object) -> Any:
    """Return the constraint that a user gave to a variable.

    Keras constraints are in Keras' own description of the layer.
    """
    holder = variable if isinstance(variable, tf.Variable) else api.variable_components(variable)[0]
    constraint = getattr(holder, "constraint", None)
    return None if package(constraint) in _FRAMEWORKS else constraint


def _leaves(tree: Tree, node: Node) -> Iterator[Lost]:
    """Yield the Python values beside tracked objects in a container.

    Dropping them would also change the order of a list.
    """
    container = node.object
    children = [tree.nodes[number].object for name, number in node.children.items()]
    if not children:
        return
    kept = {id(child) for child in children}
    for key, item in container.items() if isinstance(container, Mapping) else enumerate(container):
        if item is None or id(item) in kept or _is_kept(item):
            continue
        private = node.of_library or node.path.rpartition(".")[2].startswith("_")
        if private and package(type(item)) in _FRAMEWORKS:
            # internal data of a library: the operations of a Keras 3 model, the tables of a Keras 2
            # layer
            continue
        yield Lost(f"{node.path}[{key!r}]", "")


def _is_kept(item: object) -> bool:
    """Return whether an element is saved.

    Wrappers list nested containers under another identity.
    """
    if isinstance(item, (list, dict, tuple)):
        return not holds_python_values(item)
    return isinstance(item, api.Trackable) or is_function(item)


# Attributes


def _attributes(obj: object) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that the author of a trackable gave to it or its class, without those of
    a framework.
    """
    cls = type(obj)
    if package(cls) in _FRAMEWORKS and not api.tracks_attributes(obj):
        return
    private = not any(package(base) in _KERAS for base in cls.__mro__) and not _is_installed(cls)
    theirs = _stored_by_frameworks(cls) | api.unsearched(cls)
    own = [
        vars(base)
        for base in cls.__mro__
        if package(base) not in _FRAMEWORKS and base is not object
    ]
    for members in (getattr(obj, "__dict__", {}), *own):
        for name, value in list(members.items()):
            known = name in theirs or name.startswith(("_self_", "__"))
            if not known and (private or not name.startswith("_")):
                yield (
                    name,
                    (
                        _slot_value(obj, value)
                        if isinstance(value, types.MemberDescriptorType)
                        else value
                    ),
                )


def _slot_value(obj: object, slot: types.MemberDescriptorType) -> Any:
    try:
        return slot.__get__(obj, type(obj))
    except AttributeError:
        return None


_stored: weakref.WeakKeyDictionary[type, frozenset[str]] = weakref.WeakKeyDictionary()


def _stored_by_frameworks(cls: type) -> frozenset[str]:
    """Return the attributes that methods of framework base classes assign, according to their byte
    code.

    For example, the mean in a subclass of Keras' Normalization, which Keras itself saves.
    """
    found: frozenset[str] = frozenset()
    for base in cls.__mro__:
        if package(base) in _FRAMEWORKS:
            if base not in _stored:
                members = list(vars(base).values())
                _stored[base] = frozenset(itertools.chain.from_iterable(map(_stores, members)))
            found |= _stored[base]
    return found


def _stores(member: object) -> Iterator[str]:
    if isinstance(member, property):
        for part in (member.fget, member.fset):
            yield from _stores(part)
    if isinstance(member, (staticmethod, classmethod)):
        member = member.__func__
    codes = (
        [getattr(inspect.unwrap(member), "__code__", None)]
        if callable(member) and not isinstance(member, type)
        else []
    )
    while codes:
        code = codes.pop()
        if isinstance(code, types.CodeType):
            yield from (
                item.argval for item in dis.get_instructions(code) if item.opname == "STORE_ATTR"
            )
            codes.extend(
                constant for constant in code.co_consts if isinstance(constant, types.CodeType)
            )


def _is_installed(cls: type) -> bool:
    """Return whether a class is from an installed package, which users cannot change."""
    return is_installed_file(getattr(sys.modules.get(cls.__module__), "__file__", None) or "")


# Values


def _lost(tree: Tree, values: Sequence[tuple[str, Any]]) -> Iterator[Lost]:
    """Yield the lost parts of (path, value) pairs. Every value is visited once."""
    seen: dict[int, Any] = {}
    stack = [(value, place, True) for place, value in reversed(values)]
    while stack:
        value, place, data = (
            stack.pop()
        )  # data: arrays count here, unlike in objects of unknown classes
        if isinstance(value, (*_PLAIN, *_CODE)) or id(value) in seen:
            continue
        seen[id(value)] = value
        is_object = isinstance(value, api.Trackable) and not isinstance(value, (list, tuple, dict))
        if is_object and tree.number_of(value) is not None:
            continue
        found = _found(value, data)
        if found is not None:
            yield Lost(place, *found, value=value)
        else:
            inside = [
                (item, f"{place}{step}", data and deeper) for step, item, deeper in _inside(value)
            ]
            stack.extend(reversed(inside))


def _found(value: object, data: bool) -> Optional[tuple[str, list[Any]]]:
    """Return the kind of state or, for `data`, of numbers that a value is, with the arrays that it
    consists of as far as known.

    Return None for any other value. A tensor of a graph has no numbers.
    """
    kind = f"a {type(value).__name__}"
    if isinstance(value, api.Trackable):
        state = (
            "a variable"
            if api.is_variable(value)
            else kind
            if isinstance(value, api.CapturableResource)
            else ""
        )
        return (state, []) if state else None
    if not data:
        return None
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}", [value]
    if isinstance(value, tf.TensorArray):  # perhaps in a wrapper of another class
        return "a TensorArray", []
    if isinstance(value, (api.CompositeTensor, tf.Tensor)):
        arrays = [
            np.asarray(of_tensor(part))
            for part in tf.nest.flatten(value, expand_composites=True)
            if eager_tensor(part)
        ]
        return (
            (
                (
                    kind
                    if isinstance(value, api.CompositeTensor)
                    else f"a tensor of {value.dtype.name}"
                ),
                arrays,
            )
            if arrays
            else None
        )
    foreign = (
        hasattr(type(value), "__array__")
        and not isinstance(value, np.generic)
        and package(type(value)) not in _FRAMEWORKS
    )
    return (kind, []) if foreign else None


def _inside(value: object) -> Iterator[tuple[str, Any, bool]]:
    """Yield the parts of a value: the step of the path, the part, and whether arrays in it
    count.
    """
    if isinstance(value, (dict, types.MappingProxyType)):
        for key, item in list(value.items()):
            yield f"[{key!r}]", item, True
    elif isinstance(value, (list, tuple, deque, Set, *_VIEWS)):
        for index, item in enumerate(list(value)):
            yield f"[{index}]", item, True
    elif isinstance(value, functools.partial):
        for name, item in [*enumerate(value.args), *value.keywords.items()]:
            yield f"[{name!r}]", item, True
    elif isinstance(value, api.Trackable):
        yield from _dependencies(value)
    elif isinstance(value, _HOLDERS) or not _is_foreign(type(value)):
        cls = type(value)
        holder = (
            isinstance(value, _HOLDERS)
            or dataclasses.is_dataclass(cls)
            or hasattr(cls, "__attrs_attrs__")
        )
        slots: dict[str, types.MemberDescriptorType] = {}
        for base in cls.__mro__:
            slots.update(item for item in vars(base).items() if _is_slot(item[1], item[0]))
        members = {
            **{name: _slot_value(value, slot) for name, slot in slots.items()},
            **getattr(value, "__dict__", {}),
        }
        for name, item in members.items():
            yield f".{name}", item, holder


def _is_slot(member: object, name: str) -> bool:
    return isinstance(member, types.MemberDescriptorType) and not name.startswith("__")


def _dependencies(value: object) -> Iterator[tuple[str, Any, bool]]:
    """Yield the children of a trackable that is not in the export."""
    if isinstance(value, (api.Function, api.ConcreteFunction, tf.data.Dataset)):
        return
    try:
        children = api.trackable_children(value)
    except (ValueError, NotImplementedError):
        return
    for name, child in children.items():
        yield f".{name}", child, False


def _is_foreign(cls: type) -> bool:
    """Return whether a class belongs to a framework or the standard library, so that its objects
    hold no user state.
    """
    standard = getattr(sys, "stdlib_module_names", ("builtins", "threading", "logging"))
    return package(cls) in _FRAMEWORKS or package(cls) in standard
