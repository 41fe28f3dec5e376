"""The driver of a server program of this machine: its identity, its life, its start, and somebody
else's server.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
import serving_models
from serving_models import model
from serving_programs import LIMITS, fleet, home, predict, program

from savedmodel_servers import drivers
from savedmodel_servers.drivers import harness
from savedmodel_servers.drivers.base import NotHere
from savedmodel_servers.drivers.binary import BinaryDriver, records
from savedmodel_servers.fleet import (
    Fleet,
    Limits,
    NotServed,
    NotStarted,
)

__all__ = ["fleet", "home", "program"]  # fixtures, imported by name

pytest.importorskip("grpc")


# Identity
# --------------------------------------------------------------------------------------------------


def test_version_is_read_from_the_program(program):
    identity = drivers.of(f"binary:{program}").identify()
    assert (identity.kind, identity.version) == ("tensorflow-serving", "2.15.1")
    assert identity.details["ModelServer"] == "2.15.1-rc0+dev.sha.9bd1e5a"


def test_a_program_is_asked_once_and_again_when_it_was_replaced(tmp_path):
    server = tmp_path / "server"
    for number, release in enumerate(("2.15.1", "2.19.1", "2.19.1")):
        if number < 2:
            lines = (
                "#!/bin/sh",
                f"echo asked >> {tmp_path}/asked",
                f"echo TensorFlow ModelServer: {release}",
            )
            (tmp_path / "new").write_text(
                "\n".join([*lines, f"echo TensorFlow Library: {release}"]) + "\n"
            )
            (tmp_path / "new").chmod(0o755)
            (tmp_path / "new").replace(server)
        assert BinaryDriver(str(server)).identify().version == release
    assert (tmp_path / "asked").read_text() == "asked\n" * 2


def test_program_is_found_on_path(program, monkeypatch):
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    assert drivers.of("binary").identify().details["program"] == str(program)


def test_absent_program_says_what_would_provide_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotHere, match="no tensorflow_model_server on PATH") as missing:
        drivers.of("binary").identify()
    assert "apt-get install tensorflow-model-server" in missing.value.command
    with pytest.raises(NotHere, match="/nowhere/server "):
        drivers.of("binary:/nowhere/server").identify()


def test_another_program_is_no_server(tmp_path):
    other = tmp_path / "server"
    other.write_text("#!/bin/sh\necho something else 2.15.1\n")
    other.chmod(0o755)
    with pytest.raises(NotHere, match="'something else"):
        BinaryDriver(str(other)).identify()


def test_a_stand_in_is_never_the_real_server(tmp_path):
    other = tmp_path / "server"
    other.write_text(
        "#!/bin/sh\necho 'TensorFlow ModelServer: 2.15.1-standin'; echo 'TensorFlow Library:"
        " 2.15.1'\n"
    )
    other.chmod(0o755)
    assert BinaryDriver(str(other)).identify().kind == "standin"


# Life
# --------------------------------------------------------------------------------------------------


def test_many_models_in_one_server(fleet, tmp_path):
    models = [model(tmp_path, f"m{number}") for number in range(20)]
    queue = [(one, ["serve"]) for one in models]
    for number, one in enumerate(models):
        served = fleet.served(one, ahead=queue[number + 1 :])
        assert served.ref.name.startswith(f"m{number}_")
        assert [status.state for status in served.statuses][-1] == "AVAILABLE"
        assert served.rest.status(served.ref, limit=5)[0].state == "AVAILABLE"
        assert predict(served) == {}
    assert fleet.report() == {"started": 1, "retried": [], "quarantined": {}}
    # No more than a batch at a time: the first were unloaded, and their files are gone.
    assert served.grpc.status(type(served.ref)("m0_1"), limit=5)[0].state == "END"
    assert len(list((tmp_path / "work/server-1/models").glob("m*_*"))) <= LIMITS.batch


def test_one_server_per_set_of_tags(fleet, tmp_path):
    one, two = model(tmp_path, "one"), model(tmp_path, "two")
    fleet.served(one, ahead=[(two, ["train"])])
    fleet.served(two, ["train", "gpu"])
    assert fleet.report()["started"] == 2
    flags = [
        json.loads(log.read_text().partition("flags ")[2].partition(" uid")[0])
        for log in logs(tmp_path)
    ]
    assert [one.get("saved_model_tags") for one in flags] == [None, "gpu,train"]
    assert flags[0]["max_num_load_retries"] == flags[0]["load_retry_interval_micros"] == "0"
    for tags in (["a,b"], [""], []):
        with pytest.raises(NotServed, match="the tags"):
            fleet.served(one, tags)


def logs(tmp_path):
    return sorted((tmp_path / "work").glob("server-*/start-*/log.txt"))


def test_nothing_is_left_at_the_end(program, tmp_path):
    with Fleet(BinaryDriver(str(program)), tmp_path / "work", LIMITS) as fleet:
        fleet.served(model(tmp_path, "m"))
        (record,) = records().glob("*.json")
        (log,) = logs(tmp_path)
        pids = [
            json.loads(record.read_text())["pid"],
            int(log.read_text().partition(" pid ")[2].split()[0]),
        ]
        assert all(map(harness.started, pids))
    assert not any(map(harness.started, pids))
    assert not list(records().glob("*.json"))
    assert not list((tmp_path / "work").glob("server-*/models"))
    assert "Successfully loaded servable version {name: m_1" in log.read_text()
    assert json.loads((log.parent / "exit.json").read_text())["stopped_by_harness"] is True


def test_interruption_leaves_no_process(program, tmp_path):
    waiting = model(tmp_path, "m", "load slow 20")
    main = threading.main_thread().ident
    timer = threading.Timer(2, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    with (
        pytest.raises(KeyboardInterrupt),
        Fleet(BinaryDriver(str(program)), tmp_path / "work", LIMITS) as fleet,
    ):
        fleet.served(waiting)
    assert not list(records().glob("*.json"))


def test_server_dies_with_a_killed_harness(program, tmp_path):
    script = f"""
