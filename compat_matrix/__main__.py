"""``python -m compat_matrix``: the program, as ``python -m savedmodel_compat`` starts it.

It is named, not imported: the program stands above the harness.
"""

import runpy

if __name__ == "__main__":
    runpy.run_module("savedmodel_compat", run_name="__main__", alter_sys=True)
