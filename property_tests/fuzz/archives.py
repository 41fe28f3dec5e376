"""Changes of .npz files: of a member's bytes, its header, the JSON inside, of the archive's own
records.
"""

from __future__ import annotations

import io
import random
import re
import warnings
import zipfile
import zlib
from collections.abc import Sequence

from property_tests.fuzz.mutation import mutate
from property_tests.fuzz.trees import mutate_json

_SHAPE = re.compile(rb"\(([0-9, ]*)\)")
_SHAPES = (
    b"(1000000000000,)",
    b"(65536, 65536)",
    b"(-1,)",
    b"(0, 9223372036854775807)",
    b"()",
    b"(1,)",
    b"(3, 3)",
    b"(1.5,)",
)
_TYPES = (b"|O", b"<f8", b"|V100000", b"<U999999", b"|u1", b">i8", b"x" * 40)


def members(data: bytes) -> list[tuple[str, bytes]]:
    """Names and bytes; none for what is no archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return [
                (info.filename, archive.read(info))
                for info in archive.infolist()
                if info.file_size < 1 << 22
            ]
    except (
        zipfile.BadZipFile,
        zlib.error,
        ValueError,
        OSError,
        KeyError,
        NotImplementedError,
        EOFError,
        RuntimeError,
    ):
        return []


def archive(parts: list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive of these."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", method) as out:
        warnings.simplefilter("ignore")  # that a name is there twice
        for name, content in parts:
            out.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, method)
    return stream.getvalue()


def mutate_npz(rng: random.Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """One change."""
    kind = rng.randrange(8)
    parts = members(data) if kind else []
    if not parts:
        return mutate(rng, data, others)
    at = rng.randrange(len(parts))
    name, content = parts[at]
    if kind == 1:
        del parts[at]
    elif kind == 2:
        parts[at] = (
            rng.choice(("meta.npy", "t0.npy", "t1.npy", "../x.npy", "t0.offsets.npy", "t0")),
            content,
        )
    elif kind == 3 and name == "meta.npy":
        parts[at] = name, _with_meta(rng, content)
    elif kind == 4:
        parts[at] = (
            name,
            _SHAPE.sub(lambda _: rng.choice(_SHAPES), content[:128], count=1) + content[128:],
        )
    elif kind == 5:
        parts[at] = (
            name,
            re.sub(
                rb"'descr': '[^']*'",
                lambda _: b"'descr': '" + rng.choice(_TYPES) + b"'",
                content[:128],
            )
            + content[128:],
        )
    elif kind == 6 and len(content) < 1 << 20:
        parts[at] = name, content + bytes(rng.choice((1, 100, 3_000_000)))
    else:
        parts[at] = name, mutate(rng, content)
    return archive(parts, rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED)))


def _with_meta(rng: random.Random, content: bytes) -> bytes:
    """The member with other JSON and a header that has its length."""
    text = mutate_json(rng, content[128:])
    head = _SHAPE.sub(b"(%d,)" % len(text), content[:127], count=1)[:127]
    return head.ljust(127) + b"\n" + text