import sys, time; sys.path.insert(0, {str(serving_models.HERE)!r})
from pathlib import Path
from savedmodel_servers.fleet import Fleet
from savedmodel_servers.drivers.binary import BinaryDriver
fleet = Fleet(BinaryDriver({str(program)!r}), Path({str(tmp_path / "work")!r})).__enter__()
fleet.served(Path({str(model(tmp_path, "m"))!r}))
print("served", flush=True); time.sleep(60)
"""
    environment = {**os.environ, "PYTHONPATH": str(serving_models.HERE.parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment
    ) as child:
        assert child.stdout.readline() == b"served\n"
        (record,) = records().glob("*.json")
        told = json.loads(record.read_text())
        assert harness.started(told["pid"]) == told["started"]
        child.kill()
    deadline = time.monotonic() + 20
    while harness.started(told["pid"]) is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert harness.started(told["pid"]) is None


# The server itself
# --------------------------------------------------------------------------------------------------


def test_server_without_reload_is_started_with_each_batch(program, tmp_path, monkeypatch):
    monkeypatch.setenv("DOUBLE", "no_reload")
    models = [model(tmp_path, f"m{number}") for number in range(3)]
    bad = model(tmp_path, "bad", "load refuse Missing variable w")
    order = [*models, bad]
    with Fleet(BinaryDriver(str(program)), tmp_path / "work", LIMITS) as fleet:
        for number, one in enumerate(models):
            predict(fleet.served(one, ahead=[(other, ["serve"]) for other in order[number + 1 :]]))
        with pytest.raises(NotServed, match=r"status 255 .*Missing variable w") as refused:
            fleet.served(bad)
        assert refused.value.kind == "refused"
        # One to learn it, one that the bad one ends, one for each model, one for the bad one.
        assert fleet.report()["started"] == 6


def test_server_that_does_not_start_is_tried_once(program, tmp_path, monkeypatch):
    monkeypatch.setenv("DOUBLE", "exit unknown argument: --max_num_load_retries")
    with Fleet(BinaryDriver(str(program)), tmp_path / "work", LIMITS) as fleet:
        for _ in range(2):
            with pytest.raises(
                NotStarted,
                match=r"status 1 .*: unknown argument",
            ) as broken:
                fleet.served(model(tmp_path / str(_), "m"))
            assert "unknown argument" in broken.value.log
        assert fleet.report()["started"] == 1


def test_slow_start_within_the_limit_is_no_failure(program, tmp_path, monkeypatch):
    monkeypatch.setenv("DOUBLE", "slow 2")
    with Fleet(BinaryDriver(str(program)), tmp_path / "work", Limits(up=30)) as fleet:
        fleet.served(model(tmp_path, "m"))
    with (
        Fleet(BinaryDriver(str(program)), tmp_path / "work2", Limits(up=0.5)) as fleet,
        pytest.raises(NotStarted, match=r"within 0\.5 s"),
    ):
        fleet.served(tmp_path / "m")


def test_port_that_another_took_is_tried_again(program, tmp_path, monkeypatch):
    from savedmodel_servers.drivers import binary

    real = binary.free_ports
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        ports = iter([(taken.getsockname()[1], real()[1])])
        monkeypatch.setattr(binary, "free_ports", lambda: next(ports, None) or real())
        with Fleet(BinaryDriver(str(program)), tmp_path / "work", LIMITS) as fleet:
            fleet.served(model(tmp_path, "m"))
            assert fleet.report()["started"] == 2
            assert "a port" in fleet.report()["retried"][0]


def test_answers_of_another_process_at_the_port_are_not_believed(program, tmp_path, monkeypatch):
    """gRPC servers share ports on Linux: what answers may be somebody else's server."""
    from savedmodel_servers.drivers import binary

    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nsleep 60\n")
    silent.chmod(0o755)
    with Fleet(BinaryDriver(str(program)), tmp_path / "work", LIMITS) as fleet:
        fleet.served(model(tmp_path, "m"))
        (station,) = fleet._stations.values()
        there = station._now.endpoint
        monkeypatch.setattr(binary, "free_ports", lambda: (there.grpc_port, there.rest_port))
        with Fleet(BinaryDriver(str(silent)), tmp_path / "other", LIMITS) as other:
            with pytest.raises(drivers.EngineTrouble, match="another process answers"):
                other.served(tmp_path / "m")
            assert other.report()["started"] == 3


