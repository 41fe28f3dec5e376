"""A cache for what a process looks up in something that grows: a registry of TensorFlow, the
programs of a machine.

`tf.load_op_library` and imports of packages register ops while a process runs, and packages are
installed. So the cache keeps what was found, and never the answer that there is nothing: a look-up
can also fail for want of memory or processes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Optional, TypeVar

Found = TypeVar("Found")


def found_once(find: Callable[..., Optional[Found]]) -> Callable[..., Optional[Found]]:
    """Return a function that gives the same results, and calls `find` again only for arguments for
    which it gave None.
    """
    known: dict[tuple[Any, ...], Found] = {}

    @functools.wraps(find)
    def remembered(*arguments: object) -> Optional[Found]:
        result = known.get(arguments)
        if result is None:
            result = find(*arguments)
            if result is not None:
                known[arguments] = result
        return result

    return remembered
