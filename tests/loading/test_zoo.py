"""Real SavedModels of other people: `savedmodel-compat check` asks every loader about them, and
reference_impl loads, answers and saves what a shipped loader does.

By default the smallest model of each sort; all of them with SAVEDMODEL_COMPAT_ZOO_ALL=1.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import zoo

from reference_impl.errors import SavedModelError
from reference_impl.format.container import layout

SHIPPED = ("tf2", "v1_session", "c_api")
AS_EXPECTED = ("PASS", "NOT_APPLICABLE", "NOT_RUN")


def sort(model: Path) -> tuple[object, ...]:
    """What makes a model different from another for a loader."""
    try:
        directory = layout.read(model)
    except SavedModelError as error:
        return (type(error),)
    graph = directory.saved_model.meta_graphs[0]
    ops = {node.op for node in graph.graph_def.node}
    ops.update(
        node.op for function in graph.graph_def.library.function for node in function.node_def
    )
    tables = any(op.startswith(("HashTable", "MutableHashTable")) for op in ops)
    slots = any(node.slot_variables for node in graph.object_graph_def.nodes)
    first = graph.meta_info_def.tensorflow_version[:1]
    return (
        first,
        bool(graph.object_graph_def.nodes),
        tables,
        slots,
        "Merge" in ops,
        bool(ops & {"VariableV2", "VarHandleOp"}),
    )


def chosen() -> list[Path]:
    if os.environ.get("SAVEDMODEL_COMPAT_ZOO_ALL"):
        return zoo.models()
    smallest: dict[tuple[object, ...], Path] = {}
    for model in sorted(
        zoo.models(),
        key=lambda path: sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
    ):
        smallest.setdefault(sort(model), model)
    return sorted(smallest.values())[:12]


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """The cells of one `check` of all chosen models, by model, consumer and check."""
    out = tmp_path_factory.mktemp("zoo") / "out"
    command = [sys.executable, "-m", "savedmodel_compat", "check", *map(str, chosen())]
    command += ["--out", str(out), "--json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1, 3), done.stderr
    report = json.loads(done.stdout)
    cases = {Path(export["artifact"]).name: export["name"] for export in report["exports"]}
    found: dict[str, dict[tuple[str, str], dict[str, str]]] = {}
    for cell in report["cells"]:
        case, _, consumer, check = cell["cell"].split("/")
        asked = consumer.partition("@")[0], check
        found.setdefault(cases[case], {})[asked] = cell
    return found


def unexpected(cells):
    """Return the checks in which the reference fails otherwise than every shipped loader.

    It may refuse a model that no shipped loader loads, by an error of its own that names why.
    """
    loads = any(cells[name, "load"]["outcome"] == "PASS" for name in SHIPPED)
    return {
        check: cell["message"]
        for (consumer, check), cell in cells.items()
        if consumer == "reference"
        and cell["outcome"] not in AS_EXPECTED
        and not any(_same(cell, cells.get((name, check))) for name in SHIPPED)
        and (loads or not _refused_by_name(check, cell))
    }


def _same(cell, theirs):
    facts = ("outcome", "message")
    return theirs is not None and all(cell[fact] == theirs[fact] for fact in facts)


def _refused_by_name(check, cell):
    # A load goes on without a signature that cannot be made; a save does not.
    lacks_signature = (check, cell["outcome"]) == ("signatures", "FAIL_SIGNATURE")
    return lacks_signature or (cell["error_class"] or "").startswith("reference_impl.errors.")


@pytest.mark.tensorflow
@pytest.mark.skipif(not zoo.models(), reason=zoo.ABSENT)
@pytest.mark.parametrize("model", chosen(), ids=lambda path: path.name)
def test_a_real_model_is_loaded_answers_and_is_saved_again(checked, model):
    cells = checked[str(model)]
    assert ("reference", "reexport") in cells
    assert unexpected(cells) == {}


def cell(outcome="PASS", message="", error_class=None):
    return {"outcome": outcome, "message": message, "error_class": error_class}


REFUSED = cell("LOAD_ERROR", "variables is missing", "reference_impl.errors.MissingFileError")
NOT_SAVED = cell("REJECTED", "a: not loaded", "reference_impl.errors.SignatureError")
LOST = cell("FAIL_STRUCTURE", "1 lost: the device")


@pytest.mark.parametrize(
    ("loads", "check", "ours", "theirs", "found"),
    [
        (True, "values", cell(), cell(), []),
        (True, "values", cell("NOT_RUN", "no request"), cell(), []),
        (True, "load", REFUSED, cell(), ["load"]),
        (True, "reexport", NOT_SAVED, cell(), ["reexport"]),
        (True, "reexport", LOST, LOST, []),
        (True, "reexport", LOST, cell("FAIL_STRUCTURE", "2 lost"), ["reexport"]),
        (False, "load", REFUSED, REFUSED, []),
        (False, "reexport", NOT_SAVED, cell("LOAD_ERROR"), []),
        (False, "signatures", cell("FAIL_SIGNATURE", "a is missing"), cell("LOAD_ERROR"), []),
        (False, "values", cell("CALL_ERROR", "3", "KeyError"), cell("LOAD_ERROR"), ["values"]),
        (False, "load", cell("CRASH", "SIGSEGV"), cell("LOAD_ERROR"), ["load"]),
    ],
)
def test_little_is_excused(loads, check, ours, theirs, found):
    cells = {(name, "load"): cell("PASS" if loads else "LOAD_ERROR") for name in SHIPPED}
    cells |= {("tf2", check): theirs, ("reference", check): ours}
    assert sorted(unexpected(cells)) == found
