"""Read untrusted JSON: input that Python's reader tolerates or crashes on raises ValueError here."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn


def loads(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError, also for excessive nesting and for non-finite numbers (NaN, 1e999)."""
    try:
        return json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large a number")
    return value
