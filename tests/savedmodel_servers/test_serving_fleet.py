"""The fleet on top of a driver: models that misbehave cost themselves only.

Real processes, a double of the server.
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time

import pytest
from serving_models import model
from serving_programs import fleet, home, predict, program

from savedmodel_servers.client import Timeout, Unreachable
from savedmodel_servers.drivers.binary import BinaryDriver, records
from savedmodel_servers.fleet import (
    Fleet,
    Limits,
    NotServed,
    NotStarted,
)

__all__ = ["fleet", "home", "program"]  # fixtures, imported by name

pytest.importorskip("grpc")


def test_unservable_model_comes_with_the_reason_and_the_log(fleet, tmp_path):
    bad = model(tmp_path, "bad", "load refuse Op type not registered 'Frobnicate'")
    good = model(tmp_path, "good")
    with pytest.raises(NotServed, match="Op type not registered 'Frobnicate'") as refused:
        fleet.served(bad, ahead=[(good, ["serve"])])
    assert (refused.value.kind, refused.value.error.state, refused.value.error.error_code) == (
        "refused",
        "END",
        3,
    )
    assert "Loading servable version {name: bad_1" in refused.value.log
    predict(fleet.served(good))
    with pytest.raises(NotServed, match="Frobnicate"):
        fleet.served(bad)
    assert fleet.report() == {"started": 1, "retried": [], "quarantined": {}}


def test_model_that_kills_the_server_costs_itself_only(fleet, tmp_path):
    models = [model(tmp_path, f"m{number}") for number in range(3)]
    bad = model(tmp_path, "bad", "load die SIGABRT")
    order = [models[0], models[1], bad, models[2]]
    answers = []
    for number, one in enumerate(order):
        try:
            predict(fleet.served(one, ahead=[(other, ["serve"]) for other in order[number + 1 :]]))
            answers.append("served")
        except NotServed as error:
            answers.append(error.kind)
            assert "SIGABRT while" in error.reason
            assert error.exit.signal == signal.SIGABRT
    assert answers == ["served", "served", "crashed", "served"]
    report = fleet.report()
    assert report["started"] == 3  # with the batch, without it, without the bad one
    assert list(report["quarantined"]) == [str(bad)]
    with pytest.raises(NotServed, match="SIGABRT"):
        fleet.served(bad)
    assert fleet.report()["started"] == 3
    assert [path.name[:2] for path in (tmp_path / "work/server-1/models").glob("*_*")] == ["m2"]


@pytest.mark.parametrize(
    ("place", "servers"), [(0, {3}), (1, {2, 3})]
)  # of what loaded before it, we may have seen the end
def test_suspects_are_loaded_alone(place, servers, program, tmp_path):
    """The bad one must not make suspects of more and more others."""
    order = [model(tmp_path, f"m{n}") for n in range(8)]
    order.insert(place, model(tmp_path, "bad", "load die SIGABRT"))
    with Fleet(BinaryDriver(str(program)), tmp_path / "work", Limits(batch=2)) as fleet:
        for number, one in enumerate(order):
            with contextlib.suppress(NotServed):
                fleet.served(one, ahead=[(other, ["serve"]) for other in order[number + 1 :]])
        report = fleet.report()
        assert report["started"] in servers
        assert len(report["quarantined"]) == 1


def test_model_that_kills_the_server_at_a_request(fleet, tmp_path):
    bad, good = model(tmp_path, "bad", "predict die SIGSEGV"), model(tmp_path, "good")
    served = fleet.served(bad, ahead=[(good, ["serve"])])
    with pytest.raises(NotServed, match=r"SIGSEGV while .* predict") as crashed:
        predict(served)
    assert crashed.value.kind == "crashed"
    assert "Check failed" in crashed.value.log
    assert "Loading servable" not in crashed.value.log  # of the request only
    predict(fleet.served(good))
    with pytest.raises(NotServed, match="SIGSEGV"):
        fleet.served(bad)
    with pytest.raises(Unreachable, match="fleet again"):
        predict(served)
    assert fleet.report()["started"] == 2


def test_exit_status_of_a_server_at_a_request(fleet, tmp_path):
    with pytest.raises(NotServed, match=r"status 3 .* predict"):
        predict(fleet.served(model(tmp_path, "bad", "predict exit 3")))


def test_server_killed_by_somebody_else_costs_no_model(fleet, tmp_path):
    one, two = model(tmp_path, "one"), model(tmp_path, "two", "predict slow 20")
    fleet.served(one)
    kill_servers()
    wait_for_the_end(fleet)
    assert predict(fleet.served(one)) == {}
    assert "SIGKILL while" in fleet.report()["retried"][0]
    served = fleet.served(two)
    threading.Timer(1, kill_servers).start()
    with pytest.raises(NotServed) as killed:
        predict(served)
    assert killed.value.kind == "killed"
    fleet.served(two)  # it may be loaded again
    assert fleet.report()["quarantined"] == {}


def kill_servers():
    import psutil

    for record in list(records().glob("*.json")):
        for child in psutil.Process(json.loads(record.read_text())["pid"]).children(recursive=True):
            child.kill()


def wait_for_the_end(fleet):
    """A system may show a process as ended before its parent is told so."""
    (station,) = fleet._stations.values()
    while station._now.server.exit_state() is None:
        time.sleep(0.01)


def test_server_that_dies_again_and_again_is_given_up(fleet, tmp_path):
    one = model(tmp_path, "one")
    with pytest.raises(NotStarted, match="does not stay"):
        for _ in range(10):
            fleet.served(one)
            kill_servers()
            wait_for_the_end(fleet)
    assert fleet.report()["started"] == 4


def test_load_that_hangs_ends_at_its_limit_and_the_others_go_on(program, tmp_path):
    hanging = model(tmp_path, "hanging", "load hang")
    good = model(tmp_path, "good")
    with Fleet(
        BinaryDriver(str(program)), tmp_path / "work", Limits(up=60, available=1.5)
    ) as fleet:
        with pytest.raises(NotServed, match=r"1.5 s .*; .* Loading servable") as hung:
            fleet.served(hanging, ahead=[(good, ["serve"])])
        assert hung.value.kind == "hung"
        predict(fleet.served(good))
        assert (
            fleet.report()["started"] == 2
        )  # the one that was loading is to blame, not the one behind it


def test_slow_model_in_front_does_not_cost_the_one_behind(program, tmp_path):
    models = [model(tmp_path, f"slow{number}", "load slow 0.9") for number in range(4)]
    with Fleet(BinaryDriver(str(program)), tmp_path / "work", Limits(up=60, available=3)) as fleet:
        fleet.served(models[3], ahead=[(one, ["serve"]) for one in models[:3]])
        assert fleet.report() == {"started": 1, "retried": [], "quarantined": {}}


def test_server_that_answers_nobody_any_more(fleet, tmp_path):
    frozen, good = model(tmp_path, "frozen", "predict freeze"), model(tmp_path, "good")
    served = fleet.served(frozen)
    with pytest.raises(Timeout):
        served.grpc.predict(served.ref, "", {}, limit=1)
    with pytest.raises(NotServed, match=r"nobody .* predict") as hung:
        fleet.served(frozen)
    assert hung.value.kind == "hung"
    predict(fleet.served(good))
