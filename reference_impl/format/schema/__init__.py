"""TensorFlow's messages, in a private descriptor pool.

Our declarations in `proto/` are wire compatible.

The pool is private so that this package and any TensorFlow work in one process in any import order,
and so that text format resolves the types inside an Any. Messages and enumerations are attributes
of this module, made on first access:

    >>> from reference_impl.format import schema
    >>> node = schema.NodeDef(name="x", op="Const")
    >>> node.attr["dtype"].type = schema.DT_FLOAT

Fields that this schema does not know survive reading and writing, in every message. `build` makes
the descriptors from `proto/`; `ordered` has the bytes of a message in the order in which C++
writes its maps.
"""

from __future__ import annotations

from typing import Any

from reference_impl.format.schema import _pool
from reference_impl.format.schema._codec import copy_of, parse, parse_text, serialize, to_text
from reference_impl.format.schema._examine import is_repeated

__all__ = ["copy_of", "is_repeated", "parse", "parse_text", "serialize", "to_text"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    value = _pool.lookup(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_pool.names()})
