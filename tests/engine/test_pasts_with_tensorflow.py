"""Pasts of workers with TensorFlow: a case that depends on a counter of the process is red, one
that does not is green.
"""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from savedmodel_compat.cli import main

pytestmark = pytest.mark.tensorflow

CASE = '''"""A scaled sum."""

CLAUSES = ("SIG-01",)
FEATURES = ("signature",)


def build(tf, work):
    root = tf.Module()
    root.w = tf.Variable({factor})
    root.f = tf.function(lambda x: {{"y": root.w * x}}, input_signature=[tf.TensorSpec([None], tf.float32)])
    return root, root.f


def requests(np):
    return [("serving_default", {{"x": np.float32([1, 2])}})]
'''
# Both builds of a case are made within a few hundred steps of the counter, and so have the same
# factor.
COUNTED = (
    "2.0 if __import__('tensorflow.python.framework.ops', fromlist=['uid']).uid() < {limit}"
    " else 3.0"
)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Run both cases in the pasts 0 and 1; return the exit code, the printed report, and the
    content of pasts.json.
    """
    from compat_matrix.runtimes.pasts import Past

    folder = tmp_path_factory.mktemp("pasts")
    (folder / "cases").mkdir()
    # The counter stands at 0 in past 0, and at this number in past 1.
    reached = Past.of_seed(1).counter_of("counted")
    assert reached and reached > 1000
    (folder / "cases" / "clean.py").write_text(CASE.format(factor="2.0"))
    (folder / "cases" / "counted.py").write_text(CASE.format(factor=COUNTED.format(limit=reached)))
    words = [
        "matrix",
        "run",
        "--out",
        folder / "out",
        "-n",
        "1",
        "--pasts",
        "1",
        "--cases-dir",
        folder / "cases",
    ]
    words += [
        "--producer",
        "reference",
        "--consumer",
        "-,reference",
        "--check",
        "produce,values,reexport",
    ]
    done = CliRunner().invoke(main, [str(word) for word in words])
    return done.exit_code, done.output, json.loads((folder / "out" / "pasts.json").read_text())


def test_a_case_that_depends_on_the_counter_is_red(compared):
    code, said, found = compared
    assert code == 1, said
    differs = {one["cell"].rpartition("/")[2]: one["differs"] for one in found["differences"]}
    assert differs["produce"] == "exports" and differs["values"] == "answers", said
    assert all(one["cell"].startswith("counted/") for one in found["differences"])
    assert [one["exit_code"] for one in found["pasts"]] == [0, 0]  # each run alone is green


def test_the_other_case_is_compared_and_green(compared):
    _, said, found = compared
    assert "/reference@" in said and found["compared"] == 6
