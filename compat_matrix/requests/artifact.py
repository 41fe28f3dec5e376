"""An artifact as the checks see it: requests, tolerance, and the comparison of its files with its
provenance.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_matrix.cells.consumers import CAPABILITY_OF_KIND
from compat_matrix.hosts.host import stamp
from compat_matrix.requests.policies import RECORDED
from savedmodel_common import strict_json
from savedmodel_common.compare import Tolerance
from savedmodel_common.provenance import hash_files

SCHEMA = 1


class ArtifactError(Exception):
    """Raised when the files of the artifact itself, not of the model, break the contract."""


@dataclass(frozen=True)
class Artifact:
    """``requests`` are the entries of io.json, in order, their tags sorted; ``tag_sets`` the tag
    sets they ask, in that order.
    """

    directory: Path
    stateful: bool
    tolerance: Tolerance
    requests: tuple[dict[str, Any], ...]
    # The original's variables and functions, ``{"variables": {path: facts}, "functions": ...}``;
    # None: they are not recorded.
    objects: dict[str, dict[str, dict[str, Any]]] | None = None

    @property
    def model(self) -> Path:
        return self.directory / "model"

    @property
    def io(self) -> Path:
        return self.directory / "io"

    @property
    def tag_sets(self) -> list[tuple[str, ...]]:
        return list(dict.fromkeys(tuple(request["tags"]) for request in self.requests))

    def tensorflow(self) -> str:
        """Return the version of the TensorFlow that made it, as its provenance says; "" where that
        names none.
        """
        producer = read_document(self.directory / "provenance.json").get("producer")
        versions = producer.get("versions") if isinstance(producer, dict) else None
        return str(versions.get("tensorflow") or "") if isinstance(versions, dict) else ""


def read_artifact(directory: Path) -> Artifact:
    """Read ``io/io.json``. Raises :class:`ArtifactError`, naming the file and the reason."""
    path = directory / "io" / "io.json"
    try:
        data = read_document(path)
        return Artifact(
            directory,
            bool(data.get("stateful", False)),
            _stated(data.get("tolerance") or {}),
            tuple(_checked(request) for request in data["requests"]),
            _checked_objects(data.get("objects")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArtifactError(f"{path}: {type(error).__name__}: {error}") from error


def _stated(tolerance: dict[str, Any]) -> Tolerance:
    """Return the tolerance that the artifact states: it counts up to a limit, since it is the
    artifact that is judged by it.
    """
    default = RECORDED.tolerance
    rtol, atol = (
        _bound(tolerance.get("rtol", default.rtol)),
        _bound(tolerance.get("atol", default.atol)),
    )
    return Tolerance(stated_rtol=rtol, stated_atol=atol)


def _bound(value: Any) -> float:
    if not (math.isfinite(bound := float(value)) and bound >= 0):
        raise ValueError(f"a tolerance of {value!r}")
    return bound


def read_document(path: Path) -> dict[str, Any]:
    """Return what a JSON file of an artifact says. Raises :class:`ArtifactError`."""
    try:
        return strict_json.document(path, SCHEMA)
    except ValueError as error:
        raise ArtifactError(str(error)) from error


def _checked(request: dict[str, Any]) -> dict[str, Any]:
    if request["kind"] not in CAPABILITY_OF_KIND:
        raise ValueError(f"request {request['id']}: unknown kind {request['kind']!r}")
    for name in (request["inputs"], request["outputs"], request.get("gradients")):
        if name is not None and (Path(name).name != name or name in ("", ".", "..")):
            raise ValueError(f"request {request['id']}: {name!r} is not the name of a file in io/")
    if "error" in request and (
        request["outputs"] is not None
        or not (request["error"] and isinstance(request["error"], str))
    ):
        raise ValueError(f"request {request['id']}: an error is a text, in place of outputs")
    if not all(isinstance(tag, str) for tag in request["tags"]):
        raise ValueError(f"request {request['id']}: tags are strings")
    if not all(isinstance(name, str) for name in request.get("compared", ())):
        raise ValueError(f"request {request['id']}: compared are the names of outputs")
    return {**request, "tags": sorted(set(request["tags"]))}


def _checked_objects(objects: Any) -> Any:
    if objects is not None:
        for kind in ("functions", "variables"):
            if not all(isinstance(facts, dict) for facts in dict(objects[kind]).values()):
                raise ValueError(f"objects: {kind} are not described by objects")
    return objects


def is_recorded(request: Mapping[str, Any]) -> bool:
    """Return whether a request has a recorded answer, or the recorded error of a request that must
    fail.
    """
    return request["outputs"] is not None or "error" in request


def altered_files(directory: Path) -> list[str]:
    """Return a sentence for each file of model/ and io/ that differs from the provenance.

    Raises :class:`ArtifactError`.
    """
    provenance = directory / "provenance.json"
    recorded = read_document(provenance).get("files")
    if not isinstance(recorded, dict) or not all(
        isinstance(digest, str) for digest in recorded.values()
    ):
        raise ArtifactError(f"{provenance}: no list of files")
    present = file_digests(directory)
    out = [f"{name} is missing" for name in sorted(set(recorded) - set(present))]
    out += [f"{name} is not listed" for name in sorted(set(present) - set(recorded))]
    changed = [
        name for name in sorted(set(recorded) & set(present)) if recorded[name] != present[name]
    ]
    return out + [
        f"{name} was changed (sha256 {present[name][:12]}…, recorded {recorded[name][:12]}…)"
        for name in changed
    ]


def file_digests(directory: Path) -> dict[str, str]:
    """Return the digest of each file of model/ and io/.

    They are computed again when a size or a time has changed.
    """
    return _hashes(directory, stamp(directory / "model") + stamp(directory / "io"))


@functools.lru_cache(maxsize=64)
def _hashes(directory: Path, _stamp: object) -> dict[str, str]:
    return hash_files(directory)
