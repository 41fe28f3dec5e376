"""JSON that nobody vouches for: what Python's reader lets through or dies of is a ValueError here."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn


def loads(text: str) -> Any:
    """The value of a JSON text. Raises ValueError, also for nesting without end and for what is no number (NaN, 1e999)."""
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
