"""The files of `tox -e mutation` name modules and tests that exist."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from savedmodel_common import toml

ROOT = Path(__file__).parents[1]
CONFIGS = sorted((ROOT / "property_tests" / "mutation").glob("*.toml"))


def test_every_area_has_a_file():
    areas = {"canonical", "format", "graph", "safety", "verdict", "views"}
    assert {path.stem for path in CONFIGS} == areas


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_modules_and_tests_exist(path):
    config = toml.read(path)["cosmic-ray"]
    tests = [word for word in shlex.split(config["test-command"]) if word.startswith("tests/")]
    assert tests and config["module-path"]
    for name in [*tests, *config["module-path"]]:
        assert (ROOT / name).exists(), name
