"""The part of a failure that is equal in two executions of one failure, to tell whether two
failures are the same.
"""

from __future__ import annotations

import re

from compat_matrix.cells.results import Result


def error_words(result: Result, version: str) -> tuple[str, set[str]]:
    """Return the outcome and class of a failure, and the words of its message that are equal in two
    runs of one failure.

    Left out are the reader's ``version`` and the names of nodes, functions and variables: threads
    and the order of maps decide which of them is met first. The order of attributes varies for the
    same reason.
    """
    message = result.message_normalised
    for text in filter(None, (version, version.partition("+")[0])):
        message = message.replace(text, "")
    message = re.sub(r"\{\{[^}]*\}\}|\bnode '[^']*'|\S*/\S*|\b_\w*", "", message)
    words = set(re.findall(r"[^\s,;:()\[\]{}<>=]+", message))
    return " ".join(filter(None, (str(result.outcome), result.error_class))), words
