"""A real engine, for tests of the docker driver: a client of it, a way to it that can be cut, what
its containers tell.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading

import pytest

from savedmodel_servers.drivers import engine
from savedmodel_servers.drivers.base import NotHere
from savedmodel_servers.drivers.docker import RUN_LABEL
from savedmodel_servers.fleet import Limits

LIMITS = Limits(up=60, available=60)


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("grpc")
    try:
        client = engine.connect()
    except NotHere as missing:
        pytest.skip(str(missing))
    yield client
    client.close()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SAVEDMODEL_COMPAT_HOME", str(tmp_path / "home"))


def predict(served):
    return served.grpc.predict(served.ref, "", {}, limit=30)


def containers(client, driver):
    return client.containers.list(all=True, filters={"label": f"{RUN_LABEL}={driver.run}"})


def evidence(tmp_path, start=1):
    place = tmp_path / f"work/server-1/start-{start}"
    return (place / "log.txt").read_text(), json.loads((place / "exit.json").read_text())


def told(log, what):
    """What the double says of itself in its first line: ``flags`` or ``uid``."""
    line = log.partition("flags ")[2].partition("\n")[0]
    flags, _, rest = line.partition(" uid ")
    return json.loads(flags) if what == "flags" else rest.split()[0]


class Way:
    """A way to the engine that can be cut: everything that comes to ``listener`` is passed on to
    its socket.
    """

    def __init__(self, listener):
        self.listener, self.open = listener, True
        self.ends: list[socket.socket] = []
        listener.listen(50)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                here = self.listener.accept()[0]
                if not self.open:
                    here.close()
                    continue
                there = socket.socket(socket.AF_UNIX)
                there.connect(
                    (os.environ.get("WAY_TO") or "unix:///var/run/docker.sock")[len("unix://") :]
                )
                self.ends += [here, there]
                for one, other in ((here, there), (there, here)):
                    threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def cut(self):
        self.open = False
        for one in self.ends:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.cut()
        self.listener.close()
        for one in self.ends:
            one.close()


@pytest.fixture
def way(client, monkeypatch):
    made: list[Way] = []
    monkeypatch.setenv("WAY_TO", os.environ.get("DOCKER_HOST", ""))

    def make(listener, address):
        made.append(Way(listener))
        monkeypatch.setenv("DOCKER_HOST", address)
        return made[-1]

    yield make
    for one in made:
        one.close()
