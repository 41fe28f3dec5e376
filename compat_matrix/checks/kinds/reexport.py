"""``reexport``: load, save, load again: the same answers, signatures, variables, assets; saving
again gives the same model.

The second save must be a fixed point. The first re-export of another writer's model may be in the
consumer's own form (shapes that it derives, objects that TF 1.x did not write); then the fixed
point must be reached one save later.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.checks import export_bytes, oracle
from compat_matrix.checks.answers import ask_all, raise_first
from compat_matrix.checks.context import Context, Finding, finding_of
from compat_matrix.checks.kind import Check
from compat_matrix.checks.kinds import objects
from compat_matrix.checks.kinds.signatures import compare_signatures, signature_finding
from compat_matrix.runtimes.worker import ReplyError
from reference_impl.errors import SavedModelError
from savedmodel_common import tensors

CHECK = Check(
    "reexport",
    "load, save, load: same answers, signatures, variables, assets; a second save is a fixed point",
    place=5,
    needs=("resave",),
    saves=True,
)

_SHOWN = 8


def check(context: Context) -> dict[str, Any]:
    """Save each tag set on its own; return details of a pass: digests of the exports that do not
    depend on the process.
    """
    findings: list[Finding] = []
    exports: dict[str, Path] = {}
    for index, tags in enumerate(oracle.tag_sets(context.artifact)):
        folder = context.scratch / f"reexport-{index}"
        findings += _generations(context, tags, folder)
        if context.consumer.reproducible:
            exports |= {
                f"{name} {','.join(tags)}": folder / name / "model" for name in ("first", "second")
            }
    details = export_bytes.details(context.artifact.model, exports, context.host.out)
    if context.host.past:  # to be compared with those of another past
        context.kept.update(
            {f"export {name}": model / "saved_model.pb" for name, model in exports.items()}
        )
    if findings:
        findings[0].details.update(details)
    raise_first(findings)
    return details


def _generations(context: Context, tags: Sequence[str], folder: Path) -> list[Finding]:
    source, first, second, third = (
        folder / name / "model" for name in ("source", "first", "second", "third")
    )
    shutil.copytree(context.artifact.model, source)
    with context.model(tags, source) as model:
        held = _held(context, model, folder / "held.npz")
        before = (
            objects.describe(context, model, tags)
            if "describe" in context.consumer.capabilities
            else None
        )
        new_tags = context.ask(model, "resave", dir=str(first), tags=list(tags))["tags"]
    source.parent.rename(
        folder / "gone"
    )  # the copy must stand on its own; deleted with all else of the cell
    findings = []
    try:
        with context.model(new_tags, first) as model:
            # The model is saved before it is asked, since an answer may change the state.
            context.ask(model, "resave", dir=str(second), tags=new_tags)
            after = objects.describe(context, model, new_tags) if before else None
            findings += [_of_export(finding) for finding in ask_all(context, model, tags)]
            if before:
                findings += _changed_objects(before, after)
                if (
                    not context.artifact.stateful
                ):  # else the answers above have changed the state on which gradients depend
                    asked = objects.gradients(context, model, tags, Counter(), new_tags)
                    findings += [_of_export(finding) for finding in asked]
                findings += _stale(context, model, folder, new_tags)
    except ReplyError as error:
        return [finding_of(error, "the re-export")]
    try:
        findings += _lost(context.artifact.model, tags, first, new_tags, held)
        sections, differences = oracle.canonical_difference(first, second)
        if sections and context.cell.producer != context.cell.consumer:
            with context.model(new_tags, second) as model:
                context.ask(model, "resave", dir=str(third), tags=new_tags)
            sections, differences = oracle.canonical_difference(second, third)
        if sections:
            message = (
                f"saving the re-export again gives another model: {', '.join(sections)} differ"
            )
            findings.append(
                Finding(Outcome.FAIL_STRUCTURE, message, details={"differences": differences})
            )
    except ReplyError as error:
        findings.append(finding_of(error, "the re-export of the re-export"))
    except SavedModelError as error:
        findings.append(
            Finding(
                Outcome.FAIL_STRUCTURE,
                f"before and after cannot be compared: {error}",
                error_class=type(error).__name__,
            )
        )
    return findings


def _changed_objects(before: Any, after: Any) -> list[Finding]:
    """Compare variables and functions before and after the re-export."""
    if objects.by_path(before) and objects.by_path(after):
        return objects.compared(before, after, "before the re-export")
    known = objects.anonymous(before)
    return _counted("trained variable", known, objects.anonymous(after), known)


def _stale(context: Context, model: Any, folder: Path, tags: Sequence[str]) -> list[Finding]:
    """Check that a variable that changes after a save is saved with its new value the next time."""
    if not context.ask(model, "change", tags=list(tags))["changed"]:
        return []
    changed = folder / "changed" / "model"
    held = _held(context, model, folder / "changed.npz")
    new_tags = context.ask(model, "resave", dir=str(changed), tags=list(tags))["tags"]
    lost = oracle.inventory(changed, new_tags) - held
    if not lost:
        return []
    message = (
        f"saved again after an assignment, {sum(lost.values())} variables have other values than"
        " the model: "
    )
    return [Finding(Outcome.FAIL_VALUE, message + ", ".join(sorted(lost)[:_SHOWN]))]


def _of_export(finding: Finding) -> Finding:
    finding.args = (f"the re-export, {finding}",)
    return finding


def _held(context: Context, model: Any, output: Path) -> Counter[str]:
    """Return the variables of the loaded model. Local variables of TF 1.x are initialised, not
    restored; only a re-export stores them."""
    if "variables" not in context.consumer.capabilities:
        return Counter()
    context.ask(model, "variables", outputs=str(output))
    return Counter(oracle.described(tensor) for tensor in tensors.load(str(output)).values())


def _lost(
    before: Path, tags: Sequence[str], after: Path, new_tags: Sequence[str], held: Counter[str]
) -> list[Finding]:
    """Return what the written file lacks compared with the one read, and what it has in addition
    without having been ``held``.
    """
    findings = []
    expected, got = oracle.signatures(before, tags), oracle.signatures(after, new_tags)
    differences = compare_signatures(expected, got)
    if differences:
        findings.append(
            signature_finding(
                [f"after the re-export: {text}" for text in differences], expected, got
            )
        )
    methods = [oracle.method_names(*side) for side in ((before, tags), (after, new_tags))]
    changed = [
        key
        for key in sorted(methods[0])
        if key in methods[1] and methods[0][key] != methods[1][key]
    ]
    if changed:
        key = changed[0]
        message = (
            f"after the re-export the method of signature {key!r} is {methods[1][key]!r}, it was"
            f" {methods[0][key]!r}"
        )
        findings.append(
            Finding(
                Outcome.FAIL_SIGNATURE,
                message,
                details={"methods": {k: methods[1][k] for k in changed}},
            )
        )
    stored = oracle.inventory(before, tags)
    findings += _counted("variable", stored, oracle.inventory(after, new_tags), stored | held)
    for what, found in (("placement", oracle.placements), ("default", oracle.signature_defaults)):
        known = found(before, tags)
        findings += _counted(what, known, found(after, new_tags) & known, known)
    assets = oracle.assets(before, tags)
    findings += _counted("asset", assets, oracle.assets(after, new_tags), assets)
    extra = oracle.extra_assets(before)
    findings += _counted("extra asset", extra, oracle.extra_assets(after), extra)
    return findings


def _counted(
    what: str, before: Counter[str], after: Counter[str], known: Counter[str]
) -> list[Finding]:
    lost, new = before - after, after - known
    if not lost and not new:
        return []
    parts = [
        _told(word, items) for word, items in (("lost or changed", lost), ("new", new)) if items
    ]
    message = (
        f"{what}s after the re-export ({sum(after.values())}, before {sum(before.values())}): "
        + "; ".join(parts)
    )
    return [Finding(Outcome.FAIL_STRUCTURE, message)]


def _told(word: str, items: Counter[str]) -> str:
    first = sorted(items, key=str)[:_SHOWN]
    return f"{sum(items.values())} {word}: {', '.join(map(str, first))}"
