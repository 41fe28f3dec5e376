"""The names that the byte code of Python functions loads.

RFC: PRIM-06
"""

from __future__ import annotations

import dis
import types
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
# With these an attribute is read by a name that is a text.
_BY_TEXT = frozenset(
    {"getattr", "hasattr", "attrgetter", "methodcaller", "vars", "__dict__", "__getattribute__"}
)


@dataclass(frozen=True)
class Loads:
    """The names of attributes and of globals, and the texts, that code loads.

    For texts see `_BY_TEXT`.
    """

    attributes: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)

    def add(self, other: Loads) -> None:
        self.attributes.update(other.attributes)
        self.globals.update(other.globals)
        self.texts.update(other.texts)


def loads(code: types.CodeType, tensors: Collection[str] = ()) -> Loads:
    """Return what a code object and the functions inside it load.

    `tensors` are the names of local variables whose attributes do not count: arguments of a traced
    function are tensors.
    """
    found = Loads()
    for one in nested(code):
        found.add(_own_loads(one, tensors if one is code else ()))
    return found


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object and the code objects of the functions and classes inside it."""
    pending = [code]
    while pending:
        one = pending.pop()
        yield one
        pending.extend(
            constant for constant in one.co_consts if isinstance(constant, types.CodeType)
        )


def lines(code: types.CodeType) -> frozenset[int]:
    """Return the line numbers of a code object, without those of functions inside it."""
    return frozenset(line for _, line in dis.findlinestarts(code) if line is not None)


def _own_loads(code: types.CodeType, tensors: Collection[str]) -> Loads:
    found, before = Loads(), None
    for item in dis.get_instructions(code):
        if item.opname in _ATTRIBUTES and _local(before) not in tensors:
            found.attributes.add(item.argval)
        elif item.opname in _GLOBALS:
            found.globals.add(item.argval)
        before = item
    for constant in code.co_consts:
        found.texts.update(
            item
            for item in (constant if isinstance(constant, tuple) else (constant,))
            if isinstance(item, str)
        )
    if not _BY_TEXT.isdisjoint(code.co_names):
        found.attributes.update(text for text in found.texts if text.isidentifier())
    return found


def _local(item: object) -> str:
    """Return the local variable that an instruction loads last, or ""."""
    if not isinstance(item, dis.Instruction) or not item.opname.startswith("LOAD_FAST"):
        return ""
    return item.argval[-1] if isinstance(item.argval, tuple) else str(item.argval)


def unchanged_arguments(code: types.CodeType) -> Iterator[str]:
    """Yield the names of the arguments of a function that keep the values of the call."""
    count = code.co_argcount + code.co_kwonlyargcount
    changed: set[str] = set()
    for item in dis.get_instructions(code):
        if item.opname.startswith("STORE_FAST"):
            changed.update(item.argval if isinstance(item.argval, tuple) else (item.argval,))
    return (name for name in code.co_varnames[:count] if name not in changed)
