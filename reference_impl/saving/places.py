"""Where Python has state that a function uses and nobody saves; for messages (FN-07)."""

from __future__ import annotations

import re
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

_MOST = 10_000  # objects that are looked at
_CLOSED = (type, str, bytes, int, float, types.ModuleType, types.FunctionType, types.CodeType)


def find(is_it: Callable[[Any], bool], root: Any, function: Any) -> str:
    """An expression such as ``root.helper.weights[0]`` for the first object that `is_it` knows, "" if there is none near.

    Looked at are attributes and elements, nearest first, of the object that is saved and of what the function's code names. No
    property runs.

    Args:
      function: the Python function behind a tf.function, or None.
    """
    queue = deque([("root", root), *_named(function)])
    seen: set[int] = set()
    while queue and len(seen) < _MOST:
        path, value = queue.popleft()
        if id(value) in seen or isinstance(value, _CLOSED):
            continue
        if is_it(value):
            return path
        seen.add(id(value))
        queue.extend(_parts(path, value))
    return ""


def assignment(place: str) -> str:
    """The line that makes what is at `place` an attribute of the root."""
    names = [name for name in re.findall(r"[A-Za-z]\w*", place) if name != "root"]
    return f"root.{names[-1] if names else 'name'} = {place or 'variable'}"


def _named(function: Any) -> Iterator[tuple[str, Any]]:
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    for name in code.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _parts(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((f"{path}[{key!r}]", item) for key, item in list(value.items()) if isinstance(key, (str, int)))
    elif isinstance(value, (list, tuple)):
        yield from ((f"{path}[{index}]", item) for index, item in enumerate(value))
    else:
        members = getattr(value, "__dict__", None)
        if isinstance(members, dict):
            yield from ((f"{path}.{name}", item) for name, item in list(members.items()) if name.isidentifier())
