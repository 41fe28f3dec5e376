"""Golden answers: recorded of, and asked of, the local TensorFlow in a worker process; nothing here imports it.

The worker is the C++ loader that servers have (`compat_matrix.requests.given`), which also makes requests up where
none are given.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Optional

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.common import strict_json
from compat_matrix.common.gist import gist
from compat_matrix.engine.asking import ask
from compat_matrix.hosts.host import Host
from compat_matrix.hosts.pool import Hosts
from compat_matrix.models.contract.file import ContractError
from compat_matrix.models.contract.form import Answers, Request
from compat_matrix.models.contract.rules import Finding
from compat_matrix.requests.given import LIMIT, RECORDER, as_artifact, case_name
from compat_matrix.requests.tolerances import ACROSS_SERVERS
from compat_matrix.runtimes.runtime import INSTALL, LOCAL, local_runtime
from compat_matrix.runtimes.worker import NotStarted, ReplyError, WorkerDied
from compat_matrix.serving.staging import Unstageable
from compat_matrix.workers import tensors
from compat_matrix.workers.tensors import Tensor

CONSUMER = "c_api"  # the loader that servers have
_CHANGED = (Outcome.FAIL_VALUE, Outcome.FAIL_SIGNATURE, Outcome.FAIL_STRUCTURE)
NO_TENSORFLOW = f"golden answers need a TensorFlow here: {INSTALL}"


class NoTensorFlow(OSError):
    """There is no TensorFlow to ask."""


def record(model: Path, requests: Optional[Path]) -> tuple[Answers, list[str]]:
    """Golden requests with their answers, and what was left out and why.

    Args:
      model: the directory of a SavedModel.
      requests: a folder with an ``io.json`` and its tensors (docs/contracts.md, section 1): those with ``outputs`` are taken as
        they are, the others are answered. None makes requests up, one for each signature.

    Raises:
      NoTensorFlow: there is none, and answers are missing.
      ContractError: ``requests`` is no such folder.
      SavedModelError, OSError: the model or the folder cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="savedmodel-contract-") as scratch:
        if requests is None:
            _require()
            given = as_artifact(model, Path(scratch))
            asked = _read(given.directory / "io")
            left_out = list(given.left_out)
        else:
            asked, left_out = _read(requests), []
        known = [item for item in asked if item.outputs]
        unknown = [item for item in asked if not item.outputs]
        if unknown:
            _require()
            for item, answer in zip(unknown, _answers(model, unknown, Path(scratch) / "asked")):
                if isinstance(answer, str):
                    left_out.append(f"signature {item.signature!r}: {answer}")
                else:
                    known.append(Request(item.tags, item.signature, item.inputs, answer))
    return Answers(tuple(known), *ACROSS_SERVERS.bounds, "another machine or release computes with other kernels"), left_out


def check(model: Path, answers: Answers) -> Iterator[Finding]:
    """Ask every golden request anew. Raises NoTensorFlow; ContractError: the model cannot be taken along."""
    _require()
    with tempfile.TemporaryDirectory(prefix="savedmodel-contract-") as scratch, Hosts(Path(scratch) / "hosts") as hosts:
        hosts.know([local_runtime()])
        io, requests = Path(scratch), []
        for number, request in enumerate(answers.requests):
            names = {"inputs": f"{number}.in.npz", "outputs": f"{number}.out.npz"}
            tensors.save(io / names["inputs"], request.inputs)
            tensors.save(io / names["outputs"], request.outputs)
            fields = {"id": str(number), "kind": "signature", "tags": list(request.tags), "signature": request.signature}
            requests.append({**fields, **names, "compared": [*request.outputs]})  # a new output breaks nobody
        document = {"schema": 1, "tolerance": {"rtol": answers.rtol, "atol": answers.atol}, "requests": requests}
        try:
            (asked,) = ask(
                hosts, local_runtime(), [CONSUMER], case_name(model), model, io, document, Path(scratch) / "asked", LIMIT
            )
        except Unstageable as error:
            raise ContractError(f"{model}: golden answers cannot be asked: {error}") from error
    result = asked.result
    failed, answered = result.details.get("failed", {}), result.details.get("answers", {})
    for number, request in enumerate(answers.requests):
        where = (f"tags {', '.join(request.tags) or '(none)'}", f"signature {request.signature}", f"request {number}")
        said = failed.get(str(number))
        if said is not None:
            changed = Outcome(said["outcome"]) in _CHANGED
            message = said["message"].removeprefix(f"request {number}: ")
            yield Finding("ANSWER_CHANGED" if changed else "ANSWER_FAILED", where, message if changed else gist(message))
        elif str(number) not in answered:
            yield Finding("ANSWER_FAILED", where, gist(result.message))


def _require() -> None:
    if local_runtime().tensorflow_version is None:
        raise NoTensorFlow(NO_TENSORFLOW)


def _answers(model: Path, requests: Sequence[Request], folder: Path) -> Iterator[dict[str, Tensor] | str]:
    """The answer to each request, or why there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    with Host(folder / "host") as host:
        for number, item in enumerate(requests):
            names = {"inputs": f"{number}.in.npz", "outputs": f"{number}.out.npz"}
            tensors.save(folder / names["inputs"], item.inputs)
            fields = {"id": str(number), "kind": "signature", "tags": list(item.tags), "signature": item.signature, **names}
            try:
                worker = host.worker(LOCAL, RECORDER)
                with host.model(worker, model.resolve(), list(item.tags), LIMIT, shared=True) as loaded:
                    loaded.ask("call", LIMIT, request=fields, io_dir=str(folder), outputs=str(folder / names["outputs"]))
                yield dict(tensors.load(folder / names["outputs"]))
            except (ReplyError, WorkerDied, NotStarted) as error:
                yield gist(str(error))


def _read(folder: Path) -> list[Request]:
    """The signature requests of a folder with an ``io.json``; those without an answer have no outputs. Raises ContractError."""
    try:
        document: Any = strict_json.loads((folder / "io.json").read_text(encoding="utf-8"))
        found = []
        for item in document["requests"]:
            if item["kind"] == "signature":
                outputs = tensors.load(_inside(folder, item["outputs"])) if item.get("outputs") else {}
                inputs = dict(tensors.load(_inside(folder, item["inputs"])))
                found.append(Request(tuple(sorted(map(str, item["tags"]))), str(item["signature"]), inputs, dict(outputs)))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ContractError(f"{folder}: no requests (docs/contracts.md, section 1): {type(error).__name__}: {error}") from error
    return found


def _inside(folder: Path, name: Any) -> Path:
    from reference_impl.format.container.files import refuse_name

    if not isinstance(name, str) or refuse_name(name):
        raise ValueError(f"{name!r} is no name of a file in it")
    return folder / name
