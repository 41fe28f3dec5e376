"""The record of each model of a long run, a JSON file beside the results: the next run reads what
is done.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Optional

from savedmodel_common import strict_json
from savedmodel_common.provenance import file_sha256


def write_record(document: dict[str, Any], path: Path, scratch: Path) -> None:
    """Write a record by rename of a file in ``scratch``, a folder that no other writes to and that
    goes with the run.

    Beside the records what killed writers leave would have to be looked for among thousands. Raises
    OSError.
    """
    for folder in (path.parent, scratch):
        folder.mkdir(parents=True, exist_ok=True)
    temporary = scratch / "record.json"
    temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)


def read_record(path: Path, schema: int) -> Optional[dict[str, Any]]:
    """Return a record of this version without its member ``schema``; None when there is none, or it
    is not a record.
    """
    try:
        found = strict_json.loads(path.read_text(encoding="utf-8"))
        return dict(found) if found.pop("schema") == schema else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def files_of(path: Path) -> list[Path]:
    """Return all files of a model."""
    return [item for item in path.rglob("*") if item.is_file()]


def source_hash(path: Path) -> str:
    """SHA-256 over names and contents of all files of a model."""
    whole = hashlib.sha256()
    for file in sorted(files_of(path)):
        whole.update(
            f"{file.relative_to(path).as_posix()}\0{file_sha256(file)}\n".encode(
                "utf-8", "surrogateescape"
            )
        )
    return whole.hexdigest()
