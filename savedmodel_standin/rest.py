"""The REST API: paths, methods, bodies and status codes over HTTP/1.1 with connections that are
kept.
"""

from __future__ import annotations

import gzip
import http.client
import io
import re
import threading
import urllib.parse
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from savedmodel_common.serving import messages
from savedmodel_standin import (
    json_examples,
    json_predict,
    json_protos,
    log,
    memory,
    metrics,
)
from savedmodel_standin.api import SIGNATURE_DEF, Api
from savedmodel_standin.errors import ServingError, invalid

_WHICH = r"(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?"
_POST = re.compile(
    rf"/v1/models/(?P<name>[^/:]+){_WHICH}:(?P<verb>classify|regress|predict)", re.IGNORECASE
)
_GET = re.compile(
    rf"/v1/models(?:/(?P<name>[^/:]+))?{_WHICH}(?:/(?P<verb>metadata))?", re.IGNORECASE
)
_OURS = re.compile(r"/v1/.*", re.IGNORECASE | re.DOTALL)
_ORIGIN = re.compile("https?://")
_JSON, _TEXT, _HTML = "application/json", "text/plain", "text/html; charset=ISO-8859-1"
MAX_BODY = 1 << 31
_PART = 1 << 20  # bytes read together
# The real server takes large headers. Python's limits are numbers of its module; this process has
# no other use for them.
http.client._MAXLINE = http.client._MAXHEADERS = 1 << 20  # type: ignore[attr-defined]
_NOT_FOUND = (
    b"<HTML><HEAD>\n<TITLE>404 Not Found</TITLE>\n</HEAD><BODY>\n<H1>Not"
    b" Found</H1>\n</BODY></HTML>\n"
)


class _NoWords(Exception):
    """Raised for a request that is refused with 400 and an empty body."""


class Rest:
    """Requests by method and path.

    ``metrics_path`` is empty for no metrics.
    """

    def __init__(self, api: Api, timeout_ms: int, metrics_path: str) -> None:
        self._api, self._timeout, self._metrics = api, timeout_ms, metrics_path

    def answer(
        self, method: str, path: str, body: bytes, compressed: bool = False, origin: str = ""
    ) -> tuple[int, str, bytes]:
        """Status code, content type and body.

        ``compressed``: the body is gzip. ``origin``: the header of that name.
        """
        if self._metrics and path == self._metrics:
            return 200, _TEXT, metrics.page().encode("utf-8")
        if not _OURS.fullmatch(path):
            return 404, "text/html", _NOT_FOUND
        if (
            method == "OPTIONS"
        ):  # a browser asks beforehand; without an origin it is refused, without words
            return (200 if _ORIGIN.search(origin) else 400), _HTML, b""
        try:
            plain = _unpacked(body) if compressed else body
            return 200, _JSON, self._result(method, path, plain)
        except _NoWords:
            return 400, _HTML, b""
        except ServingError as error:
            return error.http, _JSON, json_examples.error(error)
        except Exception as error:
            log.error("rest", f"{method} {path}: {type(error).__name__}: {error}")
            caught = ServingError("INTERNAL", f"stand-in: {error!r}")
            return caught.http, _JSON, json_examples.error(caught)

    def _result(self, method: str, path: str, body: bytes) -> bytes:
        matched = (
            {"POST": _POST, "GET": _GET}[method].fullmatch(path)
            if method in ("POST", "GET")
            else None
        )
        if matched is None:
            raise invalid(f"Malformed request: {method} {path}")
        spec = _spec(matched)
        verb = matched["verb"]
        if method == "GET":
            if not spec.name:
                raise invalid("Missing model name in request.")
            if verb == "metadata":
                return self._metadata(spec)
            return json_protos.status(
                self._api.GetModelStatus(messages.GetModelStatusRequest(model_spec=spec))
            )
        if verb == "predict":
            return self._predict(spec, body)
        if verb == "classify":
            classify = messages.ClassificationRequest(model_spec=spec)
            json_examples.fill_request(body, classify)
            return json_examples.classification(self._api.Classify(classify, self._timeout).result)
        if verb == "regress":
            regress = messages.RegressionRequest(model_spec=spec)
            json_examples.fill_request(body, regress)
            return json_examples.regression(self._api.Regress(regress, self._timeout).result)
        raise invalid(f"Malformed request: {method} {path}")

    def _predict(self, spec: Any, body: bytes) -> bytes:
        request = messages.PredictRequest(model_spec=spec)
        rows = json_predict.fill_request(body, request, lambda name: self._inputs(spec, name))
        outputs, _ = self._api.predict_tensors(request, self._timeout)
        return json_predict.response(outputs, rows)

    def _inputs(self, spec: Any, signature: str) -> Any:
        name = signature or messages.DEFAULT_SIGNATURE
        with self._api.servable(spec) as (servable, _):
            if name not in servable.signatures:
                raise invalid(f'Serving signature name: "{name}" not found in signature def')
            return servable.signatures[name].inputs

    def _metadata(self, spec: Any) -> bytes:
        request = messages.GetModelMetadataRequest(model_spec=spec, metadata_field=[SIGNATURE_DEF])
        return json_protos.metadata(self._api.GetModelMetadata(request))


