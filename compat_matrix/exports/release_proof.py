"""Ask a model in a genuine release, through each of its loaders, and compare its answers with
recorded ones.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from compat_matrix.cells.consumers import CONSUMERS, answerable
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.checks.oracle import tag_sets
from compat_matrix.engine.asking import Asked, ask
from compat_matrix.hosts.host import RESTART_AFTER
from compat_matrix.hosts.pool import Hosts
from compat_matrix.requests.artifact import read_artifact, read_document
from compat_matrix.requests.given import case_name
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.runtimes.worker import NotStarted
from savedmodel_common.printable import first_of
from savedmodel_tools.compat import LOADERS

if TYPE_CHECKING:
    from compat_matrix.requests.given import Prepared


def _reader_of(loader: str) -> str:
    return next(one.name for one in CONSUMERS.values() if one.loader == loader)


READER_OF = {loader: _reader_of(loader) for loader in LOADERS}
READERS = tuple(READER_OF.values())
LIMIT = 120.0  # seconds for one step
NOT_LOADED = (Outcome.LOAD_ERROR, Outcome.CRASH, Outcome.TIMEOUT, Outcome.REJECTED)
_NOBODY_ASKED = (Outcome.NOT_RUN, Outcome.NOT_APPLICABLE, Outcome.ENV_ERROR)


@dataclass(frozen=True)
class Reading:
    """The result of one loader of a release for one MetaGraph."""

    reader: str  # a name of :data:`compat_matrix.cells.consumers.CONSUMERS`
    tags: tuple[str, ...]
    outcome: Outcome  # PASS when it loads and every request is answered as recorded
    message: str  # what went wrong, or what was not asked and why
    asked: int  # how many requests were asked
    failed: tuple[str, ...] = ()  # ids of those that were not answered as recorded

    @property
    def loaded(self) -> bool:
        """Return whether the model was loaded and asked."""
        return self.outcome is Outcome.PASS or bool(self.failed)


def readings(
    hosts: Hosts,
    runtime: Runtime,
    artifact: Path,
    folder: Path,
    model: Path | None = None,
    readers: Sequence[str] = READERS,
    skip: Collection[str] = (),
) -> Iterator[Reading]:
    """Ask every MetaGraph of a model (default: the artifact's own) through every reader that the
    runtime has: a cell for each.

    Args:
      hosts: know the runtime.
      artifact: requests and recorded answers (docs/exporters/artifacts.md, section 1).
      folder: of the run; it is emptied.
      skip: ids of requests not to ask.

    Raises Unstageable: the model cannot be taken along; ArtifactError: the requests are none.
    """
    document = read_document(artifact / "io" / "io.json")
    document["requests"] = [
        request for request in read_artifact(artifact).requests if request["id"] not in skip
    ]
    model, name = model or artifact / "model", case_name(artifact)
    for asked in ask(
        hosts, runtime, readers, name, model, artifact / "io", document, folder, LIMIT
    ):
        for tags in tag_sets(asked.artifact):
            yield _reading(asked, tags)


def _reading(asked: Asked, tags: tuple[str, ...]) -> Reading:
    """Return the part of a cell's result that is about one MetaGraph."""
    capabilities, result = CONSUMERS[asked.cell.consumer].capabilities, asked.result
    requests = [request for request in asked.artifact.requests if tuple(request["tags"]) == tags]
    count = sum(answerable(request["kind"], capabilities) for request in requests)
    failed = asked.failed(tags)
    outcome, message = result.outcome, result.message
    if result.error_class == NotStarted.__name__:  # nothing to blame the model for
        outcome = Outcome.ENV_ERROR
    if result.details.get(
        "failed"
    ):  # it is known which requests: those of another MetaGraph do not count here
        texts = [one["message"] for one in failed.values()]
        outcome = Outcome(next(iter(failed.values()))["outcome"]) if failed else Outcome.PASS
        message = first_of(texts) if texts else ""
    return Reading(
        asked.cell.consumer,
        tags,
        outcome,
        message,
        count,
        () if outcome in NOT_LOADED else tuple(failed),
    )


@dataclass(frozen=True)
class Proof:
    """The proof of a rewritten model in its target release."""

    status: str  # PROVED, FAILED or UNPROVED
    why: str  # the reason if it is not PROVED, with a command that would help, if there is one
    lines: tuple[str, ...]  # the result of each loader
    left_out: tuple[str, ...]  # what could not be asked, and why


PROVED, FAILED, UNPROVED = "PROVED", "FAILED", "UNPROVED"


class Prover:
    """Proofs in one genuine release, any number of them with the same warm workers; a context
    manager that ends these.

    A worker is started when it is first asked, one for each of ``readers`` (the loaders that must
    do), here and there. One that dies is replaced; a model that fails is asked again in a fresh
    process, which earlier models cannot have affected.
    """

    def __init__(
        self, release: str, readers: Sequence[str], folder: Path, named: Collection[str] = ()
    ) -> None:
        """``named``: those of ``readers`` that the user named: without their answers nothing is
        proved.
        """
        from compat_matrix.runtimes.places import RuntimeTrouble
        from compat_matrix.runtimes.resolve import resolve
        from compat_matrix.runtimes.runtime import local_runtime

        self.folder, self.trouble = folder, ""
        self.runtime: Runtime | None = None
        self._local = local_runtime()
        self._hosts = Hosts(folder / "hosts", warm=True)  # here and there at once
        self._hosts.know([self._local])
        self._proofs = 0
        try:
            self.runtime = resolve(release)
            self._hosts.know([self.runtime])
        except RuntimeTrouble as error:
            self.trouble = str(error)
        self._named = named
        self._lacks = {
            name: self.runtime.lacks[name]
            for name in readers
            if self.runtime and name in self.runtime.lacks
        }
        self.readers = [
            name for name in readers if self.runtime is not None and name not in self.runtime.lacks
        ]

    def __enter__(self) -> Prover:
        return self

    def __exit__(self, *exc: object) -> None:
        self._hosts.close()

    def prove(self, source: Path, model: Path, requests: Path | None = None) -> Proof:
        """Ask the rewritten model in the release for the answers that the source gives in the
        TensorFlow that is here.

        Args:
          source: an artifact (requests and recorded answers), or a SavedModel: requests are made up
            and answered here first.
          requests: a folder with an ``io.json`` and its tensors, recorded answers among them, in
            place of these.

        Raises what `compat_matrix.requests.given.as_artifact` raises.
        """
        from compat_matrix.requests.given import as_artifact
        from compat_matrix.requests.policies import RELEASES
        from savedmodel_common.staging import Unstageable

        if self.runtime is None:
            return Proof(UNPROVED, self.trouble, (), ())
        self._proofs += 1
        if self._proofs % RESTART_AFTER == 0:
            self._hosts.close()
        folder = self.folder / str(
            self._proofs
        )  # no two models share a name: workers know models by it
        try:
            given = as_artifact(
                source, folder, RELEASES, requests, self._hosts.of(self._local.name)
            )
            return self._judged(self.runtime, given, model, folder / "asked")
        except Unstageable as error:
            return Proof(UNPROVED, str(error), (), ())
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _judged(self, runtime: Runtime, given: Prepared, model: Path, folder: Path) -> Proof:
        lines, failures, left_out = [], [], list(given.left_out)
        left_out += [
            f"{name} of {runtime.tensorflow_version}: {reason}"
            for name, reason in self._lacks.items()
        ]
        asked, answering = 0, set()
        found: dict[str, list[Reading]] = {name: [] for name in self.readers}
        for item in readings(self._hosts, runtime, given.directory, folder, model, self.readers):
            found[item.reader].append(item)
        for name in self.readers:
            if any(item.outcome is not Outcome.PASS for item in found[name]):
                found[name] = self._again(runtime, given, model, folder, name, left_out)
            for item in found[name]:
                who = f"{name} of {runtime.tensorflow_version}"
                if item.outcome is Outcome.PASS:
                    lines.append(
                        f"{who}: "
                        + (
                            f"{item.asked} answers as recorded"
                            if item.asked
                            else "loads; nothing was asked"
                        )
                    )
                    asked += item.asked
                    answering.add(name)
                elif item.outcome in _NOBODY_ASKED:
                    left_out.append(f"{who}: {item.message[:500]}")
                else:
                    failures.append(f"{who}: {item.outcome} {item.message[:500]}")
        if failures:
            return Proof(FAILED, failures[0], (*lines, *failures), tuple(left_out))
        if not asked:
            loads = "it loads, but " if lines else ""
            return Proof(UNPROVED, f"{loads}nothing could be asked", tuple(lines), tuple(left_out))
        silent = [name for name in self._named if name not in answering]
        if silent:
            return Proof(
                UNPROVED,
                f"named, and not asked: {', '.join(silent)}",
                tuple(lines),
                tuple(left_out),
            )
        return Proof(PROVED, "", tuple(lines), tuple(left_out))

    def _again(
        self,
        runtime: Runtime,
        given: Prepared,
        model: Path,
        folder: Path,
        name: str,
        left_out: list[str],
    ) -> list[Reading]:
        """Return the readings of a new process, except what the installed TensorFlow cannot do
        either: ``left_out`` gets that.
        """
        here = f"TensorFlow {self._local.tensorflow_version} itself"
        skip: set[str] = set()
        broken: set[tuple[str, ...]] = set()
        if self._local.tensorflow_version is not None:
            for item in readings(self._hosts, self._local, given.directory, folder, None, (name,)):
                skip.update(item.failed)
                left_out += [
                    f"request {key} through {name}: {here} does not answer it as recorded"
                    for key in item.failed
                ]
                if not item.loaded:
                    broken.add(item.tags)
                    left_out.append(
                        f"{name}: {here} does not load the source through it ({item.message[:200]})"
                    )
        self._hosts.of(runtime.name).worker(runtime.name, CONSUMERS[name].program).close()
        found = readings(self._hosts, runtime, given.directory, folder, model, (name,), skip)
        return [item for item in found if item.tags not in broken]
