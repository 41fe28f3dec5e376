"""The registry of producers and consumers by name: those of this project and those that plug-ins
add.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compat_matrix.cells.consumers import CONSUMERS, Consumer
from compat_matrix.cells.plan import SERVING, STANDIN, Cell
from compat_matrix.cells.producers import PRODUCERS, Export, Producer
from compat_matrix.runtimes.programs import Program

SCHEMA = 1
PLUGINS_FILE = "plugins.json"  # of an output folder: the plug-ins that its processes know
UNKNOWN = "unknown"  # the version of a plug-in that does not report one
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# Names of artifacts without a program: "given" is a model of the user, "fixture" a committed one.
RESERVED = frozenset({*CONSUMERS, *PRODUCERS, SERVING, STANDIN, "given", "local"})


class PluginError(Exception):
    """A plug-in cannot be registered; the message names it, the place where it was found, and the
    reason.
    """


@dataclass(frozen=True)
class Registry:
    """Producers and consumers by name, ours first.

    ``ledgers``: files with expectations that plug-ins bring along.
    """

    consumers: Mapping[str, Consumer]
    producers: Mapping[str, Producer]
    ledgers: tuple[Path, ...] = ()

    def having(
        self,
        consumers: Iterable[Consumer] = (),
        producers: Iterable[Producer] = (),
        ledgers: Iterable[Path] = (),
    ) -> Registry:
        """Return this registry with additions.

        Raises :class:`PluginError` for a name that is taken or not valid.
        """
        return replace(
            self,
            consumers={**self.consumers, **_new("consumer", consumers, self.consumers)},
            producers={**self.producers, **_new("producer", producers, self.producers)},
            ledgers=(*self.ledgers, *ledgers),
        )

    @property
    def theirs(self) -> tuple[list[Consumer], list[Producer]]:
        """Return the part that plug-ins have added."""
        consumers = [one for name, one in self.consumers.items() if name not in CONSUMERS]
        return consumers, [one for name, one in self.producers.items() if name not in PRODUCERS]

    def planned(self, asked: Collection[str] = ()) -> set[str]:
        """Return the names of a plan's producers: our usual ones, all third-party ones, and those
        of ours that are ``asked`` for."""
        return {
            one.name
            for one in self.producers.values()
            if one.usual or one.name not in PRODUCERS or one.name in asked
        }

    def brings_version(self, cell: Cell) -> tuple[bool, bool]:
        """Return whether the producer and the consumer of a cell have versions of their own,
        independent of TensorFlow's.
        """
        producer, consumer = self.producers.get(cell.producer), self.consumers.get(cell.consumer)
        return bool(producer and producer.version), bool(consumer and consumer.version)

    def write(self, out: Path) -> None:
        """Write the plug-ins to ``out``/plugins.json for the processes of a run; no file without
        plug-ins.
        """
        from savedmodel_common.writing import write_text

        consumers, producers = self.theirs
        if not consumers and not producers:
            (out / PLUGINS_FILE).unlink(missing_ok=True)
            return
        record = {
            "schema": SCHEMA,
            "consumers": [_consumer_to_json(one) for one in consumers],
            "producers": [_producer_to_json(one) for one in producers],
        }
        write_text(out / PLUGINS_FILE, json.dumps(record, indent=1) + "\n")


OURS = Registry(CONSUMERS, PRODUCERS)


def read(out: Path) -> Registry:
    """Return the registry of a prepared output folder."""
    path = out / PLUGINS_FILE
    if not path.exists():
        return OURS
    data = json.loads(path.read_text(encoding="utf-8"))
    return OURS.having(
        map(_consumer_from_json, data["consumers"]), map(_producer_from_json, data["producers"])
    )


def usable_name(kind: str, name: str) -> str:
    """Return why a plug-in cannot be called ``name``, or ""."""
    if name in RESERVED:
        return (
            f"{name!r} is a name of savedmodel-compat's own: no plug-in can stand in for it; call"
            f" the {kind} something else"
        )
    if not NAME.fullmatch(name):
        return (
            f"{name!r} is not a name of a {kind}: letters, digits and underscores, a letter first"
        )
    return ""


def _new(kind: str, items: Iterable[Any], known: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in items:
        why = usable_name(kind, item.name)
        if not why and (item.name in known or item.name in found):
            why = f"there are two of the name {item.name!r}"
        if why:
            raise PluginError(f"{kind} {item.name}: {why}")
        found[item.name] = item
    return found


def _consumer_to_json(one: Consumer) -> dict[str, Any]:
    assert isinstance(one.program, Program)
    checks = None if one.checks is None else sorted(one.checks)
    return {
        **vars(one),
        "program": one.program.to_json(),
        "capabilities": sorted(one.capabilities),
        "checks": checks,
    }


def _consumer_from_json(data: Mapping[str, Any]) -> Consumer:
    checks = None if data["checks"] is None else frozenset(data["checks"])
    program = Program.from_json(data["program"])
    tolerance = None if data["tolerance"] is None else tuple(data["tolerance"])
    more = {
        "program": program,
        "capabilities": frozenset(data["capabilities"]),
        "checks": checks,
        "tolerance": tolerance,
    }
    return Consumer(**{**data, **more})


def _producer_to_json(one: Producer) -> dict[str, Any]:
    exports = [{**vars(export), "file": str(export.file)} for export in one.exports]
    program = one.program.to_json() if isinstance(one.program, Program) else None
    more = {"program": program, "capabilities": sorted(one.capabilities), "exports": exports}
    return {**vars(one), **more, "artifacts": str(one.artifacts) if one.artifacts else None}


def _producer_from_json(data: Mapping[str, Any]) -> Producer:
    exports = tuple(_export(item) for item in data["exports"])
    program = Program.from_json(data["program"]) if data["program"] else None
    more = {"program": program, "capabilities": frozenset(data["capabilities"]), "exports": exports}
    return Producer(
        **{**data, **more, "artifacts": Path(data["artifacts"]) if data["artifacts"] else None}
    )


def _export(item: Mapping[str, Any]) -> Export:
    lists = {name: tuple(item[name]) for name in ("clauses", "features", "kinds")}
    checks = None if item["checks"] is None else tuple(item["checks"])
    return Export(**{**item, **lists, "file": Path(item["file"]), "checks": checks})
