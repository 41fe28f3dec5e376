"""Renamed commands and options: the old name still works, and a line on stderr gives the new
one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Words = list[str]
Tell = Callable[[str], object]


def options_of_today(words: Sequence[str], known: Mapping[str, str], tell: Tell) -> Words:
    """Return ``words`` with the options of ``known`` (old -> new) renamed, up to ``--``; ``tell``
    is called for each.
    """
    own = words.index("--") if "--" in words else len(words)
    out = list(words)
    for place, word in enumerate(words[:own]):
        old, equals, value = word.partition("=")
        if old in known:
            tell(f"{old} is called {known[old]} now")
            out[place] = known[old] + equals + value
    return out


def _as_values_of(*options: str) -> Callable[[Words], Words]:
    """Turn positional words into option values: the first word for the first of ``options``, all
    remaining words for the last one.
    """

    def change(words: Words) -> Words:
        left, out = list(options), []
        for word in words:
            out += (
                [word]
                if word.startswith("-")
                else [left.pop(0) if len(left) > 1 else left[0], word]
            )
        return out

    return change


def _of_serving(words: Words) -> Words:
    return (
        _as_values_of("--server")(words)
        if any(not word.startswith("-") for word in words)
        else ["--serving", *words]
    )


def _of_diff(words: Words) -> Words:
    """`matrix diff` takes one run twice, as it always did; `gate` asks for ``--same``."""
    return ["--same", *_as_values_of("--baseline", "--candidate")(words)]


# Old name -> the new name, its renamed options, and how the words after it are written now.
_MOVED: dict[str, tuple[str, Mapping[str, str], Callable[[Words], Words]]] = {
    "serve-check": ("check --servers-only", {"--image": "--server"}, list),
    "grid": ("matrix run --grid", {"--runtimes": "--runtime", "--cases": "--case"}, list),
    "serving run": ("matrix run --servers-only", {"--image": "--server"}, list),
    "matrix diff": ("gate --dry-run --full", {}, _of_diff),
    "ops needs": ("compat --ops", {}, list),
    "serving doctor": ("doctor", {}, _of_serving),
    "runtimes doctor": ("doctor", {}, lambda words: _as_values_of("--runtime")(words or ["local"])),
}


def commands_of_today(words: Sequence[str], tell: Tell = lambda _: None) -> Words:
    """Return the words of a command line with the command's current name; ``tell`` is called for an
    old name.
    """
    for old, (new, options, change) in _MOVED.items():
        count = len(old.split())
        if old.split() == list(words[:count]):
            tell(f"{old} is called {new} now")
            return [*new.split(), *change(options_of_today(words[count:], options, tell))]
    return list(words)
