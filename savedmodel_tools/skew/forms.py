"""Forms of a SavedModel (other than ops) that only some releases read, and the errors of the
releases that do not.

Every form was seen in the version grid (docs/evidence/index.md): a genuine release loads
the model or fails with this text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

KIND, SILENT = (
    "format",
    "silent",
)  # kinds of a Lack: one fails with an error, the other is lost silently
COMPOSITE, REFERENCES, TENSOR_DEFAULT, TABLES = (
    "composite_signature",
    "reference_output",
    "tensor_default",
    "table_content",
)
SAVE_FUNCTION, LISTED = "table_save_function", "listed_functions"
SLOTS, KERAS_SLOTS, TENSORFLOW_SLOTS = "slots", "keras_slots", "tensorflow_slots"
KEYWORD_DEFAULTS, DEFAULTS, RAGGED_INPUT = (
    "keyword_defaults",
    "input_signature_defaults",
    "ragged_input",
)
AUTO_SELECT, LOWERED, PYTHON, HANDLE, XLA_ALONE = (
    "auto_select",
    "lowered_control_flow",
    "python",
    "handle",
    "xla_kernel",
)
PLACED = "placed_elsewhere"
_ERRORS = ("LOAD_ERROR", "CALL_ERROR", "REJECTED")


class Form(NamedTuple):
    """A form of a SavedModel and the error that a release without it shows.

    Attributes:
      since: the first release that reads the form; "" where the releases are found in another way.
      what: the form, in words.
      shows: a regular expression, searched in the normalised message of the failure.
      outcomes: the outcomes that the cell may have.
    """

    since: str
    what: str
    shows: str = ""
    outcomes: tuple[str, ...] = _ERRORS

    def shown_by(self, outcome: str, message: str) -> bool:
        """Return whether a failure shows this form."""
        return outcome in self.outcomes and re.search(self.shows, message) is not None


_NO_TRACE = r"Could not find matching (concrete )?function"
_SLOT = r"add_slot"
FORMS: dict[str, Form] = {
    COMPOSITE: Form(
        "2.1",
        "signatures with sparse or ragged tensors",
        r"The name '' refers to an Operation not in the graph|Invalid TensorInfo\.encoding: None",
    ),
    REFERENCES: Form("", "signatures with references to variables as outputs", r"_ref\b|reference"),
    TENSOR_DEFAULT: Form(
        "2.13",
        "a tensor as the default of an argument (tensor_value in a FunctionSpec)",
        r"No encoder for object .*StructuredValue'>",
    ),
    TABLES: Form("2.4", "content of tables, which is lost without a word", "", ("FAIL_VALUE",)),
    SAVE_FUNCTION: Form(
        "",
        "tables with content, saved since 2.13: a save function without a key",
        r"save_fn\(checkpoint_key\) expected a Tensor in checkpoint_key",
    ),
    LISTED: Form(
        "2.3",
        "functions in a list of an attr (Case)",
        r"Op type not registered|not found|not defined",
    ),
    SLOTS: Form(
        "",
        "slot variables of an optimizer that is not a class of this TensorFlow (add_slot)",
        _SLOT,
    ),
    KERAS_SLOTS: Form(
        "",
        "the optimizer class of Keras 2, for its slot variables (add_slot): import keras (2.6) or"
        " tf_keras (since 2.16) first",
        _SLOT,
    ),
    TENSORFLOW_SLOTS: Form(
        "2.6",
        "the optimizer class of the Keras 2 inside TensorFlow, for its slot variables (add_slot)",
        _SLOT,
    ),
    KEYWORD_DEFAULTS: Form(
        "2.4", "defaults of keyword arguments that it adds to a call", _NO_TRACE
    ),
    DEFAULTS: Form("2.12", "defaults under an input_signature that it adds to a call", _NO_TRACE),
    RAGGED_INPUT: Form(
        "2.4",
        "ragged tensors as inputs of signatures",
        r"Expected argument names \[.*\] but got values for",
    ),
    AUTO_SELECT: Form(
        "2.7", "the random algorithm that the device selects (alg=3)", r"[Aa]lgorithm"
    ),
    LOWERED: Form(
        "1.14",
        "control flow that is lowered when it is run (_lower_using_switch_merge)",
        r"has '_lower_using_switch_merge' attr set but it does not support lowering",
    ),
    PYTHON: Form(
        "",
        "a kernel outside of Python",
        r"Missing py trampoline|Python interpreter state is not initialized|No OpKernel",
    ),
    PLACED: Form(
        "2.0",
        "a second choice for nodes on a device that the machine may lack (soft placement)",
        "Unable to find any devices for spec",
    ),
    HANDLE: Form(
        "", "safe memory for the handles that functions make", "", (*_ERRORS, "CRASH", "TIMEOUT")
    ),
    XLA_ALONE: Form(
        "2.4",
        "a CPU kernel to restore variables of unsigned or quantised types",
        r"Cannot assign a device for operation \S*AssignVariableOp|No registered 'AssignVariableOp'"
        r" OpKernel"
        r"|Error while reading resource variable|No OpKernel was registered to support Op"
        r" 'AssignVariableOp'|no reply to ",
        (*_ERRORS, "TIMEOUT"),
    ),
}
ANSWERS_DIFFER = frozenset(
    name for name, form in FORMS.items() if form.outcomes == ("FAIL_VALUE",)
)  # no error reveals them
