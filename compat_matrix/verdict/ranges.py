"""Ranges of versions, as PEP 440 writes them."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version


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


def exactly(version: str) -> str | None:
    """Return the specifier of one version, ``==2.8.4``; None for text that is not a version."""
    return f"=={version}" if _version(version) else None


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
