"""Run the checks of a case with a fault planted, until one says otherwise than without it."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path
from types import TracebackType
from typing import Optional

from compat_matrix.cases import CASES_DIR, read_case
from compat_matrix.cells.consumers import CONSUMERS, Consumer
from compat_matrix.cells.plan import Cell
from compat_matrix.cells.producers import Producer
from compat_matrix.cells.registry import OURS
from compat_matrix.cells.results import Observation, normalise
from compat_matrix.checks import CHECKS, run_cell
from compat_matrix.checks.produce import produce
from compat_matrix.hosts.host import Host
from compat_matrix.runtimes.programs import PYTHON, Program
from compat_matrix.runtimes.runtime import local_runtime
from property_tests.planted.cases import BY_REFERENCE
from property_tests.planted.worker import ACCEPTS, SAVER

WORKER = Path(__file__).with_name("worker.py")
ORDER = ("objects", "values", "signatures", "reexport", "checkpoint", "load")
UNASKED = (
    "harmless"  # a fault that makes a model better than it is: found by a pass where none is due
)
LIMIT = 60.0  # seconds for a step; the case's own, if it is shorter


class Planted:
    """A host with a planted consumer and producer beside ours. A context manager."""

    def __init__(self, out: Path) -> None:
        self.fault = out / "fault"
        self.fault.write_text("")
        environment = (("PLANTED", str(self.fault)),)
        program = Program("planted", (PYTHON, str(WORKER)), environment)
        known = CONSUMERS["reference"].capabilities
        registry = OURS.having(
            [Consumer("planted", program, known, "a fault in the reference implementation")],
            [
                Producer(
                    "planted",
                    program,
                    frozenset({"produce"}),
                    "a fault in the reference implementation",
                )
            ],
        )
        self.host = Host(out / "run", cases=CASES_DIR, registry=registry)
        self.version = str(local_runtime().tensorflow_version)

    def __enter__(self) -> Planted:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.host.__exit__(kind, error, trace)

    def plant(self, case: str, fault: str) -> dict[str, str]:
        """The check that finds the fault, with what it says and a digest of what the case claims;
        no check: ``""``.
        """
        info = read_case(CASES_DIR / f"{case}.py")
        claim = {"claim": claimed(case)}
        self.fault.write_text(fault)
        if case.startswith("refused_"):
            seen, clean = (
                self._run(case, "produce", "planted", "planted"),
                self._run(case, "produce", "reference", "reference"),
            )
            if (seen.outcome, seen.error_class) != (clean.outcome, clean.error_class):
                return {
                    "check": "produce",
                    "outcome": str(seen.outcome),
                    "message": shown(seen, clean),
                    **claim,
                }
            return {"check": "", "outcome": "", "message": "", **claim}
        producer = "reference" if case in BY_REFERENCE else "tf2"
        produce(self._cell(case, "produce", "-", producer), self.host, self.host.out, again=False)
        made = self._cell(case, "produce", "-", producer).artifact_dir(self.host.out)
        # A place of its own: a host keeps models that were loaded from one place.
        shutil.copytree(
            made, self._cell(case, "load", "-", _place(fault)).artifact_dir(self.host.out)
        )
        for check in ORDER:
            if not CHECKS[check].among(info.checks) or (
                fault.startswith(SAVER) and check != "reexport"
            ):
                continue
            seen = self._run(case, check, "planted", _place(fault))
            if seen.outcome == "PASS" and fault not in (ACCEPTS, UNASKED):
                continue
            clean = self._run(case, check, "reference", producer)
            if (seen.outcome, seen.error_class, seen.message) != (
                clean.outcome,
                clean.error_class,
                clean.message,
            ):
                return {
                    "check": check,
                    "outcome": str(seen.outcome),
                    "message": shown(seen, clean),
                    **claim,
                }
        return {"check": "", "outcome": "", "message": "", **claim}

    def _run(self, case: str, check: str, consumer: str, producer: str) -> Observation:
        return run_cell(self._cell(case, check, consumer, producer), self.host, self.host.out)

    def _cell(self, case: str, check: str, consumer: str, producer: str) -> Cell:
        limit = read_case(CASES_DIR / f"{case}.py").timeout or LIMIT
        consumer, version = ("-", "") if check == "produce" else (consumer, self.version)
        artifact = f"artifacts/{case}/{producer}"
        producer = producer if producer in ("planted", "reference") else "tf2"
        return Cell(
            case,
            producer,
            self.version,
            consumer,
            version,
            check,
            "local",
            artifact,
            "local",
            limit,
        )


def _place(fault: str) -> str:
    return "planted." + fault.replace(":", ".")


def claimed(case: str) -> str:
    """A digest of what a case says that it tests: when that changes, its fault is planted again."""
    info = read_case(CASES_DIR / f"{case}.py")
    words = f"{info.title} {info.description}".split()  # a line that breaks elsewhere says the same
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:12]


def shown(seen: Observation, clean: Observation) -> str:
    """What the check says, in one line; of a pass, what was due."""
    text = " ".join((seen.message or f"passes, where {clean.outcome} is due").split())
    return normalise(re.sub(r"/\S*/model\b", "model", text))[:160]
