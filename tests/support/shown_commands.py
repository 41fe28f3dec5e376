"""Commands as a page or a help text of this project shows them: does the program take them?"""

from __future__ import annotations

import configparser
import fnmatch
import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
from packaging.requirements import Requirement

from compat_matrix.cases import all_cases
from savedmodel_common import toml
from savedmodel_compat.cli import main

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(?!python)\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SHELL = re.compile(
    r" (?:[0-9]?>|&?>>?|\||&&|;|#)(?: |&|/)"
)  # the command ends before a redirection, a pipe, a comment
_START = re.compile(
    r" *(?:\$ |- run: |entry: )?(?:[A-Z_]+=\S* )*((?:savedmodel-compat|tox|pip|python -m) .+)"
)


def of_page(text: str) -> Iterator[str]:
    """Yield the commands in the code blocks of a page."""
    for block in _BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            found = _START.match(line)
            if found and "...." not in line:  # a line of a table that pre-commit prints
                yield _SHELL.split(f"{found[1]} ")[0].strip()


def recipes() -> list[tuple[str, str, str]]:
    """Return the recipes of CONTRIBUTING.md, each a file, its text and the command under it."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return re.findall(
        r"^`(\S+\.py)`\n\n```python\n(.*?)```\n\n```sh\n(savedmodel-compat .*?)\n```",
        page,
        re.DOTALL | re.MULTILINE,
    )


def refused(shown: str) -> str:
    """Return why a command cannot be what it looks like, else "".

    Unknown commands, options, cases, environments of tox, modules and extras are errors, and so are
    words too many and arguments that are missing. Other values are not judged: paths of an example
    need not exist.
    """
    program, *words = shlex.split(shown)
    if program == "tox":
        return _refused_by_tox(words[words.index("-e") + 1].split(","))
    if program == "pip":
        return _refused_by_pip(
            [word for word in words[1:] if "savedmodel-compat" in word or word.startswith(".[")]
        )
    if program == "python":
        return "" if importlib.util.find_spec(words[1]) else f"no module {words[1]}"
    return _refused_by_us(words)


def _refused_by_tox(environments: list[str]) -> str:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    return "".join(
        f"no environment {name}" for name in environments if f"testenv:{name}" not in tox
    )


def _refused_by_pip(requirements: list[str]) -> str:
    extras = toml.read(ROOT / "pyproject.toml")["project"]["optional-dependencies"]
    wanted = {
        extra
        for word in requirements
        for extra in Requirement(word.replace(".[", "savedmodel-compat[")).extras
    }
    return "".join(f"no extra {extra}" for extra in sorted(wanted - set(extras)))


def _refused_by_us(words: list[str]) -> str:
    command: click.Command = main
    context = click.Context(main, info_name="savedmodel-compat")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        inner = command.get_command(context, name)
        if inner is None:
            return f"no command {name}"
        command, context = inner, click.Context(inner, info_name=name, parent=context)
    try:
        values, left, _ = command.make_parser(context).parse_args(words)
    except click.ClickException as error:
        return error.format_message()
    # What was not given is None or a mark of click's that is true.
    worded = {
        name: value
        for name, value in values.items()
        if value and isinstance(value, (str, int, list, tuple))
    }
    given = [parameter for parameter in command.params if parameter.name in worded]
    missing = [
        parameter.name
        for parameter in command.params
        if parameter.required and parameter not in given
    ]
    if missing and not any(parameter.is_eager for parameter in given):
        return f"missing: {missing}"
    if left:
        return f"too many words: {left}"
    return _unknown_cases(
        given, worded, context.info_name != "upgrade"
    )  # which asks about cases that two TensorFlows write


def _unknown_cases(
    given: list[click.Parameter], values: dict[str, object], fixtures_too: bool
) -> str:
    known = {case.name for case in all_cases()}
    if fixtures_too:
        known |= {path.parent.name for path in (ROOT / "fixtures_v1").glob("*/provenance.json")}
    named = [_words(values[item.name]) for item in given if "--case" in item.opts]
    cells = [item for item in given if item.human_readable_name == "CELL" or "--cell" in item.opts]
    named += [[cell.partition("/")[0] for cell in _words(values[item.name])] for item in cells]
    unknown = [name for names in named for name in names if not fnmatch.filter(known, name)]
    return f"no case {', '.join(unknown)}" if unknown else ""


def _words(values: object) -> list[str]:
    return (
        [values]
        if isinstance(values, str)
        else [part for value in values for part in value.split(",")]
    )
