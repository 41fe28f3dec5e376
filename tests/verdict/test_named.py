"""Names of a command line that nobody was asked about, and checks that a runtime was not asked.

Pure.
"""

import pytest
from gate_folders import OLD, cell, run

from compat_matrix.verdict import named


@pytest.fixture
def made(tmp_path):
    return run(
        tmp_path,
        (cell(consumer="tf2"), "PASS"),
        (cell(consumer="cpp"), "NOT_RUN", "no compiler"),
        (cell(consumer="c_api", check="objects"), "RULED_OUT"),
        (cell(case="refused", read=None), "REJECTED"),
        (cell(case="refused", check="load"), "RULED_OUT"),
    )


@pytest.mark.parametrize(
    ("names", "silent"),
    [
        ({"consumer": ["tf2"]}, []),
        ({"consumer": ["tf2", "cpp"]}, [("consumer", "cpp", "no compiler")]),
        ({"consumer": ["c*"]}, [("consumer", "c*", "no compiler")]),
        ({"check": ["values", "objects"]}, [("check", "objects", "ruled out")]),
        (
            {"case": ["refused"], "check": ["load"]},
            [],
        ),  # the refusal of its production is the answer
        ({"case": ["nobody"]}, [("case", "nobody", named.NOBODY)]),
        ({"cell": [cell(consumer="cpp").id]}, [("cell", cell(consumer="cpp").id, "no compiler")]),
        ({"k": ["anything"]}, []),
    ],
)
def test_a_name_that_no_observation_is_about(made, names, silent):
    found = named.not_asked(names, made.plan, made.results)
    assert [(one["axis"], one["name"], one["reason"]) for one in found] == silent


def test_a_runtime_that_is_asked_less_than_another(tmp_path):
    from dataclasses import replace

    checks = [cell(check=check) for check in ("load", "values")]
    other = replace(cell(read="2.15.1", check="values"), runtime="tf2.15")
    plan = run(tmp_path, *((one, "PASS") for one in (*checks, other))).plan
    assert named.checks_left_out(plan) == {"tf2.15": ["load"]}
    assert OLD in checks[0].id