# Somebody else's server
# -----------------------------------------------------------------------------------------------


def test_remote_server_is_asked_and_left_alone(fleet, program, tmp_path):
    one = model(tmp_path, "one")
    name = fleet.served(one).ref.name
    (station,) = fleet._stations.values()
    there = station._now.endpoint
    with Fleet(
        drivers.of(f"remote:127.0.0.1:{there.grpc_port},{there.rest_port}/{name}"),
        tmp_path / "remote",
        LIMITS,
    ) as remote:
        assert remote.identity.kind == "remote"
        served = remote.served(one)
        assert served.ref.name == name
        assert served.rest.status(served.ref, limit=5)[0].state == "AVAILABLE"
        assert remote.report()["started"] == 0
    with Fleet(
        drivers.of(f"remote:127.0.0.1:{there.grpc_port}"), tmp_path / "remote2", LIMITS
    ) as remote:
        with pytest.raises(NotServed, match="'one'") as refused:
            remote.served(one)
        assert refused.value.kind == "refused"
    assert predict(fleet.served(one)) == {}


def test_remote_server_that_is_not_there():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(
            NotHere, match=rf"nothing answers at 127\.0\.0\.1, port {port}"
        ) as missing:
            drivers.of(f"remote:127.0.0.1:{port},8501/m").identify()
    assert f"--port={port} --rest_api_port=8501" in missing.value.command
