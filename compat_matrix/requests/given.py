"""A SavedModel that somebody gives becomes an artifact: requests made up from its signatures, answered by the local TensorFlow.

An artifact (docs/contracts.md, section 1) is taken as it is. What could not be asked is said, never left out silently.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compat_matrix.cells.plan import ABSENT, is_complete
from compat_matrix.common.gist import gist
from compat_matrix.hosts.host import Host
from compat_matrix.requests.digest import answer_digest
from compat_matrix.requests.made_up import examples_of, made_up
from compat_matrix.requests.tolerances import ACROSS_SERVERS
from compat_matrix.runtimes.runtime import INSTALL, LOCAL, local_runtime
from compat_matrix.runtimes.worker import NotStarted, ReplyError, WorkerDied
from compat_matrix.serving import staging
from compat_matrix.workers import provenance, tensors
from compat_matrix.workers.tensors import Tensor
from reference_impl.format.container import layout
from reference_impl.inspection.signatures import signature_spec

RECORDER = "c_api_worker"  # the loader that servers have
LIMIT = 300.0  # seconds: somebody's model may be large
ROUNDS = 3  # of all requests, after the first: what is drawn at random may be the same once
PRODUCER = "given"
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")


@dataclass
class Given:
    """The artifact's directory, and what of the model will not be asked, and why."""

    directory: Path
    left_out: list[str] = field(default_factory=list)

    @property
    def case(self) -> str:
        """The name by which a plan knows it."""
        return str(json.loads((self.directory / "provenance.json").read_text(encoding="utf-8"))["case"])


def as_artifact(path: Path, folder: Path, requests: Path | None = None, host: Host | None = None) -> Given:
    """An artifact of the SavedModel at ``path``, made below ``folder`` unless it is one.

    Args:
      path: an artifact, or the directory of a SavedModel.
      folder: where an artifact is made; it is emptied.
      requests: a folder with an ``io.json`` and its tensors, in place of requests of our own.
      host: with the local runtime; default: one of our own, ended when the answers are recorded.

    Raises:
      reference_impl.errors.SavedModelError: there is no SavedModel.
      compat_matrix.serving.staging.Unstageable: a link leads out of it, or it holds what is no file.
    """
    if is_complete(path) and (path / "model").is_dir() and requests is None:
        return Given(path)
    model = path / "model" if is_complete(path) else path
    found = layout.read(model)
    given = Given(folder / case_name(path))
    io = lay_out(model, given.directory)
    if requests is not None:
        shutil.copytree(requests, io, dirs_exist_ok=True)
    else:
        asked = _recorded(found, given, folder, host)
        questions = {"schema": 1, "stateful": False, "tolerance": ACROSS_SERVERS._asdict(), "requests": asked}
        (io / "io.json").write_text(json.dumps(questions, indent=1) + "\n", encoding="utf-8")
    sign(given.directory, found, f"the SavedModel at {path}", f"savedmodel-compat check {path}")
    return given


def lay_out(model: Path, artifact: Path) -> Path:
    """Begin an artifact in place of whatever is there; returns its folder ``io``, empty. Raises Unstageable."""
    shutil.rmtree(artifact, ignore_errors=True)
    io = artifact / "io"
    io.mkdir(parents=True)
    staging.place(model, artifact / "model")
    return io


def sign(artifact: Path, found: layout.Layout, title: str, command: str) -> None:
    """Complete an artifact of a model that somebody gave: its provenance."""
    provenance.write(
        artifact,
        case=artifact.name,
        title=title,
        clauses=(),
        features=(),
        producer={"name": PRODUCER, "versions": {"tensorflow": written_by(found)}},
        generator=artifact / "io" / "io.json",
        environment={"runtime": "", "platform": ""},
        command=command,
    )


def written_by(found: layout.Layout) -> str:
    """The TensorFlow that a model says it was written by, as a segment of a cell id."""
    versions = {graph.meta_info_def.tensorflow_version for graph in found.saved_model.meta_graphs} - {""}
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", max(versions, default="")) or ABSENT


