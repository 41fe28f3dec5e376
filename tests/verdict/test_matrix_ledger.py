"""The ledger of known failures: every violation, by table."""

import datetime

import pytest
from matrix_world import TODAY, entry
from packaging.version import Version

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Decision, Plan
from compat_matrix.cells.results import Result
from compat_matrix.verdict import Ledger, LedgerError
from compat_matrix.verdict.ledger import judge

VIOLATIONS = (
    "unexpected_fail",
    "unexpected_pass",
    "wrong_error",
    "dead_entry",
    "too_wide",
    "overlap",
    "expired",
    "listed_not_run",
)


def cell(
    case="a",
    consumer="tf2",
    check="load",
    producer="fixture",
    producer_version="1.15.5",
    version="2.21.0",
    decided=None,
):
    if check == "produce":
        consumer, version = "-", ""
    return Cell(
        case, producer, producer_version, consumer, version, check, "local", "x", decided=decided
    )


def judged(cells, outcomes, *entries, today=TODAY, tool=None):
    """The violations (name -> facts) for cells that came to ``outcomes``: Outcome name, or (name,
    class, message), or None.
    """
    plan = Plan(tuple(cells))
    results = {}
    for one, outcome in zip(cells, outcomes):
        if outcome is not None:
            name, error_class, message = (
                (outcome, None, "") if isinstance(outcome, str) else outcome
            )
            results[one.id] = Result(
                plan.plan_id,
                one.id,
                Outcome(name),
                error_class=error_class,
                message=message,
                message_normalised=message,
            )
    report = judge(Ledger.parse("schema = 1\n" + "\n".join(entries)), plan, results, today, tool)
    return {name: facts for name, facts in vars(report).items() if facts}, report


NOT_FOUND = ("LOAD_ERROR", "tensorflow.errors.NotFoundError", "Op type not registered 'Foo'")
KNOWN = entry("a", "fixture", "tf2", "load")


@pytest.mark.parametrize(
    ("outcome", "entries", "violations"),
    [
        ("PASS", [], []),
        (NOT_FOUND, [], ["unexpected_fail"]),
        ("REJECTED", [], ["unexpected_fail"]),
        ("CRASH", [], ["unexpected_fail"]),
        (NOT_FOUND, [KNOWN], []),
        ("PASS", [KNOWN], ["unexpected_pass"]),
        (("LOAD_ERROR", "tensorflow.errors.DataLossError", ""), [KNOWN], ["wrong_error"]),
        (("CALL_ERROR", "tensorflow.errors.NotFoundError", ""), [KNOWN], ["wrong_error"]),
        ("CRASH", [KNOWN], ["wrong_error"]),
        (("SETUP_ERROR", "NotFoundError", ""), [KNOWN], ["unexpected_fail"]),
        (("ENV_ERROR", "NotFoundError", ""), [KNOWN], ["unexpected_fail"]),
        (NOT_FOUND, [entry("a", error_class=None, message="^Op type .* '[A-Z]oo'$")], []),
        (NOT_FOUND, [entry("a", error_class="NotFoundError", message="other")], ["wrong_error"]),
        (NOT_FOUND, [entry("a", error_class="tensorflow.errors.NotFoundError")], []),
        (NOT_FOUND, [entry("a", error_class="FoundError")], ["wrong_error"]),
        (None, [KNOWN], ["listed_not_run"]),
        (("NOT_RUN", None, "deselected"), [KNOWN], ["listed_not_run"]),
        ("PASS", [entry("gone")], ["dead_entry"]),
        (NOT_FOUND, [KNOWN, entry("*", check="load")], ["overlap"]),
        (NOT_FOUND, [entry("a", until=TODAY)], []),
        (NOT_FOUND, [entry("a", until=datetime.date(2025, 5, 31))], ["expired"]),
    ],
)
def test_one_cell(outcome, entries, violations):
    found, _ = judged([cell()], [outcome], *entries)
    assert sorted(found) == sorted(violations)


@pytest.mark.parametrize(
    ("until", "tool", "expired"),
    [("0.3", "0.2.9", False), ("0.3", "0.3.0", True), ("0.3", None, False), ("0.3", "1.0", True)],
)
def test_an_entry_may_expire_with_a_version_of_this_project(until, tool, expired):
    found, report = judged(
        [cell()], [NOT_FOUND], entry("a", until=until), tool=tool and Version(tool)
    )
    assert ("expired" in found) == expired == report.stale


