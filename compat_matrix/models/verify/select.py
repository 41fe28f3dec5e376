"""The selection of rules by prefixes of ids, as in ruff."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compat_matrix.models.verify.findings import Rule

ALL = "ALL"


class UnknownRule(ValueError):
    """No rule's id begins with that."""


def choose(rules: Sequence[Rule], select: Iterable[str] = (), ignore: Iterable[str] = ()) -> list[Rule]:
    """The rules whose longest matching prefix is among the selected ones; of two equally long ones ``ignore`` wins.

    Args:
      rules: all.
      select: prefixes (``SMC2``, ``SMC204``, ``ALL``); none means all.
      ignore: prefixes.

    Raises:
      UnknownRule: a prefix that no rule has.
    """
    wanted, unwanted = _prefixes(rules, select) or [""], _prefixes(rules, ignore)
    return [rule for rule in rules if _longest(rule.id, wanted) > _longest(rule.id, unwanted)]


def _prefixes(rules: Sequence[Rule], given: Iterable[str]) -> list[str]:
    """Upper-case prefixes; a value may be several, by commas."""
    found = [part.strip().upper() for value in given for part in value.split(",") if part.strip()]
    for prefix in found:
        if prefix != ALL and not any(rule.id.startswith(prefix) for rule in rules):
            raise UnknownRule(
                f"no rule's id begins with {prefix!r}: they are {rules[0].id} to {rules[-1].id} (--rule SMC lists them)"
            )
    return ["" if prefix == ALL else prefix for prefix in found]


def _longest(id_: str, prefixes: list[str]) -> int:
    return max((len(prefix) for prefix in prefixes if id_.startswith(prefix)), default=-1)
