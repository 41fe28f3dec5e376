"""The docker driver against a real engine: nothing is a double but the program in the image, behind
the official contract.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import serving_image
import serving_models
from click.testing import CliRunner
from serving_drivers_fixtures import cleanup
from serving_engine import LIMITS, client, containers, evidence, home, predict, told, way
from serving_models import model

from savedmodel_common import interrupts
from savedmodel_compat import cli
from savedmodel_servers import drivers
from savedmodel_servers.drivers import docker, images
from savedmodel_servers.drivers.docker import LABEL, RUN_LABEL, DockerDriver
from savedmodel_servers.fleet import Fleet, NotServed, NotStarted

__all__ = ["client", "home", "way"]  # fixtures, imported by name

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def image(client):
    name = serving_image.image(client)
    yield name
    client.images.remove(name, force=True)
    client.images.prune(filters={"label": "savedmodel-compat.test=1"})


@pytest.fixture
def driver(image):
    return DockerDriver(image, memory=1 << 30, cpus=1)


@pytest.fixture
def fleet(driver, tmp_path):
    with Fleet(driver, tmp_path / "work", LIMITS) as fleet:
        yield fleet


# What it is
# --------------------------------------------------------------------------------------------------


def test_identity_of_an_image(client, image, driver, monkeypatch):
    identity = driver.identify()
    assert (identity.kind, identity.version, identity.image) == (
        "tensorflow-serving",
        "2.15.1",
        image,
    )
    known = client.images.get(image)
    assert identity.digest in (
        known.id,
        *known.attrs["RepoDigests"],
    )  # podman makes digests of its own
    assert containers(client, driver) == []
    # By its id, and remembered: no container is started for it.
    by_id = drivers.of(f"docker:{identity.digest}")
    started: list[str] = []
    monkeypatch.setattr(images, "_ask", lambda *_: started.append("--version") or "")
    assert by_id.identify().version == "2.15.1"
    assert started == []


# The official contract
# ------------------------------------------------------------------------------------------------


def test_container_life(client, driver, fleet, tmp_path):
    served = fleet.served(model(tmp_path, "m"))
    predict(served)
    assert served.rest.status(served.ref, limit=5)[0].state == "AVAILABLE"
    (container,) = containers(client, driver)
    config = container.attrs["HostConfig"]
    assert not config["AutoRemove"] and not config["Privileged"]
    assert (config["Memory"], config["MemorySwap"], config["NanoCpus"]) == (1 << 30, 1 << 30, 10**9)
    assert container.attrs["Config"]["User"] == f"{os.getuid()}:{os.getgid()}"
    (mount,) = container.attrs["Mounts"]
    assert (mount["Destination"], mount["RW"], mount["Type"]) == ("/models", False, "bind")
    for port in ("8500/tcp", "8501/tcp"):
        (published,) = container.attrs["NetworkSettings"]["Ports"][port]
        assert published["HostIp"] == "127.0.0.1" and int(published["HostPort"]) > 1023
    assert container.labels[LABEL] == "1" and container.labels[
        "savedmodel-compat.harness.pid"
    ] == str(os.getpid())
    fleet.close()
    assert containers(client, driver) == []
    log, state = evidence(tmp_path)
    assert told(log, "uid") == str(os.getuid())
    assert " caps 0 more 0 writes 0\n" in log
    flags = told(log, "flags")
    assert (flags["port"], flags["rest_api_port"], flags["model_base_path"]) == (
        "8500",
        "8501",
        "/models/model",
    )
    assert flags["model_config_file"] == "/models/models.config"
    assert "Successfully loaded servable version {name: m_1" in log
    assert state["stopped_by_harness"] and state["finished"] and not state["oom_killed"]


def test_many_models_in_one_container(fleet, tmp_path):
    models = [model(tmp_path, f"m{number}") for number in range(40)]
    for number, one in enumerate(models):
        predict(fleet.served(one, ahead=[(other, ["serve"]) for other in models[number + 1 :]]))
    assert fleet.report() == {"started": 1, "retried": [], "quarantined": {}}


def test_models_are_read_only(fleet, tmp_path):
    source = model(tmp_path, "m", "load write")
    with pytest.raises(NotServed, match="Read-only file system"):
        fleet.served(source)
    assert not (source / "written").exists()


def test_models_that_only_their_owner_may_read(fleet, tmp_path):
    secret = model(tmp_path, "m", "load read variables/variables.index")
    (secret / "variables/variables.index").chmod(0o600)
    secret.chmod(0o700)
    (tmp_path / "work").chmod(0o700)
    assert fleet.served(secret)


def test_another_set_of_tags_is_another_container(client, driver, fleet, tmp_path):
    one = model(tmp_path, "one")
    fleet.served(one)
    fleet.served(one, ["serve", "gpu"])
    assert len(containers(client, driver)) == 2


def test_models_are_copied_where_the_engine_does_not_see_them(
    client, driver, fleet, tmp_path, monkeypatch
):
    """An engine on another machine has no such folder, or another one of that name: what is read
    back is not what was written.
    """
    monkeypatch.setattr(docker, "_read_back", lambda container: None)
    models = [
        model(tmp_path, f"m{number}", "load read variables/variables.index") for number in range(3)
    ]
    models[0].joinpath("variables/variables.index").chmod(0o600)
    for one in models:  # the later ones into a container that runs
        predict(fleet.served(one))
    (container,) = containers(client, driver)
    assert container.attrs["Mounts"] == []
    assert fleet.report()["started"] == 1


def test_wrong_bind_path_does_not_hang(client, driver, fleet, tmp_path, monkeypatch):
    """serving #2004: with a folder that the engine does not have the server waits for its models
    for ever.
    """
    import docker.types

    real = docker.types.Mount
    monkeypatch.setattr(
        docker.types,
        "Mount",
        lambda target, source, **more: real(target, f"{source}/only/here", **more),
    )
    predict(fleet.served(model(tmp_path, "m")))
    (container,) = containers(client, driver)
    assert container.attrs["Mounts"] == []


# Ends
# --------------------------------------------------------------------------------------------------


def test_out_of_memory_at_load(image, client, tmp_path):
    if "Podman" in str(client.version().get("Components")):
        pytest.skip("podman does not tell that a process below the first one ran out of memory")
    driver = DockerDriver(image, memory=200 << 20)
    hungry, good = model(tmp_path, "hungry", "load memory"), model(tmp_path, "good")
    with Fleet(driver, tmp_path / "work", LIMITS) as fleet:
        with pytest.raises(NotServed, match=r"memory limit .* loaded") as crashed:
            fleet.served(hungry, ahead=[(good, ["serve"])])
        assert crashed.value.kind == "crashed" and crashed.value.exit.oom_killed
        predict(fleet.served(good))
        assert fleet.report()["started"] == 3
    _, state = evidence(tmp_path)
    assert state["oom_killed"] and not state["stopped_by_harness"]


def test_model_that_kills_the_server_at_load(client, driver, fleet, tmp_path):
    order = [
        model(tmp_path, "m0"),
        model(tmp_path, "bad", "load die SIGSEGV"),
        model(tmp_path, "m1"),
    ]
    kinds = []
    for number, one in enumerate(order):
        try:
            predict(fleet.served(one, ahead=[(other, ["serve"]) for other in order[number + 1 :]]))
            kinds.append("served")
        except NotServed as error:
            kinds.append(error.kind)
            assert "SIGSEGV while" in error.reason
    assert kinds == ["served", "crashed", "served"]
    assert len(containers(client, driver)) == 1


def test_container_killed_while_it_answers(client, driver, fleet, tmp_path):
    served = fleet.served(model(tmp_path, "m", "predict slow 20"))
    (container,) = containers(client, driver)
    threading.Timer(1, container.kill).start()
    with pytest.raises(NotServed, match=r"SIGKILL while .* predict") as killed:
        predict(served)
    assert killed.value.kind == "killed"
    assert fleet.served(tmp_path / "m").statuses[-1].state == "AVAILABLE"
    assert fleet.report()["quarantined"] == {} and fleet.report()["started"] == 2


def test_container_removed_by_somebody_else(client, driver, fleet, tmp_path):
    fleet.served(model(tmp_path, "m"))
    (container,) = containers(client, driver)
    container.remove(force=True)
    predict(fleet.served(tmp_path / "m"))
    assert "somebody else" in evidence(tmp_path)[1]["error"]
    assert "Successfully loaded" in evidence(tmp_path)[0]  # copied while it was written


def test_slow_start(image, tmp_path):
    with Fleet(DockerDriver(image), tmp_path / "work", LIMITS) as fleet:
        folder = tmp_path / "work/server-1/models"
        folder.mkdir(parents=True)
        (folder / "server").write_text("slow 3")
        predict(fleet.served(model(tmp_path, "m", "load slow 2")))
        assert fleet.report()["started"] == 1


def test_exit_during_the_start_is_final_at_once(client, driver, fleet, tmp_path):
    folder = tmp_path / "work/server-1/models"
    folder.mkdir(parents=True)
    (folder / "server").write_text("exit unknown argument: --load_retry_interval_micros")
    with pytest.raises(NotStarted, match=r"status 1 .*: unknown argument"):
        fleet.served(model(tmp_path, "m"))
    assert fleet.report()["started"] == 1
    assert containers(client, driver) == []


def test_killed_harness_leaves_a_container_that_cleanup_removes(client, image, tmp_path):
    script = f"""
