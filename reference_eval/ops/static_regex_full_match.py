"""StaticRegexFullMatch, RegexFullMatch: whether an RE2 pattern matches a whole string.

Dtypes: string.
Accuracy: exact for patterns that mean the same in Python's re.
"""

from __future__ import annotations

import re

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("StaticRegexFullMatch")
def static_regex_full_match(values: Array, *, pattern: bytes) -> Array:
    return matched(values, pattern)


@op("RegexFullMatch")
def regex_full_match(values: Array, pattern: Array) -> Array:
    return matched(values, pattern.item())


def matched(values: Array, pattern: bytes) -> Array:
    """Return whether a pattern matches each string as a whole."""
    compiled = re.compile(pattern.decode())
    flat = [compiled.fullmatch(text.decode()) is not None for text in values.ravel().tolist()]
    return np.asarray(flat, bool).reshape(values.shape)
