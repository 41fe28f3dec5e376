"""Starts the stand-in server as a process of its own, and asks it over both of its transports."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from savedmodel_common.serving import messages
from savedmodel_standin import executable

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures_v1"
LIMIT = 300.0  # seconds; a hang is meant, not a slow machine
QUICK = ("--max_num_load_retries=0", "--file_system_poll_wait_seconds=1")


class Failed(Exception):
    """A gRPC error: the name of its code, and its text."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code, self.text = code, text


class Server:
    """A running process. ``log()`` is what it wrote on both streams."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, ports: Sequence[int]) -> None:
        self.process, self._log, (self.grpc_port, self.rest_port) = process, log, ports
        # here: without TensorFlow there may be none, and these tests are still collected
        import grpc

        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.grpc_port}")

    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def call(self, method: str, request: Any, limit: float = LIMIT, channel: Any = None) -> Any:
        import grpc

        known = messages.METHODS[method]
        send = (channel or self.channel).unary_unary(
            known.path, lambda message: message.SerializeToString(), known.response.FromString
        )
        try:
            return send(request, timeout=limit)
        except grpc.RpcError as error:
            raise Failed(error.code().name, error.details()) from None

    def rest(self, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and document; ``body`` is a document, or bytes as they are."""
        status, text = self.rest_text(path, body)
        return status, json.loads(text)

    def rest_text(self, path: str, body: Any = None) -> tuple[int, str]:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.rest_port}{path}", data)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT) as response:
                return response.status, response.read().decode("utf-8", "surrogateescape")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode("utf-8", "surrogateescape")

    def reload(self, *models: Mapping[str, Any], limit: float = LIMIT) -> Any:
        request: Any = messages.ReloadConfigRequest()
        request.config.model_config_list.SetInParent()
        for model in models:
            request.config.model_config_list.config.add(**{"model_platform": "tensorflow", **model})
        return self.call("HandleReloadConfigRequest", request, limit)

    def states(self, name: str) -> list[tuple[int, str]]:
        known = self.call(
            "GetModelStatus",
            messages.GetModelStatusRequest(model_spec=messages.ModelSpec(name=name)),
        )
        names = messages.ModelVersionStatus.State
        return [(entry.version, names.Name(entry.state)) for entry in known.model_version_status]

    def wait_for(self, name: str, states: list[tuple[int, str]]) -> None:
        end = time.monotonic() + LIMIT
        while self.states(name) != states and time.monotonic() < end:
            time.sleep(0.05)
        assert self.states(name) == states, self.log()[-2000:]


def free_ports(count: int = 2) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for found in sockets:
            found.bind(("127.0.0.1", 0))
        return [found.getsockname()[1] for found in sockets]


def start(
    folder: Path,
    *flags: str,
    environment: Mapping[str, str] | None = None,
    python: str = sys.executable,
) -> Server:
    """Start the process; nothing is waited for. ``python``: whose TensorFlow it has."""
    path = folder / "tensorflow_model_server"
    executable.write(path, python)
    ports = free_ports()
    log = folder / f"log.{ports[0]}"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [str(path), f"--port={ports[0]}", f"--rest_api_port={ports[1]}", *flags],
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", **(environment or {})},
        )
    return Server(process, log, ports)


@contextlib.contextmanager
def serving(
    folder: Path,
    *flags: str,
    environment: Mapping[str, str] | None = None,
    python: str = sys.executable,
) -> Iterator[Server]:
    """A server whose ports are open."""
    server = start(folder, *flags, environment=environment, python=python)
    try:
        wait_open(server)
        yield server
    finally:
        server.channel.close()
        server.process.kill()
        server.process.wait()


def wait_open(server: Server) -> None:
    end = time.monotonic() + LIMIT
    while True:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", server.rest_port), 1),
        ):
            return
        assert server.process.poll() is None, server.log()[-3000:]
        assert time.monotonic() < end, server.log()[-3000:]
        time.sleep(0.05)


def empty_config(folder: Path) -> str:
    """The flag of a config that lists nothing."""
    path = folder / "models.config"
    path.write_text("model_config_list {}\n", "utf-8")
    return f"--model_config_file={path}"


def place(base: Path, fixture: str, version: int = 1) -> Path:
    """A fixture's model as ``base/VERSION``; returns ``base``."""
    shutil.copytree(FIXTURES / fixture / "model", base / str(version))
    return base


def predict(name: str, signature: str = "", **inputs: tuple[int, str, Sequence[Any]]) -> Any:
    """A PredictRequest of vectors: ``x=(dtype number, list field, values)``."""
    request: Any = messages.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = name, signature
    for alias, (dtype, field, values) in inputs.items():
        proto = request.inputs[alias]
        proto.dtype = dtype
        proto.tensor_shape.dim.add().size = len(values)
        getattr(proto, field).extend(values)
    return request
