"""Edit one model, or the models of a tree, each once: results of an earlier run of the same edit
are kept.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Optional

from reference_impl.errors import SavedModelError, about_the_model
from reference_impl.format.container import files
from reference_impl.format.container.staging import put_in_place
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import message_of
from savedmodel_tools.edits.draft import Draft, sizes_of
from savedmodel_tools.edits.proof import OtherTextError
from savedmodel_tools.find import Model
from savedmodel_tools.record_files import read_record, source_hash, write_record

SCHEMA = 1  # of what is told of a model, and of the record that holds it
NOTES = ".savedmodel-compat"  # folder of the output of a tree, with a record of each model
WORK = "work"

Change = Callable[[Draft], None]


@dataclass(frozen=True)
class Edited:
    """One edited model."""

    source: str  # its directory
    output: Optional[str]  # the new directory; None for a dry run
    changes: tuple[str, ...]  # what was done, one sentence each
    kept: tuple[str, ...]  # requested changes that were not made, each with its reason
    removed: dict[
        str, list[str]
    ]  # names of what is gone: objects, checkpoint keys, nodes of the graph, functions
    before: dict[str, int]  # sizes
    after: dict[str, int]  # of a dry run those that the files would have

    def to_json(self) -> dict[str, Any]:
        """As one JSON object."""
        return {"schema": SCHEMA, **vars(self)}


def edit(
    path: files.AnyPath,
    out: Optional[files.AnyPath],
    change: Callable[[Draft], None],
    *,
    follow_links: bool = False,
) -> Edited:
    """Apply an edit to a model.

    Args:
      path: the model.
      out: the new directory; None for a dry run, which proves everything but the files.
      change: the edit.

    Raises:
      RefusedError: the edit cannot be done, or not safely.
      SavedModelError: the model cannot be read, or is damaged.
    """
    try:
        draft = _changed(path, change, follow_links, canonical=False)
    except OtherTextError:
        draft = _changed(path, change, follow_links, canonical=True)
    if out is None:
        after = draft.sizes_after()
    else:
        draft.write(out)
        after = sizes_of(draft.message, files.Root(out))
    return Edited(
        str(draft.model.directory),
        None if out is None else str(out),
        tuple(draft.changes),
        tuple(draft.kept),
        {kind: names for kind, names in draft.removed.items() if names},
        draft.size_before,
        after,
    )


def _changed(
    path: files.AnyPath, change: Callable[[Draft], None], follow_links: bool, canonical: bool
) -> Draft:
    draft = Draft(path, follow_links=follow_links, canonical=canonical)
    change(draft)
    draft.finish()
    return draft


@dataclass(frozen=True)
class Edit:
    """An edit of one model or many."""

    # what is done; a `functools.partial` of a function of a module, so that processes can be given
    # it
    change: Change
    out: Optional[str]  # the new directory, of a tree that of all; None for a dry run
    follow_links: bool

    @property
    def text(self) -> str:
        """The edit in words: records of another one are done again."""
        if not isinstance(self.change, partial):
            return repr(self.change)
        name = f"{self.change.func.__module__}.{self.change.func.__qualname__}"
        return f"{name} {self.change.args!r} {sorted(self.change.keywords.items())!r}"

    def __call__(self, model: tuple[Model, str]) -> tuple[dict[str, Any], ExitCode]:
        """Edit a model, given with its place below the output ("" for the only one).

        Return what is told of it: `Edited.to_json` with the name of the model, and ``done_before``
        where an earlier run has done it; or ``error`` with ``class`` and ``message``, and ``kept``
        where the output still holds what an earlier run made.
        """
        found, place = model
        try:
            with found.local() as path:
                done = (
                    self._again(path, place) if self.out and place else self._edited(path, self.out)
                )
        except (SavedModelError, OSError) as error:
            line = {
                "source": found.name,
                "output": None,
                "error": {"class": type(error).__name__, "message": message_of(error)},
            }
            if (
                self.out
                and place
                and Path(self.out, place).exists()
                and self._record(place).exists()
            ):
                line["kept"] = "the output still holds what an earlier run put there"
            return line, ExitCode.UNEXPECTED if about_the_model(error) else ExitCode.HARNESS_ERROR
        return {**done, "source": found.name}, ExitCode.AS_EXPECTED

    def _record(self, place: str) -> Path:
        return Path(self.out or "", NOTES, f"{place}.json")

    def _edited(self, path: Path, out: Optional[str]) -> dict[str, Any]:
        return edit(path, out, self.change, follow_links=self.follow_links).to_json()

    def _again(self, path: Path, place: str) -> dict[str, Any]:
        """Edit a model of a tree, unless its record says that this was done; what an earlier edit
        has put there is replaced.
        """
        assert self.out is not None
        record, target = self._record(place), Path(self.out, place)
        known = read_record(record, SCHEMA)
        asked = {
            "source_hash": source_hash(path if path.is_dir() else path.parent),
            "edit": self.text,
        }
        if known is None or not target.exists():
            done = self._edited(path, str(target))
        elif _is_done(known, asked, target):
            return {**known["done"], "done_before": True}
        else:
            stage = target.with_name(f".{target.name}.{os.getpid()}")
            done = {**self._edited(path, str(stage)), "output": str(target)}
            put_in_place(stage, target)
            shutil.rmtree(stage, ignore_errors=True)
        write_record(
            {"schema": SCHEMA, **asked, "output_hash": source_hash(target), "done": done},
            record,
            Path(self.out, NOTES, f"{WORK}-{os.getpid()}"),
        )
        return done


def _is_done(known: dict[str, Any], asked: dict[str, str], target: Path) -> bool:
    """Return whether a record says that this edit was done, and its result is still there: a user
    may have put another model in its place.
    """
    same = all(known.get(name) == value for name, value in asked.items())
    kept = isinstance(known.get("done"), dict)
    return same and kept and source_hash(target) == known.get("output_hash")


def clean(out: str) -> None:
    """Remove the scratch folders of a run that has ended."""
    for folder in Path(out, NOTES).glob(f"{WORK}-*"):
        shutil.rmtree(folder, ignore_errors=True)
