"""Faults in a consumer of somebody else: the sample of docs/exporters/plugins.md with one mistake
(tests/support/wrong_plugins.py).
"""

from __future__ import annotations

from pathlib import Path

from property_tests.faults.declaring import Fault, Plant
from property_tests.faults.found_by.command import Command
from property_tests.faults.scenes import PREDICTOR

RUN = 'matrix run --out run -n 1 --fixtures artifacts --consumer "sample=python sample.py"'
PLUGIN_CHECK = 'plugin-check --large 1 "python sample.py"'


def mistake(name: str) -> Plant:
    """The sample makes this mistake."""

    def plant(folder: Path) -> None:
        (folder / "fault").write_text(name)

    return plant


ROWS = (
    Fault(
        "cached-answer",
        "every answer is that to the last request",
        mistake("keeps_state"),
        Command(PREDICTOR, RUN, 1, "FAIL_VALUE .*values"),
        gate=True,
    ),
    Fault(
        "recorded-answers",
        "answers are looked up beside the model, among the recorded ones",
        mistake("looks_beside_the_model"),
        Command(PREDICTOR, PLUGIN_CHECK, 1, r"wrong-records\s+FAILED"),
    ),
    Fault(
        "ignored-tags",
        "the tags that are asked for are ignored",
        mistake("any_tags"),
        Command(PREDICTOR, PLUGIN_CHECK, 1, r"wrong-tags\s+FAILED"),
    ),
    Fault(
        "swallowed-error",
        "an error becomes an empty answer",
        mistake("empty_answers"),
        Command(PREDICTOR, RUN, 1, "values"),
    ),
    Fault(
        "loads-nothing",
        "`ok` is said without loading",
        mistake("loads_nothing"),
        Command(PREDICTOR, PLUGIN_CHECK, 1, r"missing-model\s+FAILED"),
    ),
    Fault(
        "swapped-outputs",
        "two outputs have each other's value",
        mistake("swaps_outputs"),
        Command(PREDICTOR, PLUGIN_CHECK, 1, "swapped"),
    ),
    Fault(
        "nan-answered",
        "an answer is NaN",
        mistake("answers_nan"),
        Command(PREDICTOR, RUN, 1, "is nan"),
    ),
    Fault(
        "negative-zero-answered",
        "-0.0 is answered for 0.0",
        mistake("no_minus_zero"),
        Command(PREDICTOR, PLUGIN_CHECK, 1, "the sign of -0.0"),
    ),
    Fault(
        "one-ulp",
        "an answer is one unit in the last place away",
        mistake("one_ulp"),
        Command(PREDICTOR, RUN, 1, "max ulp error 1"),
    ),
    Fault(
        "crash",
        "the process ends while it answers",
        mistake("dies"),
        Command(PREDICTOR, RUN, 1, "CRASH"),
    ),
)
