"""The environment of ONNX programs: made from its lock where the tests are told to make it."""

import os
from pathlib import Path

import pytest

from compat_matrix.runtimes.locked import DONE, Environment
from compat_matrix.runtimes.places import RuntimeTrouble
from savedmodel_prove.sides.runtimes import LOCKS, PYTHON

MAKE = "COMPAT_PROVE"  # in the environment: make what is missing (tox -e prove)


def interpreter(lock: str) -> Path:
    """Return the Python of a lock of third_party; skip the test if there is none."""
    if not (LOCKS / lock).is_file():
        pytest.skip(f"no {lock}: this is not a checkout")
    environment = Environment(LOCKS / lock, PYTHON)
    if not (environment.place / DONE).is_file() and not os.environ.get(MAKE):
        pytest.skip(f"the environment of {lock} is not made; tox -e prove makes it")
    try:
        return environment.python
    except RuntimeTrouble as error:
        pytest.skip(f"the environment of {lock} cannot be made: {error}")
