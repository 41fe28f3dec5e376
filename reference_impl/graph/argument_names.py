"""Names that TensorFlow gives to arguments and results: of functions in a file, and of Python
functions.

RFC: SIG-07, FMT-05
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence

from reference_impl.graph.unique_names import UniqueNames


def python_name(name: str) -> str:
    """Return the keyword that TensorFlow makes from an argument's name: ``image/encoded`` becomes
    ``image_encoded``.

    For a keyword of Python (``in``) and for some letters TensorFlow's name is not valid for a
    parameter, and TensorFlow itself cannot load it. Such arguments get a valid name here:
    ``arg_in``.
    """
    swapped = "".join(c if c.isalnum() and f"_{c}".isidentifier() else "_" for c in name)
    plain = swapped[:1].isalpha() and swapped.isidentifier() and not keyword.iskeyword(swapped)
    return swapped if plain else f"arg_{swapped}"


def python_names(names: Iterable[str]) -> dict[str, str]:
    """Return the different keywords of the inputs of a function, in the order in which TensorFlow
    passes them.

    TensorFlow sorts inputs passed by keyword by these names: ``in1`` comes before ``in-x``, which
    becomes ``in_x``. Functions of a file must take their arguments in this order (SIG-07).
    """
    found: dict[str, str] = {}
    free = UniqueNames()
    for name in sorted(
        names, key=lambda name: (python_name(name) != name, name)
    ):  # a valid name is kept
        found[name] = free.take(python_name(name))
    return dict(sorted(found.items(), key=lambda item: item[1]))


def result_name(path: Sequence[object]) -> str:
    """Return TensorFlow's name for the TensorSpec of a result at ``path`` in a structure: ``b_0``
    for the first item of ``b``.
    """
    text = "_".join(map(str, path)).lower()
    swapped = "".join(c if c.isalnum() else "_" for c in text)
    return "unknown" if not swapped else swapped if swapped[0].isalpha() else f"tensor_{swapped}"


def argument_name(text: str) -> str:
    """Return the nearest name that an OpDef may have (``[a-z][a-z0-9_]*``)."""
    name = re.sub(r"[^a-z0-9_]", "_", text.lower())
    return name if name[:1].isalpha() else "arg_" + name.lstrip("_")
