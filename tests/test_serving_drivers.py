"""Drivers without servers: what a spec names, what is missing and what would provide it, mappings, exit states, staging, logs."""

from __future__ import annotations

import importlib
import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from compat_matrix import cli
from compat_matrix.consumers.serving import drivers, messages, staging, verdicts
from compat_matrix.consumers.serving.drivers import base, binary, engine, harness, images
from compat_matrix.consumers.serving.drivers.base import EngineTrouble, ExitState, NotHere
from compat_matrix.consumers.serving.drivers.container import ContainerServer, ended, published
from compat_matrix.consumers.serving.drivers.docker import DockerDriver, packed
from compat_matrix.consumers.serving.launch import config_text
from compat_matrix.runtimes import places


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SAVEDMODEL_COMPAT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DOCKER_HOST", raising=False)


# Specs ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "kind", "name"),
    [
        ("tensorflow/serving:2.19.1", "DockerDriver", "tensorflow/serving:2.19.1"),
        ("tensorflow/serving@sha256:" + "a" * 64, "DockerDriver", "tensorflow/serving@sha256:" + "a" * 64),
        ("host.example:5000/mine", "DockerDriver", "host.example:5000/mine"),
        ("docker:binary", "DockerDriver", "binary"),
        ("standin", "DockerDriver", "standin"),
        ("standin:2.21.0", "DockerDriver", "savedmodel-compat-standin:2.21.0"),
        ("binary", "BinaryDriver", "binary"),
        ("binary:/opt/server", "BinaryDriver", "binary:/opt/server"),
        ("remote:host:8500", "RemoteDriver", "remote:host:8500"),
        ("remote:[::1]:8500,8501/half_plus_two", "RemoteDriver", "remote:[::1]:8500,8501/half_plus_two"),
    ],
)
def test_spec_names_a_driver(spec, kind, name):
    driver = drivers.of(spec)
    assert (type(driver).__name__, driver.name) == (kind, name)


@pytest.mark.parametrize(
    "spec",
    ["", " ", "docker:", "a b", "remote:", "remote:host", "remote:host:0", "remote:host:70000", "remote:host:1,2,3", "binary:"],
)
def test_what_names_no_server(spec):
    with pytest.raises(ValueError, match=r"names no server|is not HOST:GRPC_PORT"):
        drivers.of(spec)


def test_remote_address_is_read():
    driver = drivers.of("remote:[fe80::1%eth0]:8500,8501/m")
    assert driver._endpoint == base.Endpoint("fe80::1%eth0", 8500, 8501)
    assert (driver._endpoint.grpc, driver.model) == ("[fe80::1%eth0]:8500", "m")
    assert drivers.of("remote:host:8500")._endpoint.rest is None


# What is missing ------------------------------------------------------------------------------------------------------


def missing(driver=None):
    with pytest.raises(NotHere) as error:
        (driver or drivers.of("tensorflow/serving:2.19.1")).identify()
    return error.value


def test_grpc_that_is_not_installed(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "grpc" else real(name))
    for spec in ("tensorflow/serving", "binary", "remote:127.0.0.1:1"):
        found = missing(drivers.of(spec))
        assert (found.reason, found.command) == ("grpcio is not installed", 'pip install "savedmodel-compat[serving]"')


def test_sdk_that_is_not_installed(monkeypatch):
    pytest.importorskip("grpc")
    monkeypatch.setitem(sys.modules, "docker", None)
    found = missing()
    assert "docker SDK is not installed" in found.reason
    assert found.command == 'pip install "savedmodel-compat[serving]"'


@pytest.fixture
def sdk():
    pytest.importorskip("grpc", reason="grpcio is not installed")
    return pytest.importorskip("docker", reason="the docker SDK is not installed")


def test_socket_that_is_not_there(sdk, monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/podman.sock")
    found = missing()
    assert "nothing listens on this socket" in found.reason
    assert found.command == f"podman system service --time=0 unix://{tmp_path}/podman.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/other.sock")
    assert missing().command == "unset DOCKER_HOST"


