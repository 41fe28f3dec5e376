"""Faults in what a run compares with: recorded answers, contracts, the ledger of known failures."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import numpy as np

from property_tests.faults.declaring import Fault, Plant
from property_tests.faults.found_by.command import Command
from property_tests.faults.planting import answers, artifact_of, edit, ledger
from property_tests.faults.scenes import HALF_PLUS_TWO, SUBJECT
from savedmodel_common.tensors import Tensor

RUN = "matrix run --out run -n 1 --fixtures artifacts --consumer c_api --expectations ledger.toml"


def _next_number(answer: dict[str, Tensor]) -> None:
    for name, tensor in answer.items():
        answer[name] = Tensor(
            tensor.dtype, np.nextafter(tensor.array, np.array(np.inf, tensor.array.dtype))
        )


def _lose_output(answer: dict[str, Tensor]) -> None:
    answer.popitem()


def _golden(folder: Path) -> None:
    """The weights are others, the signatures are not."""
    edit("values")(folder)


def _lose_request(folder: Path) -> None:
    """A request is in the provenance and no longer in io.json."""
    path = artifact_of(folder) / "io" / "io.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    del facts["requests"][0]
    path.unlink()
    path.write_text(json.dumps(facts), encoding="utf-8")


def _both(*plants: Plant) -> Plant:
    def plant(folder: Path) -> None:
        for one in plants:
            one(folder)

    return plant


OTHER_ANSWER = answers(_next_number, stamped=True)
ROWS = (
    Fault(
        "changed-answer",
        "a recorded answer is one unit in the last place away",
        OTHER_ANSWER,
        Command(HALF_PLUS_TWO, RUN, 1, "FAIL_VALUE .*values"),
        gate=True,
    ),
    Fault(
        "answer-of-other-hash",
        "the file of a recorded answer was changed after its recording",
        answers(_next_number, stamped=False),
        Command(HALF_PLUS_TWO, RUN, 1, "out.npz was changed"),
    ),
    Fault(
        "lost-output-of-an-answer",
        "a recorded answer lacks an output",
        answers(_lose_output, stamped=True),
        Command(HALF_PLUS_TWO, RUN, 1, "FAIL_SIGNATURE"),
    ),
    Fault(
        "lost-request",
        "a request is lost from io.json",
        _lose_request,
        Command(HALF_PLUS_TWO, RUN, 1, "io.json was changed"),
    ),
    Fault(
        "golden-answers",
        "the weights are not those the contract was written for",
        _golden,
        Command(
            SUBJECT,
            "contract check artifacts/{}/model original.contract.json --answers",
            1,
            "ANSWER_CHANGED",
        ),
    ),
    Fault(
        "unexpected-pass",
        "an entry of the ledger expects a failure that is none",
        ledger(),
        Command(HALF_PLUS_TWO, RUN, 2, "expected FAIL_VALUE"),
        gate=True,
    ),
    Fault(
        "dead-entry",
        "an entry of the ledger matches nothing",
        ledger(case="no_such_case"),
        Command(HALF_PLUS_TWO, RUN, 2, "no_such_case"),
    ),
    Fault(
        "wrong-reason",
        "an entry of the ledger has another message than the failure",
        _both(OTHER_ANSWER, ledger(message="no op Foo")),
        Command(HALF_PLUS_TWO, RUN, 1, "values .expected FAIL_VALUE no op Foo"),
    ),
    Fault(
        "wrong-outcome",
        "an entry of the ledger has another outcome than the failure",
        _both(OTHER_ANSWER, ledger(outcome="CRASH")),
        Command(HALF_PLUS_TWO, RUN, 1, "values .expected CRASH"),
    ),
    Fault(
        "expired-entry",
        "an entry of the ledger has expired",
        _both(OTHER_ANSWER, ledger(until=date(2025, 2, 1), check=["values", "relocate"])),
        Command(HALF_PLUS_TWO, RUN, 2, "expired"),
    ),
    Fault(
        "invalid-ledger",
        "the ledger is not TOML",
        lambda folder: (folder / "ledger.toml").write_text("[[expect"),
        Command(HALF_PLUS_TWO, RUN, 2, "ledger.toml"),
    ),
)
