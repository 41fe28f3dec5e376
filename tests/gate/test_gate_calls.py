"""The default gate finds a TensorFlow whose calls go wrong in some circumstances only.

Each fault stands in a copy of the TensorFlow of this environment: gradients that the loader drops,
answers that are wrong in other threads, the third call, and errors that become numbers.
"""

from __future__ import annotations

import json

import faulty_tensorflow
import pytest
from click.testing import CliRunner

from property_tests.faults.tensorflows import FAULTY
from savedmodel_compat.cli import main

pytestmark = pytest.mark.tensorflow


FOUND = {  # fault -> the case, the check and the cause of the regression
    "lost-gradients": ("fn_custom_gradient", "objects", "the gradients of request forward-1"),
    "other-threads": ("sig_outputs", "values", "in thread 1 of 4 at once"),
    "third-call": ("sig_outputs", "values", "in call 3 of it"),
    "swallowed-errors": (
        "sig_refused_request",
        "values",
        "answered, although the original refuses it: x must be positive",
    ),
}


# The first pair is one TensorFlow: its faults lie in two files and meet two cases, so one gate finds
# both. The others replace one function.
@pytest.mark.parametrize(
    "faults", [("lost-gradients", "third-call"), ("other-threads",), ("swallowed-errors",)]
)
def test_each_is_a_regression(tmp_path, faults):
    changes = {}
    for fault in faults:
        changes |= FAULTY[fault]
    candidate = faulty_tensorflow.copy(tmp_path / "candidate", changes)
    cases = ",".join(FOUND[fault][0] for fault in faults)
    command = ["gate", "run", "--baseline", "local", "--candidate", str(candidate)]
    command += ["--out", str(tmp_path / "out"), "-n", "1", "--no-install"]
    command += ["--producer", "tf2", "--case", cases, "--consumer", "tf2"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1, done.output
    verdict = json.loads((tmp_path / "out" / "gate.json").read_text())
    for fault in faults:
        _, check, cause = FOUND[fault]
        found = [
            fact["cause"]
            for fact in verdict["facts"]
            if (fact["kind"], fact["role"], fact["check"]) == ("regressed", "reads", check)
        ]
        assert any(cause in said for said in found), (fault, found, verdict["facts"])
