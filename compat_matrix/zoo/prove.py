"""A model is asked in a genuine release, through each of its loaders, and its answers are held against recorded ones."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from compat_matrix.checks import oracle
from compat_matrix.checks.answers import ask_all
from compat_matrix.checks.artifact import read_artifact
from compat_matrix.checks.context import Context, Finding, finding_of
from compat_matrix.consumers import CONSUMERS
from compat_matrix.outcomes import Outcome
from compat_matrix.plan import Cell
from compat_matrix.runtimes.host import Host
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.runtimes.worker import NotStarted, ReplyError, WorkerDied

READERS = ("v1_session", "c_api", "tf2")
READER_OF = {"session": "v1_session", "c++": "c_api", "objects": "tf2"}  # the loaders of `compat_matrix.zoo.compat`
LIMIT = 120.0  # seconds for one step


@dataclass(frozen=True)
class Reading:
    """What one loader of a release made of one MetaGraph.

    Attributes:
      reader: a name of :data:`compat_matrix.consumers.CONSUMERS`.
      tags: of the MetaGraph.
      outcome: PASS when it loads and every request is answered as recorded.
      message: what went wrong, or what was not asked and why.
      asked: how many requests were asked.
      failed: ids of those that were not answered as recorded.
    """

    reader: str
    tags: tuple[str, ...]
    outcome: Outcome
    message: str
    asked: int
    failed: tuple[str, ...] = ()

    @property
    def loaded(self) -> bool:
        """Whether it got as far as answering."""
        return self.outcome is Outcome.PASS or bool(self.failed)


def readings(
    host: Host,
    runtime: Runtime,
    artifact: Path,
    model: Path | None = None,
    readers: Sequence[str] = READERS,
    skip: Collection[str] = (),
) -> Iterator[Reading]:
    """Ask every MetaGraph through every reader that the runtime has.

    Args:
      host: knows the runtime.
      artifact: requests and recorded answers (docs/contracts.md, section 1).
      model: the SavedModel to ask; default: the artifact's own.
      skip: ids of requests not to ask.
    """
    given = read_artifact(artifact)
    given = replace(given, requests=tuple(request for request in given.requests if request["id"] not in skip))
    for name in readers:
        consumer = CONSUMERS[name]
        if name in runtime.lacks:
            continue
        cell = Cell("", "", "", name, runtime.tensorflow_version or "", "values", runtime.name, str(artifact), timeout=LIMIT)
        for tags in oracle.tag_sets(given):
            scratch = host.scratch / "prove"
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
            context = Context(cell, host, host.worker(runtime.name, consumer.program), consumer, given, scratch)
            yield _read(context, tuple(tags), model)


def _read(context: Context, tags: tuple[str, ...], model: Path | None) -> Reading:
    name = context.consumer.name
    kinds = {"signature", *(["function"] if "functions" in context.consumer.capabilities else [])}
    asked = sum(tuple(request["tags"]) == tags and request["kind"] in kinds for request in context.artifact.requests)
    try:
        with context.model(tags, model) as loaded:
            findings = ask_all(context, loaded, tags)
    except NotStarted as error:
        return Reading(name, tags, Outcome.ENV_ERROR, str(error), asked)
    except (ReplyError, WorkerDied) as error:
        findings = [finding_of(error)]
    if findings:
        failed = tuple(str(item.details["request"]) for item in findings if "request" in item.details)
        return Reading(name, tags, findings[0].outcome, _text(findings), asked, failed)
    return Reading(name, tags, Outcome.PASS, "", asked)


@dataclass(frozen=True)
class Proof:
    """How a model that was rewritten does in the release it was rewritten for.

    Attributes:
      status: PROVED, FAILED or UNPROVED.
      why: of what is not PROVED; with the command that would help, where one would.
      lines: what each loader did.
      left_out: what could not be asked, and why.
    """

    status: str
    why: str
    lines: tuple[str, ...]
    left_out: tuple[str, ...]


PROVED, FAILED, UNPROVED = "PROVED", "FAILED", "UNPROVED"


def prove(source: Path, model: Path, release: str, readers: Sequence[str], scratch: Path) -> Proof:
    """Ask the rewritten model in a genuine release for the answers that the source gives in the TensorFlow that is here.

    Args:
      source: an artifact (requests and recorded answers), or a SavedModel: requests are made up and answered here first.
      model: the rewritten SavedModel.
      release: of the op history, ``1.15``.
      readers: the loaders that must do.
      scratch: a folder for requests and logs.

    Raises:
      SavedModelError, Unstageable: what `compat_matrix.given.as_artifact` raises.
    """
    from compat_matrix.given import as_artifact
    from compat_matrix.runtimes.places import RuntimeTrouble
    from compat_matrix.runtimes.resolve import resolve
    from compat_matrix.runtimes.runtime import LOCAL, local_runtime

    try:
        runtime = resolve(release)
    except RuntimeTrouble as error:
        return Proof(UNPROVED, str(error), (), ())
    given = as_artifact(source, scratch / "given")
    left_out = list(given.left_out)
    readers = [name for name in readers if name not in runtime.lacks]
    here = local_runtime()
    lines, failures = [], []
    with Host(scratch / "host", {LOCAL: here, runtime.name: runtime}) as host:
        before: dict[tuple[str, tuple[str, ...]], Reading] = {}
        if here.tensorflow_version is not None:
            before = {(item.reader, item.tags): item for item in readings(host, here, given.directory, None, readers)}
        skip = {
            (
                key,
                name,
            ): f"request {name} through {key[0]}: {_here(here)} does not answer it as recorded"
            for key, item in before.items()
            for name in item.failed
        }
        left_out += skip.values()
        for name in readers:
            unasked = {request for (key, request) in skip if key[0] == name}
            for item in readings(host, runtime, given.directory, model, (name,), unasked):
                known = before.get((name, item.tags))
                if known is not None and not known.loaded:
                    left_out.append(f"{name}: {_here(here)} does not load the source through it ({known.message[:200]})")
                    continue
                answers = f"{item.asked} answers as recorded" if item.asked else "loads; nothing was asked"
                if item.outcome is Outcome.PASS:
                    lines.append(f"{name} of {runtime.tensorflow_version}: {answers}")
                else:
                    failures.append(f"{name} of {runtime.tensorflow_version}: {item.outcome} {item.message[:500]}")
    if failures:
        return Proof(FAILED, failures[0], (*lines, *failures), tuple(left_out))
    if not lines:
        return Proof(UNPROVED, "nothing could be asked", (), tuple(left_out))
    return Proof(PROVED, "", tuple(lines), tuple(left_out))


def _here(runtime: Runtime) -> str:
    return f"TensorFlow {runtime.tensorflow_version} itself"


def _text(findings: Sequence[Finding]) -> str:
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return f"{findings[0]}{more}"
