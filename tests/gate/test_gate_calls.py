"""The default gate finds a TensorFlow whose calls go wrong in some circumstances only.

Each fault stands in a copy of the TensorFlow of this environment: gradients that the loader drops,
answers that are wrong in other threads, the third call, and errors that become numbers.
"""

from __future__ import annotations

import json

import faulty_tensorflow
import pytest
from click.testing import CliRunner

from compat_matrix.cli import main
from property_tests.planted.kinds.tensorflows import FAULTY

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize(
    ("fault", "case", "check", "cause"),
    [
        ("lost-gradients", "fn_custom_gradient", "objects", "the gradients of request forward-1"),
        ("other-threads", "sig_outputs", "values", "in thread 1 of 4 at once"),
        ("third-call", "sig_outputs", "values", "in call 3 of it"),
        (
            "swallowed-errors",
            "sig_refused_request",
            "values",
            "answered, although the original refuses it: x must be positive",
        ),
    ],
)
def test_it_is_a_regression(tmp_path, fault, case, check, cause):
    candidate = faulty_tensorflow.copy(tmp_path / "candidate", FAULTY[fault])
    command = [
        "gate",
        "--baseline",
        "local",
        "--candidate",
        str(candidate),
        "--out",
        str(tmp_path / "out"),
        "-n",
        "1",
    ]
    command += ["--no-install", "--producer", "tf2", "--case", case, "--consumer", "tf2"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1, done.output
    verdict = json.loads((tmp_path / "out" / "gate.json").read_text())
    found = [
        fact
        for fact in verdict["facts"]
        if (fact["kind"], fact["role"], fact["check"]) == ("regressed", "reads", check)
    ]
    assert found, [(fact["kind"], fact["pair"], fact["cause"]) for fact in verdict["facts"]]
    assert cause in found[0]["cause"]
