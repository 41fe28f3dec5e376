"""Python's garbage collector, out of the way while something large is made.

A load or a save makes many objects that all stay alive; the collector would go through them again and again and find nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """No collections in this context, unless somebody asks for one. Afterwards all is as before, also after an error."""
    if not gc.isenabled():  # the caller's wish, or another thread in here, who turns it on again
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
