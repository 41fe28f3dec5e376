"""Options of the check of an export: consumers, checks, tolerances, limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Union

from compat_matrix.cells.registry import Registry
from compat_matrix.checks.table import CHECKS, SERVE_CHECKS
from compat_matrix.requests.policies import LOADERS, SERVERS, Allowed, OptionError, Policy
from compat_matrix.runtimes.runtime import LOCAL, Runtime
from savedmodel_common.printable import unknown

CONSUMERS = LOADERS.answered_by  # all consumers that need only TensorFlow
FORMAT, ALL = (
    "format",
    "all",
)  # consumers of cells without a worker: the reader of the files, and all consumers together
STILL = {
    "requests": (
        "the requests given fit the signatures of the export: none is lost, names, dtypes and"
        " shapes are as asked"
    ),
    "inspect": "all of the export can be read: nothing is damaged, missing, or in contradiction",
    "verify": "no rule of `verify` finds a defect as bad as --fail-on",
    "fingerprint": "fingerprint.pb belongs to the graph and the checkpoint beside it",
}
TOGETHER = {
    "asked": "every signature has a request",
    "compared": "answers were held against recorded ones, or against those of another consumer",
}
EVERY_CHECK = (*STILL, *CHECKS, *SERVE_CHECKS, *TOGETHER)
ANSWERING = (
    "values",
    "serve_grpc",
    "serve_rest",
)  # checks whose results name the answered requests
SEVERITIES = ("info", "warning", "error", "never")


ToleranceLike = Union[Allowed, Sequence[Any], Mapping[str, Any]]


def tolerance(value: ToleranceLike) -> Allowed:
    """Parse a tolerance: ``(rtol, atol, "reason")``, a mapping of these, or one string ``RTOL ATOL
    REASON``.

    Raises OptionError: a bound is missing, not a number, negative or infinite, or the reason is
    missing.
    """
    given = value
    if isinstance(value, str):
        value = value.split(None, 2)
    parts = (
        [value.get(name, "") for name in Allowed._fields]
        if isinstance(value, Mapping)
        else list(value)
    )
    try:
        rtol, atol = float(parts[0]), float(parts[1])
    except (IndexError, TypeError, ValueError):
        raise OptionError(f"a tolerance is RTOL ATOL REASON, not {given!r}") from None
    if not all(math.isfinite(bound) and bound >= 0 for bound in (rtol, atol)):
        raise OptionError(f"a tolerance of {rtol:g}, {atol:g}")
    reason = str(parts[2]).strip() if len(parts) > 2 else ""
    if not reason and (rtol or atol):
        raise OptionError(f"a tolerance needs a reason: {rtol:g} {atol:g} WHY")
    return Allowed(rtol, atol, reason or "bit-exact")


@dataclass(frozen=True)
class Options:
    """The options of a check.

    Attributes:
      consumers: names, or ``NAME=COMMAND``; if empty, :data:`CONSUMERS` and those that ``plugins``
        declares.
      plugins: a TOML file with third-party consumers (docs/exporters/plugins.md).
      tensorflow: runtimes beside the local one, named as on the command line; they must be
        installed.
      servers: model servers, named as on the command line.
      checks: the checks to make (None: all).
      tolerance: of answers (None: as the requests state, else that of `requests.policies.LOADERS`).
      make_up: how many requests are made up for each signature without one (None: one if no request
        is given, else none).
      fail_on: the severity at which a finding of `verify` fails, a member of :data:`SEVERITIES`.
      limit: seconds for one step of a consumer.
      require: every NOT_RUN cell fails; with "serving", those that only a server can answer.
      expectations: a ledger of known failures.
    """

    consumers: tuple[str, ...] = ()
    plugins: Path | None = None
    tensorflow: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    checks: tuple[str, ...] | None = None
    tolerance: Allowed | None = None
    make_up: int | None = None
    fail_on: str = "error"
    limit: float = LOADERS.limit
    require: bool | str = False
    expectations: Path | None = None

    def __post_init__(self) -> None:
        if self.checks is not None:
            _known("check", self.checks, EVERY_CHECK)
        _known("severity", [self.fail_on], SEVERITIES)
        if self.make_up is not None and self.make_up < 0:
            raise OptionError(f"{self.make_up} requests cannot be made up")
        if not (math.isfinite(self.limit) and self.limit > 0):
            raise OptionError(f"a limit of {self.limit:g} seconds")

    @property
    def servers_only(self) -> bool:
        """Whether only servers are asked."""
        return self.checks is not None and set(self.checks) <= set(SERVE_CHECKS)

    def names(self, registry: Registry) -> tuple[str, ...]:
        """Return the names of the consumers to ask. Raises OptionError for an unknown name."""
        names = tuple(word.partition("=")[0] for word in self.consumers)
        _known("consumer", names, registry.consumers)
        return names or (*CONSUMERS, *(one.name for one in registry.theirs[0]))

    def named_axes(self, runtimes: Sequence[Runtime]) -> dict[str, Sequence[str]]:
        """Return the names that the options give, by axis of `verdict.named.AXES`: a run that does
        not ask one is incomplete.

        ``runtimes``: those that are asked. The local one needs no name, nor do the checks of
        :data:`TOGETHER`: `asked` itself reports the signatures that were not asked.
        """
        local = bool(self.tensorflow) and not self.servers_only
        checks = () if self.checks is None or set(self.checks) == set(SERVE_CHECKS) else self.checks
        return {
            "consumer": [word.partition("=")[0] for word in self.consumers],
            "check": [name for name in checks if name not in TOGETHER],
            "runtime": [one.name for one in runtimes if one.name != LOCAL or local],
        }

    @property
    def policy(self) -> Policy:
        """The policy by which requests are found and answered."""
        return replace(
            SERVERS if self.servers_only else LOADERS, make_up=self.make_up, limit=self.limit
        )

    def makes(self, check: str) -> bool:
        """Return whether a check is to be made."""
        return self.checks is None or check in self.checks


def of_servers(checks: Sequence[str]) -> tuple[str, ...]:
    """Return the checks of servers, limited to ``checks`` if given. Raises OptionError."""
    _known("check of servers", checks, SERVE_CHECKS)
    return tuple(checks or SERVE_CHECKS)


def _known(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    if wrong := unknown(what, names, known):
        raise OptionError(wrong)
