"""The reader in JavaScript, written from docs/format/spec alone, reaches level L1 on the whole kit."""

import shutil
from pathlib import Path

import pytest

from savedmodel_kit import constraints
from savedmodel_kit.consumer import ask_all
from savedmodel_kit.score import levels_of, score

READER = Path(__file__).parents[2] / "examples/node_reader/kit.mjs"

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def test_the_node_reader_reaches_l1(kit):
    folders = {
        name: folder
        for name, folder in kit.models().items()
        if name.startswith("artifacts/") or _level(kit, name) == "L1"
    }
    answers = ask_all(["node", str(READER)], folders, 120)
    assert levels_of(answers) == ("L1",)
    made = score(kit, answers, constraints.read(), ("L1",))
    assert made.faults() == []
    assert {"SM-TABLE-6", "SM-BUNDLE-17", "SM-BUNDLE-22"} <= set(made.kept)
    assert made.not_shown == ["SM-TABLE-8", "SM-TABLE-9"]


def _level(kit, name):
    return next(one["level"] for one in kit.content["hostile"] if one["folder"] == name)
