"""Make the plan: artifacts x consumers x checks, and what declared capabilities rule out. Nothing is executed."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from compat_matrix.cases import CaseError, CaseInfo, all_cases
from compat_matrix.checks import CHECKS, Check
from compat_matrix.consumers import CONSUMERS, Consumer
from compat_matrix.expectations import Ledger
from compat_matrix.outcomes import Outcome
from compat_matrix.plan import ABSENT, NO_CONSUMER, PRODUCE, Cell, Decision, Plan, PlanError
from compat_matrix.producers import PRODUCERS
from compat_matrix.runtimes import Runtime, local_runtime

ARTIFACT_SCHEMA = 1
MAX_JSON = 1 << 24  # bytes; a provenance.json or io.json larger than this is no description of requests


@dataclass(frozen=True)
class Artifact:
    """What the plan knows of an artifact that exists or is to be made.

    ``kinds`` are the kinds of its requests, ``checks`` the only ones to plan (None: all); ``refused``: why it is not made here.
    """

    case: str
    producer: str
    version: str
    path: str
    kinds: frozenset[str]
    produced_here: bool
    checks: tuple[str, ...] | None = None
    timeout: float | None = None
    refused: str | None = None


def make_plan(ledger: Ledger, fixtures: Path | None = None, cases: Path | None = None) -> Plan:
    """The plan of this machine: committed fixtures and cases, all producers and consumers, one local runtime.

    ``fixtures`` and ``cases`` are folders in place of all that is ours.
    Raises PlanError for a fixture or a case that cannot be read.
    """
    runtime = local_runtime()
    ours = fixtures is None and cases is None
    artifacts = fixture_artifacts(fixtures or fixtures_root()) if ours or fixtures else []
    try:
        infos = all_cases(cases) if ours or cases else []
    except (CaseError, FileNotFoundError) as error:
        raise PlanError(str(error)) from error
    artifacts += case_artifacts(infos, runtime)
    return expand(artifacts, CONSUMERS, CHECKS, runtime, ledger)


def fixtures_root() -> Path:
    """The committed TF 1.x fixtures."""
    spec = importlib.util.find_spec("fixtures_v1")
    if spec is None or spec.origin is None:
        raise PlanError("the package fixtures_v1 is not installed")
    return Path(spec.origin).parent


def fixture_artifacts(root: Path) -> list[Artifact]:
    """Every folder of ``root`` that holds a ``provenance.json``. Raises PlanError when one cannot be read."""
    if not root.is_dir():
        raise PlanError(f"no folder of fixtures at {root}")
    return [_fixture(path.parent.resolve()) for path in sorted(root.glob("*/provenance.json"))]


def _fixture(path: Path) -> Artifact:
    provenance, questions = _read(path / "provenance.json"), _read(path / "io" / "io.json")
    try:
        return Artifact(
            case=provenance["case"],
            producer=provenance["producer"]["name"],
            version=provenance["producer"]["versions"]["tensorflow"],
            path=str(path),
            kinds=frozenset(request["kind"] for request in questions["requests"]),
            produced_here=False,
        )
    except (KeyError, TypeError) as error:
        raise PlanError(f"{path}: provenance.json or io.json lacks {error}") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MAX_JSON:
            raise PlanError(f"{path}: larger than {MAX_JSON} bytes")
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PlanError(f"{path}: {error}") from error
    if not isinstance(data, dict) or data.get("schema") != ARTIFACT_SCHEMA:
        raise PlanError(f"{path}: not of schema {ARTIFACT_SCHEMA}")
    return data


def case_artifacts(cases: Iterable[CaseInfo], runtime: Runtime) -> list[Artifact]:
    """Every case with every producer that can build one."""
    version = runtime.tensorflow_version or ABSENT
    return [
        Artifact(
            case=case.name,
            producer=producer.name,
            version=version,
            path=f"artifacts/{case.name}/{producer.name}@{version}",
            kinds=frozenset(request.kind for request in case.requests),
            produced_here=True,
            checks=case.checks,
            timeout=case.timeout,
            refused=_requirement(case, version),
        )
        for case in cases
        for producer in PRODUCERS.values()
        if PRODUCE in producer.capabilities
    ]


def _requirement(case: CaseInfo, version: str) -> str | None:
    """Why a runtime does not meet the case's REQUIRES, or None."""
    if not case.requires or version == ABSENT:
        return None
    try:
        requirement = Requirement(case.requires)
    except InvalidRequirement as error:
        raise PlanError(f"{case.file}: REQUIRES: {error}") from error
    if requirement.specifier.contains(version, prereleases=True):
        return None
    return f"the case requires {case.requires}, the runtime has {version}"


def expand(
    artifacts: Sequence[Artifact],
    consumers: Mapping[str, Consumer],
    checks: Mapping[str, Check],
    runtime: Runtime,
    ledger: Ledger,
) -> Plan:
    """The product of all axes, ordered by artifact, consumer, check; the production of an artifact comes first."""
    absent = None
    if runtime.tensorflow_version is None:
        absent = Decision(Outcome.NOT_RUN, f"no TensorFlow in runtime {runtime.name}")
    cells: list[Cell] = []
    for artifact in sorted(artifacts, key=lambda a: (a.case, a.producer, a.version)):
        refused = artifact.refused and Decision(Outcome.NOT_APPLICABLE, artifact.refused)
        if artifact.produced_here:
            production = _cell(artifact, NO_CONSUMER, "", PRODUCE, runtime, refused or absent)
            cells.append(production)
            refused = refused or _expected_refusal(production, ledger)
        for consumer in consumers.values():
            for check in checks.values():
                if not all(only is None or check.name in only for only in (artifact.checks, consumer.checks)):
                    continue
                reason = check.not_applicable(consumer.capabilities, artifact.kinds)
                decided = refused or (Decision(Outcome.NOT_APPLICABLE, reason) if reason else absent)
                version = runtime.tensorflow_version or ABSENT
                cells.append(_cell(artifact, consumer.name, version, check.name, runtime, decided))
    return Plan(tuple(cells))


def _cell(artifact: Artifact, consumer: str, version: str, check: str, runtime: Runtime, decided: Decision | None) -> Cell:
    cell = Cell(
        case=artifact.case,
        producer=artifact.producer,
        producer_version=artifact.version,
        consumer=consumer,
        consumer_version=version,
        check=check,
        runtime=runtime.name,
        artifact=artifact.path,
        timeout=artifact.timeout,
        decided=decided,
    )
    return Cell.from_json(cell.to_json())  # a name that makes no cell id is found here, not in the middle of the run


def _expected_refusal(production: Cell, ledger: Ledger) -> Decision | None:
    """NOT_APPLICABLE for the cells of an artifact the ledger expects not to be made."""
    entry = ledger.entry_for(production)
    if entry is None:
        return None
    return Decision(Outcome.NOT_APPLICABLE, f"producer is expected to refuse this case: {entry.reason}")
