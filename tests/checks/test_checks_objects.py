"""The check `objects`, and what `reexport` asks of variables: loaders and savers that lose what no
answer shows.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_matrix.cases import CASES_DIR
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell
from compat_matrix.cells.results import Observation
from compat_matrix.checks import run_cell
from compat_matrix.checks.produce import produce
from compat_matrix.hosts.host import Host
from compat_matrix.runtimes.runtime import local_runtime
from property_tests.faults import losses
from savedmodel_common.provenance import hash_files

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    if local_runtime().tensorflow_version is None:
        pytest.skip("no TensorFlow in this environment")
    with Host(tmp_path_factory.mktemp("out"), cases=CASES_DIR) as host:
        yield host


def cell(case: str, consumer: str, check: str, artifact: str = "") -> Cell:
    version = str(local_runtime().tensorflow_version)
    return Cell(
        case,
        "tf2",
        version,
        consumer,
        version,
        check,
        "local",
        artifact or f"artifacts/{case}",
        "local",
    )


def run(
    host: Host, case: str, consumer: str = "tf2", check: str = "objects", artifact: str = ""
) -> Observation:
    produce(cell(case, "-", "produce"), host, host.out, again=False)
    return run_cell(cell(case, consumer, check, artifact), host, host.out)


def edited(host: Host, case: str, fault: str, folder: Path) -> str:
    """The artifact of a case as a loader would see it that loses something: the record of the
    original stays what it was.
    """
    produce(cell(case, "-", "produce"), host, host.out, again=False)
    shutil.copytree(cell(case, "-", "produce").artifact_dir(host.out), folder)
    assert losses.apply(fault, folder / "model")
    provenance = json.loads((folder / "provenance.json").read_text())
    provenance["files"] = hash_files(folder)
    (folder / "provenance.json").write_text(json.dumps(provenance))
    return str(folder)


@pytest.mark.parametrize("consumer", ["tf2", "reference"])
def test_variables_functions_and_gradients_are_compared(host: Host, consumer: str) -> None:
    seen = run(host, "fn_custom_gradient", consumer)
    assert (seen.outcome, seen.message) == (Outcome.PASS, "")
    assert seen.details == {"variables": 1, "functions": 2, "gradients": 2}


@pytest.mark.parametrize(
    ("case", "fault", "outcome", "message"),
    [
        (
            "var_attributes",
            "trainable",
            Outcome.FAIL_STRUCTURE,
            "variable 'frozen': trainable is True, expected False as of the",
        ),
        (
            "var_attributes",
            "aggregation",
            Outcome.FAIL_STRUCTURE,
            "variable 'summed': aggregation is 'NONE', expected 'SUM'",
        ),
        (
            "var_attributes",
            "synchronization",
            Outcome.FAIL_STRUCTURE,
            "variable 'summed': synchronization is 'AUTO', expected",
        ),
        (
            "var_attributes",
            "variable_names",
            Outcome.FAIL_STRUCTURE,
            "variable 'constrained': name is 'lost', expected 'scope/co",
        ),
        (
            "fn_defaults",
            "argument_names",
            Outcome.FAIL_STRUCTURE,
            "function 'defaults': arguments is 'lost_x, ",
        ),
        (
            "fn_defaults",
            "defaults",
            Outcome.FAIL_STRUCTURE,
            "function 'defaults': arguments is 'x, scale",
        ),
        (
            "fn_custom_gradient",
            "custom_gradients",
            Outcome.CALL_ERROR,
            "gradients of request gradient-1: No gradient defined",
        ),
    ],
)
def test_what_a_saver_loses_is_found(
    host: Host, tmp_path: Path, case: str, fault: str, outcome: Outcome, message: str
) -> None:
    seen = run(host, case, artifact=edited(host, case, fault, tmp_path / "artifact"))
    assert seen.outcome is outcome, seen.message
    assert message in seen.message
