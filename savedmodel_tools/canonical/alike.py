"""Find functions whose text differs only in the names of functions: they do the same and are
canonicalised once.

A program traces one function many times, and two exports of one program number their functions
differently, so most FunctionDefs of a model are copies of a few. Finding the copies takes one pass
over attributes and bytes, a tenth of the time of the canonical form of a body.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple, Optional

from reference_impl.format import schema
from reference_impl.format.names import CUSTOM_GRADIENT
from reference_impl.graph.references import FunctionIndex
from savedmodel_tools.canonical.graph import digest
from savedmodel_tools.canonical.values import OWN_TEXT, is_temporary

# As a string constant: the number of the field, the length, the text.
_TEMPORARY = re.compile(rb"\x42\x2b_temp_[0-9a-f]{32}/part")
_SHORT = 128  # bytes; a shorter string follows one byte that holds its length


class Mentions(NamedTuple):
    """The functions of a library that one of them mentions.

    Attributes:
      counts: name -> how often a field names the function and means what it does.
      temporary: names of temporary files among the constants, which every export generates anew.
      plain: whether nothing else about those functions matters (a call by op type needs the names
          of their results), and no function is mentioned in another form.
    """

    counts: dict[str, int]
    temporary: int
    plain: bool


class Mentioned:
    """The mentions of functions in each function of a library."""

    def __init__(self, library: FunctionIndex) -> None:
        self.library = library
        self.names = {name.encode(): name for name in library.functions}

    def by(self, name: str) -> Mentions:
        """Return what the function ``name`` of the library mentions."""
        function, counts = self.library.functions[name], Counter[str]()
        plain = self._in_attributes(function.attr, counts) and name not in self.library.gradient_of
        temporary = 0
        for node in function.node_def:
            # No short circuit: all mentions are wanted.
            plain = (
                self._in_attributes(node.attr, counts)
                and plain
                and node.op not in self.library.functions
            )
            if (
                node.op == "Const" and "value" in node.attr
            ):  # listed strings, since `written` counts what stands in the bytes
                temporary += sum(map(is_temporary, node.attr["value"].tensor.string_val))
        if not plain:
            others: set[str] = set()
            for node in function.node_def:
                others.update(self.library.references(node))
            attributes = [function.attr, *[node.attr for node in function.node_def]]
            others.update(*map(self.library.in_strings, attributes))
            if self.library.gradient_of.get(name) in self.library.functions:
                others.add(self.library.gradient_of[name])
            for other in sorted(others):
                counts.setdefault(other, 0)
        return Mentions(counts, temporary, plain)

    def _in_attributes(self, attributes: Any, counts: Counter[str]) -> bool:
        plain = True
        for key in attributes:
            value = attributes[key]
            kind = value.WhichOneof("value")
            if (
                key == CUSTOM_GRADIENT
                and value.s.decode("utf-8", "replace") in self.library.gradients
            ):
                plain = (
                    False  # otherwise no function is meant: the gradients of calls are not exported
                )
            if kind == "list":
                texts, functions = value.list.s, value.list.func
            elif kind == "s":
                texts, functions = (value.s,), ()
            elif kind == "func":
                texts, functions = (), (value.func,)
            else:
                continue
            for function in functions:
                plain = plain and not function.attr
                if function.name in self.library.functions:
                    counts[function.name] += 1
            for text in texts:
                name = self.names.get(text)
                if name is not None:
                    plain = plain and key not in OWN_TEXT
                    counts[name] += 1
        return plain


def written(
    function: schema.FunctionDef, mentions: Mentions, hashes: dict[str, bytes]
) -> Optional[bytes]:
    """Hash the text of a function without its name, and with hashes in place of the names that it
    mentions.

    Functions with equal hashes do the same: they differ only in names of functions, at places where
    only what those functions do matters. The converse does not hold. The function does not mention
    itself; ``hashes`` has all functions that it mentions. None where a name also occurs in a place
    where it may be plain text, or is too long to be told apart from others.
    """
    if not mentions.plain:
        return None
    nameless = schema.copy_of(function)
    nameless.signature.name = ""
    data, temporary = _TEMPORARY.subn(b"", schema.serialize(nameless))
    if temporary != mentions.temporary:
        return None
    places: list[tuple[int, int, str]] = []
    for name, count in mentions.counts.items():
        raw = name.encode()
        if not 0 < len(raw) < _SHORT:
            return None
        found = _all(data, bytes([len(raw)]) + raw)
        if len(found) != count:
            return None
        places += [(start, len(raw) + 1, name) for start in found]
    parts: list[bytes] = []
    position, numbers = 0, dict[str, int]()
    for start, size, name in sorted(places):
        # The number of the name in order of first occurrence, and the hash of its function.
        number = numbers.setdefault(name, len(numbers))
        parts += data[position:start], b"%d" % number, hashes[name]
        position = start + size
    return digest(*parts, data[position:])


def _all(data: bytes, part: bytes) -> list[int]:
    """Return the positions of ``part`` in ``data``."""
    found, start = [], data.find(part)
    while start >= 0:
        found.append(start)
        start = data.find(part, start + len(part))
    return found
