"""A cache for look-ups in registries of TensorFlow, which grow.

`tf.load_op_library` and imports of packages register ops while a process runs. So the cache keeps the entries that were found,
and never the answer that there is none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Optional, TypeVar

Found = TypeVar("Found")


def found_once(find: Callable[..., Optional[Found]]) -> Callable[..., Optional[Found]]:
    """Return a function that gives the same results, and calls `find` again only for arguments for which it gave None."""
    known: dict[tuple[Any, ...], Found] = {}

    @functools.wraps(find)
    def remembered(*arguments: Any) -> Optional[Found]:
        result = known.get(arguments)
        if result is None:
            result = find(*arguments)
            if result is not None:
                known[arguments] = result
        return result

    return remembered
