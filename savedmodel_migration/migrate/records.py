"""What is written down of a migration: for each model one record, from which every report is
made.
"""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from savedmodel_tools.record_files import read_record, write_record

SCHEMA = 2
KERAS_SETTINGS = "3 keras"  # how the settings of a migration to Keras 3 begin


class Status(str, enum.Enum):
    """The status of a model: that of its worst part."""

    COPIED = "copied"  # it is of TF 2 already, and TensorFlow loads it
    MIGRATED = "migrated"  # and proved
    # it is of TF 2 already, but TensorFlow loads only what `reference_impl` made of it; proved
    REPAIRED = "repaired"
    REBUILT = "rebuilt"  # of Keras 2, made of Keras 3 layers; proved
    PARTIAL = (
        "partial"  # of Keras 2, made of Keras 3 layers but for some, which are wrapped; proved
    )
    # of Keras 2, which cannot be rebuilt, or of TF 1.x: a layer of Keras 3 around it; proved
    WRAPPED = "wrapped"
    # a signature could not be asked, or the old one gives no answers to compare with
    UNPROVED = "unproved"
    DIFFERS = "differs"  # the new one is not the old one
    REFUSED = "refused"  # it cannot be converted, or not wholly
    CRASHED = "crashed"  # the worker died or took too long
    FAILED = "failed"  # a defect of ours or of the machine

    def __str__(self) -> str:
        return self.value

    @property
    def good(self) -> bool:
        """Whether a model of this status is in the output."""
        made = (Status.REBUILT, Status.PARTIAL, Status.WRAPPED)
        return self in (Status.COPIED, Status.MIGRATED, Status.REPAIRED, *made)

    @property
    def transient(self) -> bool:
        """Whether the machine or the moment may have been the reason: the next run tries again."""
        return self in (Status.CRASHED, Status.FAILED)


def badness(status: Status) -> int:
    """Larger for a worse status."""
    return list(Status).index(status)


def worst(statuses: list[Status]) -> Status:
    """The status of a model from those of its parts."""
    return max(statuses, key=badness)


@dataclass
class Verdict:
    """One thing that was compared. ``state``: equal, close (within the tolerance), differs; absent
    or none with the reason: it could not be compared, or there is nothing of it in the model."""

    what: str
    state: str
    detail: str = ""


@dataclass
class Part:
    """One MetaGraph."""

    tags: list[str]
    status: Status = Status.FAILED
    reason: str = ""
    fix: str = ""
    output: str = ""  # its directory below the output folder
    signatures: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # the signatures whose answers were compared
    not_asked: dict[str, str] = field(default_factory=dict)  # why not, by signature
    verdicts: list[Verdict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    answered_by: str = ""  # the version of the TensorFlow that answered for the old model
    needs: list[str] = field(
        default_factory=list
    )  # releases that run the old model, where this one does not and none was asked
    # Variable of TF 1 -> key in the new checkpoint; for Keras: key in the old checkpoint, or
    # variable of a wrapped model, -> path of the new variable.
    names: dict[str, str] = field(default_factory=dict)
    layers: dict[str, list[str]] = field(
        default_factory=dict
    )  # layer of Keras 2 -> what was translated
    tree: list[str] = field(
        default_factory=list
    )  # the layers of the new Keras model, a line for each

    def take_over(self, asked: Part) -> None:
        """Note what was asked of the old model as ``asked`` says it."""
        self.asked, self.not_asked = list(asked.asked), dict(asked.not_asked)
        self.answered_by = asked.answered_by
        self.notes += [note for note in asked.notes if note not in self.notes]


@dataclass
class Record:
    """One model."""

    name: str
    relative: str
    source_hash: str = ""  # of all its files
    settings: str = ""  # what a migration depends on beside the files
    kind: str = ""
    tensorflow: str = ""
    bytes_before: int = 0
    bytes_after: int = 0
    seconds: float = 0.0
    status: Status = Status.FAILED
    reason: str = ""
    fix: str = ""
    # a command line that has the old model asked in another release, "" where that would not help
    command: str = ""
    kept: str = (
        ""  # why the output folder still holds what an earlier run proved, "" where it does not
    )
    output_hash: str = ""  # of all files of the new model, "" where none was put in place
    parts: list[Part] = field(default_factory=list)
    done_before: bool = field(
        default=False, compare=False
    )  # an earlier run made this record. Not stored

    @property
    def needs(self) -> list[str]:
        """The releases that run every part of the old model that this one does not run."""
        found = [part.needs for part in self.parts if part.needs]
        if not found:
            return []
        common = set(found[0]).intersection(*found[1:])
        return [name for name in found[0] if name in common]

    @property
    def to_keras(self) -> bool:
        """Whether a Keras 3 model was asked for, not a SavedModel of TF 2."""
        return self.settings.startswith(KERAS_SETTINGS)

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        stored = {name: value for name, value in asdict(self).items() if name != "done_before"}
        return {"schema": SCHEMA, **stored}


def save(record: Record, path: Path, scratch: Path) -> None:
    """Write a record; ``scratch`` is a folder that no other writes to. Raises OSError."""
    write_record(record.to_json(), path, scratch)


def load(path: Path) -> Record | None:
    """Return the record if it is one of this version, else None: then the model is done again."""
    found = read_record(path, SCHEMA)
    if found is None:
        return None
    try:
        parts = list(map(_part, found.pop("parts")))
        return Record(**{**found, "status": Status(found["status"]), "parts": parts})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _part(kept: dict[str, Any]) -> Part:
    verdicts = [Verdict(**item) for item in kept["verdicts"]]
    return Part(**{**kept, "status": Status(kept["status"]), "verdicts": verdicts})
