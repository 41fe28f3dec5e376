"""The errors of an evaluation. Those about the files are the errors of `reference_impl`."""

from __future__ import annotations

from reference_eval.reading import SavedModelError


class EvaluationError(SavedModelError):
    """A node cannot be evaluated: its kernel would fail too, or an input does not fit.

    `node` names the function and the node, e.g. ``function 'while_body', node 'mul' (Mul)``.
    """


class NotEvaluatedError(EvaluationError):
    """The evaluator cannot run a part of the model. This says nothing about the model."""


class UnknownOpError(NotEvaluatedError):
    """The evaluator has no function for an op. Pass one: ``load(..., new_ops=[...])``."""


class RefusedOpError(NotEvaluatedError):
    """An op acts on the machine (files, Python) or draws random numbers without a seed."""


class EvaluationLimitError(EvaluationError):
    """A value or a run exceeds a limit of `reference_eval.sizes`.

    Args:
      reason: what is too large.
      limit: the name of the limit, such as ``TENSOR_BYTES``. A program may raise it.
    """

    def __init__(self, reason: str, *, limit: str) -> None:
        super().__init__(reason)
        self.limit = limit
