"""The record in an environment: what it is, what it cost. Without one that tells the truth, an environment does not count."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from compat_matrix.runtimes.runtime import DISTRIBUTIONS, same_release

NAME = "savedmodel-compat.json"
SCHEMA = 1
MAX_BYTES = 1 << 20
_DIST_INFO = re.compile(r"([A-Za-z0-9_.]+)-([^-]+)\.(?:dist-info|egg-info)")


@dataclass(frozen=True)
class Record:
    """What is known of an installed environment.

    ``spec`` is what makes it again; ``locked`` the sha256 of its lock, None for an ad-hoc one; ``seconds`` by phase; ``bytes``
    ``own`` and ``shared`` (hard links to uv's cache or to another environment); ``lacks`` what this very environment has not.
    """

    name: str
    spec: str
    tensorflow: str
    python: str
    locked: str | None
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    bytes: Mapping[str, int] = field(default_factory=dict)
    lacks: Mapping[str, str] = field(default_factory=dict)
    schema: int = SCHEMA


class Untrue(ValueError):
    """Why an environment does not count as installed."""


def interpreter(place: Path) -> Path:
    """The Python of an environment."""
    return place / "bin" / "python"


def write(place: Path, record: Record) -> None:
    """Put the record into an environment, whole or not at all."""
    temporary = place / f"{NAME}.tmp"
    temporary.write_text(json.dumps(asdict(record), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    temporary.replace(place / NAME)


def read(place: Path) -> Record:
    """The record of an environment, compared with what is really there. Raises :class:`Untrue`."""
    path = place / NAME
    if not place.is_dir():
        raise Untrue("not installed")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise Untrue(f"{NAME} is too large")
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Untrue(f"has no {NAME}: not one of ours, or not finished") from None
    except (OSError, ValueError) as error:
        raise Untrue(f"{NAME}: {error}") from error
    record = _record(data)
    if not os.access(interpreter(place), os.X_OK):
        raise Untrue("its interpreter is gone")
    found = distributions(place).get("tensorflow")
    if found is None or not same_release(found, record.tensorflow):
        raise Untrue(f"{NAME} says TensorFlow {record.tensorflow}, installed is {found or 'none'}")
    return record


def ad_hoc(folder: Path) -> dict[Path, Record]:
    """The environments in ``folder`` that no lock made, by place."""
    out = {}
    for place in sorted(folder.glob("*/")):
        try:
            record = read(Path(place))
        except Untrue:
            continue
        if record.locked is None:
            out[Path(place)] = record
    return out


def _record(data: Any) -> Record:
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise Untrue(f"{NAME} is not of schema {SCHEMA}")
    try:
        record = Record(**data)
        Version(record.tensorflow)
    except (TypeError, InvalidVersion) as error:
        raise Untrue(f"{NAME}: {error}") from error
    return record


def distributions(place: Path) -> dict[str, str]:
    """``{distribution: version}`` of an environment, read from the names of its folders; any TensorFlow is ``tensorflow``."""
    out = {}
    for folder in place.glob("lib/python3*/site-packages/*-*"):
        match = _DIST_INFO.fullmatch(folder.name)
        if match:
            name = re.sub(r"[-_.]+", "-", match.group(1)).lower()
            out["tensorflow" if name in DISTRIBUTIONS else name] = match.group(2)
    return out


def disk(place: Path) -> dict[str, int]:
    """Bytes of an environment: ``own``, and ``shared`` by hard links with uv's cache or another environment."""
    own = shared = 0
    for folder, _, names in os.walk(place):
        for name in names:
            status = (Path(folder) / name).lstat()
            if status.st_nlink > 1:
                shared += status.st_size
            else:
                own += status.st_size
    return {"own": own, "shared": shared}
