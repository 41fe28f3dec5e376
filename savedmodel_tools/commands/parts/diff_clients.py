"""``savedmodel-compat diff --clients``: what a client of the signatures notices when one model
takes the place of another.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

import click

from reference_impl.errors import SavedModelError, about_the_model
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import counted, printable, told
from savedmodel_tools.commands.parts.contract_lines import line
from savedmodel_tools.contract.form import contract_of
from savedmodel_tools.contract.rules import Finding, compare
from savedmodel_tools.find import Found, Model

ALIKE, BROKEN, GONE, NEW, REFUSED, UNREAD = "alike", "broken", "gone", "new", "refused", "unread"
CODES = {
    ALIKE: ExitCode.AS_EXPECTED,
    NEW: ExitCode.AS_EXPECTED,
    BROKEN: ExitCode.UNEXPECTED,
    GONE: ExitCode.UNEXPECTED,
    REFUSED: ExitCode.UNEXPECTED,
    UNREAD: ExitCode.HARNESS_ERROR,
}
COLOURS = {ALIKE: "green", NEW: "green"}
ASKED = (
    "compared: MetaGraphs, signatures, methods, and the names, dtypes, shapes, defaults and order"
    " of tensors; not answers"
)


@dataclass(frozen=True)
class Seen:
    """One model on both sides, by its place in them; ``reason``: why nothing is said about it."""

    path: str
    status: str
    findings: tuple[Finding, ...] = ()
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        found = {
            "path": self.path,
            "status": self.status,
            "findings": [finding.to_json() for finding in self.findings],
        }
        return {**found, "reason": self.reason} if self.reason else found


def tell(found: list[Found], single: bool, as_json: bool, follow_links: bool) -> int:
    """Compare two models, or the models of two folders by their places; print what clients notice
    and return the exit code.
    """
    seen = list(_seen(found, single, follow_links))
    skipped = list(itertools.chain.from_iterable(side.skipped for side in found))
    if as_json:
        told_ = [{"name": item.name, "reason": item.reason} for item in skipped]
        click.echo(
            json.dumps(
                {"schema": 1, "clients": [one.to_json() for one in seen], "skipped": told_},
                separators=(",", ":"),
            )
        )
    else:
        for one in seen:
            reason = f": {one.reason}" if one.reason else ""
            text = printable(f"{one.path}{reason}", newlines=False)
            click.echo(
                f"{click.style(one.status, fg=COLOURS.get(one.status, 'red'), bold=True)}  {text}"
            )
            for finding in one.findings:
                click.echo(f"  {line(finding)}")
        for item in skipped:
            click.echo(f"! {printable(f'{item.name}: {item.reason}', newlines=False)}")
        statuses = [one.status for one in seen]
        counts = ", ".join(
            f"{statuses.count(status)} {status}" for status in CODES if status in statuses
        )
        click.echo(f"{counted(len(seen), 'model')}: {counts} ({ASKED})")
    worst = max((CODES[one.status] for one in seen), default=ExitCode.AS_EXPECTED)
    return max(worst, ExitCode.UNEXPECTED) if skipped else worst


def _seen(found: list[Found], single: bool, follow_links: bool) -> Iterator[Seen]:
    one, other = found
    if single:
        (old,), (new,) = one.models, other.models
        yield _pair(old.name, old, new, follow_links)
        return
    olds = {model.relative: model for model in one.models}
    news = {model.relative: model for model in other.models}
    for path in sorted(olds.keys() | news.keys()):
        yield _pair(path, olds.get(path), news.get(path), follow_links)


def _pair(path: str, old: Optional[Model], new: Optional[Model], follow_links: bool) -> Seen:
    if old is None or new is None:
        return Seen(path, NEW if old is None else GONE)
    try:
        with old.local() as one, new.local() as other:
            frozen, now = (contract_of(side, follow_links=follow_links) for side in (one, other))
    except (SavedModelError, OSError) as error:
        return Seen(path, REFUSED if about_the_model(error) else UNREAD, reason=told(error))
    findings = tuple(compare(frozen, now))
    return Seen(path, BROKEN if any(finding.breaks for finding in findings) else ALIKE, findings)
