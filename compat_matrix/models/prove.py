"""A model is asked in a genuine release, through each of its loaders, and its answers are held against recorded ones."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from compat_matrix.cells.consumers import CONSUMERS
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell
from compat_matrix.checks import oracle
from compat_matrix.checks.answers import ask_all
from compat_matrix.checks.artifact import read_artifact
from compat_matrix.checks.context import Context, Finding, finding_of
from compat_matrix.hosts.host import RESTART_AFTER, Host
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.runtimes.worker import NotStarted, ReplyError, WorkerDied

if TYPE_CHECKING:
    from compat_matrix.requests.given import Given

READERS = ("v1_session", "c_api", "tf2")
READER_OF = {"session": "v1_session", "c++": "c_api", "objects": "tf2"}  # the loaders of `compat_matrix.models.compat`
LIMIT = 120.0  # seconds for one step


@dataclass(frozen=True)
class Reading:
    """What one loader of a release made of one MetaGraph.

    Attributes:
      reader: a name of :data:`compat_matrix.cells.consumers.CONSUMERS`.
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


class Prover:
    """Proofs in one genuine release, any number of them with the same warm workers; a context manager that ends these.

    A worker is started when it is first asked, one for each loader, here and there. One that dies is replaced; a model that
    fails is asked again in a fresh process: what those before it did to the worker is not laid to its charge.

    Args:
      release: of the op history, ``1.15``.
      readers: the loaders that must do.
      folder: for requests and logs.
    """

    def __init__(self, release: str, readers: Sequence[str], folder: Path) -> None:
        from compat_matrix.runtimes.places import RuntimeTrouble
        from compat_matrix.runtimes.resolve import resolve
        from compat_matrix.runtimes.runtime import local_runtime

        self.folder, self.trouble = folder, ""
        self.runtime: Runtime | None = None
        self._local = local_runtime()
        self._hosts: dict[str, Host] = {}
        self._proofs = 0
        try:
            self.runtime = resolve(release)
        except RuntimeTrouble as error:
            self.trouble = str(error)
        self.readers = [name for name in readers if self.runtime is not None and name not in self.runtime.lacks]

    def __enter__(self) -> Prover:
        return self

    def __exit__(self, *exc: object) -> None:
        while self._hosts:
            self._hosts.popitem()[1].__exit__(*exc)

    def prove(self, source: Path, model: Path, requests: Path | None = None) -> Proof:
        """Ask the rewritten model in the release for the answers that the source gives in the TensorFlow that is here.

        Args:
          source: an artifact (requests and recorded answers), or a SavedModel: requests are made up and answered here first.
          model: the rewritten SavedModel.
          requests: a folder with an ``io.json`` and its tensors, recorded answers among them, in place of these.

        Raises:
          SavedModelError: what `compat_matrix.requests.given.as_artifact` raises.
        """
        from compat_matrix.requests.given import as_artifact
        from compat_matrix.serving.staging import Unstageable

        if self.runtime is None:
            return Proof(UNPROVED, self.trouble, (), ())
        self._proofs += 1
        if self._proofs % RESTART_AFTER == 0:
            self.__exit__()
        folder = self.folder / str(self._proofs)  # no two models share a name: workers know models by it
        try:
            given = as_artifact(source, folder, requests, self._host(self._local))
            return self._judged(self.runtime, given, model)
        except Unstageable as error:
            return Proof(UNPROVED, str(error), (), ())
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _host(self, runtime: Runtime) -> Host:
        """Here and there at once: a host keeps the workers of one runtime only."""
        if runtime.name not in self._hosts:
            self._hosts[runtime.name] = Host(self.folder / f"host-{runtime.name}", {runtime.name: runtime})
        return self._hosts[runtime.name]

    def _judged(self, runtime: Runtime, given: Given, model: Path) -> Proof:
        lines, failures, left_out = [], [], list(given.left_out)
        asked = 0
        for name in self.readers:
            found = list(readings(self._host(runtime), runtime, given.directory, model, (name,)))
            if any(item.outcome is not Outcome.PASS for item in found):
                found = self._again(runtime, given, model, name, left_out)
            for item in found:
                answers = f"{item.asked} answers as recorded" if item.asked else "loads; nothing was asked"
                if item.outcome is Outcome.PASS:
                    lines.append(f"{name} of {runtime.tensorflow_version}: {answers}")
                    asked += item.asked
                elif item.outcome is Outcome.ENV_ERROR:
                    left_out.append(f"{name} of {runtime.tensorflow_version}: {item.message[:500]}")
                else:
                    failures.append(f"{name} of {runtime.tensorflow_version}: {item.outcome} {item.message[:500]}")
        if failures:
            return Proof(FAILED, failures[0], (*lines, *failures), tuple(left_out))
        if not asked:
            loads = "it loads, but " if lines else ""
            return Proof(UNPROVED, f"{loads}nothing could be asked", tuple(lines), tuple(left_out))
        return Proof(PROVED, "", tuple(lines), tuple(left_out))

    def _again(self, runtime: Runtime, given: Given, model: Path, name: str, left_out: list[str]) -> list[Reading]:
        """The readings of a fresh process; without what the TensorFlow that is here does not do either, which is told."""
        here = f"TensorFlow {self._local.tensorflow_version} itself"
        skip: set[str] = set()
        broken: set[tuple[str, ...]] = set()
        if self._local.tensorflow_version is not None:
            for item in readings(self._host(self._local), self._local, given.directory, None, (name,)):
                skip.update(item.failed)
                left_out += [f"request {key} through {name}: {here} does not answer it as recorded" for key in item.failed]
                if not item.loaded:
                    broken.add(item.tags)
                    left_out.append(f"{name}: {here} does not load the source through it ({item.message[:200]})")
        host = self._host(runtime)
        host.worker(runtime.name, CONSUMERS[name].program).close()
        found = readings(host, runtime, given.directory, model, (name,), skip)
        return [item for item in found if item.tags not in broken]


def _text(findings: Sequence[Finding]) -> str:
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return f"{findings[0]}{more}"
