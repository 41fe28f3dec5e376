"""The rules, a module for each concern, and their selection by prefixes of ids, as in ruff.

A new one is a function.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
from collections.abc import Iterable, Sequence

from savedmodel_tools.verify.findings import (
    REGISTRY,
    Rule,
    Severity,
    declare,
)

NOT_APPLIED = declare(
    "SMC100",
    "rule-not-applied",
    Severity.WARNING,
    summary="A rule could not be applied, since what it looks at is damaged or too large.",
    why=(
        "Defects that the rule would have found stay unknown; the message says what stopped it. It"
        " is an error if a limit stopped the rule, so that a large enough number switches no rule"
        " off, or if the rule is one of safety (SMC6..), whichever rules were selected. Other"
        " damage is as severe as the rule, and at least a warning."
    ),
    fix=(
        "Repair what the other findings name, then verify again. If the model is sound and only"
        " large, ignore SMC100."
    ),
)
UNREADABLE = declare(
    "SMC101",
    "unreadable",
    Severity.ERROR,
    summary=(
        "The saved_model file is missing, damaged, of an unknown version, or without a MetaGraph."
    ),
    why=(
        "No loader can load it. Often a download or copy that broke off, or a pointer file in place"
        " of the content."
    ),
    fix="Export or copy the model again; compare sizes and checksums with the source.",
)
UNFINISHED = declare(
    "SMC102",
    "unfinished",
    Severity.ERROR,
    summary="A directory holds variables/ but no saved_model file.",
    why=(
        "An export that was not finished or lost its graph; a server that watches the folder may"
        " pick it up at any moment."
    ),
    fix="Export again, into a new directory that is renamed when it is complete.",
)
ALL = "ALL"


def all_rules() -> list[Rule]:
    """Return every rule, by id."""
    for module in pkgutil.iter_modules(__path__):  # importing a module registers its rules
        importlib.import_module(f"{__name__}.{module.name}")
    return sorted(REGISTRY.values(), key=lambda rule: rule.id)


class UnknownRule(ValueError):
    """No rule's id begins with that."""


def choose(
    rules: Sequence[Rule], select: Iterable[str] = (), ignore: Iterable[str] = ()
) -> list[Rule]:
    """Return the rules whose longest matching prefix is selected; of two equally long ones
    ``ignore`` wins. Raises UnknownRule.

    Prefixes are ``SMC2``, ``SMC204``, ``ALL``; to select none means all.
    """
    wanted, unwanted = _prefixes(rules, select) or [""], _prefixes(rules, ignore)
    return [rule for rule in rules if _longest(rule.id, wanted) > _longest(rule.id, unwanted)]


def _prefixes(rules: Sequence[Rule], given: Iterable[str]) -> list[str]:
    """Upper-case prefixes; a value may be several, by commas."""
    parts = itertools.chain.from_iterable(value.split(",") for value in given)
    found = [part.strip().upper() for part in parts if part.strip()]
    for prefix in found:
        if prefix != ALL and not any(rule.id.startswith(prefix) for rule in rules):
            raise UnknownRule(
                f"no rule's id begins with {prefix!r}: they are {rules[0].id} to {rules[-1].id}"
                " (--rule SMC lists them)"
            )
    return ["" if prefix == ALL else prefix for prefix in found]


def _longest(id_: str, prefixes: list[str]) -> int:
    return max((len(prefix) for prefix in prefixes if id_.startswith(prefix)), default=-1)
