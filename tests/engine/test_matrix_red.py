"""A fixture byte, a recorded answer, an expectation, a consumer's answer: breaking any of them
turns a real run red.

The consumer is the C++ loader behind the C API, in a process that never imports TensorFlow: one run
takes seconds. What only a re-export can lose is tried with an implementation on either side.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from savedmodel_common import tensors
from savedmodel_common.packages import OURS
from savedmodel_compat.cli import main

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parents[2]
CASE = "simple_save"
CROSSINGS = ("reference_to_tf2", "tf2_to_reference")


@pytest.fixture
def fixtures(tmp_path):
    folder = tmp_path / "fixtures"
    shutil.copytree(ROOT / "fixtures_v1" / CASE, folder / CASE)
    return folder


@pytest.fixture
def run(tmp_path, fixtures):
    """Run the matrix on the copied fixture; returns (exit code, summary)."""

    def run_(expectations="schema = 1\n", code=ROOT, consumers=("c_api",)):
        ledger, out = tmp_path / "expectations.toml", tmp_path / "out"
        ledger.write_text(expectations)
        shutil.rmtree(out, ignore_errors=True)
        command = ["matrix", "run", "--out", out, "-n", "1"]
        command += [part for consumer in consumers for part in ("--consumer", consumer)]
        command += ["--fixtures", fixtures, "--expectations", ledger]
        words = [str(part) for part in command]
        if code == ROOT:
            done = CliRunner().invoke(main, words)
            status, said = done.exit_code, done.output
        else:
            environment = {**os.environ, "PYTHONPATH": str(code)}
            words = [sys.executable, "-m", "savedmodel_compat", *words]
            process = subprocess.run(
                words, cwd=code, env=environment, capture_output=True, text=True
            )
            status, said = process.returncode, process.stdout + process.stderr
        summary = out / "summary.json"
        assert summary.exists(), said
        return status, json.loads(summary.read_text())

    return run_


def outcomes(summary):
    return {fact["cell"].rsplit("/", 1)[1]: fact["outcome"] for fact in summary["unexpected"]}


@pytest.mark.parametrize(("consumers", "cells"), [(["c_api"], 4), (CROSSINGS, 2)])
def test_untouched_it_is_green(run, consumers, cells):
    code, summary = run(consumers=consumers)
    assert (code, summary["unexpected"]) == (0, [])
    assert summary["by_outcome"]["PASS"] >= cells


def test_a_flipped_byte_of_a_fixture(run, fixtures):
    shard = next((fixtures / CASE / "model" / "variables").glob("*.data-*"))
    data = bytearray(shard.read_bytes())
    data[0] ^= 1
    shard.write_bytes(data)
    code, summary = run()
    assert code == 1
    assert outcomes(summary)["load"] == "FAIL_STRUCTURE"
    assert any(shard.name in fact["message"] for fact in summary["unexpected"])


def test_a_changed_recorded_answer(run, fixtures):
    artifact = fixtures / CASE
    io = json.loads((artifact / "io" / "io.json").read_text())
    path = artifact / "io" / io["requests"][0]["outputs"]
    answer = tensors.load(path)
    name, tensor = next(
        (name, tensor)
        for name, tensor in answer.items()
        if tensor.array.dtype.kind == "f" and tensor.array.size
    )
    wrong = np.array(tensor.array)
    wrong.flat[0] = np.nextafter(wrong.flat[0], np.inf)
    answer[name] = tensors.Tensor(tensor.dtype, wrong)
    tensors.save(path, answer)
    provenance = json.loads((artifact / "provenance.json").read_text())
    provenance["files"][f"io/{path.name}"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (artifact / "provenance.json").write_text(json.dumps(provenance))
    code, summary = run()
    assert code == 1
    assert outcomes(summary)["values"] == "FAIL_VALUE"
    assert "load" not in outcomes(summary)


EXPECTATION = """schema = 1
[[expect]]
case = "{case}"
producer = "fixture"
consumer = "c_api"
check = "values"
outcome = "FAIL_VALUE"
kind = "bug"
reason = "made up by a test"
added = 2026-11-21
"""


@pytest.mark.parametrize(
    ("case", "discrepancy"), [(CASE, "unexpected_pass"), ("no_such_case", "dead_entry")]
)
def test_an_expectation_that_does_not_hold(run, case, discrepancy):
    code, summary = run(EXPECTATION.format(case=case))
    assert code == 2
    assert len(summary["ledger"][discrepancy]) == 1


@pytest.fixture
def copy(tmp_path):
    """The code, to be spoilt as a faulty release would be."""
    for package in OURS:
        shutil.copytree(
            ROOT / package, tmp_path / "code" / package
        )  # what is compiled, too: of a changed file it is not taken
    return tmp_path / "code"


def test_a_consumer_that_answers_differently(run, copy):
    program = copy / "compat_matrix" / "workers" / "protocol.py"
    source = program.read_text()
    marker = "tensor_file.save("
    assert marker in source
    program.write_text(
        source.replace(marker, "_spoilt_save(")
        + "\n\ndef _spoilt_save(path, named):\n"
        + "    for tensor in named.values():\n"
        + "        if tensor.array.dtype.kind == 'f' and tensor.array.size:\n"
        + "            tensor.array.flat[0] += 1\n"
        + "    tensor_file.save(path, named)\n"
    )
    code, summary = run(code=copy)
    assert code == 1
    assert outcomes(summary)["values"] == "FAIL_VALUE"


RESAVE = "    def op_resave(self, request):\n"
CHANGE = RESAVE + "        root = self._model(request).root\n        {}\n"


@pytest.mark.parametrize(
    ("program", "old", "new", "outcome", "text"),
    [
        (
            "tf2_worker",
            "if key not in signature_wire.INTERNAL_KEYS",
            "if not key",
            "CALL_ERROR",
            "serving_default' is missing",
        ),
        (
            "protocol",
            RESAVE,
            CHANGE.format("root.more = self.tf.Variable(1.0)"),
            "FAIL_STRUCTURE",
            ": 1 new: float32[]",
        ),
        (
            "protocol",
            RESAVE,
            CHANGE.format("v = root.variables[0]; v.assign(v + 1)"),
            "FAIL_VALUE",
            "1 lost or changed: float32",
        ),
    ],
    ids=["no signature", "new variable", "changed variable"],
)
def test_a_crossing_that_loses_something(run, copy, tmp_path, program, old, new, outcome, text):
    """One implementation loads, the other saves, and on the way something is lost."""
    path = copy / "compat_matrix" / "workers" / f"{program}.py"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    code, summary = run(code=copy, consumers=CROSSINGS)
    assert code == 1
    assert [
        (fact["cell"].split("/")[2].split("@")[0], fact["outcome"])
        for fact in summary["unexpected"]
    ] == [(consumer, outcome) for consumer in CROSSINGS]
    results = [
        json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    ]
    said = [
        str((fact["message"], fact["details"])) for fact in results if fact["outcome"] == outcome
    ]
    assert len(said) == 2
    assert all(text in one for one in said), said
