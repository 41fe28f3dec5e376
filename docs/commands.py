"""The page of all commands, and on the site a page for each with its options, made from their click
declarations.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from docs import claims
from docs.markdown import table
from savedmodel_common.command_line.common import CommonOption
from savedmodel_common.exit_codes import MEANINGS
from savedmodel_compat.cli import main, sections

ROOT = Path(__file__).parents[1]
FOLDER = "docs/commands"
HEAD = """# Commands

`savedmodel-compat COMMAND --help` shows the options of a command; on the site each command has a page. Every command ends with one of
these exit codes:

{codes}

[What exit code 0 of each command means](../savedmodel_common/command_line/claims.py).

Shells complete commands, options and their values: put `eval "$(_SAVEDMODEL_COMPAT_COMPLETE=bash_source savedmodel-compat)"` into
`~/.bashrc` (`zsh_source` and `~/.zshrc` for zsh, `fish_source` for fish).

To give an option several values, separate them by commas (`--case tree_*,fn_*`) or repeat the option. `NAME=COMMAND` is always one
value.

MODELS are SavedModels, folders of them, URLs that fsspec reads, and lists: `@models.txt` has one on each line, `@-` is standard input.

These options mean the same in every command that has them:

- `--json`: print JSON in place of text
- `-n, --jobs N`: processes, each with one model at a time
- `--follow-links`: read through symbolic links that lead out of a model's directory
- `-q, --quiet`: print no progress on stderr
"""  # noqa: E501


# An option in a text, not one that is code already or a part of a longer word.
_OPTION = re.compile(r"(?<![\w`/-])--?[a-z][a-z-]*[a-z](?![\w`])")


def page() -> str:
    """Return the page: a table for each kind of user, with their commands."""
    codes = [f"- {code:d}: {meaning}" for code, meaning in MEANINGS.items()]
    parts = [HEAD.format(codes="\n".join(codes))]
    found = dict(_commands())
    for title, names in sections().items():
        rows = [(f"[`{name}`](../{record(found[name])})", _summary(found[name])) for name in names]
        parts.append(f"\n## {title}\n\n" + table(("command", "what it does"), rows))
    return "".join(parts)


def pages() -> dict[str, str]:
    """Return the page of each command: usage, options, and what its exit codes mean."""
    context = click.Context(main, info_name="savedmodel-compat")
    return {
        f"{FOLDER}/{name}.md": "".join(
            _sections(command, click.Context(command, info_name=name, parent=context))
        ).lstrip()
        for name, command in _commands()
    }


def records() -> dict[str, str]:
    """Return the module of each command, relative to the root, with the page of the command."""
    return {record(command): f"{FOLDER}/{name}.md" for name, command in _commands()}


def record(command: click.Command) -> str:
    """Return the file of the module that declares a command, relative to the root."""
    name = inspect.unwrap(command.callback).__module__ if command.callback else ""
    return Path(sys.modules[name].__file__ or "").relative_to(ROOT).as_posix()


def _commands() -> Iterator[tuple[str, click.Command]]:
    """Yield each command that `--help` lists, with its name."""
    context = click.Context(main, info_name="savedmodel-compat")
    for names in sections().values():
        for name in names:
            command = main.get_command(context, name)
            assert command is not None
            yield name, command


def _summary(command: click.Command) -> str:
    """Return the first paragraph of the help of a command."""
    return _one_line(inspect.cleandoc(command.help or "").partition("\n\n")[0])


def _sections(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the section of a command, then those of its subcommands."""
    words = context.command_path.partition(" ")[2]
    yield f"\n{'##' if ' ' in words else '#'} {words}\n\n"
    yield (
        f"```text\n{context.command_path}"
        f" {' '.join(command.collect_usage_pieces(context))}\n```\n\n"
    )
    yield _prose(command.help or "")
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    own = [_option_line(one, context) for one in options if not isinstance(one, CommonOption)]
    common = [f"`{one.opts[-1]}`" for one in options if isinstance(one, CommonOption)]
    if own:
        yield "\n" + "".join(own)
    if common:
        yield f"\nCommon options: {', '.join(common)}\n"
    if (claim := claims.claim_of(command)) is not None:
        others = [f"- {code:d}: {meaning}" for code, meaning in sorted(claim.codes.items())]
        yield "\n".join(["", f"Exit code 0: {claim.green}.", "", *others, ""])
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from _sections(inner, click.Context(inner, info_name=name, parent=context))


def _option_line(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    assert record, option
    return f"- `{record[0]}`: {_one_line(record[1])}\n"


def _prose(text: str) -> str:
    """Return a help text as Markdown.

    A paragraph that click must not wrap becomes a block if it has examples.
    """
    parts = []
    for paragraph in inspect.cleandoc(text).partition("\f")[0].split("\n\n"):
        if not paragraph.startswith("\b"):
            parts.append(_escaped(paragraph) + "\n")
            continue
        lines = paragraph[1:].strip("\n").split("\n")
        if lines[0].startswith("Example"):
            examples = "\n".join(line.strip() for line in lines[1:])
            parts.append(f"{lines[0]}\n\n```text\n{examples}\n```\n")
        else:
            parts.append(_one_line(" ".join(lines)) + "\n")
    return "\n".join(parts)


def _one_line(text: str) -> str:
    return _escaped(" ".join(text.split()))


def _escaped(text: str) -> str:
    """Return a text of a help as Markdown: options are code, `<` and `*` stand for themselves."""
    escaped = text.replace("<", "&lt;").replace("*", "\\*")  # the site's has no backslash before <
    return _OPTION.sub(r"`\g<0>`", escaped)
