"""The checks of a case, asked of a loader or saver with a fault, until one says otherwise than
without it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
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
from property_tests.faults.declaring import Fault, NotHere, Seen
from property_tests.faults.planting import FAULT_FILE
from property_tests.faults.programs.planted_worker import ACCEPTS, SAVER
from property_tests.faults.stage import Stage

WORKER = Path(__file__).parents[1] / "programs" / "planted_worker.py"
ORDER = ("objects", "values", "signatures", "reexport", "checkpoint", "load")
# A fault that makes a model better than it is: found by a pass where none is due.
UNASKED = "harmless"
# Cases that only `reference_impl.save` writes as they are meant.
BY_REFERENCE = ("rfc_reexport_signatures", "sig_keyword_names")
LIMIT = 60.0  # seconds for a step; the case's own, if it is shorter


@dataclass(frozen=True)
class ChecksOfCase:
    """The checks of a case, in the order above. A fault planted for a case must turn it red.

    Attributes:
      case: its name.
      first: the check that must be the first to find the fault; "" where any may.
    """

    case: str
    first: str = ""

    def shown(self) -> str:
        return f"[`{self.case}`](../../compat_matrix/cases/{self.case}.py)"

    def declaration(self) -> tuple[object, ...]:
        return (self.case, claimed(self.case))

    def look(self, fault: Fault, stage: Stage) -> Seen:
        """Ask each check with the fault; ask the first that fails without it too."""
        host = stage.shared(CaseHost)
        fault.plant(host.folder)
        found = host.first_difference(self.case)
        if found is None:
            return Seen("", "", f"no check of {self.case} finds it")
        check, seen, clean = found
        late = f"the check {check} finds it, not {self.first}"
        defect = late if self.first not in ("", check) else ""
        return Seen(f"{check}: {seen.outcome}", shown(seen, clean), defect)


Difference = tuple[str, Observation, Observation]  # a check, what it says with the fault, without


class CaseHost:
    """A host with a planted consumer and producer beside ours. A context manager."""

    def __init__(self, folder: Path) -> None:
        version = local_runtime().tensorflow_version
        if version is None:
            raise NotHere("there is no TensorFlow in this environment")
        self.version = str(version)
        self.folder = folder
        self.fault_file = folder / FAULT_FILE
        self.fault_file.write_text("")
        program = Program("planted", (PYTHON, str(WORKER)), (("PLANTED", str(self.fault_file)),))
        known = CONSUMERS["reference"].capabilities
        summary = "a fault in the reference implementation"
        registry = OURS.having(
            [Consumer("planted", program, known, summary)],
            [Producer("planted", program, frozenset({"produce"}), summary)],
        )
        self.host = Host(folder / "run", cases=CASES_DIR, registry=registry)

    def __enter__(self) -> CaseHost:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.host.__exit__(kind, error, trace)

    def first_difference(self, case: str) -> Optional[Difference]:
        """Return the first check that says otherwise with the planted fault, None for no check."""
        fault = self.fault_file.read_text()
        if case.startswith("refused_"):
            return self._refusal_lost(case)
        producer = "reference" if case in BY_REFERENCE else "tf2"
        produce(self._cell(case, "produce", "-", producer), self.host, self.host.out, again=False)
        made = self._cell(case, "produce", "-", producer).artifact_dir(self.host.out)
        # A place of its own: a host keeps models that were loaded from one place.
        place = self._cell(case, "load", "-", _place(fault)).artifact_dir(self.host.out)
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(made, place)
        known = read_case(CASES_DIR / f"{case}.py").checks
        for check in ORDER:
            if not CHECKS[check].among(known) or (fault.startswith(SAVER) and check != "reexport"):
                continue
            seen = self._run(case, check, "planted", _place(fault))
            if seen.outcome == "PASS" and fault not in (ACCEPTS, UNASKED):
                continue
            clean = self._run(case, check, "reference", producer)
            if _said(seen) != _said(clean):
                return check, seen, clean
        return None

    def _refusal_lost(self, case: str) -> Optional[Difference]:
        """Whether a saver with the fault still refuses a case that none may save."""
        seen = self._run(case, "produce", "planted", "planted")
        clean = self._run(case, "produce", "reference", "reference")
        same = (seen.outcome, seen.error_class) == (clean.outcome, clean.error_class)
        return None if same else ("produce", seen, clean)

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


def _said(seen: Observation) -> tuple[object, ...]:
    return (seen.outcome, seen.error_class, seen.message)


def claimed(case: str) -> str:
    """A digest of what a case says that it tests: when that changes, its fault is planted again."""
    info = read_case(CASES_DIR / f"{case}.py")
    words = f"{info.title} {info.description}".split()  # a line that breaks elsewhere says the same
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:12]


def shown(seen: Observation, clean: Observation) -> str:
    """What the check says, in one line; of a pass, what was due."""
    text = " ".join((seen.message or f"passes, where {clean.outcome} is due").split())
    return normalise(re.sub(r"/\S*/model\b", "model", text))[:160]
