"""Read untrusted JSON: input that Python's reader tolerates or crashes on raises ValueError
here.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

MAX_BYTES = 1 << 24


def document(path: Path, schema: int) -> dict[str, Any]:
    """Return the object in a file of this ``schema``.

    Raises ValueError with the file and the reason.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES} bytes")
        data = loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or data.get("schema") != schema:
            raise ValueError(f"not of schema {schema}")
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    return data


def loads(text: str) -> Any:
    """Return the value of a JSON text.

    Raises ValueError, also for excessive nesting and for non-finite numbers (NaN, 1e999).
    """
    try:
        return json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large a number")
    return value
