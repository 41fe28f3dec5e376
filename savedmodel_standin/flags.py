"""Read a command line like TensorFlow's ``Flags::Parse``: ``--name=value``, a bare ``--name`` for a
truth value.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from savedmodel_standin import log

_CPUS = os.cpu_count() or 1
# name -> default; the type of the default is the type of the flag.
ACTED_ON: dict[str, Any] = {
    "port": 8500,
    "grpc_socket_path": "",
    "rest_api_port": 0,
    "rest_api_num_threads": 4 * _CPUS,
    "rest_api_timeout_in_ms": 30000,
    "grpc_max_threads": 4 * _CPUS,
    "grpc_channel_arguments": "",
    "enable_batching": False,
    "batching_parameters_file": "",
    "allow_version_labels_for_unavailable_models": False,
    "force_allow_any_version_labels_for_unavailable_models": False,
    "model_config_file": "",
    "model_config_file_poll_wait_seconds": 0,
    "model_name": "default",
    "model_base_path": "",
    "num_load_threads": 0,
    "num_initial_load_threads": 4 * _CPUS,
    "max_num_load_retries": 5,
    "load_retry_interval_micros": 60 * 1000 * 1000,
    "file_system_poll_wait_seconds": 1,
    "saved_model_tags": "serve",
    "enable_model_warmup": True,
    "num_request_iterations_for_warmup": 0,
    "version": False,
    "monitoring_config_file": "",
    "prefer_tflite_model": False,
    "enable_signature_method_name_check": False,
    "xla_cpu_compilation_enabled": False,
    "enable_serialization_as_tensor_content": False,
    "enable_grpc_healthcheck_service": False,
}
# Taken and not acted on: threads, memory, accelerators, transport security, browsers.
ACCEPTED: dict[str, Any] = {
    "rest_api_enable_cors_support": False,
    "num_unload_threads": 0,
    "flush_filesystem_caches": True,
    "tensorflow_session_parallelism": 0,
    "tensorflow_session_config_file": "",
    "tensorflow_intra_op_parallelism": 0,
    "tensorflow_inter_op_parallelism": 0,
    "enforce_session_run_timeout": True,
    "use_alts_credentials": False,
    "ssl_config_file": "",
    "platform_config_file": "",
    "per_process_gpu_memory_fraction": 0.0,
    "remove_unused_fields_from_bundle_metagraph": True,
    "num_tflite_pools": _CPUS,
    "num_tflite_interpreters_per_pool": 1,
    "xla_gpu_compilation_enabled": False,
    "enable_profiler": True,
    "thread_pool_factory_config_file": "",
    "mixed_precision": "",
    "skip_initialize_tpu": False,
    "enable_per_model_batching_parameters": False,
}
# An answer that would be another one: these are refused rather than taken.
REFUSED = ("ssl_config_file", "use_alts_credentials", "platform_config_file")


class Parsed(NamedTuple):
    """The value of each flag, the remaining words, and whether every value could be read."""

    values: dict[str, Any]
    unknown: list[str]
    readable: bool


def parse(arguments: Sequence[str]) -> Parsed:
    """Read a command line without the program's name."""
    defaults = {**ACTED_ON, **ACCEPTED}
    values, readable = dict(defaults), True
    unknown: list[str] = []
    for position, argument in enumerate(arguments):
        if argument == "--":
            unknown += arguments[position:]
            break
        name, equals, text = argument[2:].partition("=")
        if (
            not argument.startswith("--")
            or name not in defaults
            or (not equals and not isinstance(defaults[name], bool))
        ):
            unknown.append(argument)
            continue
        value = _value(type(defaults[name]), text if equals else "true")
        if value is None:
            log.error("flags", f"Couldn't interpret value {equals}{text} for flag {name}.")
            readable = False
            continue
        values[name] = value
        if name in ACCEPTED and name not in REFUSED:
            log.info("flags", f"--{name} is accepted; the stand-in does nothing with it")
    return Parsed(values, unknown, readable and not (unknown and unknown[0] == "--help"))


def _value(kind: type, text: str) -> Any:
    if kind is bool:
        return {"true": True, "false": False}.get(text)
    if kind is int:
        return int(text) if re.fullmatch(r"\s*[+-]?\d+", text) else None
    if kind is float:
        try:
            return float(text)
        except ValueError:
            return None
    return text


def usage() -> str:
    program = os.path.basename(sys.argv[0])  # noqa: PTH119
    lines = [f"usage: {program or 'tensorflow_model_server'}", "Flags:"]
    for name, default in {**ACTED_ON, **ACCEPTED}.items():
        lines.append(f"\t--{name}={_shown(default)}{_remark(name)}")
    return "\n".join(lines) + "\n"


def _shown(default: Any) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return repr(default) if isinstance(default, str) else str(default)


def _remark(name: str) -> str:
    if name in ACTED_ON:
        return ""
    return "\tnot supported by the stand-in" if name in REFUSED else "\taccepted"
