"""Promises of the op history are shown by models that real releases have loaded, or waived with a
reason.
"""

import json
from pathlib import Path

import pytest

from compat_matrix.cases import all_cases
from compat_matrix.runtimes.places import RuntimeTrouble
from docs.promised import ATTR, KERNEL, NODE, OP, Promise, promises, specimen
from docs.promises import forms, record, waived, waivers
from docs.promises_asked import FIRST, PASSED_OVER, REFUSED, ask, key, shows, sides
from fixtures_v1 import cases as fixtures
from savedmodel_tools.skew.forms import FORMS
from savedmodel_tools.skew.history import TABLE, History, history


@pytest.fixture(scope="module")
def names():
    return [key(promise) for promise in promises(history(), FIRST)]


def test_every_promise_is_shown_or_waived(names):
    shown = record()
    assert len(names) == len(set(names)) > 1000
    assert [
        name for name in names if not isinstance(shown.get(name), str) and not waived(name)
    ] == []
    assert {how for how in shown.values() if isinstance(how, str)} == {REFUSED, PASSED_OVER}
    assert sum(isinstance(shown.get(name), str) for name in names) > 0.9 * len(names)


def test_the_record_speaks_of_no_promise_that_is_not_made(names):
    assert set(record()) - set(names) == set()


def test_every_waiver_has_a_reason_and_is_needed(names):
    shown = record()
    open_ = [name for name in names if not isinstance(shown.get(name), str)]
    rules = waivers()
    assert rules
    for number, rule in enumerate(rules):
        assert len(rule["reason"].split()) > 5, rule
        assert any(number in waived(name) for name in open_), rule
        assert rule["match"] not in ("", ".", ".*"), "no waiver is for everything"


def test_every_form_names_an_artifact_that_exists():
    known = {case.name for case in all_cases()} | set(fixtures())
    assert set(forms()) == set(FORMS)
    assert {case for case in forms().values() if case not in known} == set()


def planted(op, **members):
    lines = TABLE.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith(f'{{"op":"{op}",'):
            lines[number] = json.dumps({**json.loads(line), **members}, separators=(",", ":"))
            return History("\n".join(lines) + "\n")
    raise LookupError(op)


def test_a_change_that_is_new_in_the_history_is_a_promise_without_a_model():
    more = [key(promise) for promise in promises(planted("Mul", **{"in": "1.4-2.20"}), FIRST)]
    assert "2.21 - op Mul" in more
    assert "2.21 - op Mul" not in record()
    assert not waived("2.21 - op Mul")


@pytest.mark.parametrize(
    ("promise", "without", "with_", "how"),
    [
        (
            Promise("2.10", OP, "DisableCopyOnRead"),
            "Op type not registered 'DisableCopyOnRead' in binary",
            "",
            REFUSED,
        ),
        (Promise("2.10", OP, "DisableCopyOnRead"), "", "", ""),
        (
            Promise("2.10", OP, "DisableCopyOnRead"),
            "Op type not registered 'Other' in binary",
            "",
            "",
        ),
        (
            Promise("2.10", OP, "DisableCopyOnRead"),
            "Op type not registered 'DisableCopyOnRead' in binary",
            "Op type not registered 'DisableCopyOnRead' in binary",
            "",
        ),
        (Promise("2.16", ATTR, "MatMul", "grad_a"), "", "", PASSED_OVER),
        (Promise("2.16", ATTR, "MatMul", "grad_a"), "something else", "", ""),
    ],
)
def test_what_shows_a_promise(promise, without, with_, how):
    assert shows(promise, without, with_, history()) == how


def test_a_specimen_runs_its_node_where_a_kernel_changed():
    changed = {promise.kind: promise for promise in promises(history(), FIRST)}
    (graph,) = specimen(changed[KERNEL], history()).meta_graphs
    assert (
        graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name == NODE
    )
    (graph,) = specimen(changed[OP], history()).meta_graphs
    assert not graph.signature_def
    assert [node.op for node in graph.graph_def.node][-1] == changed[OP].op


@pytest.mark.tensorflow
def test_releases_on_both_sides_of_a_change_say_what_the_record_says(tmp_path):
    table, shown = history(), record()
    asked = [
        promise
        for promise in promises(table, FIRST)
        if promise.release == "2.10" and isinstance(shown[key(promise)], str)
    ]
    said = {promise: {} for promise in asked}
    for release in ("2.9", "2.10"):
        try:
            for promise, error in ask(release, asked, table, Path(tmp_path)):
                said[promise][release] = error
        except RuntimeTrouble as error:
            pytest.skip(f"the runtime of {release} is not installed: {error}")
    for promise, errors in said.items():
        without, with_ = (errors[name] for name in sides(promise, table))
        assert shows(promise, without, with_, table) == shown[key(promise)], promise
    assert len(asked) > 30
