"""Give the process another past (``matrix run --past``): its umask, its garbage collector, its
counters. Python 3.6 syntax.
"""

import gc
import os
import sys

OFTEN, NEVER = "often", "never"
COLLECT_OFTEN = 50  # objects


def live(request):
    """Apply the members of a request ``past``; return the reply: the next number of TensorFlow's
    counter, None without one.
    """
    if request["umask"] is not None:
        os.umask(request["umask"])
    if request["garbage"] == OFTEN:
        gc.collect()
        gc.set_threshold(COLLECT_OFTEN)
    elif request["garbage"] == NEVER:
        gc.disable()
    return {"counter": None if request["counter"] is None else advance(request["counter"])}


def advance(counter):
    """Count until ``counter`` is the next number of TensorFlow's ``ops.uid``.

    It cannot be turned back.
    """
    uid = getattr(sys.modules.get("tensorflow.python.framework.ops"), "uid", None)  # not in TF 1.4
    if uid is None:
        return None
    reached = uid()
    while reached < counter - 1:
        reached = uid()
    return reached + 1
