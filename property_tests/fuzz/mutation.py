"""Changes of plain bytes, and the values that are interesting anywhere."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

NUMBERS = (
    0,
    1,
    2,
    3,
    7,
    63,
    100,
    127,
    128,
    255,
    256,
    65535,
    65536,
    2**24,
    2**28,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**32,
)
NUMBERS += (2**40, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1)
TEXTS = tuple(
    text.encode("utf-8", "surrogatepass")
    for text in (
        *(
            "",
            "x",
            "a:0",
            "^a",
            "a:99999999999",
            ":0",
            "a:-1",
            "__saved_model_init_op",
            "serving_default",
            "root",
            "0",
            "-1",
        ),
        *(
            "../../../etc/passwd",
            "/etc/passwd",
            "C:\\x",
            "a/../../b",
            "..",
            ".",
            "a\0b",
            "a" * 5000,
            "\x1b[2J\x1b]0;x\a",
            "\u202egnp",
        ),
        *(
            "<script>alert(1)</script>",
            "\ud800",
            "é" * 40,
            "%s%n",
            "{0.__class__}",
            "__import__('os')",
            "nan",
            "1e999",
            "0,1:-",
            "10 3 0,5:-",
        ),
    )
)
_TOKENS = re.compile(rb"\w+|[^\w\s]|\s+")


def mutate(rng: random.Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """One change of bytes."""
    kind = rng.randrange(10)
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + (1 << rng.randrange(12)))
    if kind < 3 and at < len(data):
        return (
            data[:at]
            + bytes([data[at] ^ (1 << rng.randrange(8)) if kind else rng.randrange(256)])
            + data[at + 1 :]
        )
    if kind == 3:
        return data[:at] + data[end:]
    if kind == 4:
        return data[:at]
    if kind == 5:
        return data[:at] + data[at:end] * rng.choice((2, 3, 50)) + data[end:]
    if kind == 6:
        return data[:at] + rng.choice(TEXTS) + data[at:]
    if kind == 7:
        width = rng.choice((1, 2, 4, 8))
        return (
            data[:at]
            + (rng.choice(NUMBERS) % 256**width).to_bytes(width, "little")
            + data[at + width :]
        )
    if kind == 8 and others:
        other = rng.choice(others)
        return data[:at] + other[rng.randrange(len(other) + 1) :]
    return data[:at] + rng.randbytes(rng.randrange(1, 17)) + data[at:]


def mutate_tokens(rng: random.Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """One change of a text that keeps its words: removed, doubled, exchanged, replaced, nested
    deep.
    """
    tokens = _TOKENS.findall(data) if len(data) < 1 << 16 else None
    if not tokens:
        return mutate(rng, data, others)
    at = rng.randrange(len(tokens))
    kind = rng.randrange(7)
    if kind == 0:
        del tokens[at]
    elif kind == 1:
        tokens[at] *= rng.choice((2, 2, 100))
    elif kind == 2:
        other = rng.randrange(len(tokens))
        tokens[at], tokens[other] = tokens[other], tokens[at]
    elif kind == 3:
        tokens[at] = rng.choice((*TEXTS, *(str(number).encode() for number in NUMBERS)))
    elif kind == 4:
        tokens[at] = rng.choice((b"[", b"{", b"{a=", b"'", b'"""', b"<", b"[[")) * rng.choice(
            (1, 50, 5000)
        )
    elif kind == 5:
        end = at + rng.randrange(30)
        tokens[at:end] = tokens[at:end] * 2
    else:
        lines = data.split(b"\n")
        lines.insert(rng.randrange(len(lines)), rng.choice(lines))
        return b"\n".join(lines)
    return b"".join(tokens)
