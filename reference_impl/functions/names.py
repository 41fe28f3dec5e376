"""The three names of a function: in a file, in this process, and in an export.

All three are strings, so each has a type of its own: mypy then reports where one is taken for
another. Custom gradients and shared resources such as tables have the same three names.

    FileName "__inference_f_7"          `FunctionLibrary.live_name` gives the
      LiveName "__inference_f_7__load1"    `ExportLibrary.add` gives the
        ExportName "__inference_f_12"

RFC: RP-06, FN-05
"""

from __future__ import annotations

from typing import NewType

# In the file that was read: the name of a FunctionDef, or of a registered gradient.
FileName = NewType("FileName", str)
# In TensorFlow's runtime in this process. A load makes one from a file name and a number of its
# own, since two models may have functions of one name; `tf.function` makes others.
LiveName = NewType("LiveName", str)
# In the export that a save writes.
ExportName = NewType("ExportName", str)
