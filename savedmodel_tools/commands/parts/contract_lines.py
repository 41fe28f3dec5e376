"""A finding about the contract of a model with its clients, as a line of text."""

from __future__ import annotations

import click

from savedmodel_common.printable import printable
from savedmodel_tools.contract.rules import RULES, Finding


def line(finding: Finding) -> str:
    """Return the line, coloured by what follows for clients."""
    word = "allowed" if finding.allowed else RULES[finding.rule].category
    colour = {"breaking": "red", "compatible": "green"}.get(word, "yellow")
    text = printable(
        f"{finding.rule}  {': '.join(finding.where)}: {finding.message}", newlines=False
    )
    return f"{click.style(f'{word:<10}', fg=colour)} {text}"
