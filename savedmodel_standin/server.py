"""The program: flags, the first models, then the ports; it ends with an error when a model of the
first config does not load.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from savedmodel_common.serving import messages
from savedmodel_standin import (
    faults,
    flags,
    grpc_server,
    json_reader,
    log,
    metrics,
    rest,
    warmup,
)
from savedmodel_standin.api import Api
from savedmodel_standin.core import PLATFORM, Core
from savedmodel_standin.errors import ServingError, invalid
from savedmodel_standin.servable import Servable, open_library

VERSION = "0.0.0-standin"
LARGEST_BATCH = 1000  # where --batching_parameters_file does not say
FAILED = 255  # exit status: -1 of the real server's main


def main(arguments: Sequence[str]) -> int:
    """Serve until a signal ends the process. Returns the exit status."""
    parsed = flags.parse(arguments)
    if not parsed.readable:
        sys.stdout.write(flags.usage())
        return FAILED
    values = parsed.values
    if values["version"]:
        library = open_library(xla=True)
        sys.stdout.write(
            f"TensorFlow ModelServer: {VERSION}\nTensorFlow Library: {library.version}\n"
        )
        return 0
    if parsed.unknown:  # and on it goes, like the real one
        sys.stdout.write(f"unknown argument: {parsed.unknown[0]}\n{flags.usage()}")
        sys.stdout.flush()
    # Without a handler the first process of a container ignores SIGTERM.
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    threading.Thread(target=_run, args=(values, stopped), name="main", daemon=True).start()
    while not stopped.wait(0.2):  # a signal that another thread takes does not wake this one
        pass
    # Loads and requests may still be running inside the library: nothing to wait for, nothing to
    # flush but the streams.
    sys.stdout.flush()
    if not _status:  # by a signal: die of it, as a process without a handler does
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    os._exit(_status[0] if _status else FAILED)


_status: list[int] = []  # of a server that could not start


def _run(values: dict[str, Any], stopped: threading.Event) -> None:
    try:
        faults.before_start()
        _build_and_start(values)
    except ServingError as error:
        sys.stdout.write(f"Failed to start server. Error: {error}\n")
        _status.append(FAILED)
        stopped.set()
    except BaseException as error:
        log.error("server", f"{type(error).__name__}: {error}")
        _status.append(FAILED)
        stopped.set()
        raise


def _build_and_start(values: dict[str, Any]) -> None:
    if not values["port"] and not values["grpc_socket_path"]:
        raise invalid("server_options.grpc_port is not set.")
    if not values["model_base_path"] and not values["model_config_file"]:
        raise invalid(
            "Both server_options.model_base_path and server_options.model_config_file are empty!"
        )
    if values["batching_parameters_file"] and not values["enable_batching"]:
        raise invalid(
            "server_options.batching_parameters_file is set without setting"
            " server_options.enable_batching to true."
        )
    for name in flags.REFUSED:
        if values[name]:
            raise ServingError("UNIMPLEMENTED", f"the stand-in does not support --{name}")
    batch = _largest_batch(values) if values["enable_batching"] else None
    config = (
        read_text(values["model_config_file"], messages.ModelServerConfig())
        if values["model_config_file"]
        else None
    )
    library = open_library(values["xla_cpu_compilation_enabled"])
    json_reader.follow(library.version)
    core = Core(values, _loader(library, values, batch))
    core.reload(_single(values) if config is None else config)
    if values["model_config_file"] and values["model_config_file_poll_wait_seconds"] > 0:
        threading.Thread(
            target=_poll_config, args=(core, values), name="config", daemon=True
        ).start()
    api = Api(core, values)
    _keep.append(grpc_server.start(api, values))
    _start_rest(api, values)


_keep: list[Any] = []  # a gRPC server that nothing refers to stops


def _start_rest(api: Api, values: dict[str, Any]) -> None:
    if not values["rest_api_port"]:
        return
    if values["rest_api_port"] == values["port"]:
        text = (
            "server_options.http_port cannot be same as grpc_port. Please use a different port for"
            " HTTP/REST API."
        )
        log.error("server", f"{text} Skipped exporting HTTP/REST API.")
        return
    path = ""
    if values["monitoring_config_file"]:
        monitoring: Any = read_text(values["monitoring_config_file"], messages.MonitoringConfig())
        if monitoring.prometheus_config.enable:
            path = monitoring.prometheus_config.path or metrics.DEFAULT_PATH
    rest.start(api, values, path)


def read_text(path: str, message: Any) -> Any:
    """A message from its text form in a file. Raises :class:`ServingError`."""
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        raise ServingError("NOT_FOUND", f"{path}; {error.strerror}") from None
    try:
        return text_format.Parse(text, message)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        log.error("server", f"Error parsing text-format {message.DESCRIPTOR.full_name}: {error}")
        raise invalid(f"Invalid protobuf file: '{path}'") from None


def _single(values: dict[str, Any]) -> Any:
    name, path = values["model_name"], values["model_base_path"]
    log.info(
        "server",
        f"Building single TensorFlow model file config:  model_name: {name} model_base_path:"
        f" {path}",
    )
    config: Any = messages.ModelServerConfig()
    config.model_config_list.config.add(name=name, base_path=path, model_platform=PLATFORM)
    return config


def _largest_batch(values: dict[str, Any]) -> int:
    """Return the size of the largest batch.

    Raises :class:`ServingError`: the file of parameters cannot be read.
    """
    path = values["batching_parameters_file"]
    parameters: Any = (
        read_text(path, messages.BatchingParameters()) if path else messages.BatchingParameters()
    )
    return (
        int(parameters.max_batch_size.value)
        if parameters.HasField("max_batch_size")
        else LARGEST_BATCH
    )


def _loader(library: Any, values: dict[str, Any], batch: int | None) -> Any:
    tags = [tag for tag in values["saved_model_tags"].split(",") if tag]

    def load(name: str, version: int, path: str) -> Servable:
        faults.before_load(name)
        try:
            servable = Servable(
                library,
                path,
                tags,
                largest_batch=batch,
                prefer_tflite=values["prefer_tflite_model"],
            )
            try:
                if values["enable_model_warmup"]:
                    iterations = values["num_request_iterations_for_warmup"]
                    warmup.run(
                        servable, path, iterations, values["enable_signature_method_name_check"]
                    )
            except BaseException:
                servable.close()
                raise
        except ServingError:
            metrics.count(metrics.LOADS, model_path=path, status="fail")
            raise
        metrics.count(metrics.LOADS, model_path=path, status="success")
        return servable

    return load


def _poll_config(core: Core, values: dict[str, Any]) -> None:
    """Read the config file again and again."""
    clock = threading.Event()
    while True:
        clock.wait(values["model_config_file_poll_wait_seconds"])
        try:
            config = read_text(values["model_config_file"], messages.ModelServerConfig())
        except ServingError as error:
            log.error("server", f"Failed to read ModelServerConfig file: {error.message}")
            continue
        try:
            core.reload(config)
        except ServingError as error:
            log.error(
                "server", f"PollFilesystemAndReloadConfig failed to ReloadConfig: {error.message}"
            )
