"""A cache for lookups in something that grows: a registry of TensorFlow, the programs of a
machine.

`tf.load_op_library` and imports of packages register ops while a process runs, and packages are
installed. So the cache keeps what was found, and never the answer that there is nothing: a look-up
can also fail for want of memory or processes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Generic, Optional, TypeVar

Found = TypeVar("Found")


class found_once(Generic[Found]):
    """A function that gives the results of `find`, and calls `find` again only for arguments for
    which it gave None.
    """

    def __init__(self, find: Callable[..., Optional[Found]]):
        self._find = find
        self._known: dict[tuple[Any, ...], Found] = {}
        functools.update_wrapper(self, find)

    def __call__(self, *arguments: object) -> Optional[Found]:
        result = self._known.get(arguments)
        if result is None:
            result = self._find(*arguments)
            if result is not None:
                self._known[arguments] = result
        return result

    def among(self, names: Iterable[str]) -> dict[str, Found]:
        """Return the results for those of several names for which there is one."""
        found: dict[str, Found] = {}
        for name in names:
            result = self(name)
            if result is not None:
                found[name] = result
        return found
