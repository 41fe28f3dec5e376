"""Every HTML report in a real browser: no console errors, not wider than a phone, readable colours,
working filters and links.

Skipped where no Chromium is installed.
"""

from __future__ import annotations

import datetime
import json

import browser
import numpy as np
import pytest
from gate_folders import SIDES, cell, run

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.gate.compare import compare
from compat_matrix.gate.pairs import pairs_of_folders
from compat_matrix.report import gate_html, grid_html, html
from compat_matrix.verdict import Ledger
from compat_matrix.verdict.summary import summarise
from savedmodel_common.tensors import from_numpy
from savedmodel_migration.migrate import report as migration
from savedmodel_migration.migrate.records import (
    Part,
    Record,
    Status,
    Verdict,
)
from savedmodel_prove import page as prove_page
from savedmodel_prove.certificate import Certificate, Files, Node
from savedmodel_prove.records import CONVERTED, ORIGINAL, Answer
from savedmodel_prove.records import Record as Inputs

pytestmark = pytest.mark.skipif(
    browser.PROGRAM is None, reason=f"needs a browser: {', '.join(browser.NAMES)}"
)

LONG = "a_case_with_a_name_that_no_phone_has_room_for_in_one_line_of_text"
MESSAGE = (
    f"node 'model/{'layer/' * 40}MatMul' of the graph {'x' * 300} cannot be read. Export the model"
    " again."
)
FAILS = {
    "error_class": "tensorflow.python.framework.errors_impl.InvalidArgumentError",
    "message": MESSAGE,
}
CONSUMERS = [f"a_consumer_of_somebody_{number}" for number in range(18)]
OUTCOMES = [outcome.value for outcome in Outcome if outcome.observable]
WHEN = {"started": "2026-11-23T05:30:12+00:00"}

# Each text on the page that has less contrast with what is behind it than WCAG AA asks for.
PALE = """(() => {
  const numbers = (colour) => [...colour.match(/[\\d.]+/g).map(Number), 1].slice(0, 4);
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat([1]);
  const behind = (part) => {
    const layers = [];
    for (let one = part; one; one = one.parentElement) layers.push(numbers(getComputedStyle(one).backgroundColor));
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return [...document.querySelectorAll('body *')].filter((part) => {
    const says = [...part.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!says || !part.getClientRects().length) return false;
    const back = behind(part), text = over(numbers(getComputedStyle(part).color), back);
    const [dark, bright] = [light(back), light(text)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05) < 4.5;
  }).map((part) => part.outerHTML.slice(0, 200));
})()"""


