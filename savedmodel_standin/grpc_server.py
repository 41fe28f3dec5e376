"""The gRPC server: the two services over TCP and, where asked for, a Unix socket."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from savedmodel_common.serving import messages
from savedmodel_standin import log
from savedmodel_standin.api import Api
from savedmodel_standin.errors import ServingError, invalid

_MAX_MILLIS = 1 << 31


def start(api: Api, flags: dict[str, Any]) -> Any:
    """Open the ports and serve. Raises :class:`ServingError`."""
    # Without so_reuseport: a second server on the port would take half of the first one's requests.
    options: list[tuple[str, Any]] = [
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        *_channel_arguments(flags["grpc_channel_arguments"]),
    ]
    server = grpc.server(
        ThreadPoolExecutor(max_workers=flags["grpc_max_threads"], thread_name_prefix="grpc"),
        options=options,
    )
    for service in messages.SERVICES:
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, _handlers(api, service)),)
        )
    if flags["enable_grpc_healthcheck_service"]:
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": _HEALTH}),)
        )
    server.add_generic_rpc_handlers((_Unknown(),))
    address = f"0.0.0.0:{flags['port']}" if flags["port"] else ""
    socket = flags["grpc_socket_path"]
    try:
        bound = all(
            server.add_insecure_port(one) for one in (address, socket and f"unix:{socket}") if one
        )
    except RuntimeError:
        bound = False
    if not bound:
        raise invalid("Failed to BuildAndStart gRPC server")
    server.start()
    if address:
        log.info("grpc_server", f"Running gRPC ModelServer at {address} ...")
    if socket:
        log.info("grpc_server", f"Running gRPC ModelServer at UNIX socket {socket} ...")
    return server


def _health(request: bytes, context: Any) -> bytes:
    """Answer a HealthCheckRequest about the whole server, which names no service: a
    HealthCheckResponse with SERVING.
    """
    if request:
        context.abort(grpc.StatusCode.NOT_FOUND, "")
    return b"\x08\x01"


_HEALTH = grpc.unary_unary_rpc_method_handler(_health)


class _Unknown(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Handles every other method. A C++ server sends no message for it; Python's would send one."""

    def service(self, details: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(
            lambda _, context: context.abort(grpc.StatusCode.UNIMPLEMENTED, "")
        )


def _channel_arguments(text: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for part in filter(None, text.split(",")):
        key, _, value = part.partition("=")
        found.append((key, int(value) if re.fullmatch(r"[+-]?\d+", value) else value))
    return found


def _handlers(api: Api, service: str) -> dict[str, Any]:
    handlers = {}
    for name, method in messages.METHODS.items():
        if method.path == f"/{service}/{name}":
            request: Any = method.request
            handlers[name] = grpc.unary_unary_rpc_method_handler(
                _answer(getattr(api, name), request.FromString),
            )
    return handlers


def _answer(
    method: Callable[[Any, int], Any], parse: Callable[[bytes], Any]
) -> Callable[[Any, Any], Any]:
    codes = {code.value[0]: code for code in grpc.StatusCode}

    def answer(message: bytes, context: Any) -> Any:
        left = context.time_remaining()
        timeout_ms = int(left * 1000) if left is not None and left * 1000 < _MAX_MILLIS else 0
        try:
            return method(parse(message), timeout_ms).SerializeToString()
        except DecodeError:
            context.abort(grpc.StatusCode.INTERNAL, "Exception deserializing request!")
        except ServingError as error:
            context.abort(codes[error.number], error.grpc_message)
        except Exception as error:
            log.error("grpc_server", f"{type(error).__name__}: {error}")
            context.abort(grpc.StatusCode.INTERNAL, f"stand-in: {error!r}")

    return answer
