"""Errors of loading and saving, beside the closed family of the format layer from which they all derive.

Each is also what users of `tf.saved_model` know to catch at that place (ValueError, TypeError, KeyError, FileNotFoundError, …).
"""

from __future__ import annotations

from reference_impl.format.errors import MissingKeyError, NoMetaGraphError, SavedModelError

__all__ = [
    "AliasError",
    "BindingError",
    "FunctionMatchError",
    "InsideFunctionError",
    "MachineOpError",
    "MetaGraphChoiceError",
    "MissingValueError",
    "NotTrackableError",
    "SaveError",
    "SavedModelError",
    "SignatureError",
    "UninitializedVariableError",
    "UnknownPathError",
    "UnknownSignatureError",
    "UnsupportedModelError",
    "UntracedFunctionError",
    "UntrackedCaptureError",
]


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
