"""A runtime whose every program is tests/support/fake_worker.py."""

from __future__ import annotations

import sys
from pathlib import Path

from compat_matrix.runtimes.runtime import Runtime


def fake_runtime(folder: Path) -> Runtime:
    """A runtime whose "Python" runs tests/support/fake_worker.py, whatever program is asked for."""
    script = folder / "python"
    script.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).with_name("fake_worker.py")}" "$@"\n'
    )
    script.chmod(0o755)
    return Runtime("fake", script, None)
