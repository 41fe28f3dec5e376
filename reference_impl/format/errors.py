"""The errors about bytes: files, messages, checkpoints, limits.

Each names the file, the node (a field path or a checkpoint key) and the reason. For example:

    variables/variables.index: footer: the magic number is missing

`reference_impl.errors` adds the errors of loading and saving, and is the public name of all.
"""

from __future__ import annotations

import os
from typing import Any, Optional, Union

from reference_impl.format.error_text import printable

__all__ = [
    "ChecksumError",
    "CorruptTableError",
    "DtypeError",
    "DuplicateKeyError",
    "FileAccessError",
    "LimitError",
    "MalformedError",
    "MissingFileError",
    "MissingKeyError",
    "MissingPackageError",
    "MissingValueError",
    "NoMetaGraphError",
    "NotASavedModelError",
    "PathEscapeError",
    "SavedModelError",
    "SchemaVersionError",
    "ShapeError",
    "SplitFileError",
    "StructureError",
    "TruncatedError",
    "UnsupportedError",
    "V1CheckpointError",
]


class SavedModelError(Exception):
    """The base class of all errors of this package.

    Args:
      reason: what is wrong, in one sentence.
      file: the file it was found in.
      node: where in that file: a field path, a checkpoint key, an object or function name.
      clause: id of the violated clause of the RFC; by default the clause of the class. It is not
        part of the text.
      rule: id of the constraint of the specification that the file breaks (docs/format/spec), for
        example ``SM-BUNDLE-7``; None where no constraint is meant.
    """

    clause: Optional[str] = None
    rule: Optional[str] = None
    ag_pass_through = (
        True  # otherwise AutoGraph replaces an error that leaves a function while it is traced
    )

    def __init__(
        self,
        reason: str,
        *,
        file: Optional[Union[str, os.PathLike[str]]] = None,
        node: Optional[str] = None,
        clause: Optional[str] = None,
        rule: Optional[str] = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.file = None if file is None else os.fspath(file)
        self.node = node
        if clause is not None:
            self.clause = clause
        self.rule = rule

    def __str__(self) -> str:
        where = ": ".join(printable(part) for part in (self.file, self.node) if part)
        text = f"{where}: {printable(self.reason)}" if where else printable(self.reason)
        return f"{text} [{self.rule}]" if self.rule else text


class NotASavedModelError(SavedModelError, OSError):
    """The path holds no saved_model.pb, .pbtxt or .cpb."""


class MissingFileError(SavedModelError, FileNotFoundError):
    """A file that the model refers to (a checkpoint index or shard, an asset) does not exist."""


class FileAccessError(SavedModelError, OSError):
    """The operating system refuses to read or write: permissions, a directory in place of a file, a
    full disk.

    Attributes:
      of_the_model: the model has a pipe, a socket, a device, a directory or a cycle of links
        instead of a file, so other machines cannot read it either.
    """

    of_the_model = False


class PathEscapeError(SavedModelError):
    """A file name in the model is not a plain path below the model's directory."""

    clause = "RES-14"


class MalformedError(SavedModelError, OSError):
    """Bytes or text are not the expected protocol message, or break one of its invariants."""


class TruncatedError(SavedModelError, OSError):
    """A file ends before a length or offset that the model stores."""


class ChecksumError(SavedModelError):
    """Stored and computed checksums differ."""


class SchemaVersionError(SavedModelError, OSError):
    """saved_model_schema_version is neither 1 nor absent, or a checkpoint requires a newer
    reader.
    """


class NoMetaGraphError(SavedModelError, ValueError):
    """A SavedModel has no MetaGraph, or not the requested one."""

    clause = "V1-05"


class SplitFileError(SavedModelError):
    """The split (chunked) format is inconsistent: chunk metadata, field tags, record structure."""

    clause = "DR-09"


class UnsupportedError(SavedModelError):
    """A well-formed file uses a feature that is not supported (a compression, an encryption, a file
    system).
    """


class MissingPackageError(SavedModelError, ImportError):
    """A file is compressed, and the package that unpacks it is not installed."""

    def __init__(self, compression: str, package: str, **where: Any) -> None:
        super().__init__(
            f"compressed with {compression}, which needs the package {package}: pip install"
            f" {package}",
            **where,
        )


class LimitError(SavedModelError):
    """A size, depth or count exceeds a limit of `reference_impl.format.limits`.

    Args:
      reason, where: as for every error.
      limit: name of the limit, such as ``TENSOR_BYTES``. A program may raise it.
    """

    def __init__(self, reason: str, *, limit: str = "", **where: Any) -> None:
        super().__init__(reason, **where)
        self.limit = limit


class CorruptTableError(SavedModelError):
    """The index of a tensor bundle (a sorted table of blocks) is inconsistent."""


class DtypeError(SavedModelError):
    """A dtype is unknown, invalid here, or not the one expected."""


class ShapeError(SavedModelError):
    """A shape is negative, overflows or does not fit the stored bytes, or slices do not cover their
    tensor.
    """


class DuplicateKeyError(SavedModelError):
    """Something that must be unique occurs twice: a checkpoint key, a node or function name, a tag
    set.
    """


class MissingKeyError(SavedModelError):
    """A checkpoint key, signature, function or node that is referred to does not exist."""


class MissingValueError(MissingKeyError, FileNotFoundError):
    """The checkpoint holds no value for a variable or a table of the object graph."""


class StructureError(SavedModelError):
    """A StructuredValue cannot be decoded, or a Python value cannot be encoded as one."""

    clause = "FN-09"


class V1CheckpointError(SavedModelError):
    """A checkpoint in the V1 format (one file of SavedTensorSlices) where a tensor bundle is
    needed.
    """


class under_rule:
    """Give the errors of a block the id of a constraint, if they have none: for checks that other
    modules make, such as whether a shard exists (``under_rule("SM-BUNDLE-5")``).

    This runs for every tensor of a checkpoint, where a generator would be slower.
    """

    def __init__(self, rule: str) -> None:
        self._rule = rule

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: Optional[BaseException], __: object) -> None:
        if isinstance(error, SavedModelError):
            error.rule = error.rule or self._rule


def not_a_file(what: str, file: Union[str, os.PathLike[str]]) -> FileAccessError:
    """Return the error for a path in a model that is not a regular file; `what` is the kind of
    file.
    """
    error = FileAccessError(f"{what}, not a regular file", file=file, rule="SM-DIR-6")
    error.of_the_model = True
    return error
