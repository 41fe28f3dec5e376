"""Pause Python's garbage collector while a model is loaded or written.

Both make many objects that all stay alive; the collector would visit them repeatedly and find no
garbage. The benchmark "load 300 functions, 300 variables" (docs/evidence/benchmarks.md) takes 10 %
longer without this, a load of 3,000 functions 20 %, a save of 10,000 functions 15 %.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Pause automatic garbage collection in this context.

    The previous setting is restored afterwards, also after an error.
    """
    if (
        not gc.isenabled()
    ):  # the caller's wish; or another thread is in here, which turns it on again
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
