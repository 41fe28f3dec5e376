"""Compare the predictions of `compat` and `downgrade` with genuine releases, for the table of
docs/zoo/compat.md.

    python -m docs.reality ARTIFACTS RELEASE... --out FOLDER

ARTIFACTS is the folder that a run of the matrix leaves (``OUT/artifacts``). Every model is asked
twice in every release: as it is, and rewritten as far as it goes, also where something is left that
the release lacks. Requests that the local TensorFlow does not answer as recorded are not counted.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compat_matrix.cases import title_and_rest
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.exports import release_proof as prove
from compat_matrix.hosts.pool import Hosts
from compat_matrix.runtimes.resolve import resolve
from compat_matrix.runtimes.runtime import local_runtime
from reference_impl import errors
from reference_impl.format.container import layout
from savedmodel_tools import compat
from savedmodel_tools.downgrade import model as downgrading
from savedmodel_tools.skew.history import history

FAULTY = "fault_"  # cases that no loader takes
LOADER_OF = {reader: loader for loader, reader in prove.READER_OF.items()}


@dataclass
class Tally:
    """Counts of one release. ``wrong``: what was foretold otherwise, in words."""

    loads: Counter[bool] = field(default_factory=Counter)
    answers: Counter[bool] = field(default_factory=Counter)
    copies: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(
        self, name: str, foretold: compat.GraphCompat, index: int, reading: prove.Reading
    ) -> None:
        """Hold what was foretold of a MetaGraph against a reading of it."""
        uses = [
            use.verdicts[index] for use in foretold.uses if use.loader == LOADER_OF[reading.reader]
        ]
        load, *_ = uses
        loaded = reading.loaded or reading.outcome not in prove.NOT_LOADED
        self._count(self.loads, name, "load", load.loads, loaded, reading)
        if load.loads and loaded and reading.asked:
            well = all(use.loads and not use.risks for use in uses)
            self._count(
                self.answers, name, "answer", well, reading.outcome is Outcome.PASS, reading
            )

    def _count(
        self,
        counter: Counter[bool],
        name: str,
        what: str,
        foretold: bool,
        seen: bool,
        reading: prove.Reading,
    ) -> None:
        counter[foretold == seen] += 1
        if foretold != seen:
            said = "does" if seen else f"does not ({reading.message[:150]})"
            self.wrong.append(
                f"{name}, {reading.reader}: to {what} was foretold {foretold}; it {said}"
            )


def artifacts(root: Path) -> list[Path]:
    """The artifacts of a run, those of faulty models left out."""
    found = sorted(path.parent for path in root.glob("*/*/provenance.json"))
    return [
        path
        for path in found
        if not path.parent.name.startswith(FAULTY) and (path / "model").is_dir()
    ]


def measure(found: Sequence[Path], release: str, here: set[tuple[Any, ...]], out: Path) -> Tally:
    """Ask one release about all models."""
    table, tally, runtime = history(), Tally(), resolve(release)
    index = table.index(release)
    assert index is not None
    with Hosts(out / "host") as hosts:
        hosts.know([runtime])
        for artifact in found:
            name = artifact.parent.name
            try:
                model = layout.read(artifact / "model")
            except errors.SavedModelError:
                continue
            before = _foretold(model.saved_model.meta_graphs, index)
            for reading in prove.readings(hosts, runtime, artifact, out / "asked"):
                if (artifact, reading.reader, reading.tags) in here:
                    tally.add(name, before[tuple(sorted(reading.tags))], index, reading)
            plan, copy = downgrading.plan(model, index), out / "copy"
            shutil.rmtree(copy, ignore_errors=True)
            downgrading.write(model, plan, copy)
            after, failed, asked = _foretold(plan.message.meta_graphs, index), set(), set()
            for reading in prove.readings(hosts, runtime, artifact, out / "asked", copy):
                if (artifact, reading.reader, reading.tags) in here:
                    tally.add(
                        f"{name}, rewritten", after[tuple(sorted(reading.tags))], index, reading
                    )
                    asked.add(LOADER_OF[reading.reader])
                    failed |= (
                        {LOADER_OF[reading.reader]}
                        if reading.outcome is not Outcome.PASS
                        else set()
                    )
            if asked:
                tally.copies[_became(plan, asked, failed)] += 1
    return tally


def _foretold(graphs: Iterable[Any], index: int) -> dict[tuple[str, ...], compat.GraphCompat]:
    foretold = (compat.of_graph(graph, [index], history()) for graph in graphs)
    return {tuple(graph.tags): graph for graph in foretold}


def _became(plan: downgrading.Plan, asked: set[str], failed: set[str]) -> str:
    """Return the rewrite of a model by `downgrade`."""
    stopped = set(itertools.chain.from_iterable(loaders for _, loaders in plan.refused))
    if stopped >= set(compat.LOADERS):
        return "refused"
    if failed - stopped:
        return "stopped by the proof"
    if not stopped:
        return "equal, every loader"
    return "equal, some loaders" if asked - stopped else "refused"


def answered_here(found: Sequence[Path], out: Path) -> set[tuple[Any, ...]]:
    """(artifact, reader, tags) of all that the local TensorFlow answers as recorded."""
    good = set()
    with Hosts(out / "here") as hosts:
        hosts.know([local_runtime()])
        for artifact in found:
            for reading in prove.readings(hosts, local_runtime(), artifact, out / "asked"):
                if reading.outcome is Outcome.PASS:
                    good.add((artifact, reading.reader, reading.tags))
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=title_and_rest(__doc__ or "")[0])
    parser.add_argument("artifacts", type=Path)
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    found = artifacts(given.artifacts)
    here = answered_here(found, given.out)
    for release in given.releases:
        tally = measure(found, release, here, given.out)
        cells = [
            f"{sum(count.values())} / {count[False]}" for count in (tally.loads, tally.answers)
        ]
        print(
            f"| {release} | {' | '.join(cells)} | {json.dumps(tally.copies, sort_keys=True)} |",
            flush=True,
        )
        for text in tally.wrong:
            print(f"    {text}", flush=True)


if __name__ == "__main__":
    main()
