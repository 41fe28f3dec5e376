"""StaticRegexReplace, RegexReplace: replaces matches of an RE2 pattern.

Dtypes: string.
Accuracy: exact for patterns that mean the same in Python's re.
"""

from __future__ import annotations

import re

from reference_eval.arrays import Array, each
from reference_eval.registry import op


@op("StaticRegexReplace")
def static_regex_replace(
    values: Array, *, pattern: bytes, rewrite: bytes, replace_global: bool = True
) -> Array:
    return replaced(values, pattern, rewrite, replace_global)


@op("RegexReplace")
def regex_replace(
    values: Array, pattern: Array, rewrite: Array, *, replace_global: bool = True
) -> Array:
    return replaced(values, pattern.item(), rewrite.item(), replace_global)


def replaced(values: Array, pattern: bytes, rewrite: bytes, replace_global: bool) -> Array:
    """Return strings with the matches of a pattern replaced; ``\\1`` is the first group."""
    compiled = re.compile(pattern.decode())
    count = 0 if replace_global else 1
    return each(
        values, lambda text: compiled.sub(rewrite.decode(), text.decode(), count=count).encode()
    )
