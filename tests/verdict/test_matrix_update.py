"""Rewriting the expectation file from the results of a run."""

import pytest
import tomlkit
from matrix_world import TODAY, entry

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Decision, Plan
from compat_matrix.cells.results import Observation, Result
from compat_matrix.verdict import Ledger
from compat_matrix.verdict.blocks import split_blocks
from compat_matrix.verdict.ledger import judge
from compat_matrix.verdict.new_entries import UpdateRefused
from compat_matrix.verdict.update import update

CHECKS = ("load", "values", "relocate")
EVERY = [*CHECKS]
NOT_FOUND = (
    "LOAD_ERROR",
    "tensorflow.errors.NotFoundError",
    "Op type not registered 'Foo' in binary",
)
HEAD = "# The ledger.\nschema = 1\n"


def cells(*cases, producers=("tf2",), consumers=("c_api",), checks=CHECKS):
    out = []
    for case in cases:
        for producer in producers:
            out.append(Cell(case, producer, "2.21.0", "-", "", "produce", "local", "x"))
            out += [
                Cell(case, producer, "2.21.0", c, "2.21.0", check, "local", "x")
                for c in consumers
                for check in checks
            ]
    return Plan(tuple(out))


def run(plan, outcomes):
    """Results: PASS but where ``outcomes`` (prefix or whole of a cell id without versions) says
    (name, class, message).
    """
    results = {}
    for cell in plan:
        name = f"{cell.case}/{cell.producer}/{cell.consumer}/{cell.check}"
        found = [outcome for prefix, outcome in outcomes.items() if name.startswith(prefix)]
        outcome, error_class, message = (*(found[0] if found else ("PASS",)), None, "")[:3]
        if Outcome(outcome).observable:
            results[cell.id] = Result.observed(
                plan.plan_id, cell.id, Observation(outcome, error_class, message or "")
            )
        else:
            results[cell.id] = Result.not_executed(plan.plan_id, cell.id, Outcome(outcome), message)
    return results


def updated(text, plan, outcomes, reason="because"):
    """Update and prove that the new file explains the run."""
    results = run(plan, outcomes)
    done = update(text, plan, results, reason, TODAY)
    verdict = vars(judge(Ledger.parse(done.text), plan, results, TODAY))
    assert {name: facts for name, facts in verdict.items() if facts} == {}
    assert (
        update(done.text, plan, results, "", TODAY).text == done.text
    )  # a second time changes nothing
    return done


def tables(text):
    return tomlkit.parse(text).unwrap().get("expect", [])


def selectors(text):
    return [
        tuple(table[name] for name in ("case", "producer", "consumer", "check"))
        for table in tables(text)
    ]


def test_a_file_that_agrees_is_not_touched():
    text = HEAD + "\n# why\n" + entry("a", "tf2", "c_api") + "\n"
    done = update(text, cells("a"), run(cells("a"), {"a/tf2/c_api": NOT_FOUND}), "", TODAY)
    assert (done.text.strip(), done.changes) == (text.strip(), [])


def test_new_failures_become_one_entry_where_error_and_checks_agree():
    done = updated(HEAD, cells("a"), {"a/tf2/c_api": NOT_FOUND})
    (table,) = tables(done.text)
    assert table == {
        "case": "a",
        "producer": "tf2",
        "consumer": "c_api",
        "check": EVERY,
        "outcome": "LOAD_ERROR",
        "error_class": "NotFoundError",
        "message": "Op type not registered 'Foo' in binary",
        "kind": "bug",
        "reason": "because",
        "added": TODAY,
    }
    assert done.new_entries == 1
    assert done.text.startswith("# The ledger.\nschema = 1\n\n[[expect]]\n")


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ({"a/tf2/c_api/values": NOT_FOUND}, [("a", "tf2", "c_api", "values")]),
        (
            {"a/tf2/c_api/values": NOT_FOUND, "a/tf2/c_api/relocate": NOT_FOUND},
            [("a", "tf2", "c_api", ["values", "relocate"])],
        ),
        (
            {"a": NOT_FOUND},
            [
                ("a", ["reference", "tf2"], "-", "produce"),
                ("a", ["reference", "tf2"], "c_api", EVERY),
            ],
        ),
        (
            {"a/tf2/c_api/values": NOT_FOUND, "a/tf2/c_api/relocate": ("CRASH", "SIGABRT")},
            [("a", "tf2", "c_api", "relocate"), ("a", "tf2", "c_api", "values")],
        ),
        (
            {"a/tf2/c_api": NOT_FOUND, "a/reference/c_api/load": NOT_FOUND},
            [
                ("a", ["reference", "tf2"], "c_api", "load"),
                ("a", "tf2", "c_api", ["values", "relocate"]),
            ],
        ),
        (
            {"a/tf2/c_api": NOT_FOUND, "b/tf2/c_api": NOT_FOUND},
            [(["a", "b"], "tf2", "c_api", EVERY)],
        ),
    ],
)
def test_grouping(outcomes, expected):
    plan = cells("a", "b", producers=("reference", "tf2"))
    assert selectors(updated(HEAD, plan, outcomes).text) == expected