def _unpacked(body: bytes) -> bytes:
    """Unpack a gzip body with all its members.

    Raises :class:`ServingError`: not gzip, or too large for the bytes sent.
    """
    limit = len(body) + memory.FILLED
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as stream:
            plain = stream.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise invalid(f"stand-in: the body is not gzip: {error}") from None
    if len(plain) > limit:
        raise invalid(f"stand-in: the body of {len(body)} bytes becomes more than {limit} bytes")
    return plain


def _spec(matched: re.Match[str]) -> Any:
    spec: Any = messages.ModelSpec(name=urllib.parse.unquote(matched["name"] or ""))
    if matched["version"]:
        if int(matched["version"]) >= 1 << 63:
            raise _NoWords
        spec.version.value = int(matched["version"])
    if matched["label"]:
        spec.version_label = urllib.parse.unquote(matched["label"])
    return spec


def _path(target: str) -> str | None:
    """Return the path that a request line names; None for one that cannot be decoded.

    An absolute URI has one, too.
    """
    absolute = re.fullmatch(r"https?://[^/]*(/.*)?", target, re.IGNORECASE | re.DOTALL)
    path = (absolute[1] or "/") if absolute else target
    return None if re.search(r"%(?![0-9a-fA-F]{2})", path) else path


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # headers and body are two writes: the second would wait for the client's acknowledgement
    disable_nagle_algorithm = True
    server: _Server

    def _serve(self) -> None:
        body, path = self._body(), _path(self.requestline.split()[1])
        if body is None or path is None:
            self.close_connection = True
            self._send(400, _TEXT, b"")
            return
        with self.server.slots:
            compressed = "gzip" in self.headers.get("Content-Encoding", "")
            origin = self.headers.get("Origin", "")
            status, kind, answer = self.server.rest.answer(
                self.command, path, body, compressed, origin
            )
        self._send(status, kind, answer)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = _serve

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _body(self) -> bytes | None:
        """Return the body; None when it cannot be read."""
        try:
            if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
                return self._chunks()
            length = int(self.headers.get("Content-Length") or 0)
            return self._read(length) if 0 <= length <= MAX_BODY else None
        except (ValueError, OSError, EOFError):
            return None

    def _read(self, length: int) -> bytes:
        """Read so many bytes, or those before the connection ends.

        Announced bytes that never come take no memory.
        """
        out = bytearray()
        while len(out) < length:
            part = self.rfile.read(min(length - len(out), _PART))
            if not part:
                break
            out += part
        return bytes(out)

    def _chunks(self) -> bytes:
        out = bytearray()
        while True:
            size = int(self.rfile.readline(1024).split(b";")[0], 16)
            if size < 0 or len(out) + size > MAX_BODY:
                raise ValueError("a chunk that is too large")
            out += self._read(size)
            if not size:
                while self.rfile.readline(65536).strip():
                    pass
                return bytes(out)
            self.rfile.readline(8)

    def send_response(self, code: int, message: str | None = None) -> None:
        self.send_response_only(code, message)
        self.send_header("Date", self.date_time_string())

    def log_message(self, format: str, *args: Any) -> None:
        """The real server logs no request."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, rest: Rest, threads: int) -> None:
        self.rest, self.slots = rest, threading.BoundedSemaphore(max(threads, 1))
        super().__init__(("0.0.0.0", port), _Handler)


def start(api: Api, flags: dict[str, Any], metrics_path: str) -> None:
    """Serve on ``rest_api_port``. A port that is taken is only logged, as in the real server."""
    port = flags["rest_api_port"]
    try:
        rest = Rest(api, flags["rest_api_timeout_in_ms"], metrics_path)
        server = _Server(port, rest, flags["rest_api_num_threads"])
    except OSError as error:
        log.error("rest", f"Failed to start HTTP Server at localhost:{port}: {error}")
        return
    threading.Thread(target=server.serve_forever, name="rest", daemon=True).start()
    log.info("rest", f"Exporting HTTP/REST API at:localhost:{port} ...")
