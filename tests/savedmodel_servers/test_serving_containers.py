"""Containers and images, as engines tell of them: ports, exit states, logs, kinds, versions,
digests.
"""

from __future__ import annotations

import importlib
import io
import json
import tarfile
from types import SimpleNamespace

import pytest
from serving_drivers_fixtures import home, sdk

from savedmodel_servers.drivers import engine, images
from savedmodel_servers.drivers.base import EngineTrouble, ExitState, NotHere
from savedmodel_servers.drivers.container import (
    ContainerServer,
    ended,
    packed,
    published,
)
from savedmodel_servers.drivers.docker import DockerDriver

__all__ = ["home", "sdk"]  # fixtures, imported by name


# Containers, as engines tell of them
# ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ([{"HostIp": "127.0.0.1", "HostPort": "49153"}], ("127.0.0.1", 49153)),
        (
            [{"HostIp": "0.0.0.0", "HostPort": "1"}, {"HostIp": "::", "HostPort": "2"}],
            ("127.0.0.1", 1),
        ),
        (
            [{"HostIp": "::", "HostPort": "2"}, {"HostIp": "0.0.0.0", "HostPort": "1"}],
            ("127.0.0.1", 1),
        ),
        ([{"HostIp": "::", "HostPort": "2"}], ("::1", 2)),
        ([{"HostIp": "::1", "HostPort": "2"}], ("::1", 2)),
        ([{"HostIp": "", "HostPort": "3"}], ("127.0.0.1", 3)),
        ([], None),
        (None, None),
    ],
)
def test_port_is_read_from_the_mapping(mapping, expected):
    assert published(mapping) == expected


def test_exit_state_of_a_container():
    assert ended({"Status": "running", "Running": True}) is None
    assert ended({"Status": "created", "Running": False}) is None
    killed = ended(
        {
            "Status": "exited",
            "ExitCode": 137,
            "OOMKilled": True,
            "FinishedAt": "2026-11-21T21:00:00Z",
        }
    )
    assert (killed.oom_killed, killed.signal, killed.from_outside) == (True, 9, False)
    assert "COMPAT_SERVER_MEMORY=8g" in str(killed)
    assert ended({"Status": "exited", "ExitCode": 137}).from_outside
    assert ended({"Status": "exited", "ExitCode": 143}).from_outside
    assert not ended({"Status": "exited", "ExitCode": 134}).from_outside
    assert str(ended({"Status": "exited", "ExitCode": 139})) == "was killed by SIGSEGV"
    assert str(ended({"Status": "exited", "ExitCode": 255})) == "ended with status 255"
    assert (
        str(ended({"Status": "dead", "ExitCode": 1, "Error": "no space"}))
        == "ended with status 1 (no space)"
    )
    assert str(ExitState.of(-6)) == "was killed by SIGABRT"


class FakeContainer:
    """Of an engine that fails on order."""

    name, id = "c", "0123"

    def __init__(self, *errors):
        self.errors, self.attrs = list(errors), {"State": {"Status": "exited", "ExitCode": 3}}

    def reload(self):
        if self.errors:
            raise self.errors.pop(0)

    def logs(self):
        return b"the whole log\n"

    def kill(self):
        raise ConnectionError("gone")


@pytest.fixture
def server(sdk, monkeypatch, tmp_path):
    monkeypatch.setattr("savedmodel_servers.drivers.container.PAUSE", 0)
    monkeypatch.setattr(
        engine, "connect", lambda: (_ for _ in ()).throw(NotHere("gone", "docker info"))
    )
    removed: list[str] = []
    api = SimpleNamespace(remove_container=lambda name, **_: removed.append(name))

    def make(*errors):
        return ContainerServer(
            FakeContainer(*errors), SimpleNamespace(api=api), tmp_path / "evidence", None, None
        )

    make.removed = removed
    return make


def test_engine_that_is_restarted_meanwhile(server):
    assert server(ConnectionError("gone"), ConnectionError("gone")).exit_state().code == 3


def test_engine_that_is_gone_for_good(server, tmp_path):
    one = server(*[ConnectionError("gone")] * 20)
    with pytest.raises(EngineTrouble, match=r"engine .*: gone"):
        one.exit_state()
    one.stop()
    told = json.loads((tmp_path / "evidence/exit.json").read_text())
    assert told["error"] and "gone" in told["trouble"][0]


def test_log_that_could_not_be_followed_is_taken_at_the_end(server, tmp_path):
    one = server()
    one.stop()
    one.stop()
    assert (tmp_path / "evidence/log.txt").read_text() == "the whole log\n"
    assert server.removed == ["0123"]


