"""Edit the models of a tree, each once: results of an earlier run of the same edit are kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Optional

from compat_matrix.common.exit_codes import ExitCode
from compat_matrix.common.printable import message_of
from compat_matrix.models.edits.draft import Draft
from compat_matrix.models.edits.result import edit
from compat_matrix.models.find import Model
from compat_matrix.models.record_files import read_record, source_hash, write_record
from reference_impl.errors import SavedModelError, about_the_model
from reference_impl.format.container.staging import put_in_place

NOTES = ".savedmodel-compat"  # folder of the output of a tree, with a record of each model
SCHEMA = 1
WORK = "work"

Change = Callable[[Draft], None]


@dataclass(frozen=True)
class Edit:
    """An edit of one model or many.

    Attributes:
      change: what is done; a `functools.partial` of a function of a module, so that processes can be given it.
      out: the new directory, of a tree that of all; None for a dry run.
      follow_links: accept links out of a model's directory.
    """

    change: Change
    out: Optional[str]
    follow_links: bool

    @property
    def text(self) -> str:
        """The edit in words: records of another one are done again."""
        if not isinstance(self.change, partial):
            return repr(self.change)
        name = f"{self.change.func.__module__}.{self.change.func.__qualname__}"
        return f"{name} {self.change.args!r} {sorted(self.change.keywords.items())!r}"

    def __call__(self, model: tuple[Model, str]) -> tuple[dict[str, Any], ExitCode]:
        """Edit one model.

        Args:
          model: with its place below the output ("" for the only one).

        Returns:
          What is told of it: `Edited.to_json` with the name of the model, and ``done_before`` where an earlier run has done it;
          or ``error`` with ``class`` and ``message``, and ``kept`` where the output still holds what an earlier run put there.
        """
        found, place = model
        try:
            with found.local() as path:
                done = self._again(path, place) if self.out and place else self._edited(path, self.out)
        except (SavedModelError, OSError) as error:
            line = {"source": found.name, "output": None, "error": {"class": type(error).__name__, "message": message_of(error)}}
            if self.out and place and Path(self.out, place).exists() and self._record(place).exists():
                line["kept"] = "the output still holds what an earlier run put there"
            return line, ExitCode.UNEXPECTED if about_the_model(error) else ExitCode.HARNESS_ERROR
        return {**done, "source": found.name}, ExitCode.AS_EXPECTED

    def _record(self, place: str) -> Path:
        return Path(self.out or "", NOTES, f"{place}.json")

    def _edited(self, path: Path, out: Optional[str]) -> dict[str, Any]:
        return edit(path, out, self.change, follow_links=self.follow_links).to_json()

    def _again(self, path: Path, place: str) -> dict[str, Any]:
        """Edit a model of a tree, unless its record says that this was done; what an earlier edit has put there is replaced."""
        assert self.out is not None
        record, target = self._record(place), Path(self.out, place)
        known = read_record(record, SCHEMA)
        asked = {"source_hash": source_hash(path if path.is_dir() else path.parent), "edit": self.text}
        if known is None or not target.exists():
            done = self._edited(path, str(target))
        elif {name: known.get(name) for name in asked} == asked and isinstance(known.get("done"), dict):
            return {**known["done"], "done_before": True}
        else:
            stage = target.with_name(f".{target.name}.{os.getpid()}")
            done = {**self._edited(path, str(stage)), "output": str(target)}
            put_in_place(stage, target)
            shutil.rmtree(stage, ignore_errors=True)
        write_record({"schema": SCHEMA, **asked, "done": done}, record, Path(self.out, NOTES, f"{WORK}-{os.getpid()}"))
        return done


def clean(out: str) -> None:
    """Remove the scratch folders of a run that has ended."""
    for folder in Path(out, NOTES).glob(f"{WORK}-*"):
        shutil.rmtree(folder, ignore_errors=True)
