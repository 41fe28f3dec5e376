"""``checkpoint``: the consumer holds the values of the checkpoint, and the checkpoint holds all
that is restored.

The reference is the TensorFlow-free bundle reader, which follows the restore plan of the MetaGraph.
A session fetches the tensor that reads each variable; other consumers read the variables of the
loaded object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.checks import oracle
from compat_matrix.checks.answers import raise_first
from compat_matrix.checks.context import Context, Finding
from compat_matrix.checks.kind import Check
from savedmodel_common import tensors
from savedmodel_common.compare import compare_tensor
from savedmodel_common.printable import first_of

CHECK = Check(
    "checkpoint",
    "the consumer holds the values of the checkpoint, all that its signatures need",
    place=7,
    needs=("variables", "fetch"),
)

_SHOWN = 8


def check(context: Context) -> dict[str, Any]:
    """Check all tag sets; return details of a pass."""
    findings: list[Finding] = []
    details = {"values": 0, "not_readable_in_a_session": 0}
    for tags in oracle.tag_sets(context.artifact):
        stored = oracle.stored_variables(context.artifact.model, tags)
        output = context.scratch / "held.npz"
        with context.model(tags) as model:
            if "fetch" in context.consumer.capabilities:
                names = sorted({item.fetch for item in stored if item.fetch})
                details["not_readable_in_a_session"] += sum(1 for item in stored if not item.fetch)
                context.ask(model, "fetch", tensors=names, outputs=str(output))
                wanted = {item.fetch: item.value for item in stored if item.fetch}
            else:
                naming = context.ask(model, "variables", outputs=str(output))["naming"]
                wanted = {item.key if naming == "key" else item.node: item.value for item in stored}
        details["values"] += len(wanted)
        finding = compare_held(wanted, tensors.load(output))
        if finding:
            findings.append(finding)
    raise_first(findings)
    return details


def compare_held(
    wanted: Mapping[str, tensors.Tensor], held: Mapping[str, tensors.Tensor]
) -> Finding | None:
    """Return the first difference between the values of the checkpoint and the consumer, which may
    have more variables.
    """
    missing = sorted(set(wanted) - set(held))
    if missing:
        names = ", ".join(map(repr, missing[:_SHOWN])) + (", …" if len(missing) > _SHOWN else "")
        message = (
            f"{len(missing)} of {len(wanted)} values of the checkpoint are not among the consumer's"
            f" variables: {names}"
        )
        return Finding(
            Outcome.FAIL_STRUCTURE, message, details={"missing": missing, "held": sorted(held)}
        )
    compared = (compare_tensor(name, wanted[name], held[name]) for name in sorted(wanted))
    differences = [difference for difference in compared if difference]
    if not differences:
        return None
    details = {"differences": [d.to_json() for d in differences[:_SHOWN]]}
    return Finding(
        Outcome.FAIL_VALUE, f"variable {first_of(differences, 'variables')}", details=details
    )
