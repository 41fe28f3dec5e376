"""Two test files of one name cannot be collected by one run of pytest: their modules have one
name.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("folder", ["tests", "property_tests"])
def test_no_two_test_files_have_one_name(folder):
    files = list((ROOT / folder).rglob("test_*.py"))
    assert len(files) >= 20
    counts = Counter(path.name for path in files)
    assert [name for name, count in counts.items() if count > 1] == []
