"""A fleet of servers that are programs of this machine: doubles of the real one."""

from __future__ import annotations

import pytest
import serving_models

from savedmodel_servers.drivers.binary import BinaryDriver
from savedmodel_servers.fleet import Fleet, Limits

LIMITS = Limits(up=60, available=30)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SAVEDMODEL_COMPAT_HOME", str(tmp_path / "home"))


@pytest.fixture
def program(tmp_path):
    return serving_models.program(tmp_path)


@pytest.fixture
def fleet(program, tmp_path):
    with Fleet(BinaryDriver(str(program)), tmp_path / "work", LIMITS) as fleet:
        yield fleet


def predict(served):
    return served.grpc.predict(served.ref, "", {}, limit=20)
