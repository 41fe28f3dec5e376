"""Makes the kit: a folder, or one archive with the same bytes each time that it is made."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from savedmodel_common import writing
from savedmodel_kit import constraints
from savedmodel_kit.artifacts import PARTS, Artifact
from savedmodel_kit.hostile.catalogue import hostile_files
from savedmodel_kit.hostile.kind import Hostile
from savedmodel_kit.meaning import meaning_of

SUFFIXES = (".tar", ".tar.gz")
SCHEMA = 1
_TOP = "savedmodel-kit"
_README = Path(__file__).with_name("README.md")
# In an installed package beside this module, in a checkout above it.
_LICENSES = tuple(Path(__file__).parents[above] / "LICENSE" for above in (0, 1))


def build(out: Path, artifacts: Sequence[Artifact]) -> dict[str, Any]:
    """Write the kit to an archive, and return its index.

    Args:
      out: the archive; its name ends in one of ``SUFFIXES``.
      artifacts: the sound models.

    Raises:
      SavedModelError: an artifact cannot be read.
      OSError: the archive cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="kit-") as temporary:
        folder = Path(temporary) / _TOP
        index = write_folder(folder, artifacts)
        with writing.new_file(out) as staged, staged.open("wb") as stream:
            _pack(folder, stream, compressed=out.suffix == ".gz")
    return index


def write_folder(folder: Path, artifacts: Sequence[Artifact]) -> dict[str, Any]:
    """Write the kit into a new folder, and return its index. Raises what `build` raises."""
    folder.mkdir(parents=True)
    licence = next(file for file in _LICENSES if file.exists())
    for file in (_README, constraints.FILE, licence):
        shutil.copyfile(file, folder / file.name)
    index = {
        "schema": SCHEMA,
        "levels": list(constraints.LEVELS),
        "artifacts": [_add_artifact(folder, one) for one in artifacts],
        "hostile": [_add_hostile(folder, one) for one in hostile_files().values()],
    }
    _write_json(folder / "index.json", index)
    return index


def _add_artifact(kit: Path, artifact: Artifact) -> dict[str, Any]:
    place = f"artifacts/{artifact.name}"
    target = kit / place
    target.mkdir(parents=True)
    for part in PARTS:
        source = artifact.folder / part
        if source.is_dir():
            shutil.copytree(source, target / part, symlinks=True)
        elif source.exists():
            shutil.copyfile(source, target / part)
    _write_json(target / "meaning.json", meaning_of(target / "model"))
    provenance = artifact.provenance()
    return {
        "name": artifact.name,
        "folder": place,
        "title": provenance.get("title", ""),
        "producer": provenance.get("producer", {}),
        "licence": provenance.get("licence", ""),
    }


def _add_hostile(kit: Path, made: Hostile) -> dict[str, Any]:
    place = f"hostile/{made.name}"
    (kit / place).mkdir(parents=True)
    made.make(kit / place / "model")
    return {
        "name": made.name,
        "folder": place,
        "constraint": made.rule,
        "level": made.level,
        "summary": made.summary,
    }


def _write_json(file: Path, value: object) -> None:
    file.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", "utf-8")


# The archive


def _pack(folder: Path, stream: BinaryIO, compressed: bool) -> None:
    """Write a folder as a tar archive without times and owners, sorted by name."""
    if not compressed:
        _pack_plain(folder, stream)
        return
    with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
        _pack_plain(folder, packed)  # type: ignore[arg-type]  # it has the methods of a stream


def _pack_plain(folder: Path, stream: BinaryIO) -> None:
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(folder.rglob("*")):
            name = f"{folder.name}/{path.relative_to(folder).as_posix()}"
            _add(archive, path, name)


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    item = tarfile.TarInfo(name)
    if path.is_symlink():
        item.type, item.linkname, item.mode = tarfile.SYMTYPE, str(path.readlink()), 0o777
        archive.addfile(item)
    elif path.is_dir():
        item.type, item.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(item)
    else:
        item.size, item.mode = path.stat().st_size, 0o644
        with path.open("rb") as content:
            archive.addfile(item, content)


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a kit into a folder, and return the folder of its index.

    Raises:
      OSError, tarfile.TarError: the archive cannot be read.
    """
    with tarfile.open(archive) as packed:
        if hasattr(tarfile, "data_filter"):
            packed.extractall(folder, filter="data")
        else:
            packed.extractall(folder)
    return folder / _TOP
