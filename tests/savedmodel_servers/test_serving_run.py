"""`matrix run` and `check` with ``--servers-only`` and the stand-in as a process: real models, a real server, what
breaks turns the run red.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from plugin_world import page_files

from savedmodel_common import provenance, tensors
from savedmodel_compat.cli import main
from savedmodel_standin import executable

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures_v1"
ABSENT = "savedmodel-compat.invalid/serving:2.19.1"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("server") / "tensorflow_model_server"
    executable.write(path, sys.executable)
    return f"binary:{path}"


def compat(folder, *arguments, code=0):
    with contextlib.chdir(folder):
        done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.stdout


@pytest.fixture
def fixtures(tmp_path):
    folder = tmp_path / "fixtures"
    for name in ("half_plus_two", "table_no_init", "contrib_op"):
        shutil.copytree(FIXTURES / name, folder / name)
    return folder


def run(tmp_path, *arguments, code=0):
    out = tmp_path / "out"
    compat(
        tmp_path, "matrix", "run", "--servers-only", "--out", out, "-n", "1", *arguments, code=code
    )
    results = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    return {result["cell"]: result for result in results}


def outcomes(results, case):
    return {
        cell.rsplit("/", 1)[1]: result["outcome"]
        for cell, result in results.items()
        if cell.startswith(f"{case}/")
    }


GOOD = {"serve": "PASS", "serve_grpc": "PASS", "serve_rest": "PASS"}


def test_good_and_unservable_models_behind_one_server(tmp_path, fixtures, server):
    results = run(tmp_path, "--fixtures", fixtures, "--server", server, code=1)
    assert outcomes(results, "half_plus_two") == GOOD
    assert outcomes(results, "table_no_init") == {
        "serve": "PASS",
        "serve_grpc": "REJECTED",
        "serve_rest": "REJECTED",
    }
    assert set(outcomes(results, "contrib_op").values()) == {"REJECTED"}
    refused = next(
        result
        for cell, result in results.items()
        if cell.startswith("contrib_op/") and cell.endswith("/serve")
    )
    assert "Op type not registered" in refused["message"]
    log = tmp_path / "out" / refused["evidence"]["server_log"]
    assert "Op type not registered" in log.read_text(), "the server's own words are evidence"
    assert refused["versions"]["kind"] == "standin", "no real cell is filled by it"
    assert {cell.split("/")[2].partition("@")[0] for cell in results} == {"standin"}


def test_the_exports_of_a_plug_in_are_served(tmp_path, server):
    """With a file that declares consumers too: these are not asked, and not even started."""
    text = page_files(tmp_path).joinpath("plugins.toml").read_text()
    (tmp_path / "plugins.toml").write_text(text.replace('version = "0.1" ', "# "))
    (tmp_path / "consumer.py").write_text("open('started', 'w')")
    results = run(
        tmp_path, "--plugins", "plugins.toml", "--producer", "mytrainer", "--server", server
    )
    assert not (tmp_path / "started").exists()
    for name in ("linear", "scaled"):
        assert outcomes(results, name) == {"produce": "PASS", **GOOD}
    assert "--plugins" in next(
        result["replay"] for result in results.values() if result["outcome"] == "PASS"
    )


def test_a_wrong_recorded_answer_turns_both_transports_red(tmp_path, fixtures, server):
    path = fixtures / "half_plus_two" / "io" / "serving_default-0.out.npz"
    recorded = tensors.load(path)
    recorded["y"].array[...] += 1
    tensors.save(path, recorded)
    facts = fixtures / "half_plus_two" / "provenance.json"
    known = json.loads(facts.read_text())
    facts.write_text(json.dumps({**known, "files": provenance.hash_files(facts.parent)}))
    results = run(
        tmp_path, "--fixtures", fixtures, "--case", "half_plus_two", "--server", server, code=1
    )
    assert outcomes(results, "half_plus_two") == {
        "serve": "PASS",
        "serve_grpc": "FAIL_VALUE",
        "serve_rest": "FAIL_VALUE",
    }


def test_a_model_that_ends_its_server_costs_its_own_cells(tmp_path, server):
    cases = tmp_path / "cases"
    cases.mkdir()
    for name in ("fault_abort", "rfc_net2"):
        shutil.copy(ROOT / "compat_matrix" / "cases" / f"{name}.py", cases)
    results = run(tmp_path, "--cases-dir", cases, "--producer", "tf2", "--server", server, code=1)
    served = {
        cell: result["outcome"]
        for cell, result in results.items()
        if "/standin@" in cell and "/tf2@" in cell
    }
    assert {
        cell.split("/")[0]: outcome for cell, outcome in served.items() if cell.endswith("grpc")
    } == {
        "fault_abort": "CRASH",
        "rfc_net2": "PASS",
    }


def test_a_server_that_is_not_here_is_not_run_and_required_it_is_a_failure(tmp_path, fixtures):
    absent = ["--fixtures", fixtures, "--server", ABSENT]
    results = run(tmp_path, *absent, code=3)  # nothing was compared
    assert {result["outcome"] for result in results.values()} == {"NOT_RUN"}
    assert all("to provide it: " in result["message"] for result in results.values())
    run(tmp_path, *absent, "--require", "serving", code=3)


def test_check_of_a_model_without_requests(tmp_path, server):
    model = shutil.copytree(
        FIXTURES / "half_plus_two" / "model", tmp_path / "half_plus_two"
    )  # its artifact has requests
    compat(
        tmp_path, "check", "--servers-only", model, "--server", server, "--out", tmp_path / "out"
    )
    questions = json.loads(
        (tmp_path / "out" / "given" / "half_plus_two" / "io" / "io.json").read_text()
    )
    assert {request["signature"] for request in questions["requests"]} >= {"serving_default"}


def test_check_of_a_model_that_no_server_takes(tmp_path, server):
    said = compat(
        tmp_path, "check", "--servers-only", FIXTURES / "contrib_op", "--server", server, code=1
    )
    assert "REJECTED" in said
    assert "Op type not registered" in said
