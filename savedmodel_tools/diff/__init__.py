"""Compare two SavedModels, or two folders of them, without TensorFlow (GOAL-13): the door to
`savedmodel_tools.comparison`.

>>> result = diff("export/1", "export/2")
>>> result.verdict, [change.what for change in result.changes]
"""

from savedmodel_tools.comparison import (
    SECTIONS,
    Change,
    ModelDiff,
    Options,
    diff,
)

__all__ = ["SECTIONS", "Change", "ModelDiff", "Options", "diff"]