def test_a_new_entry_leaves_out_what_an_old_one_describes():
    done = updated(
        HEAD + entry("a", "tf2", "c_api", check="load"), cells("a"), {"a/tf2/c_api": NOT_FOUND}
    )
    assert selectors(done.text) == [
        ("a", "tf2", "c_api", "load"),
        ("a", "tf2", "c_api", ["values", "relocate"]),
    ]


def test_messages_that_differ_become_two_entries():
    outcomes = {
        "a/tf2/c_api/load": ("LOAD_ERROR", "x.Error", "cannot restore variable alpha of the model"),
        "a/tf2/c_api/values": ("LOAD_ERROR", "x.Error", "cannot restore variable all of the model"),
    }
    messages = [table["message"] for table in tables(updated(HEAD, cells("a"), outcomes).text)]
    assert messages == [message for _, _, message in outcomes.values()]


def test_a_message_is_pinned_literally():
    message = r"f(x) = [1.5*] \d '{y}' failed"
    (table,) = tables(
        updated(HEAD, cells("a"), {"a/tf2/c_api/load": ("CALL_ERROR", None, message)}).text
    )
    assert table["message"] == r"f\(x\) = \[1\.5\*\] \\d '\{y\}' failed"


def test_numbers_of_a_difference_are_not_pinned():
    (table,) = tables(
        updated(HEAD, cells("a"), {"a/tf2/c_api/load": ("FAIL_VALUE", None, "off by 1e-7")}).text
    )
    assert "message" not in table
    assert "error_class" not in table


def test_an_error_nobody_can_recognise_is_refused():
    with pytest.raises(UpdateRefused, match="cannot be pinned"):
        updated(HEAD, cells("a"), {"a/tf2/c_api/load": ("CALL_ERROR", None, "")})


OTHERS = "# Section: b\n\n# about b, first line\n# second line\n" + entry(
    "b", "tf2", "c_api", reason="b  is known"
)


def test_what_passes_goes_and_other_comments_stay():
    text = HEAD + "\n# about a\n" + entry("a", "tf2", "c_api") + "\n" + OTHERS
    done = updated(text, cells("a", "b"), {"b/tf2/c_api": NOT_FOUND})
    assert "about a" not in done.text
    assert OTHERS.strip() in done.text
    assert selectors(done.text) == [("b", "tf2", "c_api", "*")]
    assert len(done.changes) == 1 and "entry 1 (a/tf2/c_api/* -> LOAD_ERROR)" in done.changes[0]


def test_a_dead_entry_goes():
    done = updated(HEAD + entry("gone") + OTHERS, cells("b"), {"b/tf2/c_api": NOT_FOUND})
    assert selectors(done.text) == [("b", "tf2", "c_api", "*")]


def test_an_entry_for_other_versions_stays():
    text = HEAD + "\n" + entry("b", consumer_version="<2")
    done = update(text, cells("b"), run(cells("b"), {}), "", TODAY)
    assert (done.text, done.changes) == (text, [])


def test_another_error_is_changed_in_place():
    text = HEAD + "\n# about a\n" + entry("a", "tf2", "c_api", issue="https://x") + "# at the end\n"
    done = updated(text, cells("a"), {"a/tf2/c_api": ("CRASH", "SIGABRT")}, reason="")
    (table,) = tables(done.text)
    assert (table["outcome"], table["error_class"], table["reason"], table["issue"]) == (
        "CRASH",
        "SIGABRT",
        "known",
        "https://x",
    )
    assert "# about a\n[[expect]]" in done.text
    assert "# at the end" in done.text
    assert len(done.changes) == 1


def test_what_fails_for_a_part_only_keeps_its_reason_there():
    text = HEAD + entry("*", "tf2", "c_api", kind="by_design", reason="old reason", until="9.9")
    outcomes = {"a/tf2/c_api": NOT_FOUND, "b/tf2/c_api/load": ("CRASH", "SIGABRT")}
    done = updated(text, cells("a", "b"), outcomes, reason="new reason")
    found = {
        table["case"]: (table["kind"], table["reason"], table.get("until"))
        for table in tables(done.text)
    }
    assert found == {"a": ("by_design", "old reason", "9.9"), "b": ("bug", "new reason", None)}


