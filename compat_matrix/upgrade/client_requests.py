"""The clients' requests during an upgrade: the requests of the old export, and the right answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from compat_matrix.requests.artifact import Artifact
from compat_matrix.requests.compare import EXACT, Tolerance, compare_named
from compat_matrix.upgrade.sides import NEW, OLD
from compat_matrix.workers import tensors
from compat_matrix.workers.tensors import Tensor

TAGS = ["serve"]  # of the MetaGraph that a server serves by default


@dataclass(frozen=True)
class ClientRequest:
    """A request of a client, and the right answers of the exports by side.

    ``rest``: whether JSON can carry it.
    """

    model: str
    id: str
    signature: str
    inputs: Mapping[str, Tensor]
    expected: Mapping[str, Mapping[str, Tensor]]
    tolerance: Tolerance
    rest: bool

    def wrong(self, got: Mapping[str, Tensor], sides: Collection[str], tolerance: Tolerance = EXACT) -> str:
        """Return how an answer differs from the answer of each of these exports; "" if it equals one of them.

        ``tolerance``: the transport's tolerance in addition to the export's.
        """
        allowed = self.tolerance.or_wider(*tolerance)
        differences = [compare_named(self.expected[side], got, allowed) for side in sorted(sides)]
        return "" if not all(differences) else str(differences[0][0])


def client_requests(model: str, exports: Mapping[str, Artifact], not_carried: Collection[str]) -> tuple[list[ClientRequest], str]:
    """Return the requests that can be asked of a model under load, and the reason if there are none ("" otherwise).

    Clients repeat their old requests. The new export must give its own recorded answers; for a request without one, the old
    export's answer.

    Args:
      not_carried: ids of requests that REST cannot carry.
    """
    old = exports[OLD]
    if old.stateful:
        return [], f"{model}: its answers depend on earlier requests"
    found = []
    for request in _asked(old):
        inputs, outputs = (tensors.load(old.io / request[side]) for side in ("inputs", "outputs"))
        expected = {OLD: outputs, NEW: _of_new(exports[NEW], request, inputs) or outputs}
        tolerance = old.tolerance.or_wider(*exports[NEW].tolerance)
        rest = request["id"] not in not_carried
        found.append(ClientRequest(model, request["id"], request["signature"], inputs, expected, tolerance, rest))
    return found, "" if found else f"{model}: no request has a recorded answer"


def _asked(artifact: Artifact) -> list[dict[str, Any]]:
    return [r for r in artifact.requests if r["kind"] == "signature" and r["tags"] == TAGS and r["outputs"] is not None]


def _of_new(artifact: Artifact, request: Mapping[str, Any], inputs: Mapping[str, Tensor]) -> dict[str, Tensor] | None:
    """Return the recorded answer of the same request; None if it is missing."""
    for other in _asked(artifact):
        if (other["id"], other["signature"]) == (request["id"], request["signature"]):
            same = not compare_named(inputs, tensors.load(artifact.io / other["inputs"]), EXACT)
            return tensors.load(artifact.io / other["outputs"]) if same else None
    return None
