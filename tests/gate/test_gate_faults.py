"""The gate finds what is wrong with a TensorFlow: a patched loader, a patched op, one bit; and
nothing in an untouched copy.

The candidate is a copy of the environment the tests run in, so only the patch can be what differs.
Two small cases and one consumer keep a gate at the time TensorFlow takes to start in four workers.
"""

from __future__ import annotations

import json
from pathlib import Path

import faulty_tensorflow
import pytest
from click.testing import CliRunner

from savedmodel_compat.cli import main

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parents[2]
CASE = '''"""{title}."""
CLAUSES = ("FN-05",)
FEATURES = ("functions",)
{constants}


def build(tf, work):
    root = tf.Module()
    root.f = tf.function(lambda x: {{"y": {body}}}, input_signature=[tf.TensorSpec([None], tf.float32)])
    return root, {{"serving_default": root.f}}


def requests(np):
    return [("serving_default", {{"x": np.float32([-1, 1, 8])}})]
'''
CASES = {
    "rectified": CASE.format(title="A rectifier", constants="", body="tf.nn.relu(x)"),
    "scaled": CASE.format(
        title="A product",
        constants='TOLERANCE = (1e-6, 0.0, "a product")',
        body='x * tf.constant(3.0, name="scale")',
    ),
}
# In the loader of tf.saved_model.load: what was a rectifier is another op, and a constant is off by
# its last bit.
LOADER = """
_parse_saved_model = parse_saved_model


def parse_saved_model(export_dir):
    import numpy as np

    model = _parse_saved_model(export_dir)
    for meta in model.meta_graphs:
        for node in [n for f in meta.graph_def.library.function for n in f.node_def] + list(meta.graph_def.node):
            if node.op == "Relu":
                node.op = "Elu"
            if node.op == "Const" and node.name == "scale":
                value = node.attr["value"].tensor.float_val
                value[0] = np.nextafter(np.float32(value[0]), np.float32(9))
    return model
"""


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cases")
    for name, text in CASES.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.fixture
def gate(tmp_path, cases):
    """Compare the local TensorFlow with a copy of it that has ``changes``: exit code, gate.json,
    what was printed.
    """

    def gate_(changes, *arguments):
        candidate = faulty_tensorflow.copy(tmp_path / "candidate", changes)
        command = ["gate", "run", "--baseline", "local", "--candidate", str(candidate)]
        command += [
            "--cases-dir",
            str(cases),
            "--out",
            str(tmp_path / "out"),
            "-n",
            "1",
            "--no-install",
        ]
        command += ["--producer", "tf2", "--consumer", "tf2", "--check", "values", *arguments]
        done = CliRunner().invoke(main, command)
        assert (tmp_path / "out" / "gate.json").is_file(), done.output
        return done.exit_code, json.loads((tmp_path / "out" / "gate.json").read_text()), done.stdout

    return gate_


def facts(verdict):
    return {(fact["case"], fact["role"]): fact for fact in verdict["facts"]}


def test_an_untouched_copy_differs_in_nothing(gate, tmp_path):
    code, verdict, said = gate({})
    assert (code, verdict["facts"], verdict["blocking"]) == (0, [], 0)
    assert {role: counts["same"] for role, counts in verdict["counts"].items()} == {
        "reads": 2,
        "writes": 4,
        "both": 2,
    }
    assert verdict["candidate"]["label"] == f"{verdict['baseline']['label']}+candidate"
    assert "OK: all 8 pairs alike" in said
    for name in ("gate.md", "gate.html", "junit.xml"):
        assert (tmp_path / "out" / name).is_file()


def test_a_patched_loader_is_a_regression_and_one_bit_is_a_drift(gate):
    code, verdict, said = gate(
        {"python/saved_model/loader_impl.py": lambda text: f"{text}\n\n{LOADER}"}
    )
    found = facts(verdict)
    assert code == 1
    assert {key: fact["kind"] for key, fact in found.items()} == {
        ("rectified", "reads"): "regressed",
        ("rectified", "both"): "regressed",
        ("scaled", "reads"): "drifted",
        ("scaled", "both"): "drifted",
    }
    assert found["rectified", "reads"]["candidate"]["outcome"] == "FAIL_VALUE"
    assert "BLOCKED: 2 regressed, of 8 pairs" in said
    (drift,) = found["scaled", "reads"]["drift"]
    assert (drift["output"], drift["index"], drift["ulp"], drift["within"]) == ("y", [0], 1.0, True)
    assert (drift["baseline"], drift["candidate"], drift["differing"]) == ("-3.0", "-3.0000002", 3)
    assert not found["scaled", "reads"]["blocks"]


def test_a_patched_op_is_found_in_what_the_candidate_writes(gate):
    """Each side reads its own answers: nobody but the gate can tell."""
    code, verdict, _ = gate(
        {"python/ops/gen_nn_ops.py": lambda text: text.replace('"Relu"', '"Relu6"')},
        "--case",
        "rectified",
    )
    found = facts(verdict)
    assert code == 1
    assert {key: fact["kind"] for key, fact in found.items()} == {
        ("rectified", "writes"): "drifted",
        ("rectified", "both"): "drifted",
    }
    (drift,) = found["rectified", "writes"]["drift"]
    assert (drift["index"], drift["baseline"], drift["candidate"], drift["within"]) == (
        [2],
        "8.0",
        "6.0",
        False,
    )
    assert all(fact["blocks"] for fact in found.values())


def thaw(text):
    """A loader that forgets which variables are frozen."""
    return text.replace("proto.aggregation, proto.trainable,", "proto.aggregation, True,")


def test_a_loader_that_loses_what_no_answer_shows_is_found_by_the_default_checks(tmp_path):
    """Answers do not tell that frozen variables became trainable: the check `objects` does, and
    nobody has to name it.
    """
    candidate = faulty_tensorflow.copy(tmp_path / "candidate", {"python/saved_model/load.py": thaw})
    command = [
        "gate",
        "run",
        "--baseline",
        "local",
        "--candidate",
        str(candidate),
        "--out",
        str(tmp_path / "out"),
        "-n",
        "1",
    ]
    command += [
        "--no-install",
        "--producer",
        "tf2",
        "--case",
        "var_attributes",
        "--consumer",
        "tf2",
    ]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1, done.output
    verdict = json.loads((tmp_path / "out" / "gate.json").read_text())
    found = [fact for fact in verdict["facts"] if fact["kind"] == "regressed"]
    assert {fact["check"] for fact in found} == {"objects"}
    assert {fact["role"] for fact in found} == {"reads", "both"}
    assert "trainable is True, expected False" in found[0]["cause"]
