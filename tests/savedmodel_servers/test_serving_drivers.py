"""Drivers without servers: what a spec names, what is missing and what would provide it."""

from __future__ import annotations

import importlib
import socket
import sys

import pytest
from serving_drivers_fixtures import home, sdk

from savedmodel_servers import drivers
from savedmodel_servers.drivers import base, engine
from savedmodel_servers.drivers.base import NotHere

__all__ = ["home", "sdk"]  # fixtures, imported by name


# Specs
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "kind", "name"),
    [
        ("tensorflow/serving:2.19.1", "DockerDriver", "tensorflow/serving:2.19.1"),
        (
            "tensorflow/serving@sha256:" + "a" * 64,
            "DockerDriver",
            "tensorflow/serving@sha256:" + "a" * 64,
        ),
        ("host.example:5000/mine", "DockerDriver", "host.example:5000/mine"),
        ("docker:binary", "DockerDriver", "binary"),
        ("standin", "DockerDriver", "standin"),
        ("standin:2.21.0", "DockerDriver", "savedmodel-compat-standin:2.21.0"),
        ("standin@local", "StandinDriver", "standin@local"),
        ("standin@2.15", "StandinDriver", "standin@2.15"),
        ("binary", "BinaryDriver", "binary"),
        ("binary:/opt/server", "BinaryDriver", "binary:/opt/server"),
        ("remote:host:8500", "RemoteDriver", "remote:host:8500"),
        (
            "remote:[::1]:8500,8501/half_plus_two",
            "RemoteDriver",
            "remote:[::1]:8500,8501/half_plus_two",
        ),
    ],
)
def test_spec_names_a_driver(spec, kind, name):
    driver = drivers.of(spec)
    assert (type(driver).__name__, driver.name) == (kind, name)


@pytest.mark.parametrize(
    "spec",
    [
        "",
        " ",
        "docker:",
        "a b",
        "remote:",
        "remote:host",
        "remote:host:0",
        "remote:host:70000",
        "remote:host:1,2,3",
        "binary:",
        "standin@",
    ],
)
def test_what_names_no_server(spec):
    with pytest.raises(ValueError, match=r"names no server|is not HOST:GRPC_PORT"):
        drivers.of(spec)


def test_the_stand_in_of_a_runtime(home):
    """A release that nobody knows is no server; one that is not installed is not here, with the
    command that installs it.
    """
    with pytest.raises(ValueError, match=r"9\.9"):
        drivers.of("standin@9.9")
    with pytest.raises(drivers.NotHere) as caught:
        drivers.of("standin@tensorflow==2.20.0rc0").identify()
    assert caught.value.command.endswith("runtimes install tensorflow==2.20.0rc0")


@pytest.mark.tensorflow
def test_the_stand_in_of_the_local_runtime_says_what_it_is(home):
    identity = drivers.of("standin@local").identify()
    assert (identity.kind, "Library" in identity.details) == (drivers.STANDIN, True)


def test_remote_address_is_read():
    driver = drivers.of("remote:[fe80::1%eth0]:8500,8501/m")
    assert driver._endpoint == base.Endpoint("fe80::1%eth0", 8500, 8501)
    assert (driver._endpoint.grpc, driver.model) == ("[fe80::1%eth0]:8500", "m")
    assert drivers.of("remote:host:8500")._endpoint.rest is None


def test_limits_of_containers_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("COMPAT_SERVER_MEMORY", "8g")
    monkeypatch.setenv("COMPAT_SERVER_CPUS", "1.5")
    driver = drivers.of("tensorflow/serving:2.19.1")
    assert (driver._memory, driver._cpus) == (8 << 30, 1.5)
    monkeypatch.setenv("COMPAT_SERVER_MEMORY", "much")
    with pytest.raises(ValueError, match="number of bytes"):
        drivers.of("standin")


# What is missing
# --------------------------------------------------------------------------------------------------


def missing(driver=None):
    with pytest.raises(NotHere) as error:
        (driver or drivers.of("tensorflow/serving:2.19.1")).identify()
    return error.value


def test_grpc_that_is_not_installed(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "grpc" else real(name)
    )
    for spec in ("tensorflow/serving", "binary", "remote:127.0.0.1:1"):
        found = missing(drivers.of(spec))
        assert (
            "grpcio" in found.reason and found.command == 'pip install "savedmodel-compat[serving]"'
        )


def test_sdk_that_is_not_installed(monkeypatch):
    pytest.importorskip("grpc")
    monkeypatch.setitem(sys.modules, "docker", None)
    found = missing()
    assert "docker SDK" in found.reason
    assert found.command == 'pip install "savedmodel-compat[serving]"'


def test_socket_that_is_not_there(sdk, monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/podman.sock")
    found = missing()
    assert "on this socket" in found.reason
    assert found.command == f"podman system service --time=0 unix://{tmp_path}/podman.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/other.sock")
    assert missing().command == "unset DOCKER_HOST"


def test_socket_that_nobody_serves(sdk, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("dead.sock")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/dead.sock")
    assert "on this socket" in missing().reason


@pytest.mark.parametrize(
    ("error", "dockerd", "reason", "command"),
    [
        (
            FileNotFoundError(2, "No such file or directory"),
            None,
            "no docker engine is installed",
            "apt-get install -y docker.io",
        ),
        (
            FileNotFoundError(2, "No such file"),
            "/usr/sbin/dockerd",
            "is installed and not started",
            "systemctl start docker",
        ),
        (
            ConnectionRefusedError(111, "refused"),
            "/usr/sbin/dockerd",
            "is installed and not started",
            "systemctl start docker",
        ),
        (
            PermissionError(13, "Permission denied"),
            None,
            "permission denied on its socket",
            "usermod -aG docker",
        ),
    ],
)
def test_engine_that_cannot_be_reached(sdk, monkeypatch, error, dockerd, reason, command):
    def refuse():
        raise error

    monkeypatch.setattr(engine, "_knock", refuse)
    monkeypatch.setattr(engine.shutil, "which", lambda name: dockerd)
    found = missing()
    assert reason in found.reason and command in found.command


def test_engine_of_another_machine_that_is_not_there(sdk, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{closed.getsockname()[1]}")
        assert "does not answer" in missing().reason
    monkeypatch.setenv("DOCKER_HOST", "nonsense://x")
    assert "DOCKER_HOST=nonsense://x" in missing().reason


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("tcp://10.0.0.7:2375", "10.0.0.7"),
        ("ssh://user@box", "box"),
        ("unix:///run/docker.sock", None),
        ("", None),
    ],
)
def test_ports_of_a_remote_engine_are_on_its_machine(monkeypatch, address, host):
    monkeypatch.setenv("DOCKER_HOST", address)
    assert engine.remote_host() == host
