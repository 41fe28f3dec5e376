"""The values that the Python code of an exported function may read.

Numbers that a function reads while it is traced become constants of its graph. A constant does not
tell where its numbers are from: ``axis=[1]`` and an array ``[1]`` make the same one. So the code
tells it. The walk starts at the Python function, and goes to values that

- the code names: globals, variables of enclosing functions, default values, arguments of
  `functools.partial`;
- the code may read from an object that the walk has reached, because it loads an attribute of that
  name. Methods and properties that are found in this way are read in turn, and also those
  that a framework calls by itself (``call`` of a layer, ``__getitem__``);
- are elements of a container that the walk has reached. If the code names keys of a dict, only
  these.

The walk errs in both directions. An attribute can have the name of one that the code loads from
another object. And the walk does not reach a value whose attribute has a name that the code
computes, or that the code reads no more, because a copy was made before the trace. A save reports
such a value: a loss must not be silent.

RFC: PRIM-06
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
import weakref
from collections import UserDict, UserList, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any

import numpy as np
import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format import limits
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.saving.checks import byte_code
from reference_impl.saving.checks.authorship import is_framework_file, is_installed_file
from reference_impl.saving.checks.trace_frames import traced_codes

_PLAIN = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    np.ndarray,
    np.generic,
    tf.Tensor,
    tf.Variable,
    tf.DType,
)
_LISTS = (list, tuple, deque, Set, UserList)
_DICTS = (dict, types.MappingProxyType, UserDict)
# Methods that Python runs without naming them, except those that make, delete or describe an
# object.
_NOT_CALLED = frozenset(
    {"__init__", "__new__", "__init_subclass__", "__del__", "__repr__", "__str__", "__reduce__"}
)


class TracedCode:
    """The values that the code of one exported function may read.

    `children` gives the objects of the export inside another.
    """

    def __init__(
        self, function: object, owners: Iterable[Any], children: Callable[[Any], Iterable[Any]]
    ):
        self._children = children
        self._loads = byte_code.Loads()
        self._seen: dict[int, Any] = {}
        self._objects: dict[int, Any] = {}
        self._dicts: dict[int, Any] = {}
        self._looked_up: set[tuple[int, Any]] = set()
        self._globals: list[
            tuple[Mapping[str, Any], set[str]]
        ] = []  # of each function, and the names that it loads
        self._modules: set[str] = set()  # whose code counts although they are of a framework
        self._pending = list(owners)
        self._start(function)
        self._walk()

    def reads(self, value: object) -> bool:
        """Return whether the code may read this very value."""
        return id(value) in self._seen

    def _start(self, function: object) -> None:
        code: Any = function.python_function if isinstance(function, api.Function) else function
        code = api.undecorated(code)  # a method of a class has a wrapper
        bound = isinstance(code, types.MethodType)
        plain = code.__func__ if bound else code
        if isinstance(plain, types.FunctionType):
            self._modules.add(plain.__module__)
            self._read(plain, list(byte_code.unchanged_arguments(plain.__code__))[bound:])
        self._pending.append(code)

    def _walk(self) -> None:
        while self._pending:
            while self._pending and len(self._seen) < limits.TRACED_CODE_VALUES:
                self._visit(self._pending.pop())
            if len(self._seen) >= limits.TRACED_CODE_VALUES:
                return
            self._pending = list(self._named())
            if not self._pending:
                self._pending = list(self._keyed())

    def _visit(self, value: object) -> None:
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, _PLAIN):
            return
        if isinstance(
            value,
            (
                types.FunctionType,
                types.MethodType,
                functools.partial,
                property,
                staticmethod,
                classmethod,
            ),
        ):
            self._visit_callable(value)
        elif isinstance(value, functools.cached_property):
            self._pending.append(value.func)
        elif isinstance(value, weakref.ref):
            self._pending.append(value())
        elif isinstance(value, types.CellType):
            self._pending.extend(_content(value))
        elif isinstance(value, api.Function):
            self._pending.append(value.python_function)
        elif isinstance(value, api.ConcreteFunction):
            self._visit_concrete(value)
        elif isinstance(value, _DICTS):
            self._dicts[id(value)] = value
        elif isinstance(value, _LISTS):
            self._pending.extend(value)
        elif self._may_hold_arrays(value):
            self._objects[id(value)] = value
            if isinstance(value, api.Trackable) and not api.tracks_attributes(
                value
            ):  # code of a framework uses its parts
                self._pending.extend(self._children(value))

    def _may_hold_arrays(self, value: object) -> bool:
        """Return whether a value is a trackable, or an object, a class or a module of the user."""
        if isinstance(value, types.ModuleType):
            return not self._is_foreign(value.__name__) and not is_installed_file(
                getattr(value, "__file__", None) or ""
            )
        cls = value if isinstance(value, type) else type(value)
        return isinstance(value, (api.Trackable, types.SimpleNamespace)) or not self._is_foreign(
            cls.__module__
        )

    def _visit_callable(self, value: Any) -> None:
        if isinstance(value, functools.partial):
            self._pending += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, property):
            self._pending += [value.fget]
        elif isinstance(value, types.FunctionType):
            self._pending.extend(_bound_values(value))
            if not self._is_foreign(value.__module__):
                self._read(value)
        else:
            self._pending += [value.__func__, getattr(value, "__self__", None)]

    def _visit_concrete(self, function: object) -> None:
        if not isinstance(function, RegisteredFunction):
            for code in traced_codes(function):
                self._loads.add(byte_code.loads(code))

    def _read(self, function: types.FunctionType, tensors: Iterable[str] = ()) -> None:
        """Read the code of a function; `tensors` are the arguments that are tensors."""
        if id(function.__code__) not in self._seen:
            self._seen[id(function.__code__)] = function.__code__
            loads = byte_code.loads(function.__code__, frozenset(tensors))
            self._loads.add(loads)
            self._globals.append((function.__globals__, loads.globals))

    def _is_foreign(self, module: object) -> bool:
        """Return whether a module is of a framework or of the standard library."""
        if module in self._modules:
            return False
        root = str(module).partition(".")[0]
        file = getattr(sys.modules.get(str(module)), "__file__", None) or ""
        return root in _FOREIGN or is_framework_file(file)

    def _named(self) -> Iterator[Any]:
        """Yield the globals, and the attributes of all objects, that the code names."""
        for space, names in self._globals:
            yield from (space[name] for name in sorted(names) if name in space)
        self._globals.clear()
        for value in list(self._objects.values()):
            for name in self._new(value, self._loads.attributes):
                yield from _attribute(value, name)
            if (id(value), "") not in self._looked_up:
                self._looked_up.add((id(value), ""))
                yield from self._called_by_frameworks(type(value))

    def _new(self, value: object, names: Iterable[str]) -> list[str]:
        found = [name for name in names if (id(value), name) not in self._looked_up]
        self._looked_up.update((id(value), name) for name in found)
        return found

    def _called_by_frameworks(self, cls: type) -> Iterator[Any]:
        """Yield the methods of a class that Python or the framework of a base class calls."""
        theirs: set[str] = set()
        for base in cls.__mro__:
            if self._is_foreign(base.__module__):
                theirs.update(vars(base))
        for base in cls.__mro__:
            if not self._is_foreign(base.__module__):
                for name, member in list(vars(base).items()):
                    if (
                        (name in theirs or name.startswith("__"))
                        and name not in _NOT_CALLED
                        and _is_code(member)
                    ):
                        yield member

    def _keyed(self) -> Iterator[Any]:
        """Yield elements of the dicts: under keys that the code names; if it names no key of a
        dict, all its elements.
        """
        for number, value in self._dicts.items():
            items = list(value.items())
            named = [
                (key, item)
                for key, item in items
                if isinstance(key, str) and key in self._loads.texts
            ]
            for key, item in named or items:
                if (number, key) not in self._looked_up:
                    self._looked_up.add((number, key))
                    yield item


_FOREIGN = frozenset(
    {*getattr(sys, "stdlib_module_names", ()), "builtins", "numpy", "wrapt", "reference_impl"}
)


def _is_code(member: object) -> bool:
    return isinstance(
        member, (types.FunctionType, staticmethod, classmethod, property, api.Function)
    )


def _bound_values(function: types.FunctionType) -> Iterator[Any]:
    yield from function.__closure__ or ()
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield getattr(function, "__wrapped__", None)


def _content(cell: types.CellType) -> Iterator[Any]:
    try:
        yield cell.cell_contents
    except ValueError:  # it is empty
        return


def _attribute(value: object, name: str) -> Iterator[Any]:
    """Yield what an object, a class or a module has under a name, without running code."""
    members = getattr(value, "__dict__", {})
    if name in members:
        yield members[name]
    found = inspect.getattr_static(value if isinstance(value, type) else type(value), name, None)
    if isinstance(found, types.MemberDescriptorType):
        try:
            found = found.__get__(value, type(value))
        except (AttributeError, TypeError):
            found = None
    if found is not None:
        yield found
