"""Ranges of versions, as PEP 440 writes them."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

LAST_OF_1 = (1, 15)  # no minor version of TensorFlow comes between it and 2.0


class Range:
    """The versions of a PEP 440 specifier.

    Answers are cached, since a plan asks about few versions many times.

    A release candidate is judged as its release (PEP 440 leaves 2.10rc0 out of ``<2.10`` and of
    ``>=2.10``), a labelled version (``2.21.0+candidate``) as the version without the label. Raises
    InvalidSpecifier.
    """

    def __init__(self, text: str) -> None:
        self._specifier = SpecifierSet(text)
        self._known: dict[str, bool] = {}

    def __contains__(self, version: str) -> bool:
        known = self._known.get(version)
        if known is None:
            known = self._known[version] = self._contains(version)
        return known

    def _contains(self, text: str) -> bool:
        version = _version(text)
        if version is None:  # no TensorFlow, no version
            return False
        return any(
            self._specifier.contains(one, prereleases=True)
            for one in (version, version.base_version)
        )

    def __str__(self) -> str:
        return ",".join(
            sorted(
                map(str, self._specifier),
                key=lambda part: (not part.startswith((">", "~", "=")), part),
            )
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Range) and self._specifier == other._specifier

    def __hash__(self) -> int:
        return hash(self._specifier)


class Axis:
    """The versions of one side of a plan, in order. A range ends at the minor version next to a
    different observation. It makes no claim about unobserved versions between two observed ones;
    beyond the first and the last it is open."""

    def __init__(self, versions: Iterable[str]) -> None:
        self.versions = sorted({version for version in versions if _version(version)}, key=Version)
        self.position = {version: index for index, version in enumerate(self.versions)}

    def __len__(self) -> int:
        return len(self.versions)

    def range(self, first: int, last: int) -> str | None:
        """Return the PEP 440 text for the positions from ``first`` to ``last``; None for all of
        them.
        """
        parts = []
        if first > 0:
            here, before = Version(self.versions[first]), Version(self.versions[first - 1])
            parts.append(
                f">={_minor(here) if _minor(here) != _minor(before) else here.base_version}"
            )
        if last < len(self.versions) - 1:
            here, after = Version(self.versions[last]), Version(self.versions[last + 1])
            other_minor = _minor(here) != _minor(after)
            parts.append(f"<{_next_minor(here, after) if other_minor else after.base_version}")
        return ",".join(parts) or None


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _minor(version: Version) -> str:
    return f"{version.major}.{version.minor}"


def _next_minor(version: Version, after: Version) -> str:
    if (version.major, version.minor) == LAST_OF_1 and after.major > 1:
        return "2"
    return f"{version.major}.{version.minor + 1}"
