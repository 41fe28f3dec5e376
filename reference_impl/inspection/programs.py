"""StableHLO programs inside a MetaGraph: the modules of ``XlaCallModule`` nodes, as JAX and others export them.

A module is a text of MLIR, or a portable artifact: MLIR bytecode, which names its StableHLO version in clear at its start.

RFC: GOAL-07
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

from reference_impl.format import schema
from reference_impl.inspection.graph_view import GraphView
from reference_impl.inspection.types import Program

OP = "XlaCallModule"
_MAGIC = b"ML\xefR"
_PRODUCER = re.compile(rb"StableHLO_v(\d{1,6}\.\d{1,6}\.\d{1,6})\Z")
_MAX_PRODUCER = 200  # bytes
_STRINGS = 0  # the id of the section with all strings
_MAX_NAMES = 200
_TARGET = re.compile(r"custom_call\s+@\"?([\w.$-]+)")
_CALL = re.compile(r"custom_call_v\d+\Z")
# Not a target: ops and dialects of the bytecode, visibilities, and the location that is not known.
_WORD = re.compile(r"\w+_v\d+\Z|builtin\Z|vhlo\Z|module\Z|main\Z|public\Z|private\Z|nested\Z|-?\Z")


def programs(view: GraphView) -> tuple[Program, ...]:
    """Return the StableHLO programs of a graph and its functions, in order."""
    return tuple(program(node, function) for function, node in view.of_op({OP}))


def program(node: schema.NodeDef, function: Optional[str] = None) -> Program:
    """Describe the module of an ``XlaCallModule`` node in a function, or in the main graph.

    Damage is not an error: unreadable parts are left out.
    """
    module = node.attr["module"].s if "module" in node.attr else b""
    platforms = (
        tuple([item.decode("utf-8", "replace") for item in node.attr["platforms"].list.s]) if "platforms" in node.attr else ()
    )
    version = node.attr["version"].i if "version" in node.attr else 0
    if not module.startswith(_MAGIC):
        calls = _TARGET.findall(module.decode("utf-8", "replace"))
        return Program(node.name, function, version, None, platforms, _distinct(calls), True)
    producer, start = _producer(module)
    stablehlo = _PRODUCER.match(producer)
    names = list(_strings(module, start))
    calls = [name for name in names if not _WORD.match(name)] if any(map(_CALL.match, names)) else []
    return Program(node.name, function, version, stablehlo and stablehlo[1].decode(), platforms, _distinct(calls), False)


def _distinct(names: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))[:_MAX_NAMES]


def _producer(module: bytes) -> tuple[bytes, int]:
    """Return the writer of a portable artifact, and the position of the first section; 0 for a damaged artifact."""
    found = _number(module, len(_MAGIC))
    end = module.find(b"\0", found[1], found[1] + _MAX_PRODUCER) if found else -1
    return (module[found[1] : end], end + 1) if found and end >= 0 else (b"", 0)


def _number(data: bytes, at: int) -> Optional[tuple[int, int]]:
    """Return a number of MLIR bytecode and its end position. The trailing zero bits of the first byte count the other bytes."""
    if at >= len(data):
        return None
    first = data[at]
    if not first:
        return (int.from_bytes(data[at + 1 : at + 9], "little"), at + 9) if at + 9 <= len(data) else None
    size = (first & -first).bit_length()
    if at + size > len(data):
        return None
    return int.from_bytes(data[at : at + size], "little") >> size, at + size


def _strings(module: bytes, at: int) -> Iterator[str]:
    """Yield the strings of a portable artifact whose first section is at this position; none if it is damaged."""
    while 0 < at < len(module):
        head = module[at]
        length = _number(module, at + 1)
        if length is None:
            return
        size, at = length
        if head & 0x80:  # aligned: the alignment, and padding
            alignment = _number(module, at)
            if alignment is None or not 0 < alignment[0] <= 1 << 16:
                return
            at = -(-alignment[1] // alignment[0]) * alignment[0]
        if at + size > len(module):
            return
        if head & 0x7F == _STRINGS:
            yield from _string_section(module[at : at + size])
            return
        at += size


def _string_section(data: bytes) -> Iterator[str]:
    """Read the section: sizes in reverse order, then the strings, each followed by a zero byte."""
    found = _number(data, 0)
    if found is None or found[0] > len(data):
        return
    count, at = found
    sizes: list[int] = []
    while len(sizes) < count:
        item = _number(data, at)
        if item is None:
            return
        sizes.append(item[0])
        at = item[1]
    for length in reversed(sizes):
        yield data[at : at + length - 1].decode("utf-8", "replace")
        at += length
