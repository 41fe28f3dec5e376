"""Records of what a release registers: plain data shared by the registries, the table and the
lookups.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

# A kernel's constraints: ((attr, value), ...), sorted by attr; an absent attr may have any value.
# Most values are names of dtypes; some kernels also constrain strings (GatherNd:
# bad_indices_policy), numbers or flags, written as text.
Kernel = tuple[tuple[str, str], ...]


def kernel_values(plain: Any) -> tuple[str, ...]:
    """Return an attr's value as the constraints of kernels are recorded; each item of a list
    counts.

    ``plain``: the value as :func:`savedmodel_tools.skew.protos.plain_value` writes it.
    """
    values = plain if isinstance(plain, list) else [plain]
    return tuple(str(value).lower() if isinstance(value, bool) else str(value) for value in values)


class Release(NamedTuple):
    """A TensorFlow release of the table.

    Attributes:
      name: major.minor, ``2.15``.
      tensorflow: the full version that was examined, ``2.15.1``.
      producer: the GraphDef version it writes.
      min_consumer: the oldest GraphDef version that may read its graphs.
      has_kernels: whether its C API lists the kernels (since 1.12).
      dtypes: the data types it knows, sorted, without references.
    """

    name: str
    tensorflow: str
    producer: int
    min_consumer: int
    has_kernels: bool
    dtypes: tuple[str, ...] = ()


class Attr(NamedTuple):
    """An attr of an op in one release.

    ``default`` None: it must be given. ``allowed`` None: every value of the type.

    Values are written as by :func:`savedmodel_tools.skew.protos.plain_value`.
    """

    name: str
    type: str
    default: Any
    allowed: Optional[tuple[str, ...]]
    minimum: Optional[int]

    def allows(self, value: str) -> bool:
        """Return whether the attr may have a value, as far as a list of values says."""
        return self.allowed is None or value in self.allowed


class Op(NamedTuple):
    """An op in one release.

    Attributes:
      name: the name of the op.
      signature: ``a: T, b: T -> product: T``.
      attrs: in order of their names.
      stateful: is_stateful.
      deprecated: (GraphDef version from which graphs may not use it, what to use instead).
      library: the file, below the package, that must be mapped before the op exists
        (tensorflow.contrib); "" for core ops.
      kernels: those for the devices of a session without accelerator (CPU; until 2.3 also XLA_CPU);
        None where the release does not tell.
      python: whether the kernels are only in the library of the Python package, not in the one that
        programs without Python use.
    """

    name: str
    signature: str
    attrs: tuple[Attr, ...]
    stateful: bool
    deprecated: Optional[tuple[int, str]]
    library: str
    kernels: Optional[frozenset[Kernel]]
    python: bool = False

    def attr(self, name: str) -> Optional[Attr]:
        """Return the attr of this name, or None."""
        return next((attr for attr in self.attrs if attr.name == name), None)


Snapshot = dict[str, Op]  # what one release registers, by name
