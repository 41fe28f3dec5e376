"""Digests of the bytes of exports, by which the exports of two pasts are compared
(`compat_matrix.verdict.pasts`).

Two parts of an export differ in every run and are left out. TensorFlow names a table after the file
it was made from, which is in the scratch folder of the run when a case is built. A fingerprint is a
hash of everything else; TensorFlow also writes a random number there.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from compat_matrix.verdict.pasts import EXPORTS, SOURCE

_FINGERPRINT = "fingerprint.pb"
_PROTOS = (".pb", ".pbtxt", ".cpb")  # files in which a path is replaced


def export_digest(model: Path, out: Path) -> str:
    """Return a digest of the names and the bytes of the files of an export of the run in
    ``out``.
    """
    scratch = re.compile(re.escape(os.fsencode(out)) + rb"/scratch/\d+/produce/[\w.-]+")
    digest = hashlib.sha256()
    for file in sorted(
        path for path in model.rglob("*") if path.is_file() and path.name != _FINGERPRINT
    ):
        data = file.read_bytes()
        if file.suffix in _PROTOS:
            data = scratch.sub(b"<scratch>", data)
        digest.update(f"{file.relative_to(model).as_posix()} {len(data)}\n".encode() + data)
    return digest.hexdigest()[:16]


def details(source: Path, exports: dict[str, Path], out: Path) -> dict[str, dict[str, str]]:
    """Return the details of a result about re-exports of ``source``: digests of those that were
    written.
    """
    written = {name: export_digest(model, out) for name, model in exports.items() if model.is_dir()}
    return {EXPORTS: {SOURCE: export_digest(source, out), **written}} if written else {}
