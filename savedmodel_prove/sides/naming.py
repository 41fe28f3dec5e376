"""The names of the original's inputs and outputs in a converted file.

Converters keep a name, or spell it anew: ``x`` becomes ``x:0`` or ``serving_default_x``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from savedmodel_prove.sides.side import SideError

_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")


def pair(
    what: str, wanted: Sequence[str], there: Collection[str], given: Mapping[str, str]
) -> dict[str, str]:
    """Return the file's name for each name of the original that it has.

    Args:
      what: ``input`` or ``output``, for messages.
      wanted: the names of the original.
      there: the names in the file.
      given: names that the user paired.

    Raises SideError: a name that the user gave is not in the file, or no name can be paired.

    Example: ``pair("input", ["x"], ["x:0"], {})`` is ``{"x": "x:0"}``.
    """
    found: dict[str, str] = {}
    for name in wanted:
        if name in given and given[name] not in there:
            listed = ", ".join(there)
            raise SideError(f"the file has no {what} {given[name]!r}; it has {listed}")
        same = given.get(name) or _spelled(name, there)
        if same:
            found[name] = same
    missing = [name for name in wanted if name not in found]
    left = [name for name in there if name not in found.values()]
    if len(missing) == 1 and len(left) == 1:
        found[missing[0]] = left[0]
    if not found and wanted and there:
        raise SideError(
            f"the {what}s of the file are called {', '.join(there)}, those of the original"
            f" {', '.join(wanted)}: pair them with --name {wanted[0]}=NAME"
        )
    return found


def _spelled(name: str, there: Collection[str]) -> str:
    """Return the one name in the file that is a spelling of ``name``, or ""."""
    if name in there:
        return name
    plain = _plain(name)
    alike = [other for other in there if _plain(other) == plain]
    return alike[0] if len(alike) == 1 else ""


def _plain(name: str) -> str:
    bare = name.removeprefix("serving_default_").partition(":")[0]
    return _UNSAFE.sub("_", bare).lower()
