"""Whether a save that loses something fails, for code that gives no option of ours.

`tf.saved_model.SaveOptions` has no ``strict``. A program whose calls of `save` cannot be edited says it once for the whole
process, in its environment or with `strictness`.
"""

from __future__ import annotations

import os
from typing import Any, Optional

VARIABLE = "REFERENCE_IMPL_STRICT"
_VALUES = {"": None, "1": True, "true": True, "0": False, "false": False}

_chosen: Optional[bool] = None


class strictness:
    """Choose for all threads of the process whether a save that loses something fails.

        reference_impl.strictness(False)             # from now on
        with reference_impl.strictness(False):       # in this block
            trainer.export(path)

    Args:
      strict: False makes a loss a warning; True an error; None is what the environment variable REFERENCE_IMPL_STRICT says,
        which is ``0`` or ``1``, and an error without it.

    An explicit ``SaveOptions(strict=...)`` comes first.

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

    def __exit__(self, *_: Any) -> None:
        global _chosen
        _chosen = self._before


def is_strict() -> bool:
    """Return what holds for a save without an option of its own.

    Raises:
      ValueError: the environment variable has another value than 0 or 1.
    """
    if _chosen is not None:
        return _chosen
    text = os.environ.get(VARIABLE, "")
    if text.lower() not in _VALUES:
        raise ValueError(f"the environment variable {VARIABLE} is {text!r}: give 0 (a loss is a warning) or 1 (an error)")
    said = _VALUES[text.lower()]
    return True if said is None else said
