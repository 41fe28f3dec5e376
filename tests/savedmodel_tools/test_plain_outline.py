"""An outline in a file or a pipe: the same with and without rich."""

import io
import sys

import pytest

from savedmodel_common import fast
from savedmodel_tools.fast import plain_outline
from savedmodel_tools.inspect.outline import Branch, line
from savedmodel_tools.inspect.printing import write

SETTINGS = ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE")


@pytest.fixture(autouse=True)
def without_settings(monkeypatch):
    for name in (*SETTINGS, fast.PLAIN):
        monkeypatch.delenv(name, raising=False)


def stream(encoding="utf-8"):
    return io.TextIOWrapper(io.BytesIO(), encoding, errors="backslashreplace", newline="")


def tree(depth, breadth, text=""):
    root = Branch(line((f"{depth}{text}", "bold"), "  ", ("number", "cyan")))
    pending = [(root, depth)]
    while pending:
        parent, levels = pending.pop()
        labels = [line(f"{text}{number} ", ("x", "dim")) for number in range(breadth)]
        pending += [(parent.add(label), levels - 1) for label in labels if levels]
    return root


def written(items, monkeypatch, plain):
    """The bytes that `write` prints, and whether they are those of rich."""
    out = stream()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        patch.setenv(fast.PLAIN, "1" if plain else "0")
        write(items)
        out.flush()
        return out.buffer.getvalue()


@pytest.mark.parametrize(
    "items",
    [
        [],
        [line()],
        [line("a", ("b", "bold red")), line(), tree(0, 0), line("  c  ")],
        [tree(1, 1), tree(3, 3), line(), tree(2, 4, "ä→🌲")],
        [tree(60, 1)],
        [line("line\nfeed", ("\x1b[31m\x07", "dim"), "\u2028\ud800\t|")],
        [line("[bold]markup[/bold] :smile: 12 'text'")],
        [line("word " * 999), tree(1, 2, "x" * 4_900)],
        [tree(2, 2, "word " * 1_500)],
        [line("界" * 5_500)],
    ],
    ids=lambda items: str(len(items)),
)
def test_text_is_that_of_rich(items, monkeypatch):
    assert written(items, monkeypatch, plain=False) == written(items, monkeypatch, plain=True)


def test_a_pipe_needs_no_rich():
    assert plain_outline.text([line("a"), tree(1, 1)], stream()) == "a\n1  number\n└── 0 x\n"


class Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    "out",
    [io.StringIO(), stream("latin-1"), Terminal(io.BytesIO(), "utf-8")],
    ids=["not a file", "no guides", "terminal"],
)
def test_what_only_rich_knows(out):
    assert plain_outline.text([line("a")], out) is None


@pytest.mark.parametrize("name", [*SETTINGS, fast.PLAIN])
def test_settings_of_rich_and_ours(name, monkeypatch):
    monkeypatch.setenv(name, "1")
    assert plain_outline.text([line("a")], stream()) is None


def test_lines_that_rich_wraps():
    assert plain_outline.text([line("界" * 5_001)], stream()) is None
