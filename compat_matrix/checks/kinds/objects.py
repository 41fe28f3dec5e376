"""``objects``: the variables and functions of the loaded object, and the gradients of its
functions.

Answers do not show these facts: a model whose frozen variables became trainable computes the same
until it is trained. The file is the reference for losses of the loader, the producer's record of
the original for losses of the saver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.checks import oracle
from compat_matrix.checks.answers import MORE, raise_first
from compat_matrix.checks.context import Context, Finding, finding_of
from compat_matrix.checks.kind import Check
from compat_matrix.hosts.host import Loaded
from compat_matrix.runtimes.worker import ReplyError
from savedmodel_common import tensors
from savedmodel_common.compare import compare_named
from savedmodel_common.printable import first_of

CHECK = Check(
    "objects",
    "variables, functions and gradients are as the file and the original say",
    place=6,
    needs=("describe",),
    differentiates=True,
    like="checkpoint",
)

Facts = Mapping[str, Any]
Described = Mapping[str, Mapping[str, Facts]]  # "variables" and "functions": path -> facts
OF_VARIABLES = ("dtype", "shape", "trainable", "synchronization", "aggregation", "name")
OF_FUNCTIONS = ("arguments", "traces")
OF_GRAPHS = (
    "dtype",
    "trainable",
)  # facts about a variable in the collections of a TF 1.x MetaGraph
GRADIENTS = (  # in the details of a finding whose differences are about gradients, not the answer
    "gradients"
)
_SHOWN = 12


def check(context: Context) -> dict[str, Any]:
    """Check all tag sets; return details of a pass: the numbers of variables, functions and
    gradients compared, and the rest.
    """
    findings: list[Finding] = []
    counts = Counter({"variables": 0, "functions": 0, "gradients": 0})
    recorded = context.artifact.objects
    for tags in oracle.tag_sets(context.artifact):
        with context.model(tags) as model:
            found = describe(context, model, tags)
            counts += Counter({kind: len(found[kind]) for kind in ("variables", "functions")})
            findings += _against_file(context, tags, found)
            if recorded is not None and by_path(found):
                findings += compared(recorded, found, "of the original")
            findings += gradients(context, model, tags, counts)
    raise_first(findings)
    return {
        **counts,
        **(
            {}
            if recorded is not None
            else {"not_asked": "the producer recorded nothing of its functions"}
        ),
    }


def describe(context: Context, model: Loaded, tags: Sequence[str]) -> Any:
    """Return the consumer's description of a loaded model's variables and functions."""
    return context.ask(model, "describe", tags=list(tags))["objects"]


def by_path(found: Mapping[str, Any]) -> bool:
    """Return whether objects are named by paths of an object graph, which a TF 1.x MetaGraph does
    not have.
    """
    return bool(found["naming"] == "path")


def compared(expected: Described, found: Described, where: str) -> list[Finding]:
    """Return the differences between two descriptions with the same paths; additional objects in
    ``found`` are allowed.
    """
    return [
        *differing("variable", expected["variables"], found["variables"], OF_VARIABLES, where),
        *differing("function", expected["functions"], found["functions"], OF_FUNCTIONS, where),
    ]


def _against_file(context: Context, tags: Sequence[str], found: Mapping[str, Any]) -> list[Finding]:
    """Return the differences between the variables ``found`` and their description in the file."""
    expected = oracle.variable_facts(context.artifact.model, tags)
    held = {
        oracle.node_label(facts.get("node"), place): facts
        for place, facts in found["variables"].items()
    }
    if by_path(found):
        return differing("variable", expected, held, OF_VARIABLES, "in the file")
    # TF 2.x loses variables of a TF 1.x MetaGraph (V1-17), which the check `checkpoint` reports.
    # Only the others are checked here.
    expected = {name: facts for name, facts in expected.items() if name in held}
    return differing("variable", expected, held, OF_GRAPHS, "in the file")


def differing(
    what: str,
    expected: Mapping[str, Facts],
    found: Mapping[str, Facts],
    members: Iterable[str],
    where: str,
) -> list[Finding]:
    """Yield findings about objects that are missing or differ in one of ``members``. A member that
    is None is unknown and ignored."""
    texts = [
        f"{what} {_name(name, facts)}: is missing"
        for name, facts in expected.items()
        if name not in found
    ]
    for name in (name for name in expected if name in found):
        for member in members:
            one, other = expected[name].get(member), found[name].get(member)
            if (
                member in expected[name]
                and member in found[name]
                and one != other
                and _known(member, one, other)
            ):
                texts.append(
                    f"{what} {_name(name, expected[name])}: {member} {_told(one, other)} {where}"
                )
    if not texts:
        return []
    return [
        Finding(
            Outcome.FAIL_STRUCTURE,
            first_of(texts, "differences"),
            details={"differences": texts[:_SHOWN]},
        )
    ]


def _known(member: str, *values: Any) -> bool:
    return member == "shape" or None not in values


def _name(name: str, facts: Facts) -> str:
    return repr(facts.get("path", name))


def _told(expected: Any, got: Any) -> str:
    if (
        isinstance(expected, list)
        and isinstance(got, list)
        and all(isinstance(item, str) for item in expected + got)
    ):
        lost, new = sorted(set(expected) - set(got)), sorted(set(got) - set(expected))
        return (
            f"lack {', '.join(lost) or 'nothing'} and have {', '.join(new) or 'nothing'} instead of"
            " those"
        )
    return f"is {got!r}, expected {expected!r} as"


def anonymous(found: Described) -> Counter[str]:
    """Return the variables without their paths: a re-export of a TF 1.x MetaGraph gives them new
    ones.
    """
    return Counter(map(_facts_of_graphs, found["variables"].values()))


def _facts_of_graphs(facts: Mapping[str, Any]) -> str:
    return str([facts.get(member) for member in OF_GRAPHS])


def gradients(
    context: Context,
    model: Loaded,
    tags: Sequence[str],
    counts: Counter[str],
    has_tags: Sequence[str] = (),
) -> list[Finding]:
    """Ask for the recorded gradients of the functions, and return the findings.

    ``has_tags`` are those of the model, when it is a re-export of the MetaGraph with ``tags``.
    """
    out = []
    for index, request in enumerate(context.artifact.requests):
        if tuple(request["tags"]) == tuple(tags) and request.get("gradients"):
            counts["gradients"] += 1
            finding = _gradients(context, model, has_tags or tags, request, index)
            out += [finding] if finding else []
    return out


def _gradients(
    context: Context, model: Loaded, tags: Sequence[str], request: dict[str, Any], index: int
) -> Finding | None:
    output, recorded = (
        context.scratch / f"gradients-{index}.npz",
        context.artifact.io / request["gradients"],
    )
    fields = {
        "request": request,
        "io_dir": str(context.artifact.io),
        "tags": list(tags),
        "outputs": str(output),
    }
    try:
        context.ask(model, "differentiate", **fields)
    except ReplyError as error:
        return finding_of(error, f"the gradients of request {request['id']}")
    differences = compare_named(
        tensors.load(str(recorded)), tensors.load(str(output)), context.tolerance
    )
    if not differences:
        return None
    return Finding(
        Outcome.FAIL_VALUE,
        f"the gradients of request {request['id']}: {first_of(differences, 'differences')}",
        details={
            "request": request["id"],
            "of": GRADIENTS,
            "differences": [d.to_json() for d in differences[:MORE]],
        },
        files={"expected": recorded, "got": output},
    )
