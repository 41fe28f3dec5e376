"""Find assertions that compare a sentence of a message, by reading the tests.

A *pinned sentence* is a string literal with four or more English words in a row, inside the
condition of an ``assert`` or inside ``match=`` of ``pytest.raises`` and ``pytest.warns``:

    assert "there is no readable checkpoint" in done.output     # pinned: better wording fails it
    assert "variables.index" in done.output                     # the file is a fact

A word has lower-case letters after its first one. Names are not words: `tf.function`, `SparseTensor`,
``'hidden:0'``, ``--out``. The key of a subscript and the message of an ``assert`` are not compared
with anything, so they do not count.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

WORDS_OF_A_SENTENCE = 4
_WORD = re.compile(r"[(\"^]?[A-Za-z][a-z]*(?:['-][a-z]+)*[,:;.?!)\"$]*")


def pinned_in(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each pinned sentence of a test file."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        for literal in _compared_literals(node):
            if _longest_run_of_words(literal.value) >= WORDS_OF_A_SENTENCE:
                yield literal.lineno, literal.value


def _compared_literals(node: ast.AST) -> Iterator[ast.Constant]:
    if isinstance(node, ast.Assert):
        yield from _literals(node.test)
    elif isinstance(node, ast.keyword) and node.arg == "match":
        yield from _literals(node.value)


def _literals(node: ast.AST) -> Iterator[ast.Constant]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.Subscript) and child is node.slice):
            yield from _literals(child)


def _longest_run_of_words(text: str) -> int:
    longest = run = 0
    for token in text.replace("\\", "").split():
        run = run + 1 if _WORD.fullmatch(token) else 0
        longest = max(longest, run)
    return longest
