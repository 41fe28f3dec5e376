"""The gate's comparison on synthetic result folders: pairs in three roles, every class, drift, the
exit code.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gate_folders import NEW, OLD, SIDES, answered, cell, named, run

from compat_matrix.cells.results import DESELECTED
from compat_matrix.gate.compare import KINDS, compare
from compat_matrix.gate.drift import drifts
from compat_matrix.gate.pairs import Run, pairs_of_folders, pairs_of_run
from compat_matrix.gate.run import UnknownVersion, versions_of
from compat_matrix.report.gate_words import headline
from compat_matrix.verdict.prediction import predicted
from savedmodel_common import tensors

NOWHERE = Path("nowhere")
ERROR = {"error_class": "x.NotFoundError", "message": "no op"}
ABSENT = ("NOT_RUN", DESELECTED)


def verdict_of(folder: Run, **options):
    return compare(pairs_of_run(folder, OLD, NEW), SIDES, drifts, **options)[1]


def kinds(verdict):
    """role -> kind -> pairs, of all but what is the same."""
    facts = [(fact["role"], fact["kind"], fact["pair"]) for fact in verdict["facts"]]
    return {
        role: {kind: [p for r, k, p in facts if (r, k) == (role, kind)] for kind in KINDS}
        for role in verdict["counts"]
    }


def two_by_two(**outcomes):
    """All four cells and both productions; ``ab``: written by a (o: old, n: new), read by b."""
    what = [
        (cell(written=version, read=None), outcomes.get(f"made_{who}", "PASS"))
        for who, version in (("o", OLD), ("n", NEW))
    ]
    for name, written, read in (
        ("oo", OLD, OLD),
        ("on", OLD, NEW),
        ("no", NEW, OLD),
        ("nn", NEW, NEW),
    ):
        outcome = outcomes.get(name, "PASS")
        what.append(
            (
                cell(written=written, read=read),
                *(outcome if isinstance(outcome, tuple) else (outcome,)),
            )
        )
    return run(NOWHERE, *what)


def regressed(verdict):
    assert {fact["kind"] for fact in verdict["facts"]} <= {"regressed"}
    return {fact["role"] for fact in verdict["facts"] if fact["check"] != "produce"}


def test_an_identical_candidate_gives_nothing_of_any_class():
    verdict = verdict_of(two_by_two())
    assert (verdict["facts"], verdict["causes"], verdict["blocking"], verdict["exit_code"]) == (
        [],
        [],
        0,
        0,
    )
    assert {
        role: {k: n for k, n in counts.items() if n} for role, counts in verdict["counts"].items()
    } == {
        "reads": {"same": 1},
        "writes": {"same": 2},
        "both": {"same": 1},
    }


@pytest.mark.parametrize(
    ("outcomes", "roles"),
    [
        ({"on": "FAIL_VALUE", "nn": "FAIL_VALUE"}, {"reads", "both"}),
        ({"no": "FAIL_VALUE"}, {"writes"}),
        ({"nn": "FAIL_VALUE"}, {"both"}),
    ],
)
def test_each_role_is_compared_with_the_baseline_reading_its_own(outcomes, roles):
    verdict = verdict_of(two_by_two(**outcomes))
    assert regressed(verdict) == roles
    assert verdict["exit_code"] == 1


def test_a_committed_artifact_is_only_read():
    fixture = {"written": "1.15.5", "producer": "fixture"}
    verdict = verdict_of(
        run(NOWHERE, (cell(read=OLD, **fixture), "PASS"), (cell(read=NEW, **fixture), "CRASH"))
    )
    assert [(f["role"], f["kind"], f["pair"]) for f in verdict["facts"]] == [
        ("reads", "regressed", "c/fixture@1.15.5/tf2/values")
    ]


def test_an_artifact_committed_from_the_baselines_own_version_is_only_read():
    fixture = {"written": OLD, "producer": "fixture"}
    verdict = verdict_of(
        run(NOWHERE, (cell(read=OLD, **fixture), "PASS"), (cell(read=NEW, **fixture), "PASS"))
    )
    assert (verdict["pairs"], verdict["counts"]["reads"]["same"]) == (1, 1)


def pair(a, b, decided=None):
    """A committed artifact with the outcome ``a`` of the baseline and ``b`` of the candidate."""
    fixture = {"written": "1.15.5", "producer": "fixture"}
    sides = []
    for version, outcome in ((OLD, a), (NEW, b)):
        outcome = outcome if isinstance(outcome, tuple) else (outcome,)
        sides.append(
            (cell(read=version, decided=decided if version == NEW else None, **fixture), *outcome)
        )
    return run(NOWHERE, *sides)


@pytest.mark.parametrize(
    ("a", "b", "kind", "code"),
    [
        ("PASS", "PASS", None, 0),
        ("PASS", ("LOAD_ERROR", ERROR), "regressed", 1),
        (("LOAD_ERROR", ERROR), "PASS", "fixed", 0),
        (("LOAD_ERROR", ERROR), ("LOAD_ERROR", ERROR), "still_failing", 0),
        (("LOAD_ERROR", ERROR), ("LOAD_ERROR", {**ERROR, "message": "other"}), "changed_error", 0),
        (("LOAD_ERROR", ERROR), ("CALL_ERROR", ERROR), "changed_error", 0),
        ("PASS", "UNSTABLE", "unstable", 1),
        ("UNSTABLE", "PASS", "unstable", 1),
        ("UNSTABLE", "UNSTABLE", "unstable", 1),  # never alike
        ("UNSTABLE", ("LOAD_ERROR", ERROR), "unstable", 1),
        ("UNSTABLE", "ENV_ERROR", "harness_error", 4),
        ("PASS", "RULED_OUT", "vanished", 1),
        ("RULED_OUT", "PASS", "newly_covered", 3),  # of this pair alone: nothing was compared
        ("RULED_OUT", "CRASH", "newly_covered", 3),
        ("RULED_OUT", "RULED_OUT", None, 3),
        ("PASS", ABSENT, None, 3),
        (ABSENT, "PASS", None, 3),
        ("PASS", (None,), "unfinished", 3),
        ("PASS", ("NOT_RUN", "interrupted"), "unfinished", 3),
        (("NOT_RUN", "interrupted"), "PASS", "unfinished", 3),
        ("PASS", "SETUP_ERROR", "harness_error", 4),
        ("ENV_ERROR", "PASS", "harness_error", 4),
    ],
)
def test_every_class(a, b, kind, code):
    verdict = verdict_of(pair(a, b))
    assert [fact["kind"] for fact in verdict["facts"]] == ([kind] if kind else [])
    assert verdict["exit_code"] == code
    assert verdict["blocking"] == (code == 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("attrs: [dtype=DT_INT8, shape=false] of op", "attrs: [shape=false, dtype=DT_INT8] of op"),
        (
            "in function __inference__initializer_56308__load",
            "in function __inference__initializer_21__load",
        ),
        (
            "no variable dense/bias. [[{{node dense/Add}}]]",
            "no variable dense/kernel. [[{{node dense/Cast}}]]",
        ),
        (
            "Output 0 of node 'Assign' has a reference type",
            "Output 0 of node 'AssignAdd' has a reference type",
        ),
        ("not in TensorFlow 2.20.0: f", "not in TensorFlow 2.21.0: f"),
    ],
)
def test_an_error_that_only_names_things_in_another_order_is_the_same(one, other):
    verdict = verdict_of(pair(("CRASH", {"message": one}), ("CRASH", {"message": other})))
    assert [fact["kind"] for fact in verdict["facts"]] == ["still_failing"]


def test_what_the_plan_rules_out_for_the_candidate_has_vanished_and_says_why():
    verdict = verdict_of(pair("PASS", None, decided="this TensorFlow exports no C API"))
    (fact,) = verdict["facts"]
    assert (fact["kind"], fact["known"], fact["candidate"]["message"]) == (
        "vanished",
        True,
        "this TensorFlow exports no C API",
    )
    assert verdict["exit_code"] == 1
    accepted = verdict_of(pair("PASS", None, decided="declared"), accept_known=True)
    assert (accepted["blocking"], accepted["exit_code"]) == (
        0,
        3,
    )  # there is no other pair, so nothing was compared


def test_a_production_that_fails_takes_its_cells_along():
    folder = two_by_two(
        made_n="CALL_ERROR", no=("NOT_RUN", "producer failed"), nn=("NOT_RUN", "producer failed")
    )
    verdict = verdict_of(folder)
    assert kinds(verdict)["writes"]["regressed"] == ["c/tf2/-/produce"]
    assert [fact["role"] for fact in verdict["facts"] if fact["kind"] == "vanished"] == [
        "writes",
        "both",
    ]
    assert all(
        "could not be made: CALL_ERROR" in fact["cause"]
        for fact in verdict["facts"]
        if fact["kind"] == "vanished"
    )


@pytest.mark.parametrize("refused", [None, "the case requires tensorflow<2.21"])
def test_what_is_not_planned_because_nobody_makes_the_artifact_has_vanished(refused):
    """A plan of many runtimes asks nothing about an artifact that is expected to be refused."""
    made = (cell(written=NEW, read=None, decided=refused), "LOAD_ERROR", ERROR)
    folder = run(
        NOWHERE,
        (cell(written=OLD, read=None), "PASS"),
        made,
        (cell(), "PASS"),
        (cell(read=NEW), "PASS"),
    )
    verdict = verdict_of(folder)
    gone = [
        (fact["role"], fact["pair"])
        for fact in verdict["facts"]
        if fact["kind"] == "vanished" and fact["check"] != "produce"
    ]
    assert gone == [("writes", "c/tf2/tf2/values"), ("both", "c/tf2/tf2/values")]
    assert verdict["exit_code"] == 1
    next(r for r in folder.results.values() if r.outcome != "PASS").expected = True
    assert verdict_of(folder, accept_known=True)["exit_code"] == 0


def test_what_the_plan_asks_only_one_of_is_no_pair():
    made = [(cell(written=version, read=None), "PASS") for version in (OLD, NEW)]
    verdict = verdict_of(run(NOWHERE, *made, (cell(), "PASS")))
    assert (verdict["pairs"], verdict["facts"], verdict["exit_code"]) == (1, [], 0)


def test_what_the_selection_left_out_is_no_pair_although_only_one_side_is_planned():
    made = [(cell(written=version, read=None), *ABSENT) for version in (OLD, NEW)]
    verdict = verdict_of(run(NOWHERE, *made, (cell(), "RULED_OUT"), *both_read_a_fixture()))
    assert (verdict["pairs"], verdict["facts"], verdict["exit_code"]) == (1, [], 0)


def both_read_a_fixture():
    fixture = {"written": "1.15.5", "producer": "fixture"}
    return [(cell(read=version, **fixture), "PASS") for version in (OLD, NEW)]


def test_pairs_without_a_result_come_before_other_changes():
    verdict = verdict_of(
        run(
            NOWHERE,
            *both_read_a_fixture(),
            *(
                (cell(case=name, read=version, written="1.15.5", producer="fixture"), *outcome)
                for name, outcomes in {
                    "lost": [("PASS",), (None,)],
                    "mended": [("LOAD_ERROR", ERROR), ("PASS",)],
                }.items()
                for version, outcome in zip((OLD, NEW), outcomes)
            ),
        )
    )
    assert [cause["kind"] for cause in verdict["causes"]] == ["unfinished", "fixed"]


def test_what_was_not_asked_although_its_artifact_was_made_is_not_known_to_be_absent():
    old, new = (
        run(
            NOWHERE,
            (cell(written=version, read=None), "PASS"),
            (cell(written=version, read=version), *outcome),
        )
        for version, outcome in ((OLD, ("PASS",)), (NEW, ABSENT))
    )
    verdict = compare(pairs_of_folders(old, new), SIDES, accept_known=True)[1]
    assert [(fact["kind"], fact["known"]) for fact in verdict["facts"]] == [("vanished", False)]
    assert verdict["exit_code"] == 1


def test_a_known_regression_blocks_unless_it_is_accepted():
    folder = pair("PASS", "REJECTED")
    next(r for r in folder.results.values() if r.outcome == "REJECTED").expected = True
    assert verdict_of(folder)["exit_code"] == 1
    accepted = verdict_of(folder, accept_known=True)
    assert (accepted["exit_code"], accepted["facts"][0]["kind"], accepted["facts"][0]["known"]) == (
        0,
        "regressed",
        True,
    )


@pytest.mark.parametrize(("entry", "code"), [(None, 1), (0, 0)])
def test_a_regression_that_is_only_predicted_is_not_known_until_an_entry_lists_it(entry, code):
    says = {"says": "fails", "causes": [{"kind": "format", "value": "keras_slots"}]}
    message = "'_UserObject' object has no attribute 'add_slot'"
    error = {"error_class": "AttributeError", "message": message, "details": {"prediction": says}}
    folder = pair("PASS", ("LOAD_ERROR", error))
    result = next(r for r in folder.results.values() if r.outcome == "LOAD_ERROR")
    assert predicted(result)
    result.expected, result.expectation = True, entry
    assert verdict_of(folder, accept_known=True)["exit_code"] == code


def test_the_name_of_a_version_skew_is_the_cause():
    skew = {
        "kind": "unknown_op",
        "cause": "unknown op 'Foo': since 2.21",
        "text": "unknown op 'Foo': since 2.21; node 'x' of ...",
    }
    verdict = verdict_of(pair("PASS", ("LOAD_ERROR", {**ERROR, "details": {"skew": skew}})))
    assert (
        verdict["causes"][0]["cause"] == "unknown op 'Foo': since 2.21 (LOAD_ERROR x.NotFoundError)"
    )


def test_pairs_of_one_cause_are_told_together_and_what_blocks_first():
    what = []
    for case in "abc":
        fixture = {"case": case, "written": "1.15.5", "producer": "fixture"}
        what += [
            (cell(read=OLD, **fixture), "PASS"),
            (cell(read=NEW, **fixture), "LOAD_ERROR", ERROR),
        ]
    what += [
        (cell("d", read=OLD, written="1.15.5"), "CRASH"),
        (cell("d", read=NEW, written="1.15.5"), "PASS"),
    ]
    causes = verdict_of(run(NOWHERE, *what))["causes"]
    assert [(c["kind"], c["pairs"], c["cases"], c["blocks"]) for c in causes] == [
        ("regressed", 3, ["a", "b", "c"], True),
        ("fixed", 1, ["d"], False),
    ]


@pytest.mark.parametrize(
    ("before", "now", "cause"),
    [
        (
            ("LOAD_ERROR", "no kernel; dtype in [DT_INT8]"),
            ("LOAD_ERROR", "no kernel; dtype in [DT_INT8, DT_INT4]"),
            "LOAD_ERROR x.E: the message now says DT_INT4",
        ),
        (
            ("LOAD_ERROR", "no op Foo"),
            ("LOAD_ERROR", "no op Bar"),
            "LOAD_ERROR x.E: the message no longer says Foo, now says Bar",
        ),
        (
            ("LOAD_ERROR", "no op Foo"),
            ("REJECTED", "no op Foo"),
            "LOAD_ERROR x.E before, REJECTED x.E now",
        ),
    ],
)
def test_what_is_new_in_an_error_is_its_cause(before, now, cause):
    sides = [
        (outcome, {"error_class": "x.E", "message": message}) for outcome, message in (before, now)
    ]
    assert verdict_of(pair(*sides))["causes"][0]["cause"] == cause


# Drift
# --------------------------------------------------------------------------------------------------

ONE = np.float32([1, 2, 3])
NEXT = np.float32([1, np.nextafter(np.float32(2), np.float32(9)), 3])


def drift_of(out, answer, rtol, recorded=ONE, **options):
    """A committed artifact, answered as recorded by the baseline and with ``answer`` by the
    candidate; both pass.
    """
    old, new = (cell(written="1.15.5", producer="fixture", read=version) for version in (OLD, NEW))
    what = [
        (old, "PASS", answered(out, old, recorded, rtol=rtol)),
        (new, "PASS", answered(out, new, recorded, answer, rtol)),
    ]
    return verdict_of(run(out, *what), **options)


def test_a_last_bit_within_the_tolerance_is_a_drift_of_one_ulp_that_does_not_block(tmp_path):
    verdict = drift_of(tmp_path, NEXT, rtol=1e-6)
    (fact,) = verdict["facts"]
    assert (fact["kind"], fact["blocks"], verdict["exit_code"]) == ("drifted", False, 0)
    (item,) = fact["drift"]
    assert (item["request"], item["output"], item["index"], item["ulp"]) == ("r", "y", [1], 1.0)
    assert (item["baseline"], item["candidate"], item["differing"], item["elements"]) == (
        "2.0",
        "2.0000002",
        1,
        3,
    )
    assert item["within"]


def test_a_drift_blocks_when_it_is_asked_to(tmp_path):
    assert drift_of(tmp_path, NEXT, rtol=1e-6, fail_on_drift=True)["exit_code"] == 1


def test_equal_answers_that_pass_by_tolerance_only_are_no_drift(tmp_path):
    old, new = (cell(written="1.15.5", producer="fixture", read=version) for version in (OLD, NEW))
    verdict = verdict_of(
        run(
            tmp_path,
            *((one, "PASS", answered(tmp_path, one, ONE, NEXT, 1e-6)) for one in (old, new)),
        )
    )
    assert verdict["facts"] == []


@pytest.mark.parametrize(("rtol", "code"), [(0.0, 1), (1e-6, 0)])
def test_what_either_writes_is_held_to_the_tolerance_of_the_case(tmp_path, rtol, code):
    """Each reads its own answers bit for bit, but they are not the same answers."""
    old, new = cell(written=OLD, read=OLD), cell(written=NEW, read=NEW)
    productions = [(cell(written=version, read=None), "PASS") for version in (OLD, NEW)]
    what = [
        (old, "PASS", answered(tmp_path, old, ONE, rtol=rtol)),
        (new, "PASS", answered(tmp_path, new, NEXT, rtol=rtol)),
    ]
    verdict = verdict_of(run(tmp_path, *productions, *what))
    (fact,) = [fact for fact in verdict["facts"] if fact["role"] == "both"]
    assert (fact["kind"], fact["beyond"], fact["drift"][0]["ulp"]) == ("drifted", code == 1, 1.0)
    assert verdict["exit_code"] == code


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.int32([1, 2, 3]), "y: is int32, expected float32"),
        (np.float32([[1, 2, 3]]), "y: has the shape [1, 3], expected [3]"),
        ({"z": ONE}, "outputs differ: missing 'y'; unexpected 'z'"),
    ],
)
def test_answers_that_are_not_even_comparable_block(tmp_path, answer, message):
    old, new = cell(written=OLD, read=OLD), cell(written=NEW, read=NEW)
    made = [(cell(written=version, read=None), "PASS") for version in (OLD, NEW)]
    what = [
        (old, "PASS", answered(tmp_path, old, ONE)),
        (new, "PASS", answered(tmp_path, new, answer)),
    ]
    verdict = verdict_of(run(tmp_path, *made, *what))
    assert (verdict["facts"][0]["cause"], verdict["exit_code"]) == (message, 1)


@pytest.mark.parametrize(
    ("path", "why"),
    [("evidence/gone.npz", "FileNotFoundError"), ("../outside.npz", "is not inside the folder")],
)
def test_an_answer_that_cannot_be_read_blocks_and_says_so(tmp_path, path, why):
    tensors.save(tmp_path / "outside.npz", named(NEXT))
    tmp_path = tmp_path / "out"
    old, new = (cell(written="1.15.5", producer="fixture", read=version) for version in (OLD, NEW))
    said = answered(tmp_path, new, ONE, NEXT, 1e-6)
    said["evidence"]["answer-0"] = path
    verdict = verdict_of(
        run(tmp_path, (old, "PASS", answered(tmp_path, old, ONE, rtol=1e-6)), (new, "PASS", said))
    )
    assert verdict["facts"][0]["cause"].startswith("cannot be measured: ")
    assert why in verdict["facts"][0]["cause"]
    assert verdict["exit_code"] == 1


# Two folders
# --------------------------------------------------------------------------------------------------


def test_an_answer_that_was_changed_since_the_run_is_not_measured(tmp_path):
    """The drift was beyond the tolerance; what is kept of the answer now is within it."""
    old, new = (cell(written="1.15.5", producer="fixture", read=version) for version in (OLD, NEW))
    said = answered(tmp_path, new, ONE, ONE + 1, 1e-6)
    tensors.save(tmp_path / said["evidence"]["answer-0"], named(NEXT))
    verdict = verdict_of(
        run(tmp_path, (old, "PASS", answered(tmp_path, old, ONE, rtol=1e-6)), (new, "PASS", said))
    )
    (item,) = verdict["facts"][0]["drift"]
    assert (verdict["exit_code"], item["within"]) == (1, False)
    assert "the answer to r" in item["message"]


def test_two_folders_are_compared_across_versions():
    names = {"regressed": ("PASS", "CRASH"), "fixed": ("CRASH", "PASS"), "failing": ("CRASH", "TIMEOUT"),
             "same": ("PASS", "PASS"), "new": (ABSENT, "CRASH"), "gone": ("PASS", ABSENT), "dropped": ("PASS", None)}  # fmt: skip
    folders = []
    for index, version in enumerate((OLD, NEW)):
        what = [(cell(name, version, version), *((o,) if isinstance(o, str) else o))
                for name, sides in names.items() if (o := sides[index]) is not None]  # fmt: skip
        folders.append(
            run(
                NOWHERE,
                *what,
                *((cell(name, version, None), "PASS") for name in names if name != "dropped"),
            )
        )
    verdict = compare(pairs_of_folders(*folders), SIDES)[1]
    found = kinds(verdict)["both"]
    assert {
        kind: [pair.split("/")[0] for pair in pairs] for kind, pairs in found.items() if pairs
    } == {
        "regressed": ["regressed"],
        "fixed": ["fixed"],
        "changed_error": ["failing"],
        "newly_covered": ["new"],
        "vanished": ["gone"],
    }
    assert kinds(verdict)["reads"]["vanished"] == [
        "dropped/tf2/tf2/values"
    ]  # nobody makes it: a committed artifact


def test_two_versions_in_one_folder_are_not_mixed_up():
    fixture = {"written": "1.15.5", "producer": "fixture"}
    old, new = cell(read=OLD, **fixture), cell(read=NEW, **fixture)
    a, b = run(NOWHERE, (old, "CRASH"), (new, "PASS")), run(NOWHERE, (old, "PASS"), (new, "PASS"))
    verdict = compare(pairs_of_folders(a, b), SIDES)[1]
    assert [(fact["kind"], fact["pair"]) for fact in verdict["facts"]] == [("fixed", old.id)]


def test_results_of_another_plan_do_not_count():
    folder = pair("PASS", "PASS")
    for result in folder.results.values():
        result.plan_id = "0" * 64
    assert verdict_of(Run.of(folder.out, folder.plan, folder.results.values()))["exit_code"] == 3


def test_a_run_that_did_not_come_to_its_end_is_no_basis(tmp_path):
    """All its cells may have results, as of a run that was killed, or edited without its
    digests.
    """
    a, b = (
        run(tmp_path / name, (cell(written="1.15.5", producer="fixture", read=version), "PASS"))
        for name, version in (("a", OLD), ("b", NEW))
    )
    assert compare(pairs_of_folders(a, b), SIDES)[1]["exit_code"] == 0
    verdict = compare(pairs_of_folders(a, replace(b, ended=False)), SIDES)[1]
    assert (verdict["ended"], verdict["exit_code"]) == (False, 3)
    assert headline(verdict).startswith("INCOMPLETE: ") and "results.sha256" in headline(verdict)


@pytest.mark.parametrize(("old", "new"), [("2.20", "2.21"), ("tf2.20", "tf2.21"), (OLD, NEW)])
def test_two_versions_of_one_run_have_the_names_of_every_other_command(
    tmp_path, monkeypatch, old, new
):
    fixture = {"written": "1.15.5", "producer": "fixture"}
    cells = [
        (replace(cell(read=version, **fixture), runtime=f"tf{version[:4]}"), "PASS")
        for version in (OLD, NEW)
    ]
    asked = run(tmp_path, *cells)
    asked.plan.write(tmp_path / "plan.json")
    monkeypatch.setattr(Run, "read", lambda _: asked)
    pairs, sides = versions_of(tmp_path, old, new)
    assert (len(pairs), [side["label"] for side in sides]) == (1, [OLD, NEW])


def test_a_version_that_the_run_has_not_is_named_with_those_it_has(monkeypatch):
    monkeypatch.setattr(Run, "read", lambda _: run(NOWHERE, (cell(), "PASS")))
    with pytest.raises(UnknownVersion, match=rf"2\.19 .*: {OLD}"):
        versions_of(NOWHERE, "2.19", NEW)
