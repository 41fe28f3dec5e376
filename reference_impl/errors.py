"""The errors of this package.

A defect in a SavedModel raises one of these classes, never an error of an underlying library
(protobuf, struct, zlib, OSError). An error names the file, the node (a field path, a checkpoint
key, an object), the reason, and the clause of the RFC if there is one.

The classes also derive from the class that callers of `tf.saved_model` catch for the same problem
(OSError, ValueError, TypeError, KeyError, FileNotFoundError, AssertionError).

Those about bytes are defined in `reference_impl.format.errors`, which needs nothing of the other
rooms. Those of loading and saving are defined here.
"""

from __future__ import annotations

from reference_impl.format import errors as _of_format
from reference_impl.format.error_text import like as like
from reference_impl.format.error_text import listed as listed
from reference_impl.format.error_text import nearest as nearest
from reference_impl.format.error_text import printable as printable
from reference_impl.format.error_text import shortened as shortened
from reference_impl.format.errors import (
    ChecksumError,
    CorruptTableError,
    DtypeError,
    DuplicateKeyError,
    FileAccessError,
    LimitError,
    MalformedError,
    MissingFileError,
    MissingKeyError,
    MissingPackageError,
    MissingValueError,
    NoMetaGraphError,
    NotASavedModelError,
    PathEscapeError,
    SavedModelError,
    SchemaVersionError,
    ShapeError,
    SplitFileError,
    StructureError,
    TruncatedError,
    UnsupportedError,
    V1CheckpointError,
)
from reference_impl.format.errors import not_a_file as not_a_file
from reference_impl.format.errors import under_rule as under_rule

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
    "OptionError",
    "PathEscapeError",
    "SaveError",
    "SaveOptionError",
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

# The public name of a class is the one in this module. Reports and known failures record it.
for _name in _of_format.__all__:
    getattr(_of_format, _name).__module__ = __name__


class CycleError(SavedModelError):
    """Objects or functions that must form a tree or an acyclic graph refer to themselves."""


class OptionError(SavedModelError, ValueError):
    """An option of a load or a save is unknown or has an invalid value.

    It is raised when the options are made: ``LoadOptions(weights="lazy")``.
    """


class MetaGraphChoiceError(NoMetaGraphError, RuntimeError):
    """No MetaGraph has the requested tags, or tags are needed because there are several MetaGraphs.

    TensorFlow raises a RuntimeError for tags that no MetaGraph of a TF 1.x model has, and otherwise
    a ValueError.

    RFC: V1-04, V1-05
    """


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


class SaveOptionError(OptionError, SaveError):
    """An option of a save is unknown or has an invalid value."""


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


def about_the_model(error: BaseException) -> bool:
    """Return whether an error reports a defect of the model, not of the machine (permissions, a
    full disk, a missing package).
    """
    if isinstance(error, MissingPackageError):
        return False
    return isinstance(error, SavedModelError) and (
        not isinstance(error, FileAccessError) or error.of_the_model
    )
