"""Write a SavedModel directory: stage it in a sibling directory, then put it in place with one
rename.

    with LayoutWriter("export/1", replace=True) as out:
        write_checkpoint(out.checkpoint_prefix)
        out.asset("vocab.txt", "/data/vocab.txt")
        out.saved_model(message)

A process killed at any moment leaves the old export or the new one, never a mixture. It may also
leave a hidden directory beside the export, which the next save to the same place removes. Files are
synced to disk before the rename, unless the caller turns this off, so a power failure does not
leave an export of empty files either.

RFC: API-04
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Optional, Union

from reference_impl.format import errors, schema
from reference_impl.format.container import files, layout, staging

# What an export may consist of. A directory that holds anything else is not replaced: the rest
# would be lost.
_MEMBERS = {
    layout.PB,
    layout.PBTXT,
    layout.CPB,
    layout.VARIABLES,
    layout.ASSETS,
    layout.ASSETS_EXTRA,
    layout.FINGERPRINT,
    layout.KERAS_METADATA,
    Path(layout.DEBUG_INFO).parts[0],
}


class LayoutWriter:
    """A context manager that writes a SavedModel.

    Leaving the context normally puts it in place; an exception discards it.

    Args:
      directory: the destination; parents are made.
      replace: whether an existing SavedModel may be replaced as a whole.
      keep_others: keep existing files that are not part of a SavedModel, and extra assets if none
        are written (shipped TensorFlow does). Otherwise such a directory is refused.
      stage: parent of the staging directory, on the same file system; by default the parent of
        `directory`.
      sync: whether files are synced to disk before the rename.

    Raises:
      FileAccessError: the destination exists and may not be replaced, or the file system refuses.
    """

    def __init__(
        self,
        directory: files.AnyPath,
        *,
        replace: bool = False,
        keep_others: bool = False,
        stage: Optional[files.AnyPath] = None,
        sync: bool = True,
    ) -> None:
        self.directory = Path(os.path.realpath(directory))
        self.replace, self.keep_others, self.sync = replace, keep_others, sync
        self._wrote_model = False
        self._parent = self.directory.parent if stage is None else Path(os.path.realpath(stage))
        self._lock: Optional[int] = None

    def __enter__(self) -> LayoutWriter:
        staging.sweep(self.directory, self._parent)
        self._check_target()
        with files.accessing(self._parent):
            self.directory.parent.mkdir(parents=True, exist_ok=True)
            self._parent.mkdir(parents=True, exist_ok=True)
            if self._parent.stat().st_dev != self.directory.parent.stat().st_dev:
                reason = (
                    f"is on another file system than {self.directory}: nothing can be put in place"
                    " in one step from there"
                )
                raise errors.FileAccessError(reason, file=self._parent)
            self.stage, self._lock = staging.make(self.directory, self._parent)
            try:
                self._root = files.Root(self.stage)
                (self.stage / layout.VARIABLES).mkdir()
            except OSError:
                self._drop()  # a context that was not entered is not left
                raise
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            if kind is None:
                self._commit()
        finally:
            self._drop()

    def _drop(self) -> None:
        shutil.rmtree(self.stage, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)

    @property
    def checkpoint_prefix(self) -> Path:
        """The prefix at which to write the tensor bundle."""
        return self.stage / layout.CHECKPOINT

    def saved_model(
        self, message: schema.SavedModel, *, text: bool = False, data: Optional[bytes] = None
    ) -> None:
        """Write the MetaGraphs.

        Args:
          message: the SavedModel; `data` is the serialised message, if the caller has it.
          text: write saved_model.pbtxt.

        Raises: SchemaVersionError, NoMetaGraphError, LimitError (over 2 GB).
        """
        name = layout.PBTXT if text else layout.PB
        layout.check(message, self.directory / name)
        self._write(
            name,
            (
                schema.to_text(message).encode()
                if text
                else schema.serialize(message)
                if data is None
                else data
            ),
        )
        self._wrote_model = True

    def fingerprint(self, message: schema.FingerprintDef) -> None:
        self._write(layout.FINGERPRINT, schema.serialize(message))

    def debug_info(self, message: schema.GraphDebugInfo) -> None:
        self._write(layout.DEBUG_INFO, schema.serialize(message))

    def asset(self, filename: str, source: Union[bytes, files.AnyPath]) -> None:
        """Write a file of assets/, from its content or copied from a path.

        Raises PathEscapeError, MissingFileError.

        RFC: RES-06
        """
        self._put(layout.ASSETS, filename, source)

    def extra_asset(self, filename: str, source: Union[bytes, files.AnyPath]) -> None:
        """Write a file of assets.extra/, as `asset` does."""
        self._put(layout.ASSETS_EXTRA, filename, source)

    def part(self, name: str, source: Union[bytes, files.AnyPath], *, link: bool = False) -> None:
        """Write any file under its relative name, as `asset` does; with `link`, hard-link it where
        the system can.
        """
        self._put("", name, source, link)

    def _put(
        self, member: str, filename: str, source: Union[bytes, files.AnyPath], link: bool = False
    ) -> None:
        reason = files.refuse_name(filename)
        if reason:
            raise errors.PathEscapeError(f"{filename!r} {reason}", file=self.directory / member)
        name = f"{member}/{filename}".lstrip("/")
        if self._root.exists(name):
            raise errors.DuplicateKeyError(
                f"{filename!r} is written twice", file=self.directory / member
            )
        if isinstance(source, bytes):
            self._write(name, source)
            return
        if what := files.special_kind(source):
            raise errors.not_a_file(what, source)
        if not os.path.isfile(source):  # noqa: PTH113
            raise errors.MissingFileError(
                "a file of the model is missing, or is a directory", file=source, clause="RES-06"
            )
        target = self._root.path(name)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if not (link and _linked(source, target)):
                shutil.copyfile(source, target)
        except OSError as error:
            raise files.access_error(error, error.filename or target) from error

    def _write(self, name: str, content: bytes) -> None:
        path = self._root.path(name)
        with files.accessing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def _check_target(self) -> None:
        with files.accessing(self.directory):
            try:
                present = {entry.name for entry in os.scandir(self.directory)}
            except FileNotFoundError:
                return
        if present and not self.replace:
            raise errors.FileAccessError(
                "the directory is not empty, and replace was not asked for", file=self.directory
            )
        if not os.access(
            self.directory, os.W_OK, effective_ids=os.access in os.supports_effective_ids
        ):
            # The directory could be replaced, but its permissions say that it must not change.
            raise errors.FileAccessError("the directory is read-only", file=self.directory)
        foreign = sorted(present - _MEMBERS)
        if foreign and not self.keep_others:
            reason = (
                "holds files that are not part of a SavedModel and would be lost:"
                f" {', '.join(foreign[:5])}"
            )
            raise errors.FileAccessError(reason, file=self.directory)

    def _commit(self) -> None:
        if not self._wrote_model:
            raise errors.NotASavedModelError("no SavedModel was written", file=self.directory)
        self._check_target()  # checked again: it may have changed meanwhile
        with files.accessing(self.directory):
            if self.sync:
                staging.sync(self.stage)
            if self.directory.exists():
                shutil.copymode(self.directory, self.stage)
                if self.keep_others:
                    staging.link_others(
                        self.directory, self.stage, _MEMBERS - {layout.ASSETS_EXTRA}
                    )
            with staging.working_directory_kept(self.directory):
                staging.put_in_place(self.stage, self.directory)


def _linked(source: files.AnyPath, target: Path) -> bool:
    try:
        os.link(os.path.realpath(source), target)
    except OSError:  # another file system, one without hard links, or a file of another user
        return False
    return True
