"""A hostile file, and the sound models that they are made from."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import fixtures_v1
from reference_impl.format import schema
from reference_impl.format.container import layout

_FIXTURES = Path(fixtures_v1.__file__).parent
PREFIX = "variables/variables"
SHARD = f"{PREFIX}.data-00000-of-00001"

Make = Callable[[Path], None]


class Hostile(NamedTuple):
    """A model that a reader must refuse.

    Attributes:
      name: such as ``flipped_value``.
      rule: the constraint that it breaks: ``SM-BUNDLE-7``.
      level: the level of a reader that meets it: ``L1``.
      summary: what is wrong with it, in one sentence.
      make: writes the model into a folder, which does not exist yet.
    """

    name: str
    rule: str
    level: str
    summary: str
    make: Make


def hostile(rule: str, level: str) -> Callable[[Make], Hostile]:
    """Return a decorator that makes a `Hostile` of a function; its docstring is the summary."""

    def made(function: Make) -> Hostile:
        summary = " ".join((function.__doc__ or "").split())
        return Hostile(function.__name__, rule, level, summary, function)

    return made


def copied(fixture: str, folder: Path) -> Path:
    """Copy the model of a fixture into a new folder, and return the folder."""
    return Path(shutil.copytree(_FIXTURES / fixture / "model", folder))


def message_of(fixture: str) -> schema.SavedModel:
    """Return the SavedModel message of a fixture."""
    return layout.read(_FIXTURES / fixture / "model").saved_model


def write_message(folder: Path, message: schema.SavedModel) -> None:
    """Write a SavedModel message into a folder, which is made if it does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "saved_model.pb").write_bytes(schema.serialize(message))