def test_socket_that_nobody_serves(sdk, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("dead.sock")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/dead.sock")
    assert "nothing listens on this socket" in missing().reason


@pytest.mark.parametrize(
    ("error", "dockerd", "reason", "command"),
    [
        (
            FileNotFoundError(2, "No such file or directory"),
            None,
            "no docker engine is installed",
            "apt-get install -y docker.io",
        ),
        (FileNotFoundError(2, "No such file"), "/usr/sbin/dockerd", "is installed and not started", "systemctl start docker"),
        (ConnectionRefusedError(111, "refused"), "/usr/sbin/dockerd", "is installed and not started", "systemctl start docker"),
        (PermissionError(13, "Permission denied"), None, "permission denied on its socket", "usermod -aG docker"),
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
    [("tcp://10.0.0.7:2375", "10.0.0.7"), ("ssh://user@box", "box"), ("unix:///run/docker.sock", None), ("", None)],
)
def test_ports_of_a_remote_engine_are_on_its_machine(monkeypatch, address, host):
    monkeypatch.setenv("DOCKER_HOST", address)
    assert engine.remote_host() == host


# Containers, as engines tell of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ([{"HostIp": "127.0.0.1", "HostPort": "49153"}], ("127.0.0.1", 49153)),
        ([{"HostIp": "0.0.0.0", "HostPort": "1"}, {"HostIp": "::", "HostPort": "2"}], ("127.0.0.1", 1)),
        ([{"HostIp": "::", "HostPort": "2"}, {"HostIp": "0.0.0.0", "HostPort": "1"}], ("127.0.0.1", 1)),
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
    killed = ended({"Status": "exited", "ExitCode": 137, "OOMKilled": True, "FinishedAt": "2026-11-21T21:00:00Z"})
    assert (killed.oom_killed, killed.signal, killed.from_outside, str(killed)) == (
        True,
        9,
        False,
        "ran out of its memory limit (COMPAT_SERVER_MEMORY=8g raises it)",
    )
    assert ended({"Status": "exited", "ExitCode": 137}).from_outside
    assert ended({"Status": "exited", "ExitCode": 143}).from_outside
    assert not ended({"Status": "exited", "ExitCode": 134}).from_outside
    assert str(ended({"Status": "exited", "ExitCode": 139})) == "was killed by SIGSEGV"
    assert str(ended({"Status": "exited", "ExitCode": 255})) == "ended with status 255"
    assert str(ended({"Status": "dead", "ExitCode": 1, "Error": "no space"})) == "ended with status 1 (no space)"
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
    monkeypatch.setattr("compat_matrix.consumers.serving.drivers.container.PAUSE", 0)
    monkeypatch.setattr(engine, "connect", lambda: (_ for _ in ()).throw(NotHere("gone", "docker info")))
    removed: list[str] = []
    api = SimpleNamespace(remove_container=lambda name, **_: removed.append(name))

    def make(*errors):
        return ContainerServer(FakeContainer(*errors), SimpleNamespace(api=api), tmp_path / "evidence", None, None)

    make.removed = removed
    return make


def test_engine_that_is_restarted_meanwhile(server):
    assert server(ConnectionError("gone"), ConnectionError("gone")).exit_state().code == 3


def test_engine_that_is_gone_for_good(server, tmp_path):
    one = server(*[ConnectionError("gone")] * 20)
    with pytest.raises(EngineTrouble, match="the engine does not answer: gone"):
        one.exit_state()
    one.stop()
    told = json.loads((tmp_path / "evidence/exit.json").read_text())
    assert told["error"] == "how it ended is not known" and "gone" in told["trouble"][0]


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
        response = SimpleNamespace(status_code=status, url="", reason="", json=lambda: {"message": text})
        error = sdk.errors.APIError(text, response=response, explanation=text)
        with pytest.raises(EngineTrouble, match="creating x: the engine says") as found, engine.asked("creating x"):
            raise error
        return found.value.passing

    assert trouble(500, "driver failed programming external connectivity: port is already allocated")
    assert trouble(503, "busy")
    assert not trouble(400, "invalid mount config")


# Images ---------------------------------------------------------------------------------------------------------------


def client_of(output):
    container = SimpleNamespace(start=lambda: None, wait=lambda **_: None, logs=lambda: output.encode(), remove=lambda **_: None)
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
    with pytest.raises(NotHere, match="is no image of TensorFlow Serving: --version says 'bash: no such option'"):
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
    limits = driver._resources() if importlib.util.find_spec("docker") else pytest.skip("the docker SDK is not installed")
    assert limits == {"mem_limit": 3 << 29, "memswap_limit": 3 << 29, "nano_cpus": 10**9}


# Staging --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path):
    place = tmp_path / "half plus/two!" / "model"
    (place / "variables").mkdir(parents=True)
    (place / "saved_model.pb").write_bytes(b"x")
    (place / "variables/variables.index").write_bytes(b"y")
    (place / "empty").mkdir()
    return place


@pytest.fixture
def staged(tmp_path):
    return staging.Staging(tmp_path / "staged")


def test_models_are_hard_links_under_safe_names(model, staged):
    one, two = staged.add(model), staged.add(model)
    assert (one.name, two.name) == ("two_1", "two_2")
    place = staged.folder / "two_1" / "1"
    assert (place / "saved_model.pb").samefile(model / "saved_model.pb")
    assert sorted(str(path.relative_to(place)) for path in place.rglob("*")) == [
        "empty",
        "saved_model.pb",
        "variables",
        "variables/variables.index",
    ]
    staged.remove(one)
    assert not (staged.folder / "two_1").exists() and (model / "saved_model.pb").read_bytes() == b"x"


def test_models_are_copied_where_links_fail(model, staged, monkeypatch):
    monkeypatch.setattr(staging.os, "link", lambda *_: (_ for _ in ()).throw(OSError(18, "Invalid cross-device link")))
    staged.add(model)
    copy = staged.folder / "two_1/1/saved_model.pb"
    assert copy.read_bytes() == b"x" and not copy.samefile(model / "saved_model.pb")


def test_file_that_only_another_user_may_read_is_copied(model, staged, monkeypatch):
    (model / "saved_model.pb").chmod(0o600)
    monkeypatch.setattr(staging.os, "getuid", lambda: 12345)
    staged.add(model)
    place = staged.folder / "two_1/1"
    assert not (place / "saved_model.pb").samefile(model / "saved_model.pb")
    assert (place / "variables/variables.index").samefile(model / "variables/variables.index")


def test_link_inside_the_model_becomes_the_file(model, staged):
    (model / "again").symlink_to("saved_model.pb")
    (model / "folder").symlink_to("variables")
    staged.add(model)
    place = staged.folder / "two_1/1"
    assert (place / "again").read_bytes() == b"x" and (place / "folder/variables.index").read_bytes() == b"y"
    assert not any(path.is_symlink() for path in place.rglob("*"))


def test_what_cannot_be_staged_is_refused(model, staged, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("z")
    for name, make, why in [
        ("out", lambda path: path.symlink_to(secret), "symbolic link out of the model's folder"),
        ("up", lambda path: path.symlink_to("../.."), "symbolic link out of the model's folder"),
        ("itself", lambda path: path.symlink_to("."), "symbolic link out of the model's folder"),
        ("nothing", lambda path: path.symlink_to("nowhere"), "symbolic link to nothing"),
        ("loop", lambda path: path.symlink_to("loop"), "symbolic link to nothing"),
        ("variables/above", lambda path: path.symlink_to("../variables"), "without an end"),
        ("pipe", os.mkfifo, "neither a file nor a folder"),
    ]:
        make(model / name)
        with pytest.raises(staging.Unstageable, match=why):
            staged.add(model)
        (model / name).unlink()
    with pytest.raises(staging.Unstageable, match="is no folder"):
        staged.add(model / "saved_model.pb")
    assert list(staged.folder.iterdir()) == []


def test_folder_that_is_itself_a_link(model, staged, tmp_path):
    (tmp_path / "linked").symlink_to(model)
    assert staged.add(tmp_path / "linked").name == "linked_1"


# Texts ----------------------------------------------------------------------------------------------------------------


def test_configuration_is_what_a_server_reads():
    from google.protobuf import text_format

    models = [staging.Staged("a_1", Path("/a")), staging.Staged("b_2", Path("/b"))]
    config = text_format.Parse(config_text(models, '/tmp/with "quotes" and \\'), messages.ModelServerConfig())
    assert [(one.name, one.base_path, one.model_platform) for one in config.model_config_list.config] == [
        ("a_1", '/tmp/with "quotes" and \\/a_1', "tensorflow"),
        ("b_2", '/tmp/with "quotes" and \\/b_2', "tensorflow"),
    ]
    empty = text_format.Parse(config_text([], "/models"), messages.ModelServerConfig())
    assert empty.WhichOneof("config") == "model_config_list"


def test_words_of_a_log():
    log = """
2026-11-21 21:38:28.123456: I tensorflow_serving/model_servers/server_core.cc:465] Adding/updating models.
2026-11-21 21:38:28.223456: E external/org_tensorflow/a.cc:1] first error
2026-11-21 21:38:28.323456: E tensorflow_serving/util/retrier.cc:37] Loading servable failed: Op type not registered
2026-11-21 21:38:28.423456: W a.cc:1] a warning behind it
"""
    assert verdicts.words_of(log) == "Loading servable failed: Op type not registered"
    assert verdicts.words_of(log + "2026-11-21 21:38:29.000000: F a.cc:1] Check failed: x\nmore\n") == "Check failed: x"
    assert verdicts.words_of("F1121 21:38:28.123456 12 file.cc:10] Check failed: y\nstack\n") == "Check failed: y"
    assert verdicts.words_of("usage: x\nunknown argument: --y\n\n") == "unknown argument: --y"
    assert verdicts.words_of("") == "its log is empty"


# Who lives ------------------------------------------------------------------------------------------------------------


def test_harness_is_told_from_a_later_process_of_its_number():
    me = harness.me()
    assert harness.alive(me) is True
    assert harness.Harness.from_labels(me.labels()) == me
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    for changes, lives in [
        ({"pid": child.pid}, False),
        ({"started": "1"}, False),
        ({"boot": "another"}, False),
        ({"host": "another"}, None),
        ({"space": "pid:[1]"}, None),
    ]:
        assert harness.alive(harness.Harness(**{**vars(me), **changes})) is lives, changes
    assert harness.Harness.from_labels({}) is None


def test_zombie_is_not_alive():
    child = subprocess.Popen([sys.executable, "-c", ""])
    deadline = time.monotonic() + 20
    while harness.started(child.pid) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert harness.started(child.pid) is None
    child.wait()


@pytest.fixture
def no_engine(monkeypatch):
    monkeypatch.setattr(engine, "connect", lambda: (_ for _ in ()).throw(NotHere("no engine", "docker info")))


def cleanup(*options):
    result = CliRunner().invoke(cli.main, ["serving", "cleanup", *options])
    assert result.exit_code == 0, result.output
    return result.output


def record(name, **changes):
    """A server process, and the record of it whose harness is another."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    owner = {**vars(harness.me()), **changes}
    told = {"pid": child.pid, "started": harness.started(child.pid), "command": ["/x/server"], "harness": owner}
    binary.records().mkdir(parents=True, exist_ok=True)
    (binary.records() / f"{name}.json").write_text(json.dumps(told))
    return child


def test_cleanup_ends_processes_of_dead_harnesses_only(no_engine):
    dead, living, foreign = record("dead", started="1"), record("living"), record("foreign", host="elsewhere")
    try:
        assert "its harness is gone: would be removed" in cleanup("--dry-run")
        assert dead.poll() is None
        output = cleanup()
        assert f"process {dead.pid} (server): its harness is gone: removed" in output
        assert f"process {living.pid} (server): its harness lives: stays" in output
        assert "containers: no engine" in output and "1 removed" in output
        assert dead.wait(20) == -9
        assert living.poll() is None and foreign.poll() is None
        assert sorted(path.stem for path in binary.records().glob("*")) == ["foreign", "living"]
        assert "its harness lives: removed" in cleanup("--all")
        assert living.wait(20) == -9
        assert foreign.poll() is None
    finally:
        for child in (dead, living, foreign):
            child.kill()
            child.wait()


def test_cleanup_never_ends_a_process_that_got_the_number_later(no_engine):
    child = record("old", started="1")
    try:
        place = binary.records() / "old.json"
        place.write_text(json.dumps({**json.loads(place.read_text()), "started": "1"}))
        (binary.records() / "broken.json").write_text("{")
        assert "0 removed" in cleanup("--all")
        assert child.poll() is None
        assert list(binary.records().glob("*")) == []
    finally:
        child.kill()
        child.wait()


def test_doctor_without_an_engine(no_engine):
    result = CliRunner().invoke(cli.main, ["serving", "doctor"])
    assert result.exit_code == 4
    assert "engine: no engine\n  to provide it: docker info" in result.output
    assert CliRunner().invoke(cli.main, ["serving", "doctor", "remote:x"]).exit_code == 64


def test_image_is_built_by_the_command(sdk, monkeypatch):
    from compat_matrix.runtimes.standin import image

    asked: list[tuple[str | None, str]] = []

    def build(client, tag, runtime):
        asked.append((tag, runtime))
        if runtime == "nothing":
            raise places.UnknownRuntime("nothing is no runtime")
        return "sha256:1"

    images_of = SimpleNamespace(get=lambda number: SimpleNamespace(tags=["mine:1"]))
    monkeypatch.setattr(engine, "connect", lambda: SimpleNamespace(images=images_of, close=lambda: None))
    monkeypatch.setattr(image, "build", build)
    done = CliRunner().invoke(cli.main, ["serving", "image", "2.20", "--tag", "mine:1"])
    assert (done.exit_code, done.output) == (0, "mine:1: sha256:1\n")
    assert CliRunner().invoke(cli.main, ["serving", "image"]).exit_code == 0
    assert asked == [("mine:1", "2.20"), (None, "local")]
    assert CliRunner().invoke(cli.main, ["serving", "image", "nothing"]).exit_code == 64


def test_image_without_an_engine(no_engine):
    done = CliRunner().invoke(cli.main, ["serving", "image"])
    assert (done.exit_code, done.stderr) == (4, "Error: no engine; to provide it: docker info\n")


def test_limits_of_containers_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("COMPAT_SERVER_MEMORY", "8g")
    monkeypatch.setenv("COMPAT_SERVER_CPUS", "1.5")
    driver = drivers.of("tensorflow/serving:2.19.1")
    assert (driver._memory, driver._cpus) == (8 << 30, 1.5)
    monkeypatch.setenv("COMPAT_SERVER_MEMORY", "much")
    with pytest.raises(ValueError, match="no number of bytes"):
        drivers.of("standin")
