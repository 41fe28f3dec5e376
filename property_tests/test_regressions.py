"""What generated models once found: each a script in regressions/, asked the property it failed."""

from __future__ import annotations

import importlib
import runpy

import pytest

from property_tests import promote, world

MODULES = (
    "test_round_trips",
    "test_values",
    "test_readers_agree",
    "test_content_hash",
    "test_refusals",
    "test_v1_graphs",
)
FILES = sorted(promote.REGRESSIONS.glob("*.py"))


def checks():
    found = {}
    for module in MODULES:
        found.update(importlib.import_module(f"property_tests.{module}").CHECKS)
    return found


@pytest.mark.tensorflow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_was_found_stays_repaired(tf, file):
    names = runpy.run_path(str(file))
    with world.folder() as folder:
        checks()[names["PROPERTY"]](file.read_text(), folder, **names["ARGUMENTS"])