@pytest.fixture(scope="module")
def chromium():
    with browser.started() as one:
        yield one


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Every kind of report, with many columns, long names and failures."""
    folder = tmp_path_factory.mktemp("pages")
    texts = {
        "matrix": matrix_page(folder),
        "check": matrix_page(folder, f"exports/{LONG}/{LONG}"),
        "grid": grid_page(folder),
        "gate": gate_page(folder),
        "migration": migration.as_html(models(), {}, "2.21.0", WHEN["started"]),
        "migration of many": migration.as_html(
            models(), {LONG: "pages/x.html"} | {f"{n}": "pages/x.html" for n in range(30)}
        ),
        "proof": prove_page.render(proof()),
        "model": (
            html.environment().get_template("migration_model.html.j2").render(record=models()[0])
        ),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


def matrix_page(folder, name=""):
    cells = [cell(f"{LONG}_{case}", "1.15.5", "2.21.0", check, "fixture", who)
             for case in range(8) for who in CONSUMERS for check in ("load", "values")]  # fmt: skip
    what = [
        (one, "PASS") if n % 5 else (one, OUTCOMES[n // 5 % len(OUTCOMES)], FAILS)
        for n, one in enumerate(cells)
    ]
    plan, records, summary = judged(folder / "matrix", what)
    about = None
    if name:
        failed = [record["cell"] for record in records if record["expected"] is False]
        cause = {"outcome": "CRASH", "models": [LONG] * 8, "title": f"{CONSUMERS[0]} / load", "lines": [MESSAGE], "cells": failed,
                 "evidence": [f"evidence/{LONG}"], "replay": f"savedmodel-compat check {name}"}  # fmt: skip
        about = {"names": {one.case: name for one in cells}, "causes": [cause]}
    tails = {
        record["cell"]: {"stderr": MESSAGE} for record in records if record["expected"] is False
    }
    return html.render(plan.to_json(), records, summary, None, tails, about)


def judged(folder, what):
    """A plan, its results as records, and their summary."""
    done = run(folder, *what)
    results = list(done.results.values())
    summary = summarise(done.plan, results, Ledger(), datetime.date(2026, 11, 23), WHEN)
    return done.plan, [json.loads(result.to_line()) for result in results], summary


def grid_page(folder):
    versions = [f"2.{minor}.1" for minor in range(22)]
    cells = [cell(LONG, writer, None) for writer in versions]
    cells += [cell(LONG, writer, reader) for writer in versions for reader in versions]
    what = [(one, "PASS") if n % 7 else (one, "CALL_ERROR", FAILS) for n, one in enumerate(cells)]
    done = run(folder / "grid", *what)
    results = list(done.results.values())
    summary = summarise(done.plan, results, Ledger(), datetime.date(2026, 11, 23), WHEN)
    return grid_html.render(done.plan, results, summary, {}, {})


def gate_page(folder):
    outcomes = (
        ("PASS", "CRASH"),
        ("CRASH", "PASS"),
        ("CRASH", "LOAD_ERROR"),
        ("CRASH", "CRASH"),
        ("PASS", "PASS"),
    )
    runs = []
    for side, version in enumerate(("2.20.0", "2.21.0")):
        what = [(cell(f"{LONG}_{n}", "1.15.5", version, "values", "fixture", who), outcomes[n][side])
                for n in range(len(outcomes)) for who in CONSUMERS]  # fmt: skip
        runs.append(
            run(folder / version, *((*item, FAILS) if item[1] != "PASS" else item for item in what))
        )
    return gate_html.render(compare(pairs_of_folders(*runs), SIDES, lambda pair: [])[1])


def models():
    part = Part(
        ["serve"],
        Status.DIFFERS,
        verdicts=[Verdict("weights", "differs", MESSAGE), Verdict("assets", "equal")],
    )
    part.names = {f"{LONG}/{LONG}/kernel": f"{LONG}/.ATTRIBUTES/VARIABLE_VALUE"}
    first = Record(
        f"/models/{LONG}/{LONG}",
        LONG,
        status=Status.DIFFERS,
        reason=MESSAGE,
        fix=MESSAGE,
        parts=[part],
    )
    return [
        first,
        *(
            Record(
                f"model {n}",
                f"{n}",
                status=Status.MIGRATED if n % 2 else Status.REFUSED,
                reason=MESSAGE,
            )
            for n in range(30)
        ),
    ]


def proof():
    """The certificate of outputs with long names that differ in a node."""
    ours, theirs = np.float32([1, 1, 1]), np.float32([1, 1, 7])
    sides = {
        ORIGINAL: Answer({LONG: from_numpy(ours)}),
        CONVERTED: Answer({LONG: from_numpy(theirs)}),
    }
    node = Node(f"{LONG}/{LONG}/MatMul", "MatMul", f"{LONG}:0", "random 0", 6.0, 1e-6)
    return Certificate(
        Files(f"/models/{LONG}", {}), Files(f"/models/{LONG}.onnx", {}), ("serve",), LONG, 0,
        {ORIGINAL: "TensorFlow", CONVERTED: "ONNX Runtime"},
        {ORIGINAL: {"tensorflow": "2.21.0"}, CONVERTED: {"onnxruntime": "1.20.0"}},
        [Inputs("random 0", {}, sides)], {LONG: [node]}, [MESSAGE],
    )  # fmt: skip


NAMES = ("matrix", "check", "grid", "gate", "migration", "migration of many", "model", "proof")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [browser.PHONE, browser.DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("name", NAMES)
def test_a_report_fits_its_window_and_can_be_read(chromium, pages, name, width, dark):
    page = chromium.open(pages[name], width, dark=dark)
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true })")
    wide, room = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= room == width
    assert page.evaluate(PALE) == []
    assert page.errors == []


@pytest.mark.parametrize("name", ["matrix", "check", "gate", "migration", "migration of many"])
def test_a_search_and_a_choice_leave_what_fits(chromium, pages, name):
    page = chromium.open(pages[name])
    shown = (
        "[...document.querySelectorAll('.filtered')].filter((item) =>"
        " item.getClientRects().length).length"
    )
    every = page.evaluate(shown)
    page.evaluate("document.getElementById('q').focus()")
    page.type("MODEL 3" if "migration" in name else f"{LONG}_3 node")
    some = page.evaluate(shown)
    assert 0 < some < every
    assert (
        page.evaluate("document.getElementById('shown').textContent") == f"{some} of {every} shown"
    )
    page.type(" nothing like it")
    assert page.evaluate(shown) == 0
    page.evaluate("q.value = ''; q.dispatchEvent(new Event('input'))")
    choose = """(() => {
      const choice = document.querySelector('.controls select');
      choice.value = choice.options[1].value; choice.dispatchEvent(new Event('change'));
      return [...document.querySelectorAll('.filtered')].filter((item) => item.getClientRects().length)
        .every((item) => item.dataset[choice.id] === choice.value);
    })()"""
    assert page.evaluate(choose) is True


def test_a_link_opens_what_it_leads_to_and_drops_a_filter_that_hides_it(chromium, pages):
    page = chromium.open(pages["matrix"])
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = false })")
    page.evaluate("q.value = 'nothing like it'; q.dispatchEvent(new Event('input'))")
    target = page.evaluate("document.querySelector('#unexpected + ul a').hash.slice(1)")
    page.evaluate("document.querySelector('#unexpected + ul a').click()")
    place = f"document.getElementById({json.dumps(target)})"
    page.evaluate(f"new Promise((done) => setTimeout(done, 0)).then(() => {place}.open)")
    assert page.evaluate(f"[{place}.open, {place}.getClientRects().length > 0, q.value]") == [
        True,
        True,
        "",
    ]
    top, controls = page.evaluate(
        f"[{place}.getBoundingClientRect().top, shown.parentElement.getBoundingClientRect().bottom]"
    )
    assert top >= controls, "the filter is in front of what the link leads to"


def test_a_printed_report_is_black_on_white_also_in_the_dark(chromium, pages):
    page = chromium.open(pages["check"], dark=True, media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('.controls')).display") == "none"
