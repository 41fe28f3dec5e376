"""Run a consumer from an entry point, a subclass of ``Worker``: ``python -m
compat_matrix.plugins.serve MODULE:CLASS``.
"""

from __future__ import annotations

import importlib
import sys

from compat_matrix.workers import protocol


def main() -> None:
    module, _, attribute = sys.argv[1].partition(":")
    protocol.serve(lambda: getattr(importlib.import_module(module), attribute)())  # type: ignore[no-untyped-call]  # Python 3.6 syntax


if __name__ == "__main__":
    main()
