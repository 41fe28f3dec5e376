"""The releases that a ``--target`` selects: a PEP 508 requirement, a PEP 440 range, or a release's
number.
"""

from __future__ import annotations

import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from savedmodel_common.distributions import DISTRIBUTIONS
from savedmodel_common.printable import unknown
from savedmodel_tools.skew.history import History

_BARE = re.compile(r"\d+(\.\d+)+\w*")
_RANGE = re.compile(r"\s*(===|[<>=!~]=|[<>])")
FORMS = "tensorflow>=1.15,<2.22, >=2.4, or a release: 1.15"


class NoTarget(ValueError):
    """A text that names no release of the op history; the message says which there are."""


def releases(text: str, table: History) -> tuple[int, ...]:
    """Return the numbers of the releases in the op history that a target includes, oldest first.

    Raises NoTarget.

    A target is ``tensorflow>=1.15,<2.22``, ``>=2.4``, ``1.15`` or ``2.15.1``. A range holds a
    release when it holds the version that was asked for the history, or any of its minor:
    ``>=2.15.2`` holds 2.15.
    """
    text = text.strip()
    if _BARE.fullmatch(text):
        index = table.index(text)
        if index is None:
            raise NoTarget(
                unknown(
                    "release of the op history",
                    [text],
                    [release.name for release in table.releases],
                )
            )
        return (index,)
    specifier = _specifier(text)
    found = tuple(
        index
        for index, release in enumerate(table.releases)
        if _holds(specifier, release.tensorflow)
    )
    if not found:
        raise NoTarget(
            f"{text!r} takes in no release of the op history:"
            f" {', '.join(release.name for release in table.releases)}"
        )
    return found


def one_release(text: str, table: History) -> int:
    """Return the number of the only release that a target includes. Raises NoTarget."""
    found = releases(text, table)
    if len(found) > 1:
        raise NoTarget(f"{text!r} takes in {len(found)} releases; name one")
    return found[0]


def _specifier(text: str) -> SpecifierSet:
    try:
        requirement = Requirement(f"tensorflow{text}" if _RANGE.match(text) else text)
    except InvalidRequirement:
        raise NoTarget(f"{text!r} is not a target; give {FORMS}") from None
    if (
        canonicalize_name(requirement.name) not in DISTRIBUTIONS
        or requirement.url
        or requirement.marker
    ):
        raise NoTarget(f"{text!r} names no versions of TensorFlow; give {FORMS}")
    return requirement.specifier


def _holds(specifier: SpecifierSet, version: str) -> bool:
    asked = Version(version)
    minors = [f"{asked.major}.{asked.minor}.{micro}" for micro in (0, asked.micro, asked.micro + 1)]
    return any(specifier.contains(text, prereleases=True) for text in minors)
