"""Models for ``serving_double.py``, and a driver of it as a program of this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def model(folder: Path, name: str, *behaviour: str) -> Path:
    """A folder that the double loads, and which then behaves as it is told."""
    place = folder / name
    (place / "variables").mkdir(parents=True)
    (place / "behaviour").write_text("\n".join(behaviour))
    (place / "variables" / "variables.index").write_text(name)
    return place


def program(folder: Path) -> Path:
    """A ``tensorflow_model_server`` that is the double."""
    pytest.importorskip("grpc")
    place = folder / "bin" / "tensorflow_model_server"
    place.parent.mkdir(parents=True, exist_ok=True)
    root = HERE.parents[1]
    place.write_text(
        f'#!/bin/sh\nPYTHONPATH={root} exec {sys.executable} -B {HERE / "serving_double.py"} "$@"\n'
    )
    place.chmod(0o755)
    return place
