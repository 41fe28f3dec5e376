"""Make the plan: artifacts x consumers x checks, without the cells that declared capabilities rule
out. Nothing is executed.
"""

from __future__ import annotations

import fnmatch
import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from compat_matrix.cases import CaseError, CaseInfo, all_cases
from compat_matrix.cells.consumers import CONSUMERS, CPP, Consumer
from compat_matrix.cells.generators import GeneratorInfo, all_generators, fixtures_root
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import (
    ABSENT,
    NO_CONSUMER,
    PRODUCE,
    Cell,
    Decision,
    Plan,
    PlanError,
    agreements,
    is_complete,
)
from compat_matrix.cells.producers import GENERATE, Producer
from compat_matrix.cells.registry import OURS, Registry
from compat_matrix.checks import CHECKS, SERVE_CHECKS, Check
from compat_matrix.requests.artifact import file_digests
from compat_matrix.runtimes.native import build as native
from compat_matrix.runtimes.runtime import Runtime, local_runtime
from compat_matrix.verdict import Ledger
from reference_impl.format.names import FORMATS
from savedmodel_common import strict_json

ARTIFACT_SCHEMA = 1
FROZEN = "fixtures_v2"  # the package of the artifacts that TensorFlow 2 releases wrote
READS = ("load", "signatures", "values")
RESAVED = "tf2_containers"
PARTS = ("model", "io", *FORMATS)  # of what looks like an artifact, or a model


@dataclass(frozen=True)
class PlannedArtifact:
    """The facts about an artifact that exists or is to be made.

    ``kinds`` are the kinds of its requests, ``checks`` the checks to plan (None: all); ``runtime``
    makes it (``""``: it is committed); ``refused``: why that runtime cannot make it. ``own``: the
    program that makes it has a version of its own, independent of TensorFlow's. ``source``: digest
    of what describes it. ``consumers``: the names of those to ask (None: all).
    """

    case: str
    producer: str
    version: str
    path: str
    kinds: frozenset[str]
    runtime: str = ""
    checks: tuple[str, ...] | None = None
    timeout: float | None = None
    refused: str | None = None
    own: bool = False
    source: str = ""
    consumers: frozenset[str] | None = None


@dataclass(frozen=True)
class Axes:
    """The runtimes that answer, and the checks for each of them.

    The runtimes called ``home`` run every check on the committed artifacts and their own. Every
    other runtime runs one check on an artifact: its answers if it can give any, else loading. With
    ``checks``, all runtimes run these. Servers run all checks of servers; with ``served_only``,
    other runtimes only write artifacts.
    """

    runtimes: tuple[Runtime, ...]
    home: Collection[str] = ()
    checks: tuple[str, ...] | None = None
    served_only: bool = False

    def asked(
        self,
        artifact: PlannedArtifact,
        runtime: Runtime,
        consumer: Consumer,
        checks: Mapping[str, Check],
    ) -> list[Check]:
        """Return the checks to plan for a consumer in ``runtime`` that is not a server."""
        possible = [
            check
            for check in checks.values()
            if check.among(artifact.checks) and check.among(consumer.checks)
        ]
        if self.checks is not None:
            return [check for check in possible if check.name in self.checks]
        if runtime.name in self.home and artifact.runtime in ("", runtime.name):
            return possible
        answers = [check for check in possible if check.name == "values"]
        if answers and not answers[0].not_applicable(consumer.capabilities, artifact.kinds):
            return answers
        return [check for check in possible if check.name == "load"]


