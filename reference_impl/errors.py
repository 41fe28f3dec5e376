"""The errors of this package: one closed family.

Whatever is wrong with bytes read from a SavedModel ends in exactly one of these classes, never in an error of a library
below (protobuf, struct, zlib, OSError). Every error names the file, the node (a path inside the message, a checkpoint key,
an object id) and the reason, and the clause of the RFC *SavedModel Save/Load in 2.x* that it upholds, where there is one.

Each class also derives from the class that callers of `tf.saved_model` catch in its place (OSError, ValueError, TypeError,
KeyError, FileNotFoundError, AssertionError).
"""

from __future__ import annotations

import os
from typing import Optional, Union

__all__ = [
    "AliasError",
    "BindingError",
    "ChecksumError",
    "CorruptTableError",
    "CycleError",
    "DtypeError",
    "DuplicateKeyError",
    "FileAccessError",
    "FunctionMatchError",
    "InsideFunctionError",
    "LimitError",
    "MachineOpError",
    "MalformedError",
    "MetaGraphChoiceError",
    "MissingFileError",
    "MissingKeyError",
    "MissingValueError",
    "NoMetaGraphError",
    "NotASavedModelError",
    "NotTrackableError",
    "PathEscapeError",
    "SaveError",
    "SavedModelError",
    "SchemaVersionError",
    "ShapeError",
    "SignatureError",
    "SplitFileError",
    "StructureError",
    "TruncatedError",
    "UninitializedVariableError",
    "UnknownPathError",
    "UnknownSignatureError",
    "UnsupportedError",
    "UnsupportedModelError",
    "UntracedFunctionError",
    "UntrackedCaptureError",
    "V1CheckpointError",
]


