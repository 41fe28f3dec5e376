"""The errors of this package.

A defect in a SavedModel raises one of these classes, never an error of an underlying library
(protobuf, struct, zlib, OSError). An error names the file, the node (a field path, a checkpoint
key, an object), the reason, and the clause of the RFC if there is one.

The classes also derive from the class that callers of `tf.saved_model` catch for the same problem
(OSError, ValueError, TypeError, KeyError, FileNotFoundError, AssertionError).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Optional, Union

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
    "MissingPackageError",
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
    "UnknownTensorError",
    "UnsupportedError",
    "UnsupportedModelError",
    "UntracedFunctionError",
    "UntrackedCaptureError",
    "V1CheckpointError",
]


class SavedModelError(Exception):
    """The base class of all errors of this package.

    Args:
      reason: what is wrong, in one sentence.
      file: the file it was found in.
      node: where in that file: a field path, a checkpoint key, an object or function name.
      clause: id of the violated clause; by default the clause of the class.
    """

    clause: Optional[str] = None
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
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.file = None if file is None else os.fspath(file)
        self.node = node
        if clause is not None:
            self.clause = clause

    def __str__(self) -> str:
        where = ": ".join(printable(part) for part in (self.file, self.node) if part)
        text = f"{where}: {printable(self.reason)}" if where else printable(self.reason)
        return f"{text} [{self.clause}]" if self.clause else text


def printable(text: str, kept: str = "") -> str:
    """Return text with everything that could control a terminal written as an escape: names come
    from untrusted files.

    Control characters (C0, DEL, C1), bidirectional overrides, invisible format characters and lone
    surrogates become ``\\x1b`` or ``\\u202e``, unless they are among ``kept``. The backslash itself
    is left alone.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in kept else ascii(char)[1:-1] for char in text
    )


_LONG = 200  # characters of a name that are compared with others


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """Return up to three of the ``known`` names that are like a name, the most similar first.

    Case does not count.
    """
    import difflib  # only where a name is wrong

    folded = {one.lower(): one for one in known}
    return [
        folded[one]
        for one in difflib.get_close_matches(name.lower()[:_LONG], list(folded), cutoff=cutoff)
    ]


def like(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean NAME?`` for a name that is not among the ``known`` names; "" when none
    is similar.
    """
    near = nearest(name, known)
    return f" Did you mean {' or '.join(near)}?" if near else ""


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
      limit: name of the limit, which may be raised.
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


class StructureError(SavedModelError):
    """A StructuredValue cannot be decoded, or a Python value cannot be encoded as one."""

    clause = "FN-09"


class CycleError(SavedModelError):
    """Objects or functions that must form a tree or an acyclic graph refer to themselves."""


class V1CheckpointError(SavedModelError):
    """A checkpoint in the V1 format (one file of SavedTensorSlices) where a tensor bundle is
    needed.
    """


# Errors of loading and saving


class MetaGraphChoiceError(NoMetaGraphError, RuntimeError):
    """No MetaGraph has the requested tags, or tags are needed because there are several MetaGraphs.

    TensorFlow raises a RuntimeError for tags that no MetaGraph of a TF 1.x model has, and otherwise
    a ValueError.

    RFC: V1-04, V1-05
    """


class MissingValueError(MissingKeyError, FileNotFoundError):
    """The checkpoint holds no value for a variable or a table of the object graph."""


class UnsupportedModelError(SavedModelError, ValueError):
    """The model uses a feature that loading does not support."""


class MachineOpError(UnsupportedModelError):
    """Loading would run an op that acts on the machine, which `LoadOptions(machine_ops="refuse")`
    forbids.

    A load that may write on the model itself is refused unless the option is ``"allow"``.

    RFC: RP-04
    """


class UninitializedVariableError(UnsupportedModelError):
    """A function of an object that was made by ``type(loaded)()`` reads a variable without a value.

    RFC: INIT-03, INIT-08
    """

    clause = "INIT-08"


class UnknownPathError(MissingKeyError):
    """`LoadOptions(only=...)` names an object that the model does not have."""

    clause = "DR-03"


class UnknownSignatureError(MissingKeyError, KeyError):
    """A loaded model does not have the requested signature."""

    clause = "ATTR-01"


class UnknownTensorError(MissingKeyError, KeyError, ValueError):
    """`prune` is given the name of a tensor or operation that the graph does not have, or a text
    that cannot be one.

    TensorFlow raises a KeyError for the former and a ValueError for the latter.
    """

    clause = "V1-01"


class BindingError(SavedModelError, TypeError):
    """Arguments do not fit the Python signature of a loaded function."""

    clause = "PY-09"


class FunctionMatchError(SavedModelError, ValueError):
    """No concrete function of a loaded function was traced for these arguments."""

    clause = "FN-13"

    def __str__(self) -> str:
        # The list of the traces has several lines. Its values are shown by repr, so it has no
        # control characters.
        return self.reason if "\n" in self.reason else super().__str__()


class SaveError(SavedModelError, ValueError):
    """The object cannot be saved, or not without a loss (strict mode)."""


class InsideFunctionError(SaveError, AssertionError):
    """A save was started while a `tf.function` is traced."""

    clause = "COMPAT-01"


class AliasError(SaveError, TypeError):
    """`function_aliases` names an object that is not a function of the export."""


class NotTrackableError(SaveError):
    """The root to save is not trackable."""

    clause = "API-02"


class SignatureError(SaveError):
    """A signature cannot be exported.

    RFC: SIG-04, SIG-12, SIG-13, API-03, ATTR-07
    """


class UntracedFunctionError(SaveError):
    """A function has no concrete function, so it could not be called after loading."""

    clause = "FN-06"


class UntrackedCaptureError(SaveError, AssertionError, KeyError):
    """Functions capture state that cannot be reached from the root."""

    clause = "FN-07"


def shortened(text: str, most: int, mark: str = "…") -> str:
    """Cut a text to at most `most` characters; a mark at its end shows that something was left
    out.
    """
    return text if len(text) <= most else text[: most - len(mark)] + mark


def listed(texts: Iterable[str], most: int = 8, between: str = ", ") -> str:
    """Join the first texts for a message, with the number of texts left out."""
    texts = list(texts)
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return between.join(texts[:most]) + more


def about_the_model(error: BaseException) -> bool:
    """Return whether an error reports a defect of the model, not of the machine (permissions, a
    full disk, a missing package).
    """
    if isinstance(error, MissingPackageError):
        return False
    return isinstance(error, SavedModelError) and (
        not isinstance(error, FileAccessError) or error.of_the_model
    )


def not_a_file(what: str, file: Union[str, os.PathLike[str]]) -> FileAccessError:
    """Return the error for a path in a model that is not a regular file; `what` is the kind of
    file.
    """
    error = FileAccessError(f"{what}, not a regular file", file=file)
    error.of_the_model = True
    return error
