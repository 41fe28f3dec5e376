"""The requests of clients during an upgrade, with the values that are right for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from compat_matrix.requests.artifact import Artifact
from compat_matrix.requests.digest import compared_outputs
from savedmodel_common import tensors
from savedmodel_common.compare import EXACT, Tolerance, compare_named
from savedmodel_common.tensors import Tensor
from savedmodel_servers.upgrade.promises import NOTHING, Promise
from savedmodel_servers.upgrade.sides import NEW, OLD

TAGS = ["serve"]  # of the MetaGraph that a server serves by default


@dataclass(frozen=True)
class ClientRequest:
    """A request of a client that was written for the old export.

    ``promise``: what the client relies on, whichever export answers; an empty one before the old
    export has answered. ``expected``: the right values by side, for the outputs whose values are
    compared. None: only the promise holds there.
    """

    model: str
    id: str
    signature: str
    inputs: Mapping[str, Tensor]
    expected: Mapping[str, Mapping[str, Tensor] | None]
    tolerance: Tolerance
    promise: Promise = NOTHING

    def wrong(
        self, got: Mapping[str, Tensor], sides: Collection[str], tolerance: Tolerance = EXACT
    ) -> str:
        """Return what a client of the old export cannot take in an answer; "" if it can.

        Args:
          got: the answer. Outputs that the promise does not name are passed over, as clients do.
          sides: the exports that may have answered: one of them must have these values.
          tolerance: the transport's tolerance in addition to the exports'.
        """
        broken = self.promise.broken(got)
        if broken:
            return broken
        allowed = self.tolerance.or_wider(*tolerance)
        reasons = [self._differs(got, side, allowed) for side in sorted(sides)]
        return "" if not all(reasons) else reasons[0]

    def _differs(self, got: Mapping[str, Tensor], side: str, allowed: Tolerance) -> str:
        expected = self.expected[side]
        if expected is None:
            return ""
        compared = {name: tensor for name, tensor in got.items() if name in expected}
        differences = compare_named(expected, compared, allowed)
        return str(differences[0]) if differences else ""


def client_requests(model: str, exports: Mapping[str, Artifact]) -> tuple[list[ClientRequest], str]:
    """Return the requests that can be asked of a model under load, and the reason if there are none
    ("" otherwise).

    Clients repeat their old requests. The new export may have other values only where it has an
    answer of its own on record: a model that was trained again. For a request without one, the old
    export's values are right.
    """
    old = exports[OLD]
    if old.stateful:
        return [], f"{model}: its answers depend on earlier requests"
    found = []
    for request in _asked(old):
        inputs, outputs = (tensors.load(old.io / request[side]) for side in ("inputs", "outputs"))
        known = compared_outputs(request, outputs)
        ours = _of_new(exports[NEW], request, inputs) if NEW in exports else None
        values = (
            known
            if ours is None
            else {name: tensor for name, tensor in ours.items() if name in known}
        )
        tolerance = (
            old.tolerance.or_wider(*exports[NEW].tolerance) if NEW in exports else old.tolerance
        )
        found.append(
            ClientRequest(
                model,
                request["id"],
                request["signature"],
                inputs,
                {OLD: known, NEW: values},
                tolerance,
            )
        )
    return found, "" if found else f"{model}: no request has a recorded answer"


def other_values(requests: Collection[ClientRequest]) -> list[str]:
    """Name the requests that the new export answers by its own record with other values than the
    old one.
    """
    lines = []
    for request in requests:
        old, new = request.expected[OLD], request.expected[NEW]
        if old is None or new is None:
            continue
        differences = compare_named(
            {name: old[name] for name in old if name in new}, new, request.tolerance
        )
        if differences:
            text = (
                f"{request.model}: request {request.id}: the values of the two exports were not"
                " compared with each other: "
            )
            lines.append(
                f"{text}the new export's own record differs from the old one's ({differences[0]})"
            )
    return lines


def _asked(artifact: Artifact) -> list[dict[str, Any]]:
    return [
        r
        for r in artifact.requests
        if r["kind"] == "signature" and r["tags"] == TAGS and r["outputs"] is not None
    ]


def _of_new(
    artifact: Artifact, request: Mapping[str, Any], inputs: Mapping[str, Tensor]
) -> dict[str, Tensor] | None:
    """Return the recorded answer of the same request; None if it is missing."""
    for other in _asked(artifact):
        if (other["id"], other["signature"]) == (request["id"], request["signature"]):
            same = not compare_named(inputs, tensors.load(artifact.io / other["inputs"]), EXACT)
            return tensors.load(artifact.io / other["outputs"]) if same else None
    return None