import time
from pathlib import Path
from savedmodel_servers.fleet import Fleet
from savedmodel_servers.drivers.docker import DockerDriver
driver = DockerDriver({image!r})
fleet = Fleet(driver, Path({str(tmp_path / "work")!r})).__enter__()
fleet.served(Path({str(model(tmp_path, "m"))!r}))
print(driver.run, flush=True); time.sleep(120)
"""
    environment = {**os.environ, "PYTHONPATH": str(serving_models.HERE.parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        run = child.stdout.readline().strip()

        def left():
            return [
                one.name
                for one in client.containers.list(all=True, filters={"label": f"{RUN_LABEL}={run}"})
            ]

        (name,) = left()
        assert f"container {name} (Up" in cleanup()  # its harness lives: it stays
        assert left() == [name]
        child.kill()
        child.wait()
    dry = cleanup("--dry-run")
    assert f"{name} (Up" in dry and "would be removed" in dry and left() == [name]
    assert "gone: removed" in cleanup()
    assert left() == []


def interrupt():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def test_interruption_leaves_no_container(client, driver, tmp_path):
    timer = threading.Timer(2, interrupt)
    timer.start()
    try:
        with (
            interrupts.handled(),
            pytest.raises(KeyboardInterrupt),
            Fleet(driver, tmp_path / "work", LIMITS) as fleet,
        ):
            fleet.served(model(tmp_path, "m", "load slow 30"))
    finally:
        timer.cancel()  # else it interrupts whatever test comes next
    assert containers(client, driver) == []


@pytest.mark.parametrize("which", [1, 2], ids=["version", "server"])
def test_interruption_while_the_engine_creates_a_container_leaves_none(
    client, driver, tmp_path, monkeypatch, which
):
    """An engine goes on with a request whose asker has gone: here in a thread of its own."""
    from docker.api import APIClient

    asked = []
    create = APIClient.create_container_from_config

    def of_engine(*arguments):
        made = []
        engine = threading.Thread(target=lambda: (time.sleep(1), made.append(create(*arguments))))
        asked.append(engine)
        engine.start()
        if len(asked) == which:
            interrupt()
        engine.join()
        return made[0]

    monkeypatch.setattr(APIClient, "create_container_from_config", of_engine)
    with (
        interrupts.handled(),
        pytest.raises(KeyboardInterrupt),
        Fleet(driver, tmp_path / "work", LIMITS) as fleet,
    ):
        fleet.served(model(tmp_path, "m"))
    for engine in asked:
        engine.join()
    assert len(asked) == which and containers(client, driver) == []


def test_interruption_of_a_start_leaves_no_container(client, driver, tmp_path, monkeypatch):
    def interrupted(*_):
        assert len(containers(client, driver)) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(docker, "ContainerServer", interrupted)
    with pytest.raises(KeyboardInterrupt), Fleet(driver, tmp_path / "work", LIMITS) as fleet:
        fleet.served(model(tmp_path, "m"))
    assert containers(client, driver) == []


# Engines that are elsewhere, or gone
# ----------------------------------------------------------------------------------


def test_engine_that_is_gone_for_a_while(client, driver, way, fleet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("engine.sock")
    cuttable = way(listener, f"unix://{tmp_path}/engine.sock")
    fleet.served(model(tmp_path, "m"))
    (container,) = containers(client, driver)
    cuttable.cut()
    with pytest.raises(drivers.EngineTrouble, match="the engine"):
        fleet.served(tmp_path / "m")
    assert missing_engine() == 1
    cuttable.open = True
    with pytest.raises(NotServed) as refused:
        fleet.served(model(tmp_path, "bad", "load refuse no such op"))
    assert "Servable bad_2 cannot be loaded" in refused.value.log
    predict(fleet.served(tmp_path / "m"))
    assert [one.id for one in containers(client, driver)] == [container.id]
    assert fleet.report() == {"started": 1, "retried": [], "quarantined": {}}
    fleet.close()
    assert (
        "Servable bad_2 cannot be loaded" in evidence(tmp_path)[0]
        and containers(client, driver) == []
    )


def missing_engine():
    return CliRunner().invoke(cli.main, ["runtimes", "doctor", "--serving"]).exit_code


def test_engine_on_another_machine(client, driver, way, fleet, tmp_path):
    """Over TCP: nothing is shared with it, models are copied, and its ports are on its own
    address.
    """
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    way(listener, f"tcp://127.0.0.1:{listener.getsockname()[1]}")
    for name in ("m0", "m1"):
        predict(fleet.served(model(tmp_path, name, "load read variables/variables.index")))
    (container,) = containers(client, driver)
    assert container.attrs["Mounts"] == []
    assert container.attrs["NetworkSettings"]["Ports"]["8500/tcp"][0]["HostIp"] == "0.0.0.0"


# Trouble of the engine
# ------------------------------------------------------------------------------------------------


def test_trouble_that_passes_is_tried_again_and_told(client, driver, fleet, tmp_path, monkeypatch):
    real, count = driver._started, iter(range(2))

    def failing(container):
        if next(count, None) is not None:
            raise drivers.EngineTrouble("starting: port is already allocated", passing=True)
        real(container)

    monkeypatch.setattr(driver, "_started", failing)
    monkeypatch.setattr("savedmodel_servers.drivers.docker.PAUSE", 0)
    fleet.served(model(tmp_path, "m"))
    assert [text.partition(":")[0] for text in fleet.report()["retried"]] == ["starting"] * 2
    assert len(containers(client, driver)) == 1


def test_doctor_names_engine_and_images(image):
    servers = f"{image},tensorflow/serving:0.0.1"
    result = CliRunner().invoke(cli.main, ["runtimes", "doctor", "--server", servers])
    assert result.exit_code == 1
    assert "engine: " in result.output and "CPUs" in result.output
    assert f"{image}: tensorflow-serving, TensorFlow 2.15.1" in result.output
    assert (
        "tensorflow/serving:0.0.1: the image tensorflow/serving:0.0.1 is not here" in result.output
    )
    assert "docker pull tensorflow/serving:0.0.1" in result.output


def test_folders_of_evidence_are_ours(fleet, tmp_path):
    fleet.served(model(tmp_path, "m"))
    assert all(path.stat().st_uid == os.getuid() for path in Path(tmp_path / "work").rglob("*"))