@pytest.mark.parametrize(
    ("ranges", "applies"),
    [
        ({}, True),
        ({"consumer_version": ">=2.16"}, True),
        ({"consumer_version": "<2.16"}, False),
        ({"producer_version": "<2"}, True),
        ({"producer_version": ">=2", "consumer_version": ">=2.16"}, False),
        ({"producer_version": "==1.15.*", "consumer_version": "~=2.20"}, True),
    ],
)
def test_version_ranges_of_both_sides(ranges, applies):
    found, _ = judged([cell()], [NOT_FOUND], entry("a", **ranges))
    # An entry for other versions is not dead here: it is for another machine.
    assert sorted(found) == ([] if applies else ["unexpected_fail"])


def test_a_runtime_without_tensorflow_fits_no_range():
    absent = cell(version="absent", decided=Decision(Outcome.NOT_RUN, "no TensorFlow"))
    found, _ = judged(
        [absent], [("NOT_RUN", None, "no TensorFlow")], entry("a", consumer_version=">=1")
    )
    assert found == {}


def test_prereleases_are_versions_too():
    found, _ = judged(
        [cell(version="2.22.0rc1")], [NOT_FOUND], entry("a", consumer_version=">=2.21")
    )
    assert found == {}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({"case": "a*"}, {"a", "ab"}),
        ({"case": "*b"}, {"ab", "b"}),
        ({"case": "*"}, {"a", "ab", "b"}),
        ({"case": ["a", "b"]}, {"a", "b"}),
        ({"case": "a.*"}, set()),  # a pattern is no regular expression
        ({"case": "*", "check": "values"}, set()),
        ({"case": "*", "consumer": "tf*"}, {"a", "ab", "b"}),
    ],
)
def test_selectors(selector, selected):
    cells = [cell(case) for case in ("a", "ab", "b")]
    found, _ = judged(cells, [NOT_FOUND] * 3, entry(**selector))
    assert {fact["cell"].split("/")[0] for fact in found.get("unexpected_fail", [])} == {
        "a",
        "ab",
        "b",
    } - selected


def test_a_star_does_not_select_a_production():
    cells = [cell(check="produce"), cell()]
    found, _ = judged(cells, [NOT_FOUND, NOT_FOUND], entry("a"))
    assert [fact["cell"] for fact in found["unexpected_fail"]] == [cells[0].id]
    found, _ = judged(cells, [NOT_FOUND, "PASS"], entry("a", consumer="-", check="produce"))
    assert found == {}


def test_more_than_twenty_cells_need_a_reason_to_be_one_entry():
    cells = [cell(f"a{i}") for i in range(21)]
    found, report = judged(cells, [NOT_FOUND] * 21, entry("a*"))
    assert found["too_wide"][0]["cells"] == 21
    assert report.stale
    assert judged(cells, [NOT_FOUND] * 21, entry("a*", wide="one cause"))[0] == {}
    assert judged(cells[:20], [NOT_FOUND] * 20, entry("a*"))[0] == {}


def test_cells_that_do_not_apply_are_not_selected():
    decided = Decision(Outcome.NOT_APPLICABLE, "cannot")
    cells = [cell(f"a{i}", decided=decided) for i in range(21)]
    outcomes = [("NOT_APPLICABLE", None, "cannot")] * 21
    found, _ = judged([*cells, cell("b")], [*outcomes, "PASS"], entry("a*"))
    assert sorted(found) == ["dead_entry"]


def test_an_entry_for_a_reader_that_this_tensorflow_lacks_is_not_dead():
    lacking = Decision(Outcome.NOT_APPLICABLE, "came with 2.12")
    cells = [cell("a"), cell("a", consumer="reference", decided=lacking)]
    outcomes = ["PASS", ("NOT_APPLICABLE", None, "came with 2.12")]
    found, _ = judged(cells, outcomes, entry("a", consumer="reference"))
    assert found == {}


def test_an_overlap_names_the_cell_and_both_entries():
    found, _ = judged([cell()], [NOT_FOUND], KNOWN, entry("*"))
    fact = found["overlap"][0]
    assert fact["cell"] == cell().id
    assert fact["entries"] == [0, 1]