class SavedModelError(Exception):
    """Base of the family.

    Args:
      reason: what is wrong, in one sentence.
      file: the file it was found in.
      node: where in that file: a field path, a checkpoint key, an object or function name.
      clause: id of the clause that is violated; a member of the family may have one of its own.
    """

    clause: Optional[str] = None
    ag_pass_through = True  # AutoGraph would raise an error of its own instead, when it leaves a function that is being traced

    def __init__(
        self,
        reason: str,
        *,
        file: Optional[Union[str, os.PathLike[str]]] = None,
        node: Optional[str] = None,
        clause: Optional[str] = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.file = None if file is None else os.fspath(file)
        self.node = node
        if clause is not None:
            self.clause = clause

    def __str__(self) -> str:
        where = ": ".join(_printable(part) for part in (self.file, self.node) if part)
        text = f"{where}: {_printable(self.reason)}" if where else _printable(self.reason)
        return f"{text} [{self.clause}]" if self.clause else text


def _printable(text: str) -> str:
    """Names come from untrusted files: control characters must not reach a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode("ascii") for c in text)


class NotASavedModelError(SavedModelError, OSError):
    """The path holds no saved_model.pb, .pbtxt or .cpb."""


class MissingFileError(SavedModelError, FileNotFoundError):
    """A file that the model refers to (a checkpoint index or shard, an asset) does not exist."""


class FileAccessError(SavedModelError, OSError):
    """The operating system refuses to read or write: permissions, a directory where a file belongs, a full disk.

    Attributes:
      of_the_model: the model holds a pipe, a socket, a device, a directory or a circle of links where a file belongs: no other
        machine could read it either.
    """

    of_the_model = False


class PathEscapeError(SavedModelError):
    """A file name inside the model is not a plain path below the model's own directory."""

    clause = "RES-14"


class MalformedError(SavedModelError, OSError):
    """Bytes or text are not the protocol message that they should be, or break an invariant of it."""


class TruncatedError(SavedModelError, OSError):
    """A file ends before a length or offset stored in the model says it does."""


class ChecksumError(SavedModelError):
    """Stored and computed checksums differ."""


class SchemaVersionError(SavedModelError, OSError):
    """saved_model_schema_version is not 1, or a checkpoint asks for a newer reader."""


class NoMetaGraphError(SavedModelError):
    """A SavedModel without a MetaGraph, or without the MetaGraph asked for."""

    clause = "V1-05"


class SplitFileError(SavedModelError):
    """The split (chunked) format is inconsistent: chunk metadata, field tags, record structure."""

    clause = "DR-09"


class UnsupportedError(SavedModelError):
    """Well-formed, but using a feature that this reader does not know (a compression, an encryption, a file system)."""


class LimitError(SavedModelError):
    """A size, depth or count is over the limit that `reference_impl.format.limits` sets.

    Args:
      limit: name of the limit, for those who want to raise it.
    """

    def __init__(
        self,
        reason: str,
        *,
        file: Optional[Union[str, os.PathLike[str]]] = None,
        node: Optional[str] = None,
        clause: Optional[str] = None,
        limit: str = "",
    ) -> None:
        super().__init__(reason, file=file, node=node, clause=clause)
        self.limit = limit


class CorruptTableError(SavedModelError):
    """The index of a tensor bundle (a sorted table of blocks) is inconsistent."""


class DtypeError(SavedModelError):
    """A dtype is unknown, invalid here, or not the one expected."""


class ShapeError(SavedModelError):
    """A shape is negative, overflows, does not fit the bytes stored, or slices do not cover their tensor."""


class DuplicateKeyError(SavedModelError):
    """Something that must be unique occurs twice: a checkpoint key, a node or function name, a tag set."""


class MissingKeyError(SavedModelError):
    """A checkpoint key, signature, function or node that is referred to does not exist."""


class StructureError(SavedModelError):
    """A StructuredValue cannot be decoded, or a Python value cannot be encoded as one."""

    clause = "FN-09"


class CycleError(SavedModelError):
    """Things that must form a tree or an acyclic graph refer to themselves."""


class V1CheckpointError(SavedModelError):
    """A checkpoint in the V1 format (one file of SavedTensorSlices) where a tensor bundle is needed."""


# Errors of loading and saving


class MetaGraphChoiceError(NoMetaGraphError, ValueError):
    """No MetaGraph has the tags asked for, or tags are needed because there are several (V1-04, V1-05)."""


class MissingValueError(MissingKeyError, FileNotFoundError):
    """The checkpoint holds no value for a variable or a table of the object graph."""


class UnsupportedModelError(SavedModelError, ValueError):
    """The model uses something that loading does not know."""


class MachineOpError(UnsupportedModelError):
    """Loading would run an op that acts on the machine, and `LoadOptions(machine_ops="refuse")` does not want that (RP-04)."""


class UninitializedVariableError(UnsupportedModelError):
    """A function of an object that was made by ``type(loaded)()`` reads a variable which has no value yet (INIT-03, INIT-08)."""

    clause = "INIT-08"


class UnknownPathError(MissingKeyError):
    """`LoadOptions(only=...)` names something that the model does not have (DR-03)."""

    clause = "DR-03"


class UnknownSignatureError(MissingKeyError, KeyError):
    """A loaded model is asked for a signature that it does not have (ATTR-01)."""

    clause = "ATTR-01"


class BindingError(SavedModelError, TypeError):
    """Arguments do not fit the Python signature of a loaded function (PY-09)."""

    clause = "PY-09"


class FunctionMatchError(SavedModelError, ValueError):
    """No concrete function of a loaded function was traced for these arguments (FN-13)."""

    clause = "FN-13"

    def __str__(self) -> str:
        # The list of what would have matched has lines; its values are shown by repr, so nothing in it reaches a terminal.
        return self.reason if "\n" in self.reason else super().__str__()


class SaveError(SavedModelError, ValueError):
    """What is to be saved cannot be saved, or not without losing something (strict mode)."""


class InsideFunctionError(SaveError, AssertionError):
    """A save is asked for while a `tf.function` is traced (COMPAT-01)."""

    clause = "COMPAT-01"


class AliasError(SaveError, TypeError):
    """`function_aliases` names something that is no function of the export."""


class NotTrackableError(SaveError):
    """The root to save is no trackable object (API-02)."""

    clause = "API-02"


class SignatureError(SaveError):
    """A signature cannot be exported (SIG-04, SIG-12, SIG-13, API-03, ATTR-07)."""


class UntracedFunctionError(SaveError):
    """A function would be saved without any concrete function, so nobody could call it (FN-06)."""

    clause = "FN-06"


class UntrackedCaptureError(SaveError, AssertionError, KeyError):
    """Functions capture state that cannot be reached from the root (FN-07)."""

    clause = "FN-07"


def about_the_model(error: BaseException) -> bool:
    """Whether an error tells of a defect of the model. The others tell of the machine: permissions, a full disk."""
    return isinstance(error, SavedModelError) and (not isinstance(error, FileAccessError) or error.of_the_model)


def not_a_file(what: str, file: Union[str, os.PathLike[str]]) -> FileAccessError:
    """Return the error for a path of a model that is no regular file, of which ``what`` says what it is."""
    error = FileAccessError(f"{what}, not a regular file", file=file)
    error.of_the_model = True
    return error