def case_name(path: Path) -> str:
    """The name of the directory; that of the one above where it says no more than "model", or is the number of a version."""
    name = path.resolve().name
    name = path.resolve().parent.name if name.isdigit() or name == "model" else name
    return _UNSAFE.sub("_", name).strip("_") or "model"


def _recorded(found: layout.Layout, given: Given, folder: Path, shared: Host | None = None) -> list[dict[str, Any]]:
    """Requests that the local TensorFlow answers, with its answers, one for each signature, the same at every call."""
    if local_runtime().tensorflow_version is None:
        given.left_out.append(f"answers: no TensorFlow is here to record any ({INSTALL}); or --requests")
        return []
    requests: list[dict[str, Any]] = []
    numbers = itertools.count()  # a request that goes takes its number along: no two share a file
    with Host(folder / "recording") if shared is None else nullcontext(shared) as host:
        for graph in found.saved_model.meta_graphs:
            recorder = _Recorder(host, given, sorted(graph.meta_info_def.tags))
            examples = examples_of(graph)
            start = len(requests)
            for key, sides in signature_spec(graph).items():
                request = recorder.first(next(numbers), key, made_up(sides["inputs"], examples))
                requests += [request] if request else []
            for _ in range(ROUNDS):
                requests[start:] = [request for request in requests[start:] if recorder.same_again(request)]
    return requests


@dataclass
class _Recorder:
    """The local TensorFlow, asked about one MetaGraph of the artifact that is being made."""

    host: Host
    given: Given
    tags: list[str]

    def first(self, index: int, key: str, inputs: Iterator[dict[str, Tensor]]) -> dict[str, Any] | None:
        """A request of a signature, with the first of ``inputs`` that is answered; None when none is, which is told."""
        names = {"inputs": f"{index}.in.npz", "outputs": f"{index}.out.npz"}
        request = {"id": f"{index}-{_UNSAFE.sub('_', key)}", "kind": "signature", "tags": self.tags, "signature": key, **names}
        io = self.given.directory / "io"
        reason = ""  # of the first: what is tried later is less likely
        for tried in inputs:
            tensors.save(io / names["inputs"], tried)
            try:
                self._ask(request, io / names["outputs"])
            except (ReplyError, WorkerDied, NotStarted) as error:
                reason = reason or gist(str(error))
            else:
                return request
        (io / names["inputs"]).unlink(missing_ok=True)
        reason = reason or "no input of its dtypes and shapes can be made up"
        self.given.left_out.append(f"signature {key!r}: the local TensorFlow answers none of our requests ({reason})")
        return None

    def same_again(self, request: dict[str, Any]) -> bool:
        """Whether the answer is the same after everything has been asked; else the request goes, which is told."""
        io = self.given.directory / "io"
        again = io / "again.npz"
        try:
            self._ask(request, again)
            recorded = tensors.load(io / request["outputs"])
            if answer_digest(request, None, tensors.load(again)) == answer_digest(request, None, recorded):
                return True
            reason = "another call gives another answer (state, or chance): there is nothing to compare with"
        except (ReplyError, WorkerDied, NotStarted) as error:
            reason = f"a second call fails: {gist(str(error))}"
        finally:
            again.unlink(missing_ok=True)
        for name in (request["inputs"], request["outputs"]):
            (io / name).unlink()
        self.given.left_out.append(f"signature {request['signature']!r}: {reason}")
        return False

    def _ask(self, request: dict[str, Any], outputs: Path) -> None:
        worker = self.host.worker(LOCAL, RECORDER)
        io = self.given.directory / "io"
        with self.host.model(worker, self.given.directory / "model", self.tags, LIMIT, shared=True) as loaded:
            loaded.ask("call", LIMIT, request=request, io_dir=str(io), outputs=str(outputs))
