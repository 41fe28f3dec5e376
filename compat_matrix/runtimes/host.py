"""The pool of workers."""

from __future__ import annotations

from pathlib import Path


class Host:
    """Workers by runtime and program, kept warm; a context manager that ends them."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *exc: object) -> None:
        pass
