"""Python's garbage collector, out of the way while a model is loaded.

A load makes many objects that all stay alive; the collector would go through them again and again and find nothing. The benchmark
"load 300 functions, 300 variables" (docs/benchmarks.md) takes 10 % longer without this, a model of 3,000 functions 20 %.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Collect nothing in this context unless the program asks for it. Afterwards all is as before, also after an error."""
    if not gc.isenabled():  # the caller's wish; or another thread is in here, which turns it on again
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