def make_plan(
    ledger: Ledger,
    fixtures: Path | None = None,
    cases: Path | None = None,
    axes: Axes | None = None,
    producers: Collection[str] | None = None,
    only: Collection[str] = (),
    registry: Registry = OURS,
) -> Plan:
    """Return the plan: fixtures and artifacts made from the cases, all consumers, the runtimes of
    ``axes`` (default: the local one).

    ``fixtures`` and ``cases`` are folders that replace ours; ``producers`` are the producers to
    plan (default: the usual ones); ``only``: patterns (with ``*``) of the names of the cases to
    plan, if given; ``registry``: consumers and producers. Raises PlanError for a fixture or a case
    that cannot be read.
    """
    axes = axes or Axes((local_runtime(),), home=(local_runtime().name,))
    axes = replace(
        axes, runtimes=tuple(r if r.server else native.examined(r, CPP) for r in axes.runtimes)
    )
    ours = fixtures is None and cases is None
    wanted = [
        p
        for p in registry.producers.values()
        if (p.name in producers if producers is not None else p.usual)
    ]
    artifacts: list[PlannedArtifact] = []
    for producer in wanted:
        artifacts += plugin_artifacts(producer, axes.runtimes)
    if (ours or fixtures) and any(
        producer.program is None and producer.artifacts is None for producer in wanted
    ):
        artifacts += fixture_artifacts(fixtures or fixtures_root(), only)
        if fixtures and not cases and not artifacts:
            raise _no_artifact(fixtures)
        if ours:
            artifacts += frozen_artifacts(fixtures_root(FROZEN), only)
    try:
        infos = all_cases(cases) if ours or cases else []
    except (CaseError, FileNotFoundError) as error:
        raise PlanError(str(error)) from error
    if cases and not infos and not artifacts:
        raise NothingToPlan(
            f"{cases} holds no case, which is a file NAME.py"
            " (docs/exporters/artifacts.md, section 4)"
        )
    names = [producer.name for producer in wanted if not producer.exports]
    for runtime in axes.runtimes:
        if runtime.server:
            continue
        artifacts += case_artifacts(infos, runtime, names, registry)
        if ours or fixtures:
            artifacts += generator_artifacts(fixtures or fixtures_root(), runtime, names, registry)
    if only:
        artifacts = [artifact for artifact in artifacts if _named(artifact.case, only)]
    plan = expand(artifacts, registry.consumers, CHECKS, axes, ledger)
    return replace(plan, narrowed=bool(only) or not (axes.home or axes.served_only))


def plan_of(artifact: Path, axes: Axes, registry: Registry = OURS) -> Plan:
    """Return the plan of one existing artifact, without those beside it.

    Raises PlanError if it cannot be read.
    """
    return replace(
        expand([fixture_artifact(artifact)], registry.consumers, CHECKS, axes, Ledger()),
        narrowed=True,
    )


class NothingToPlan(PlanError):
    """A given folder holds no artifacts, or an unfinished one. The message says what to do."""


def fixture_artifacts(root: Path, only: Collection[str] = ()) -> list[PlannedArtifact]:
    """Return every folder of ``root`` that holds a ``provenance.json``.

    Raises PlanError if one cannot be read.

    Raises NothingToPlan instead of silently leaving something out: if a folder of ``root`` holds a
    model or requests without a ``provenance.json``, or if ``root`` itself is an artifact. With
    ``only`` (patterns), other folders are ignored.
    """
    if not root.is_dir():
        raise PlanError(f"no folder of fixtures at {root}")
    if is_complete(root) and (root / "model").is_dir():
        raise NothingToPlan(
            f"{root} is an artifact itself. Name the folder it lies in: {root.resolve().parent}"
        )
    for folder in sorted(
        path for path in root.iterdir() if path.is_dir() and not is_complete(path)
    ):
        wanted = not only or _named(folder.name, only)
        if wanted and any((folder / part).exists() for part in PARTS):
            raise NothingToPlan(
                f"{folder} has no provenance.json, so it is not an artifact. Write one"
                " (docs/exporters/artifacts.md, section 1), move the folder away, or check its"
                f" SavedModel without it: savedmodel-compat check {folder}"
            )
    found = [
        fixture_artifact(path.parent.resolve()) for path in sorted(root.glob("*/provenance.json"))
    ]
    return [_of_these_files(one) if not only or _named(one.case, only) else one for one in found]


def frozen_artifacts(root: Path, only: Collection[str] = ()) -> list[PlannedArtifact]:
    """Return the artifacts ``root/<case>/<release>`` that TensorFlow 2 releases wrote.

    Less is asked about them than about others, since there is one of each case for every release:
    a few checks, and no plug-ins. The case ``RESAVED`` is also saved anew. Raises PlanError if one
    cannot be read.
    """
    found = []
    for folder in sorted(path.parent for path in root.glob("*/case.py")):
        if not only or _named(folder.name, only):
            checks = (*READS, "reexport") if folder.name == RESAVED else READS
            found += [
                replace(one, checks=checks, consumers=frozenset(CONSUMERS))
                for one in fixture_artifacts(folder)
            ]
    return found