def test_what_is_copied_into_a_container_can_be_read_by_its_user(tmp_path):
    place = tmp_path / "m_1" / "1"
    place.mkdir(parents=True, mode=0o700)
    (place / "saved_model.pb").write_bytes(b"x")
    (place / "saved_model.pb").chmod(0o600)
    with tarfile.open(fileobj=io.BytesIO(packed(tmp_path, "m_1", "models"))) as archive:
        members = {one.name: (oct(one.mode), one.uid, one.gid, one.uname) for one in archive}
    assert members == {
        "models/m_1": ("0o755", 0, 0, ""),
        "models/m_1/1": ("0o755", 0, 0, ""),
        "models/m_1/1/saved_model.pb": ("0o644", 0, 0, ""),
    }


def test_errors_of_the_engine_that_pass(sdk):
    def trouble(status, text):
        response = SimpleNamespace(
            status_code=status, url="", reason="", json=lambda: {"message": text}
        )
        error = sdk.errors.APIError(text, response=response, explanation=text)
        with (
            pytest.raises(EngineTrouble, match="creating x: ") as found,
            engine.asked("creating x"),
        ):
            raise error
        return found.value.passing

    assert trouble(
        500, "driver failed programming external connectivity: port is already allocated"
    )
    assert trouble(503, "busy")
    assert not trouble(400, "invalid mount config")


# Images
# --------------------------------------------------------------------------------------------------


def client_of(output):
    container = SimpleNamespace(
        start=lambda: None,
        wait=lambda **_: None,
        logs=lambda: output.encode(),
        remove=lambda **_: None,
    )
    return SimpleNamespace(containers=SimpleNamespace(create=lambda *_, **__: container))


def image_of(name="sha256:" + "1" * 64, labels=None, digests=()):
    return SimpleNamespace(id=name, labels=labels, attrs={"RepoDigests": list(digests)})


@pytest.mark.parametrize(
    ("versions", "labels", "expected"),
    [
        (("2.19.1-rc1", "2.19.1"), {}, ("tensorflow-serving", "2.19.1")),
        (("1.15.0-rc1+dev.sha.unknown", "1.15.0"), None, ("tensorflow-serving", "1.15.0")),
        (("2.5.1", "of today"), {}, ("tensorflow-serving", "2.5.1")),
        (("master", "head"), {}, ("tensorflow-serving", None)),
        (("2.15.1-standin", "2.15.1"), {}, ("standin", "2.15.1")),
        (("2.19.1", "2.19.1"), {"savedmodel-compat.standin": "2.19.1"}, ("standin", "2.19.1")),
    ],
)
def test_kind_and_version_of_an_image(sdk, versions, labels, expected):
    output = "TensorFlow ModelServer: {}\nTensorFlow Library: {}\n".format(*versions)
    found = images.identify(client_of(output), image_of(labels=labels), "tensorflow/serving:x", {})
    assert (found.kind, found.version) == expected


def test_image_that_serves_nothing(sdk):
    with pytest.raises(
        NotHere,
        match=r"'bash: no such option'",
    ):
        images.identify(client_of("bash: no such option\n"), image_of(), "debian:12", {})


def test_digest_is_that_of_the_repository_it_was_asked_by(sdk):
    output = "TensorFlow ModelServer: 2.19.1\nTensorFlow Library: 2.19.1\n"
    digests = ["mirror/serving@sha256:" + "2" * 64, "tensorflow/serving@sha256:" + "3" * 64]

    def digest(name, known):
        return images.identify(client_of(output), image_of(digests=known), name, {}).digest

    assert digest("tensorflow/serving:2.19.1", digests) == digests[1]
    assert digest("tensorflow/serving", digests) == digests[1]
    assert digest(digests[0], digests) == digests[0]
    assert digest("0123456789ab", digests) == digests[0]  # an image without a tag, by its id
    assert digest("0123456789ab", []) == "sha256:" + "1" * 64


def test_limits_are_within_what_the_engine_has():
    driver = DockerDriver("x")
    driver._client = SimpleNamespace(info=lambda: {"MemTotal": 2 << 30, "NCPU": 1})
    limits = (
        driver._resources()
        if importlib.util.find_spec("docker")
        else pytest.skip("the docker SDK is not installed")
    )
    assert limits == {"mem_limit": 3 << 29, "memswap_limit": 3 << 29, "nano_cpus": 10**9}
