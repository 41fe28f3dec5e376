"""Golden answers: recorded from and compared with the local TensorFlow in a worker process; this
module does not import it.

The consumer is the C++ loader that servers have (`compat_matrix.requests.policies.RELEASES`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Optional

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.engine.asking import ask
from compat_matrix.hosts.pool import Hosts
from compat_matrix.requests.artifact import ArtifactError, read_artifact
from compat_matrix.requests.digest import compared_outputs
from compat_matrix.requests.given import as_artifact, case_name
from compat_matrix.requests.policies import RELEASES, OptionError
from compat_matrix.runtimes.runtime import INSTALL, local_runtime
from reference_impl.format.container.layout import tags_text
from savedmodel_common import tensors
from savedmodel_common.gist import gist
from savedmodel_common.staging import Unstageable
from savedmodel_tools.contract.file import ContractError
from savedmodel_tools.contract.form import Answers, Request
from savedmodel_tools.contract.rules import Finding

_CHANGED = (Outcome.FAIL_VALUE, Outcome.FAIL_SIGNATURE, Outcome.FAIL_STRUCTURE)
NO_TENSORFLOW = f"golden answers need a TensorFlow here: {INSTALL}"


class NoTensorFlow(OSError):
    """There is no TensorFlow to ask."""


def record(model: Path, requests: Optional[Path]) -> tuple[Answers, list[str]]:
    """Return golden requests with their answers, and the requests that were left out with the
    reasons.

    ``requests``: a folder with an ``io.json`` and its tensors (docs/exporters/artifacts.md,
    section 1): those with ``outputs`` are taken as they are, the others are answered. None makes
    requests up, one for each signature.

    Raises NoTensorFlow: answers are missing; ContractError: ``requests`` is not such a folder;
    SavedModelError, OSError.
    """
    with tempfile.TemporaryDirectory(prefix="savedmodel-contract-") as scratch:
        if requests is None:
            _require()
        try:
            made = as_artifact(model, Path(scratch), RELEASES, requests)
            requested = read_artifact(made.directory).requests
            known = [
                _recorded(made.directory / "io", item)
                for item in requested
                if item["kind"] == "signature"
            ]
        except (OptionError, ArtifactError, ValueError) as error:
            raise ContractError(
                f"{requests or model}: no requests (docs/exporters/artifacts.md, section 1):"
                f" {error}"
            ) from error
        except Unstageable as error:
            raise ContractError(f"{model}: golden answers cannot be recorded: {error}") from error
        if made.left_out and not known:
            _require()
    return Answers(tuple(known), *RELEASES.tolerance), made.left_out


def check(model: Path, answers: Answers) -> Iterator[Finding]:
    """Ask every golden request anew.

    Raises NoTensorFlow; ContractError: the model cannot be taken along.
    """
    _require()
    with (
        tempfile.TemporaryDirectory(prefix="savedmodel-contract-") as scratch,
        Hosts(Path(scratch) / "hosts") as hosts,
    ):
        hosts.know([local_runtime()])
        io, requests = Path(scratch), []
        for number, request in enumerate(answers.requests):
            names = {"inputs": f"{number}.in.npz", "outputs": f"{number}.out.npz"}
            tensors.save(io / names["inputs"], request.inputs)
            tensors.save(io / names["outputs"], request.outputs)
            fields = {
                "id": str(number),
                "kind": "signature",
                "tags": list(request.tags),
                "signature": request.signature,
            }
            requests.append(
                {**fields, **names, "compared": [*request.outputs]}
            )  # a new output breaks nobody
        # What a request is answered with may depend on those before it: the model is loaded afresh.
        document = {
            "schema": 1,
            "stateful": True,
            "tolerance": {"rtol": answers.rtol, "atol": answers.atol},
            "requests": requests,
        }
        name, folder = case_name(model), Path(scratch) / "asked"
        try:
            (asked,) = ask(
                hosts,
                local_runtime(),
                RELEASES.answered_by,
                name,
                model,
                io,
                document,
                folder,
                RELEASES.limit,
            )
        except Unstageable as error:
            raise ContractError(f"{model}: golden answers cannot be asked: {error}") from error
    result = asked.result
    failed, answered = result.details.get("failed", {}), result.details.get("answers", {})
    for number, request in enumerate(answers.requests):
        where = (
            f"tags {tags_text(request.tags)}",
            f"signature {request.signature}",
            f"request {number}",
        )
        said = failed.get(str(number))
        if said is not None:
            changed = Outcome(said["outcome"]) in _CHANGED
            message = said["message"].removeprefix(f"request {number}: ")
            yield Finding(
                "ANSWER_CHANGED" if changed else "ANSWER_FAILED",
                where,
                message if changed else gist(message),
            )
        elif str(number) not in answered:
            yield Finding("ANSWER_FAILED", where, gist(result.message))


def _recorded(io: Path, entry: Mapping[str, Any]) -> Request:
    inputs, outputs = (dict(tensors.load(io / entry[side])) for side in ("inputs", "outputs"))
    return Request(
        tuple(entry["tags"]), entry["signature"], inputs, compared_outputs(entry, outputs)
    )


def _require() -> None:
    if local_runtime().tensorflow_version is None:
        raise NoTensorFlow(NO_TENSORFLOW)
