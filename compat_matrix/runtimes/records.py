"""The record in an environment: its content and its cost.

An environment without a true record does not count.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from compat_matrix.runtimes.runtime import same_release
from savedmodel_common import strict_json
from savedmodel_common.distributions import DISTRIBUTIONS
from savedmodel_common.writing import write_text

NAME = "savedmodel-compat.json"
SCHEMA = 1
_DIST_INFO = re.compile(r"([A-Za-z0-9_.]+)-([^-]+)\.(?:dist-info|egg-info)")


@dataclass(frozen=True)
class Record:
    """The record of an installed environment.

    ``spec`` makes the environment again; ``locked`` is the sha256 of its lock, None for an ad-hoc
    environment; ``seconds`` are by phase; ``bytes`` are ``own`` and ``shared`` (hard links to uv's
    cache or to another environment); ``lacks`` lists what this environment is missing.
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
    """Raised with the reason why an environment does not count as installed."""


def interpreter(place: Path) -> Path:
    """Return the Python of an environment."""
    return place / "bin" / "python"


def write(place: Path, record: Record) -> None:
    """Write the record into an environment, completely or not at all."""
    write_text(place / NAME, json.dumps(asdict(record), indent=1, sort_keys=True) + "\n")


def read(place: Path) -> Record:
    """Read the record of an environment and compare it with the installed packages.

    Raises :class:`Untrue`.
    """
    if not place.is_dir():
        raise Untrue("not installed")
    if not (place / NAME).exists():
        raise Untrue(f"has no {NAME}: not one of ours, or not finished")
    try:
        record = Record(**strict_json.document(place / NAME, SCHEMA))
        Version(record.tensorflow)
    except (TypeError, ValueError) as error:
        raise Untrue(f"{NAME}: {error}") from error
    if not os.access(interpreter(place), os.X_OK):
        raise Untrue("its interpreter is gone")
    found = distributions(place).get("tensorflow")
    if found is None or not same_release(found, record.tensorflow):
        raise Untrue(f"{NAME} says TensorFlow {record.tensorflow}, installed is {found or 'none'}")
    return record


def ad_hoc(folder: Path) -> dict[Path, Record]:
    """Return the environments in ``folder`` that were made without a lock, by place."""
    out = {}
    for place in sorted(folder.glob("*/")):
        try:
            record = read(Path(place))
        except Untrue:
            continue
        if record.locked is None:
            out[Path(place)] = record
    return out


def distributions(place: Path) -> dict[str, str]:
    """Return ``{distribution: version}`` of an environment, read from its folder names; any
    TensorFlow is ``tensorflow``.
    """
    out = {}
    for folder in place.glob("lib/python3*/site-packages/*-*"):
        match = _DIST_INFO.fullmatch(folder.name)
        if match:
            name = canonicalize_name(match.group(1))
            out["tensorflow" if name in DISTRIBUTIONS else name] = match.group(2)
    return out


def disk(place: Path) -> dict[str, int]:
    """Return the bytes of an environment: ``own``, and ``shared`` by hard links with uv's cache or
    another environment.
    """
    own = shared = 0
    for folder, _, names in os.walk(place):
        for name in names:
            status = (Path(folder) / name).lstat()
            if status.st_nlink > 1:
                shared += status.st_size
            else:
                own += status.st_size
    return {"own": own, "shared": shared}