def _named(case: str, patterns: Collection[str]) -> bool:
    return any(fnmatch.fnmatchcase(case, pattern) for pattern in patterns)


def _of_these_files(artifact: PlannedArtifact) -> PlannedArtifact:
    """Return the artifact with a digest of its provenance and all its files: an edited model is
    another one to `--resume`.
    """
    try:
        digests = file_digests(Path(artifact.path))
    except OSError as error:
        raise PlanError(f"{error.filename or artifact.path}: {error.strerror or error}") from error
    whole = hashlib.sha256(artifact.source.encode())
    for name, digest in sorted(digests.items()):
        whole.update(f"{name}\0{digest}\n".encode("utf-8", "surrogateescape"))
    return replace(artifact, source=whole.hexdigest()[:16])


def _no_artifact(root: Path) -> NothingToPlan:
    return NothingToPlan(
        f"{root} holds no artifact, which is a folder with provenance.json, model/ and io/. "
        f"To check a SavedModel without these: savedmodel-compat check {root}"
    )


def plugin_artifacts(producer: Producer, runtimes: Sequence[Runtime]) -> list[PlannedArtifact]:
    """Return the artifacts that a third-party producer has written or will write.

    Raises PlanError if one cannot be read.
    """
    if producer.artifacts is not None:
        found = fixture_artifacts(producer.artifacts)
        if not found:
            raise _no_artifact(producer.artifacts)
        return [replace(artifact, producer=producer.name) for artifact in found]
    able = [runtime for runtime in runtimes if not runtime.server]
    made = []
    for runtime in able[:1] if producer.version else able:
        version = producer.version or runtime.tensorflow_version or ABSENT
        made += [
            PlannedArtifact(
                case=export.name,
                producer=producer.name,
                version=version,
                path=f"artifacts/{export.name}/{producer.name}@{version}",
                kinds=frozenset(export.kinds),
                runtime=runtime.name,
                checks=export.checks,
                timeout=export.timeout,
                refused=runtime.lacks.get(producer.name)
                or (
                    None
                    if producer.version
                    else _requirement(export.requires, version, str(export.file))
                ),
                own=producer.version is not None,
                source=_digest(export.file),
            )
            for export in producer.exports
        ]
    return made


def plugin_cases(registry: Registry, runtimes: Sequence[Runtime]) -> set[str]:
    """Return the names of the cases that third-party producers have written or will write."""
    names: set[str] = set()
    for producer in registry.theirs[1]:
        names.update(artifact.case for artifact in plugin_artifacts(producer, runtimes))
    return names


def fixture_artifact(path: Path) -> PlannedArtifact:
    """Read the artifact at ``path``. Raises PlanError if it cannot be read."""
    provenance, questions = _read(path / "provenance.json"), _read(path / "io" / "io.json")
    try:
        return PlannedArtifact(
            case=provenance["case"],
            producer=provenance["producer"]["name"],
            version=provenance["producer"]["versions"]["tensorflow"],
            path=str(path),
            kinds=frozenset(request["kind"] for request in questions["requests"]),
            source=_digest(path / "provenance.json"),
        )
    except (KeyError, TypeError) as error:
        raise PlanError(f"{path}: provenance.json or io.json lacks {error}") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        return strict_json.document(path, ARTIFACT_SCHEMA)
    except ValueError as error:
        raise PlanError(str(error)) from error


def case_artifacts(
    cases: Iterable[CaseInfo],
    runtime: Runtime,
    producers: Collection[str] | None = None,
    registry: Registry = OURS,
) -> list[PlannedArtifact]:
    """Return the artifacts of every case by every producer that can build it (of ``producers``, if
    given), made in ``runtime``."""
    able = _able(PRODUCE, producers, registry)
    made = []
    for case in cases:
        kinds = frozenset(request.kind for request in case.requests)
        made += [
            replace(_to_make(case, name, runtime, kinds), checks=case.checks, timeout=case.timeout)
            for name in able
        ]
    return made