@pytest.mark.parametrize("rest", [NOT_FOUND, ("CRASH", "SIGABRT")])
def test_what_passes_in_a_part_is_taken_out(rest):
    done = updated(HEAD + entry("a", "tf2", "c_api"), cells("a"), {"a/tf2/c_api/load": rest})
    assert selectors(done.text) == [("a", "tf2", "c_api", "load")]


def test_producers_become_a_list():
    plan = cells("a", producers=("reference", "tf2", "third"))
    done = updated(HEAD, plan, {"a/tf2/c_api": NOT_FOUND, "a/third/c_api": NOT_FOUND})
    assert selectors(done.text) == [("a", ["tf2", "third"], "c_api", EVERY)]


def test_new_entries_are_put_where_they_belong():
    text = HEAD + entry("a", "tf2", "c_api") + "# about c\n" + entry("c", "tf2", "c_api")
    done = updated(
        text,
        cells("a", "b", "c"),
        {"a/tf2/c": NOT_FOUND, "b/tf2/c": NOT_FOUND, "c/tf2/c": NOT_FOUND},
    )
    assert [table["case"] for table in tables(done.text)] == ["a", "b", "c"]
    assert '# about c\n[[expect]]\ncase = "c"' in done.text


def test_new_failures_need_a_reason():
    with pytest.raises(
        UpdateRefused,
        match=r"1 kinds .*\n3 x LOAD_ERROR NotFoundError",
    ):
        update(HEAD, cells("a"), run(cells("a"), {"a/tf2/c_api": NOT_FOUND}), " ", TODAY)


@pytest.mark.parametrize(
    ("outcomes", "problem"),
    [
        ({"a/tf2/c_api/load": ("NOT_RUN", None, "deselected")}, "a partial run: 1 planned cells"),
        (
            {"a/tf2/c_api": ("NOT_RUN", None, "no TensorFlow in runtime local")},
            "a partial run: 3 planned cells",
        ),
        (
            {"a/tf2/c_api/load": ("SETUP_ERROR", "x", "")},
            "the harness or the machine failed in 1 cells",
        ),
        (
            {"a/tf2/c_api/load": ("ENV_ERROR", "x", "")},
            "the harness or the machine failed in 1 cells",
        ),
    ],
)
def test_a_run_that_does_not_say_everything_is_refused(outcomes, problem):
    with pytest.raises(UpdateRefused, match=problem):
        update(HEAD, cells("a"), run(cells("a"), outcomes), "r", TODAY)


def test_a_missing_result_is_a_partial_run():
    plan = cells("a")
    results = run(plan, {})
    results.popitem()
    with pytest.raises(UpdateRefused, match="partial"):
        update(HEAD, plan, results, "r", TODAY)


def test_a_failed_production_is_listed_and_its_cells_are_not():
    outcomes = {
        "a/tf2/-": ("REJECTED", "x.Refused", "not in the RFC"),
        "a/tf2/c_api": ("NOT_RUN", None, "producer failed: REJECTED"),
    }
    plan = cells("a")
    done = update(HEAD + entry("a", "tf2", "c_api"), plan, run(plan, outcomes), "r", TODAY)
    assert selectors(done.text) == [("a", "tf2", "-", "produce")]


def test_cells_that_do_not_apply_are_nobodys_business():
    decided = Decision(Outcome.NOT_APPLICABLE, "cannot")
    plan = Plan(
        (
            *cells("a").cells,
            Cell("z", "tf2", "1", "c_api", "1", "load", "local", "x", decided=decided),
        )
    )
    assert update(HEAD, plan, run(cells("a"), {}), "", TODAY).changes == []


def test_a_file_written_as_inline_tables_is_refused():
    text = (
        'schema = 1\nexpect = [{case = "a", producer = "*", consumer = "*", check = "*", outcome ='
        ' "CRASH", kind = "bug", '
    )
    text += 'reason = "r", added = 2025-01-01}]\n'
    with pytest.raises(UpdateRefused, match="cannot be cut"):
        update(text, cells("a"), run(cells("a"), {"a/tf2/c_api": ("CRASH",)}), "r", TODAY)


def test_blocks():
    head, blocks = split_blocks(
        "# head\n\n# of a\n[[expect]]\na = 1\n\n# free\n\n# of b\n[[ expect ]]  # x\nb = 2\n"
    )
    assert head == "# head\n\n"
    assert blocks == [
        ("# of a\n[[expect]]\na = 1\n", "\n# free\n\n"),
        ("# of b\n[[ expect ]]  # x\nb = 2\n", ""),
    ]
