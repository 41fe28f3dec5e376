"""What the pages call nightly is run by the workflow of that name."""

from __future__ import annotations

import configparser
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_workflow_runs_the_nightly_profile():
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    assert "HYPOTHESIS_PROFILE = nightly" in tox["testenv:nightly"]["set_env"].splitlines()
    workflow = (ROOT / ".github" / "workflows" / "nightly.yml").read_text(encoding="utf-8")
    assert "run: tox -e nightly\n" in workflow and "schedule:" in workflow
