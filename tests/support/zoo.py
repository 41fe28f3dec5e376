"""Real SavedModels of other people, where there are any: the tests that want them skip with
`ABSENT` where there are none.
"""

from __future__ import annotations

import os
from pathlib import Path

ABSENT = (
    "no real models: SAVEDMODEL_COMPAT_ZOO names no directory of SavedModels, and ../shared/zoo is"
    " not there"
)


def models() -> list[Path]:
    """The directories of the models, sorted; empty where there is no zoo."""
    folder = Path(
        os.environ.get("SAVEDMODEL_COMPAT_ZOO")
        or Path(__file__).parents[3] / "shared" / "zoo" / "models"
    )
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
