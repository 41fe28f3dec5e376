"""Faults in a consumer of somebody else: the sample of docs/exporters/plugins.md with one mistake
(tests/support/wrong_plugins.py).
"""

from __future__ import annotations

from pathlib import Path

from property_tests.planted.kinds.declaring import Plant, Planted
from property_tests.planted.kinds.scenes import PREDICTOR

RUN = 'matrix run --out run -n 1 --fixtures artifacts --consumer "sample=python sample.py"'
PLUGIN_CHECK = 'plugin-check --large 1 "python sample.py"'


def mistake(name: str) -> Plant:
    """The sample makes this mistake."""

    def plant(folder: Path) -> None:
        (folder / "fault").write_text(name)

    return plant


ROWS = (
    Planted(
        "cached-answer",
        "every answer is that to the last request",
        PREDICTOR,
        mistake("keeps_state"),
        RUN,
        1,
        "FAIL_VALUE .*values",
        gate=True,
    ),
    Planted(
        "recorded-answers",
        "answers are looked up beside the model, among the recorded ones",
        PREDICTOR,
        mistake("looks_beside_the_model"),
        PLUGIN_CHECK,
        1,
        r"wrong-records\s+FAILED",
    ),
    Planted(
        "ignored-tags",
        "the tags that are asked for are ignored",
        PREDICTOR,
        mistake("any_tags"),
        PLUGIN_CHECK,
        1,
        r"wrong-tags\s+FAILED",
    ),
    Planted(
        "swallowed-error",
        "an error becomes an empty answer",
        PREDICTOR,
        mistake("empty_answers"),
        RUN,
        1,
        "values",
    ),
    Planted(
        "loads-nothing",
        "`ok` is said without loading",
        PREDICTOR,
        mistake("loads_nothing"),
        PLUGIN_CHECK,
        1,
        r"missing-model\s+FAILED",
    ),
    Planted(
        "swapped-outputs",
        "two outputs have each other's value",
        PREDICTOR,
        mistake("swaps_outputs"),
        PLUGIN_CHECK,
        1,
        "swapped",
    ),
    Planted(
        "nan-answered", "an answer is NaN", PREDICTOR, mistake("answers_nan"), RUN, 1, "is nan"
    ),
    Planted(
        "negative-zero-answered",
        "-0.0 is answered for 0.0",
        PREDICTOR,
        mistake("no_minus_zero"),
        PLUGIN_CHECK,
        1,
        "the sign of -0.0",
    ),
    Planted(
        "one-ulp",
        "an answer is one unit in the last place away",
        PREDICTOR,
        mistake("one_ulp"),
        RUN,
        1,
        "max ulp error 1",
    ),
    Planted(
        "crash", "the process ends while it answers", PREDICTOR, mistake("dies"), RUN, 1, "CRASH"
    ),
)
