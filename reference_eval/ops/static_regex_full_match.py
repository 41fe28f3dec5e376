"""StaticRegexFullMatch, RegexFullMatch: whether an RE2 pattern matches a whole string.

Dtypes: string.
Accuracy: exact for the syntax that RE2 and Python's re share.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.patterns import compiled, text_of
from reference_eval.registry import op


@op("StaticRegexFullMatch")
def static_regex_full_match(values: Array, *, pattern: bytes) -> Array:
    return matched(values, pattern)


@op("RegexFullMatch")
def regex_full_match(values: Array, pattern: Array) -> Array:
    return matched(values, pattern.item())


def matched(values: Array, pattern: bytes) -> Array:
    """Return whether a pattern matches each string as a whole."""
    wanted = compiled(pattern)
    flat = [wanted.fullmatch(text_of(value)) is not None for value in values.ravel().tolist()]
    return np.asarray(flat, bool).reshape(values.shape)
