"""``signatures``: the consumer shows the signatures as in the SignatureDefs, and the model's writer
is the recorded one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.checks import oracle
from compat_matrix.checks.answers import raise_first
from compat_matrix.checks.context import Context, Finding
from compat_matrix.checks.kind import Check
from savedmodel_common.printable import first_of

CHECK = Check("signatures", "the consumer shows the signatures of the SignatureDefs", place=2)

Spec = dict[str, dict[str, dict[str, Any]]]
SIDES = ("inputs", "outputs")
_SHOWN = 12  # differences in the message's details


def check(context: Context) -> dict[str, Any]:
    """Check all tag sets; return details of a pass: the number of signatures, and those that a
    server would refuse to Classify or Regress."""
    findings, seen = [], 0
    unservable: dict[str, str] = {}
    for tags in oracle.tag_sets(context.artifact):
        findings += _other_writer(context, tags)
        expected = oracle.signatures(context.artifact.model, tags)
        with context.model(tags) as model:
            got = context.ask(model, "signatures")["signatures"]
        seen += len(expected)
        unservable |= unconventional(tags, got)
        differences = compare_signatures(expected, got)
        if differences:
            findings.append(signature_finding(differences, expected, got))
    raise_first(findings)
    return {"signatures": seen, **({"unservable": unservable} if unservable else {})}


def _other_writer(context: Context, tags: Sequence[str]) -> list[Finding]:
    """Compare the writer's version in the model with the provenance, since expectations hold for
    versions of the writer.
    """
    says, known = oracle.writer(context.artifact.model, tags), context.artifact.tensorflow()
    if not says or not known or says == known:
        return []
    message = f"the model says that TensorFlow {says} wrote it, its provenance says {known}"
    return [Finding(Outcome.FAIL_STRUCTURE, message, details={"model": says, "provenance": known})]


def unconventional(tags: Sequence[str], got: Spec) -> dict[str, str]:
    """Return ``{tags:signature: method and reason}`` for signatures that TF Serving's Classify or
    Regress would refuse.

    This is not a failure: the file is as its author wrote it, and every consumer can call the
    signature.
    """
    out = {}
    for key, sides in got.items():
        method = sides.get("method") or {}
        if method.get("conventional") is False:
            out[f"{','.join(tags)}:{key}"] = f"{method['name']}: {method['reason']}"
    return out


UNSTATED = "invalid"  # the dtype of a TensorInfo that states none: DT_INVALID, the number 0


def signature_finding(differences: list[str], expected: Spec, got: Spec) -> Finding:
    """Return one finding for all differences between two sets of signatures."""
    return Finding(
        Outcome.FAIL_SIGNATURE,
        first_of(differences, "differences"),
        details={"differences": differences[:_SHOWN], "expected": expected, "got": got},
    )


def compare_signatures(expected: Spec, got: Spec) -> list[str]:
    """Yield differences as sentences.

    Members that the consumer leaves out (dtype, shape, a whole side) are not compared, nor is a
    dtype that the file leaves out.
    """
    out = [f"signature {key!r} is missing" for key in sorted(set(expected) - set(got))]
    out += [f"signature {key!r} is not in the file" for key in sorted(set(got) - set(expected))]
    for key in sorted(set(expected) & set(got)):
        for side in SIDES:
            if side in got[key]:
                where = f"{side[:-1]} of {key!r}"
                out += _compare_side(where, expected[key][side], got[key][side])
    return out


def _compare_side(where: str, expected: dict[str, Any], got: dict[str, Any]) -> list[str]:
    # tf.saved_model.load renames the part `x/values` of a sparse input to `x_values`, as its
    # documentation says.
    alias = {
        "_".join(name.rsplit("/", 1)): name for name in expected if "/" in name and name not in got
    }
    named = {alias.get(name, name): info for name, info in got.items()}
    out = [f"{where}: {name!r} is missing" for name in sorted(set(expected) - set(named))]
    out += [f"{where}: {name!r} is not in the file" for name in sorted(set(named) - set(expected))]
    for name in sorted(set(expected) & set(named)):
        for member, read in (("dtype", _base), ("shape", _dims)):
            stated = expected[name][member] != UNSTATED
            if (
                stated
                and member in named[name]
                and read(expected[name][member]) != read(named[name][member])
            ):
                out.append(
                    f"{where}: {name!r} has the {member} {named[name][member]}, expected"
                    f" {expected[name][member]}"
                )
    return out


def _base(dtype: str) -> str:
    # TF 1.x holds a variable as a reference; fetching it gives a value.
    return dtype.removesuffix("_ref")


def _dims(shape: list[int | None] | None) -> list[int | None] | None:
    return None if shape is None else [None if size in (None, -1) else size for size in shape]
