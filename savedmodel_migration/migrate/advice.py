"""Advice for a model that cannot be migrated: for each kind of refusal a sentence that a user can
act on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from compat_matrix.requests.questions import RANDOM
from reference_impl.format.container import layout
from reference_impl.graph.references import all_nodes
from savedmodel_migration.migrate.elsewhere import releases_that_can
from savedmodel_tools.skew import advice, contrib
from savedmodel_tools.skew.history import history
from savedmodel_tools.verify.findings import Severity
from savedmodel_tools.verify.run import verify

_NO_OP = re.compile(
    r"Op type not registered '([^']{1,200})'|(?:no op(?: called)?|nothing describes op)"
    r" '([^']{1,200})'"
)
_NO_KERNEL = re.compile(
    r"No OpKernel was registered to support Op '([^']{1,200})' used by \{\{node ([^}]{1,500})\}\}"
)

_NO_TYPE = re.compile(r"The type '([^']{1,200})' (?:has not been registered|is not supported)")

SCARCE = ("MemoryError", "ResourceExhaustedError")
_MORE_MEMORY = "memory ran out: use fewer --jobs, or a machine with more"
_OR_DROP = ", or drop the signature (savedmodel-compat edit signatures --drop)"
# What a session says whatever it is asked -> what would help.
_NEVER = (
    (
        re.compile(r"must feed a value for placeholder tensor ('[^']{1,500}')"),
        "export it with the placeholder {} among the inputs of the signature",
    ),
    (
        re.compile(r"(Table not initialized|uninitialized value|Could not find variable)"),
        (
            "nothing gives it a value at load: export it with an init op that does (main_op,"
            " legacy_init_op)"
        ),
    ),
    (
        re.compile(r"(Could not find callback)"),
        "it calls a Python function, which no file holds: export it without",
    ),
)
UNUSABLE = "request beside the model cannot be used"  # how a note about a given request begins
RANDOM_ALL = "random"  # how the reason begins where nothing is left that is the same in each call
NO_SIGNATURE = "it has no signature, so in TF 2 nothing of its graph can be called"
SIGN_IT = (
    "load it in a session and save it with a signature_def_map that names what it takes and gives;"
    " --partial keeps its variables and assets alone"
)


def _instead(op: str) -> str:
    known = history().op(op)
    found = contrib.replacement(
        op, known.library(known.members[-1]) if known and known.until else ""
    )
    return found.text if found else ""


def reason_of(message: str, model: Path, tags: Sequence[str]) -> str:
    """Why, in one line where one says it: an unknown op with its nodes in a MetaGraph.

    Raises SavedModelError.
    """
    match = _NO_OP.search(message)
    if match is None:
        return message.strip()
    op, graph = match[1] or match[2], layout.read(model).meta_graph(tags)
    names = [node.name for node in all_nodes(graph.graph_def) if node.op == op]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"TensorFlow knows no op {op!r}" + (f": node {names[0]!r}{more}" if names else "")


def of_verify(model: Path) -> str:
    """Return what `verify` says would help, for the worst of what it finds; "" where it has no
    advice.
    """
    found = [
        item for item in verify(model).findings if item.severity is not Severity.INFO and item.fix
    ]
    worst = min(found, key=lambda item: item.severity is not Severity.ERROR, default=None)
    return f"{worst.fix} (verify {worst.rule})" if worst else ""


def never(message: str) -> str:
    """Return advice for a model that answers no request at all; "" if it may answer another one."""
    found = ((pattern.search(message), text) for pattern, text in _NEVER)
    return next((text.format(match[1]) + _OR_DROP for match, text in found if match), "")


def unasked(signatures: Mapping[str, str], every: Sequence[str]) -> str:
    """Say which signatures were not asked, and why: ``signatures`` is a reason by name."""
    said = "; ".join(f"{key}: {why}" for key, why in signatures.items())
    return (
        f"{len(signatures)} of {len(every)} signature{'' if len(every) == 1 else 's'} could not be"
        f" asked: {said}"
    )


def settled_by(signature: str, why: str) -> str:
    """Return what would prove a signature that was not asked because of ``why``."""
    if RANDOM in why:
        return (
            f"compare the answers of {signature!r} yourself, no two are alike; --partial puts the"
            " model into the output"
        )
    return fix_of(why, None) or (
        f"add a request for {signature!r} that the old model answers to io/io.json in the model's"
        " directory or beside it (docs/exporters/requests.md)"
    )


def is_lack(message: str) -> bool:
    """Return whether an error says that the release lacks an op or its kernel."""
    return bool(_NO_OP.search(message) or _NO_KERNEL.search(message))


def way_out(message: str, error_class: str | None, model: Path, tags: Sequence[str]) -> str:
    """A way out of a refusal, "" when none is known: first the releases that load the model, as the
    op history says.

    Raises SavedModelError.
    """
    match = _NO_OP.search(message) or _NO_KERNEL.search(message)
    can = releases_that_can(model, tags) if match else []
    fix = fix_of(message, error_class)
    if not can:
        return fix
    op = history().op(next(filter(None, match.groups()))) if match else None
    contrib = (
        " with tensorflow.contrib"
        if op and op.library(op.members[-1]).startswith("contrib/")
        else ""
    )
    there = f"TensorFlow {advice.words(history().text(can))}{contrib} loads and answers it"
    return f"{there}; for this TensorFlow: {fix}" if fix else there


def fix_of(message: str, error_class: str | None) -> str:
    """A way out, "" when none is known."""
    if match := _NO_OP.search(message):
        return _instead(match[1] or match[2]) or advice.custom_op(match[1] or match[2])
    if match := _NO_KERNEL.search(message):
        where = (
            f"no TensorFlow of this kind computes {match[1]} (node {match[2]!r}) for these types on"
            " a CPU"
        )
        return (
            _instead(match[1])
            or f"{where}: migrate where its kernel is registered, or export the model without it"
        )
    if "No such file or directory" in message:
        return (
            "put the file where the graph looks for it, or export the model with the file among its"
            " assets"
        )
    if "NodeDef missing attr" in message:
        return (
            "a node lacks attributes without which no TensorFlow runs its op: export the model"
            " again"
        )
    if match := _NO_TYPE.search(message):
        return (
            f"import the package that defines {match[1]} before loading, or export functions that"
            " take and return tensors"
        )
    if (error_class or "").endswith("MissingFileError"):
        without = (
            "; --partial migrates without it" if "strict=False saves without it" in message else ""
        )
        return (
            "put the missing file back into the model's directory, or export the model again"
            + without
        )
    if (error_class or "").endswith(SCARCE):
        return _MORE_MEMORY
    if error_class == "SIGKILL":
        return f"something outside killed the worker, as a system does when {_MORE_MEMORY}"
    if error_class == "TimeLimit":
        return "give it more time: --limit SECONDS"
    if (error_class or "").startswith("SIG"):
        return "TensorFlow ends the process on this model; the reason has the last lines of its log"
    if (error_class or "").endswith("SchemaVersionError"):
        return (
            "it asks for a reader that no TensorFlow has: take the file from its origin again, or"
            " ask its writer for version 1"
        )
    if (error_class or "").endswith(
        ("TruncatedError", "ChecksumError", "MalformedError", "CorruptTableError")
    ):
        return "the file is damaged: take it from its origin again"
    return ""
