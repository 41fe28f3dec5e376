"""The page of all commands, made from their click declarations."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from savedmodel_common.exit_codes import MEANINGS
from savedmodel_compat.cli import main, sections

HEAD = """# Commands

`savedmodel-compat COMMAND --help` shows what is said here. Every command ends with one of these exit codes:

{codes}

Shells complete commands and options: put `eval "$(_SAVEDMODEL_COMPAT_COMPLETE=bash_source savedmodel-compat)"` into `~/.bashrc`
(`zsh_source` and `~/.zshrc` for zsh, `fish_source` for fish).

An option that takes several values takes them by commas (`--case tree_*,fn_*`), or is repeated. `NAME=COMMAND` is
always one value.
"""  # noqa: E501


def page() -> str:
    """Return the page: a section for each kind of user, with their commands."""
    context = click.Context(main, info_name="savedmodel-compat")
    codes = [f"- {code:d}: {meaning}" for code, meaning in MEANINGS.items()]
    parts = [HEAD.format(codes="\n".join(codes))]
    for title, names in sections().items():
        parts.append(f"\n## {title}\n")
        for name in names:
            command = main.get_command(context, name)
            assert command is not None
            parts += _sections(command, click.Context(command, info_name=name, parent=context))
    return "".join(parts)


def _sections(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the section of a command, then those of its subcommands."""
    yield f"\n### {context.command_path.partition(' ')[2]}\n\n"
    yield (
        f"```text\n{context.command_path}"
        f" {' '.join(command.collect_usage_pieces(context))}\n```\n\n"
    )
    yield _prose(command.help or "")
    options = [
        parameter.get_help_record(context)
        for parameter in command.params
        if isinstance(parameter, click.Option)
    ]
    shown = [record for record in options if record]
    if shown:
        yield "\n" + "".join(f"- `{name}`: {_one_line(text)}\n" for name, text in shown)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from _sections(inner, click.Context(inner, info_name=name, parent=context))


def _prose(text: str) -> str:
    """Return a help text as Markdown: paragraphs that click must not wrap become blocks."""
    parts = []
    for paragraph in inspect.cleandoc(text).partition("\f")[0].split("\n\n"):
        if paragraph.startswith("\b"):
            parts.append(f"```text\n{paragraph[1:].strip(chr(10))}\n```\n")
        else:
            parts.append(_escaped(paragraph) + "\n")
    return "\n".join(parts)


def _one_line(text: str) -> str:
    return _escaped(" ".join(text.split()))


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace(
        "*", "\\*"
    )  # the site's Markdown has no backslash before "<"
