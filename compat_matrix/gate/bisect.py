"""Find the first release in which a cell changes, asking as few releases as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.results import Result, one_line

_SHOWN = 160  # characters of a message


@dataclass(frozen=True)
class Change:
    """The release in which a cell changes."""

    # the last release with the behaviour of the first one asked; "" if the first and the last
    # behave alike
    before: str = ""
    after: str = ""  # the first release with another behaviour
    seen: dict[str, str] = field(
        default_factory=dict
    )  # release -> the result of its cell, in words, in the order asked


def bisect(releases: Sequence[str], ask: Callable[[str], Result]) -> Change:
    """Ask the first and the last of at least two releases (oldest first), then bisect those
    between.

    The bisection looks for the change of the verdict; if the first and the last release both pass
    or both fail, for a change of the failure or answer.
    """
    results: dict[str, Result] = {}

    def of(release: str) -> Result:
        if release not in results:
            results[release] = ask(release)
        return results[release]

    first, last = of(releases[0]), of(releases[-1])
    # Between the first and the last release, the cause of the failure may change too.
    by_outcome = (first.outcome is Outcome.PASS) is not (last.outcome is Outcome.PASS)

    def as_first(release: str) -> bool:
        result = of(release)
        if by_outcome:
            return (result.outcome is Outcome.PASS) is (first.outcome is Outcome.PASS)
        return shown(result) == shown(first)

    low, high = 0, len(releases) - 1
    changes = not as_first(releases[high])
    while changes and high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if as_first(releases[middle]) else (low, middle)
    seen = {release: shown(result) for release, result in results.items()}
    return Change(releases[low], releases[high], seen) if changes else Change(seen=seen)


def shown(result: Result) -> str:
    """Describe a result, in words that are equal for equal causes."""
    said = (str(result.outcome), result.error_class, result.skew_cause or result.message_normalised)
    return one_line(" ".join(filter(None, said)), _SHOWN)
