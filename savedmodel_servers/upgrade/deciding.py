"""Decide both orders of an upgrade: from the pairs, under load, and by the SignatureDefs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from reference_impl.errors import SavedModelError
from savedmodel_servers import drivers
from savedmodel_servers.fleet import NotStarted
from savedmodel_servers.upgrade import sides
from savedmodel_servers.upgrade.asking import Asked
from savedmodel_servers.upgrade.client_requests import (
    TAGS,
    ClientRequest,
    client_requests,
    other_values,
)
from savedmodel_servers.upgrade.promises import broken_by_signatures
from savedmodel_servers.upgrade.switching import Traveller
from savedmodel_servers.upgrade.verdict import (
    Way,
    awaits_clients,
    from_pairs,
    not_asked,
)


def decide(folder: Path, asked: Asked, specs: Mapping[str, str]) -> list[Way]:
    """Return both orders with their verdicts; ``asked`` gets lines that name what was left out.

    Args:
      folder: for the logs of the servers.
      asked: the pairs, and the exports of each model.
      specs: the server of each side.
    """
    ways = [from_pairs(order, asked.pairs) for order in sides.ORDERS]
    requests: list[ClientRequest] = []
    silent = []
    for model, exports in sorted(asked.exports.items()):
        if set(exports) == {sides.OLD, sides.NEW}:
            ours, why = client_requests(model, exports)
            requests += ours
            silent += [why] if why else []
    open_ways = [way for way in ways if way.works is None and not way.reason]
    if open_ways:
        asked.left_out += [f"not under load: {why}" for why in silent]
        asked.left_out += other_values(requests)
        if not _is_unasked(asked, requests, silent, open_ways):
            _under_load(folder, asked, specs, requests, open_ways)
    _hold_promises(asked, requests, [way for way in ways if way.works is not False])
    return ways


def _is_unasked(
    asked: Asked, requests: Sequence[ClientRequest], silent: Sequence[str], ways: Sequence[Way]
) -> bool:
    """Return whether nothing can be asked under load that would decide these ways; they say why."""
    models = {request.model for request in requests}
    waiting = [pair for pair in asked.pairs if awaits_clients(pair) and pair.model not in models]
    for way in ways:
        if waiting:
            way.reason = not_asked(way.order, waiting[0]).reason
        elif not requests:
            way.reason = f"nothing can be asked under load ({'; '.join(silent)})"
    return bool(waiting) or not requests


def _under_load(
    folder: Path,
    asked: Asked,
    specs: Mapping[str, str],
    requests: Sequence[ClientRequest],
    ways: Sequence[Way],
) -> None:
    """Go these ways while the clients of the old exports ask."""
    models = {request.model for request in requests}
    served = {model: exports for model, exports in asked.exports.items() if model in models}
    opened = {side: drivers.of(spec) for side, spec in specs.items()}
    try:
        traveller = Traveller(opened, served, requests, folder / "switching")
        for way in ways:
            try:
                way.went(*traveller.go(way.order))
            except (NotStarted, drivers.NotHere, drivers.EngineTrouble) as error:
                way.reason, way.trouble = f"a server could not be started: {error}", True
        asked.left_out += traveller.left_out
    finally:
        for driver in opened.values():
            driver.close()


def _hold_promises(asked: Asked, requests: Sequence[ClientRequest], ways: Sequence[Way]) -> None:
    """Say of ways that did not fail that they do where the new SignatureDefs break a promise."""
    for model, exports in sorted(asked.exports.items()) if ways else ():
        if set(exports) != {sides.OLD, sides.NEW}:
            continue
        called = {request.signature for request in requests if request.model == model}
        old, new = exports[sides.OLD].model, exports[sides.NEW].model
        try:
            broken = broken_by_signatures(old, new, tuple(TAGS), called)
        except SavedModelError as error:
            _withhold(ways, f"{model}: the SignatureDefs could not be compared ({error})")
            continue
        for way in ways if broken else ():
            way.works = False
            way.reason = f"{model}: clients of the old export fail with the new one: {broken[0]}"


def _withhold(ways: Sequence[Way], reason: str) -> None:
    """Take back that these ways work."""
    for way in ways:
        if way.works:
            way.works, way.reason = None, reason
