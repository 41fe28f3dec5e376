"""Names that TensorFlow gives to arguments: of functions in a file, and of Python functions (SIG-07, FMT-05)."""

from __future__ import annotations

import re
from collections.abc import Collection


def python_name(name: str) -> str:
    """The keyword that TensorFlow makes of the name of an argument: ``image/encoded`` is given as ``image_encoded``."""
    swapped = "".join(c if c.isalnum() else "_" for c in name)
    return swapped if swapped[:1].isalpha() else f"arg_{swapped}"


def argument_name(text: str, taken: Collection[str]) -> str:
    """``text`` as an OpDef argument name (``[a-z][a-z0-9_]*``), different from all in ``taken``."""
    name = re.sub(r"[^a-z0-9_]", "_", text.lower())
    if not name[:1].isalpha():
        name = "arg_" + name.lstrip("_")
    unique, count = name, 0
    while unique in taken:
        count += 1
        unique = f"{name}_{count}"
    return unique
