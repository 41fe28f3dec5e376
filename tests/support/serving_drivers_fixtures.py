"""What tests of drivers without servers share: a home of their own, the docker SDK, no engine, the
command that cleans up.
"""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from savedmodel_compat import cli
from savedmodel_servers.drivers import engine
from savedmodel_servers.drivers.base import NotHere


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SAVEDMODEL_COMPAT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DOCKER_HOST", raising=False)


@pytest.fixture
def sdk():
    pytest.importorskip("grpc", reason="grpcio is not installed")
    return pytest.importorskip("docker", reason="the docker SDK is not installed")


@pytest.fixture
def no_engine(monkeypatch):
    monkeypatch.setattr(
        engine, "connect", lambda: (_ for _ in ()).throw(NotHere("no engine", "docker info"))
    )


def cleanup(*options):
    result = CliRunner().invoke(cli.main, ["serving", "cleanup", *options])
    assert result.exit_code == 0, result.output
    return result.output
