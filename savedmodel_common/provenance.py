"""``provenance.json``: who made an artifact, from what, with which versions
(docs/exporters/artifacts.md, section 1).

Python 3.6 syntax, standard library: the harness writes it for what workers make, the recorder of
the fixtures for its own.
"""

import hashlib
import json
import os
from typing import Any, Dict, Mapping, Sequence, Union

SCHEMA = 1
LICENCE = "Apache-2.0"
HASHED_FOLDERS = ("model", "io")

Path = Union[str, "os.PathLike[str]"]


def write(
    directory: Path,
    case: str,
    title: str,
    clauses: Sequence[str],
    features: Sequence[str],
    producer: Mapping[str, Any],
    generator: Path,
    environment: Mapping[str, Any],
    command: str,
    **more: Any,
) -> None:
    """Write ``directory``/provenance.json, last of all: it holds the hashes of ``model/`` and
    ``io/``.

    ``generator`` is the path of the file that says what was made; ``more`` are further members.
    """
    directory = str(directory)
    facts = {
        "schema": SCHEMA,
        "case": case,
        "title": title,
        "clauses": list(clauses),
        "features": list(features),
        "producer": producer,
        "generator": {"file": os.path.basename(str(generator)), "sha256": file_sha256(generator)},
        "environment": environment,
        "command": command,
        "licence": LICENCE,
        "files": hash_files(directory),
    }
    facts.update(more)
    path = os.path.join(directory, "provenance.json")
    with open(path + ".tmp", "w", encoding="utf-8", newline="\n") as stream:
        json.dump(facts, stream, indent=1, sort_keys=True, ensure_ascii=False)
        stream.write("\n")
    os.replace(path + ".tmp", path)


def hash_files(directory: Path, folders: Sequence[str] = HASHED_FOLDERS) -> Dict[str, str]:
    """``{path relative to directory: sha256}`` of all files below ``folders``; paths are
    ``/``-separated.

    The digest of a pipe, a socket or a device is empty: they are not opened, since a pipe without a
    writer blocks its reader.
    """
    out = {}
    for part in folders:
        for folder, _, names in os.walk(os.path.join(str(directory), part)):
            for path in (os.path.join(folder, name) for name in names):
                special = os.path.exists(path) and not os.path.isfile(path)
                out[os.path.relpath(path, str(directory)).replace(os.sep, "/")] = (
                    "" if special else file_sha256(path)
                )
    return out


def file_sha256(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with open(str(path), "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
