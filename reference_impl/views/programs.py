"""StableHLO programs inside a MetaGraph: the modules of ``XlaCallModule`` nodes, as JAX and others
export them.

A module is a text of MLIR, or a portable artifact: MLIR bytecode, which names its StableHLO version
in clear at its start.

RFC: GOAL-07
"""

from __future__ import annotations

import contextlib
import re
from typing import Optional

from reference_impl.format import limits, schema
from reference_impl.graph.graph_view import GraphView
from reference_impl.views.types import Program

OP = "XlaCallModule"
_MAGIC = b"ML\xefR"
_PRODUCER = re.compile(rb"StableHLO_v(\d{1,6}\.\d{1,6}\.\d{1,6})\Z")
_STRINGS = 0  # the id of the section with all strings
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
        tuple([item.decode("utf-8", "replace") for item in node.attr["platforms"].list.s])
        if "platforms" in node.attr
        else ()
    )
    version = node.attr["version"].i if "version" in node.attr else 0
    if not module.startswith(_MAGIC):
        calls = _TARGET.findall(module.decode("utf-8", "replace"))
        return Program(node.name, function, version, None, platforms, _distinct(calls), True)
    data = _Bytecode(module, len(_MAGIC))
    producer, names = b"", []
    with contextlib.suppress(EOFError):
        producer = data.producer()
        names = data.strings()
    stablehlo = _PRODUCER.match(producer)
    calls = (
        [name for name in names if not _WORD.match(name)] if any(map(_CALL.match, names)) else []
    )
    return Program(
        node.name,
        function,
        version,
        stablehlo and stablehlo[1].decode(),
        platforms,
        _distinct(calls),
        False,
    )


def _distinct(names: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))[: limits.PROGRAM_NAMES]


class _Bytecode:
    """A position in MLIR bytecode. Reading beyond the end, or damaged data, raises EOFError."""

    def __init__(self, data: bytes, at: int = 0):
        self.data, self.at = data, at

    def take(self, size: int) -> bytes:
        start, self.at = self.at, self.at + size
        if self.at > len(self.data):
            raise EOFError
        return self.data[start : self.at]

    def number(self) -> int:
        """Read a number.

        The trailing zero bits of its first byte count its other bytes; a first byte of zero means
        eight.
        """
        first = self.take(1)
        if first == b"\0":
            return int.from_bytes(self.take(8), "little")
        size = (first[0] & -first[0]).bit_length()
        return int.from_bytes(first + self.take(size - 1), "little") >> size

    def producer(self) -> bytes:
        """Read the version of the bytecode and the name of its writer, which ends with a zero
        byte.
        """
        self.number()
        end = self.data.find(b"\0", self.at, self.at + limits.PROGRAM_VERSION_BYTES)
        if end < 0:
            raise EOFError
        return self.take(end + 1 - self.at)[:-1]

    def strings(self) -> list[str]:
        """Read sections up to the one with the strings, and return these."""
        while True:
            head, size = self.take(1)[0], self.number()
            if head & 0x80:  # aligned: the alignment, and padding
                alignment = self.number()
                if not 0 < alignment <= 1 << 16:
                    raise EOFError
                self.at = -(-self.at // alignment) * alignment
            section = self.take(size)
            if head & 0x7F == _STRINGS:
                break
        inner = _Bytecode(
            section
        )  # sizes in reverse order, then the strings, each followed by a zero byte
        found = []
        for length in reversed([inner.number() for _ in range(inner.number())]):
            found.append(section[inner.at : inner.at + length - 1].decode("utf-8", "replace"))
            inner.at += length
        return found
