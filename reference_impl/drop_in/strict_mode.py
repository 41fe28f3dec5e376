"""The default of ``SaveOptions(strict=...)``, for the whole process.

`tf.saved_model.SaveOptions` has no ``strict``. A program whose calls of `save` cannot be edited
sets the default in its environment or with `strictness`.
"""

from __future__ import annotations

import os
from typing import Optional

VARIABLE = "REFERENCE_IMPL_STRICT"
_VALUES = {"": None, "1": True, "true": True, "0": False, "false": False}

_chosen: Optional[bool] = None


class strictness:
    """Set, for all threads of the process, whether a save fails if it would lose data.

        reference_impl.strictness(False)             # from now on
        with reference_impl.strictness(False):       # in this block
            trainer.export(path)

    Args:
      strict: True makes a loss an error, False a warning. None leaves it to the environment
        variable REFERENCE_IMPL_STRICT (``0`` or ``1``); without the variable a loss is an error.

    An explicit ``SaveOptions(strict=...)`` takes precedence.

    RFC: PRIM-06, FN-06
    """

    def __init__(self, strict: Optional[bool]):
        global _chosen
        if strict not in (True, False, None):
            raise ValueError(f"strict is True, False or None, not {strict!r}")
        self._before = _chosen
        _chosen = strict

    def __enter__(self) -> strictness:
        return self

    def __exit__(self, *_: object) -> None:
        global _chosen
        _chosen = self._before


def is_strict() -> bool:
    """Return whether a loss is an error for a save without the option ``strict``.

    Raises:
      ValueError: the environment variable is neither 0 nor 1.
    """
    if _chosen is not None:
        return _chosen
    text = os.environ.get(VARIABLE, "")
    if text.lower() not in _VALUES:
        raise ValueError(
            f"the environment variable {VARIABLE} is {text!r}: give 0 (a loss is a warning) or 1"
            " (an error)"
        )
    said = _VALUES[text.lower()]
    return True if said is None else said