def generator_artifacts(
    root: Path,
    runtime: Runtime,
    producers: Collection[str] | None = None,
    registry: Registry = OURS,
) -> list[PlannedArtifact]:
    """Return the artifacts of the fixtures of ``root``, made anew: every generator by every
    producer that runs generators (of ``producers``, if given).

    The kinds of the requests are those of the committed artifact. Raises PlanError if a file cannot
    be read.
    """
    able = _able(GENERATE, producers, registry)
    try:
        generators = all_generators(root) if able else []
    except (CaseError, OSError) as error:
        raise PlanError(str(error)) from error
    artifacts = []
    for generator in generators:
        kinds = fixture_artifact(generator.file.parent).kinds
        artifacts += [_to_make(generator, name, runtime, kinds) for name in able]
    return artifacts


def _able(capability: str, producers: Collection[str] | None, registry: Registry) -> list[str]:
    able = [
        p.name
        for p in registry.producers.values()
        if capability in p.capabilities and not p.exports
    ]
    return [name for name in able if producers is None or name in producers]


def _to_make(
    source: CaseInfo | GeneratorInfo, producer: str, runtime: Runtime, kinds: frozenset[str]
) -> PlannedArtifact:
    """Return the artifact that ``producer`` makes from a case or a generator in ``runtime``."""
    version = runtime.tensorflow_version or ABSENT
    return PlannedArtifact(
        case=source.name,
        producer=producer,
        version=version,
        path=f"artifacts/{source.name}/{producer}@{version}",
        kinds=kinds,
        runtime=runtime.name,
        refused=runtime.lacks.get(producer)
        or _requirement(source.requires, version, str(source.file)),
        source=_digest(source.file),
    )


