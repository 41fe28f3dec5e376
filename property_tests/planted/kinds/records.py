"""Faults in what a run compares with: recorded answers, contracts, the ledger of known failures."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import numpy as np

from property_tests.planted.kinds.declaring import Plant, Planted
from property_tests.planted.kinds.planting import answers, artifact_of, edit, ledger
from property_tests.planted.kinds.scenes import HALF_PLUS_TWO, SUBJECT
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
    Planted(
        "changed-answer",
        "a recorded answer is one unit in the last place away",
        HALF_PLUS_TWO,
        OTHER_ANSWER,
        RUN,
        1,
        "FAIL_VALUE .*values",
        gate=True,
    ),
    Planted(
        "answer-of-other-hash",
        "the file of a recorded answer was changed after its recording",
        HALF_PLUS_TWO,
        answers(_next_number, stamped=False),
        RUN,
        1,
        "out.npz was changed",
    ),
    Planted(
        "lost-output-of-an-answer",
        "a recorded answer lacks an output",
        HALF_PLUS_TWO,
        answers(_lose_output, stamped=True),
        RUN,
        1,
        "FAIL_SIGNATURE",
    ),
    Planted(
        "lost-request",
        "a request is lost from io.json",
        HALF_PLUS_TWO,
        _lose_request,
        RUN,
        1,
        "io.json was changed",
    ),
    Planted(
        "golden-answers",
        "the weights are not those the contract was written for",
        SUBJECT,
        _golden,
        "contract check artifacts/{}/model original.contract.json --answers",
        1,
        "ANSWER_CHANGED",
    ),
    Planted(
        "unexpected-pass",
        "an entry of the ledger expects a failure that is none",
        HALF_PLUS_TWO,
        ledger(),
        RUN,
        2,
        "expected FAIL_VALUE",
        gate=True,
    ),
    Planted(
        "dead-entry",
        "an entry of the ledger matches nothing",
        HALF_PLUS_TWO,
        ledger(case="no_such_case"),
        RUN,
        2,
        "no_such_case",
    ),
    Planted(
        "wrong-reason",
        "an entry of the ledger has another message than the failure",
        HALF_PLUS_TWO,
        _both(OTHER_ANSWER, ledger(message="no op Foo")),
        RUN,
        1,
        "values .expected FAIL_VALUE no op Foo",
    ),
    Planted(
        "wrong-outcome",
        "an entry of the ledger has another outcome than the failure",
        HALF_PLUS_TWO,
        _both(OTHER_ANSWER, ledger(outcome="CRASH")),
        RUN,
        1,
        "values .expected CRASH",
    ),
    Planted(
        "expired-entry",
        "an entry of the ledger has expired",
        HALF_PLUS_TWO,
        _both(OTHER_ANSWER, ledger(until=date(2025, 2, 1), check=["values", "relocate"])),
        RUN,
        2,
        "expired",
    ),
    Planted(
        "invalid-ledger",
        "the ledger is not TOML",
        HALF_PLUS_TWO,
        lambda folder: (folder / "ledger.toml").write_text("[[expect"),
        RUN,
        2,
        "ledger.toml",
    ),
)