def test_a_listed_cell_that_did_not_run_is_no_reproach():
    _, report = judged([cell()], [None], KNOWN)
    assert not report.stale


VALID = entry("a")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nonsense", "not TOML"),
        ("", "schema must be 1"),
        ("schema = 2", "schema must be 1"),
        ("schema = 1\nexpectations = 3", "unknown key 'expectations'"),
        ("schema = 1\nexpect = 3", "array of tables"),
        ("schema = 1\n" + VALID + "reasn = 'x'", "unknown field 'reasn'"),
        ("schema = 1\n" + VALID.replace('reason = "known"', ""), "reason is missing"),
        ("schema = 1\n" + VALID.replace('"known"', '"  "'), "reason must be a text"),
        ("schema = 1\n" + VALID.replace('"known"', '"TODO: say why"'), "still to be written"),
        ("schema = 1\n" + VALID.replace('"bug"', '"flaky"'), "kind is 'flaky'"),
        ("schema = 1\n" + VALID.replace("LOAD_ERROR", "BROKEN"), "'BROKEN' is not a valid Outcome"),
        (
            "schema = 1\n" + VALID.replace("LOAD_ERROR", "PASS"),
            "outcome PASS contradicts a prediction of the op history: it needs an issue",
        ),
        (
            "schema = 1\n" + VALID.replace("LOAD_ERROR", "SETUP_ERROR"),
            "SETUP_ERROR cannot be expected",
        ),
        ("schema = 1\n" + VALID.replace("LOAD_ERROR", "NOT_RUN"), "NOT_RUN cannot be expected"),
        ("schema = 1\n" + entry("a", error_class=None), "LOAD_ERROR needs error_class or message"),
        ("schema = 1\n" + entry("a", message="("), "not a regular expression"),
        ("schema = 1\n" + entry("a", consumer_version="2.16"), "consumer_version"),
        ("schema = 1\n" + entry("a/b"), "case must be"),
        ("schema = 1\n" + entry(["a", 3]), "case must be"),
        ("schema = 1\n" + entry([]), "case must be"),
        ("schema = 1\n" + entry("a", added="2025-01-01"), "added must be a date"),
        ("schema = 1\n" + entry("a", until="soon"), "neither a date nor a version"),
    ],
)
def test_an_invalid_file_is_refused_with_the_reason(text, problem):
    with pytest.raises(LedgerError, match="(?s).*" + problem.replace("(", r"\(")):
        Ledger.parse(text)


def test_all_problems_of_a_file_are_told_at_once():
    with pytest.raises(LedgerError) as caught:
        Ledger.parse("schema = 1\n" + entry("a", kind="x") + VALID + entry("a", outcome="y"))
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "entry 1",
        "entry 3",
    ]


def test_outcomes_that_say_all_need_no_error():
    for outcome in ("CRASH", "TIMEOUT", "FAIL_VALUE", "FAIL_SIGNATURE", "FAIL_STRUCTURE"):
        assert (
            Ledger.parse("schema = 1\n" + entry("a", outcome=outcome, error_class=None))
            .entries[0]
            .outcome
            == outcome
        )


def test_one_cause_may_show_itself_in_several_outcomes():
    text = entry("a", outcome=["LOAD_ERROR", "REJECTED"], message="missing", error_class=None)
    (one,) = Ledger.parse("schema = 1\n" + text).entries
    assert one.describes(Outcome.LOAD_ERROR, "X", "it is missing")
    assert one.describes(Outcome.REJECTED, "Y", "missing")
    assert not one.describes(Outcome.CALL_ERROR, "X", "missing")
    assert not one.describes(Outcome.REJECTED, "Y", "something else")
    assert "LOAD_ERROR,REJECTED" in one.title()


@pytest.mark.parametrize(
    "outcome", [[], ["PASS", "CRASH"], ["DISAGREE", "CRASH"], ["CRASH", "CRASH"], ["CRASH", "y"]]
)
def test_outcomes_that_make_no_list_are_refused(outcome):
    with pytest.raises(LedgerError, match="entry 1"):
        Ledger.parse("schema = 1\n" + entry("a", outcome=outcome, error_class=None))


def test_our_own_ledger_is_valid():
    from compat_matrix.verdict import DEFAULT_PATH

    assert Ledger.read(DEFAULT_PATH).entries
