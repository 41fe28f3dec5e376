"""StaticRegexReplace, RegexReplace: replaces matches of an RE2 pattern.

Dtypes: string.
Accuracy: exact for the syntax that RE2 and Python's re share.
"""

from __future__ import annotations

from reference_eval.arrays import Array, each
from reference_eval.patterns import bytes_of, compiled, rewritten, text_of
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
    wanted = compiled(pattern)
    new = text_of(rewrite)
    count = 0 if replace_global else 1

    def change(value: bytes) -> bytes:
        found = wanted.sub(lambda match: rewritten(match, new), text_of(value), count=count)
        return bytes_of(found)

    return each(values, change)