def _digest(file: Path) -> str:
    """Return a digest of a file that describes artifacts. Raises PlanError if it cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise PlanError(f"{file}: {error}") from error


def _requirement(requires: str | None, version: str, file: str) -> str | None:
    """Return why a runtime does not meet the REQUIRES of a case, or None."""
    if not requires or version == ABSENT:
        return None
    try:
        requirement = Requirement(requires)
    except InvalidRequirement as error:
        raise PlanError(f"{file}: REQUIRES: {error}") from error
    if requirement.specifier.contains(version, prereleases=True):
        return None
    return f"the case requires {requires}, the runtime has {version}"


def expand(
    artifacts: Sequence[PlannedArtifact],
    consumers: Mapping[str, Consumer],
    checks: Mapping[str, Check],
    axes: Axes,
    ledger: Ledger,
) -> Plan:
    """Return the product of all axes. If one runtime answers, cells are ordered by artifact, the
    production first; if many do, by runtime, all productions first.

    Raises PlanError if two runtimes cannot be told apart.
    """
    _told_apart(axes.runtimes)
    ordered = sorted(artifacts, key=lambda a: (a.case, a.producer, a.version))
    by_name = {runtime.name: runtime for runtime in axes.runtimes}
    productions = [
        _production(artifact, by_name[artifact.runtime]) if artifact.runtime else None
        for artifact in ordered
    ]
    refusals = [
        (cell.decided or _expected_refusal(cell, ledger)) if cell else None for cell in productions
    ]
    # A program with a version of its own is asked once, not in every runtime.
    first = next((runtime for runtime in axes.runtimes if not runtime.server), None)
    others = {name: one for name, one in consumers.items() if one.version is None}
    here = {runtime.name: consumers if runtime is first else others for runtime in axes.runtimes}
    if len(axes.runtimes) == 1:
        (only,) = axes.runtimes
        cells = []
        for artifact, production, refused in zip(ordered, productions, refusals):
            cells += [production] if production else []
            cells += _questions(artifact, only, here[only.name], checks, axes, refused)
        return Plan(tuple(cells))
    position = {runtime.name: index for index, runtime in enumerate(axes.runtimes)}
    made = sorted((cell for cell in productions if cell), key=lambda cell: position[cell.runtime])
    for runtime in axes.runtimes:
        for artifact, refused in zip(ordered, refusals):
            # No questions are planned about an artifact that no runtime here makes.
            if refused is None or not artifact.runtime:
                made += _questions(artifact, runtime, here[runtime.name], checks, axes, None)
    return Plan(tuple(made))


def _told_apart(runtimes: Sequence[Runtime]) -> None:
    versions = [
        (r.consumer, r.tensorflow_version) for r in runtimes
    ]  # the consumer tells a server from a TensorFlow
    for what, values in (("name", [(r.name,) for r in runtimes]), ("version", versions)):
        value, count = Counter(values).most_common(1)[0]
        if count > 1:
            names = ", ".join(
                runtime.name for runtime, own in zip(runtimes, values) if own == value
            )
            raise PlanError(
                f"two runtimes of one {what} ({value[-1]}): {names}; give one of them a label"
                " (LABEL=RUNTIME)"
            )


def _production(artifact: PlannedArtifact, runtime: Runtime) -> Cell:
    refused = artifact.refused and Decision(Outcome.NOT_APPLICABLE, artifact.refused)
    return cell_of(
        artifact,
        NO_CONSUMER,
        "",
        PRODUCE,
        runtime.name,
        refused or (None if artifact.own else _absent(runtime)),
    )


def _questions(
    artifact: PlannedArtifact,
    runtime: Runtime,
    consumers: Mapping[str, Consumer],
    checks: Mapping[str, Check],
    axes: Axes,
    refused: Decision | None,
) -> list[Cell]:
    """Yield the cells that ask one runtime about one artifact."""
    version, cells = runtime.tensorflow_version or ABSENT, []
    if refused and refused.outcome is not Outcome.NOT_APPLICABLE:
        # without TensorFlow every cell gives that reason itself, unless it does not apply at all
        refused = None
    if runtime.server:
        if artifact.consumers is not None and runtime.consumer not in artifact.consumers:
            return []
        for check in SERVE_CHECKS.values():
            if check.among(artifact.checks):
                reason = check.not_applicable((), artifact.kinds)
                decided = refused or (
                    Decision(Outcome.NOT_APPLICABLE, reason)
                    if reason
                    else _absent(runtime, runtime.consumer)
                )
                cells.append(
                    cell_of(artifact, runtime.consumer, version, check.name, runtime.name, decided)
                )
        return cells
    if axes.served_only:
        return cells
    for consumer in consumers.values():
        if artifact.consumers is not None and consumer.name not in artifact.consumers:
            continue
        lacks = runtime.lacks.get(consumer.name)
        for check in axes.asked(artifact, runtime, consumer, checks):
            reason = check.not_applicable(consumer.capabilities, artifact.kinds) or lacks
            absent = _absent(runtime, consumer.name)
            if consumer.version and (artifact.own or artifact.runtime != runtime.name):
                absent = None  # neither writer nor reader needs the TensorFlow of this runtime
            decided = refused or (Decision(Outcome.NOT_APPLICABLE, reason) if reason else absent)
            cells.append(
                cell_of(
                    artifact,
                    consumer.name,
                    consumer.version or version,
                    check.name,
                    runtime.name,
                    decided,
                )
            )
    return cells + agreements(cells)


def _absent(runtime: Runtime, consumer: str = "") -> Decision | None:
    if runtime.tensorflow_version is None:
        return Decision(Outcome.NOT_RUN, runtime.no_tensorflow)
    unready = runtime.unready.get(consumer)
    return Decision(Outcome.NOT_RUN, unready) if unready else None


def cell_of(
    artifact: PlannedArtifact,
    consumer: str,
    version: str,
    check: str,
    runtime: str,
    decided: Decision | None,
) -> Cell:
    """Return the cell of a check of an artifact.

    Raises PlanError for a name that does not fit into a cell id.
    """
    cell = Cell(
        case=artifact.case,
        producer=artifact.producer,
        producer_version=artifact.version,
        consumer=consumer,
        consumer_version=version,
        check=check,
        runtime=runtime,
        artifact=artifact.path,
        producer_runtime=artifact.runtime,
        timeout=artifact.timeout,
        decided=decided,
        source=artifact.source,
    )
    return Cell.from_json(
        cell.to_json()
    )  # finds a name that does not fit into a cell id now, not in the middle of the run


def _expected_refusal(production: Cell, ledger: Ledger) -> Decision | None:
    """Return NOT_APPLICABLE for the cells of an artifact whose production fails as the ledger
    expects.
    """
    entry = ledger.entry_for(production)
    if entry is None:
        return None
    return Decision(
        Outcome.NOT_APPLICABLE, f"producer is expected to refuse this case: {entry.reason}"
    )
