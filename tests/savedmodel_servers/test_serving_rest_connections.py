"""Connections of the REST client: servers that are none, limits, what is sent once, what is opened
again.
"""

import socket
import socketserver
import struct
import threading
import time

import pytest
from serving_rest_fake import (
    HALF,
    LIMIT,
    PREDICT,
    STATUS,
    Fake,
    Server,
    asking,
    example,
    fake,
    floats,
)

from savedmodel_servers import client
from savedmodel_servers.rest_client import RestClient

__all__ = ["asking", "fake"]  # fixtures, imported by name


class Raw(socketserver.ThreadingTCPServer):
    """Does one thing with each connection."""

    daemon_threads, allow_reuse_address = True, True


@pytest.fixture
def raw():
    started = []

    def start(do):
        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                try:
                    do(self.request)
                except OSError:
                    pass  # the client has gone

        server = Raw(("127.0.0.1", 0), Handler)
        started.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return RestClient("127.0.0.1", server.server_address[1], max_bytes=10**6)

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def after_request(data):
    def do(peer):
        peer.recv(10**5)
        peer.sendall(data)

    return do


HEAD = b"HTTP/1.1 200 OK\r\n"
NOT_HTTP = {
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n", client.BadAnswer, "not HTTP"),
    "an endless line": (b"H" * 10**5 + b"\r\n", client.BadAnswer, "not HTTP"),
    "endless headers": (HEAD + b"a: b\r\n" * 1000, client.BadAnswer, "not HTTP"),
    "a promise of 10 GB": (
        HEAD + b"Content-Length: 10000000000\r\n\r\n",
        client.BadAnswer,
        "promises 10000000000 bytes",
    ),
    "a promise not kept": (
        HEAD + b"Content-Length: 10\r\n\r\n{}",
        client.Unreachable,
        "broke after 2 of 10 bytes",
    ),
    "no promise, and no end": (
        HEAD + b"\r\n" + b" " * (2 * 10**6),
        client.BadAnswer,
        "more than 1000000 bytes",
    ),
    "chunks without end": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + (b"10000\r\n" + b" " * 65536 + b"\r\n") * 20,
        client.BadAnswer,
        "more than 1000000 bytes",
    ),
    "broken chunks": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        client.Unreachable,
        "IncompleteRead",
    ),
    "nothing": (b"", client.Unreachable, "closed connection"),
    "a status too large": (b"HTTP/1.1 99999 OK\r\n\r\n", client.BadAnswer, "not HTTP"),
}


@pytest.mark.parametrize("case", NOT_HTTP)
def test_garbage_is_a_named_error(raw, case):
    data, kind, reason = NOT_HTTP[case]
    with raw(after_request(data)) as asking, pytest.raises(kind, match=reason):
        asking.status(HALF, limit=LIMIT)


def forever(data):
    def do(peer):
        peer.recv(10**5)
        while True:
            peer.sendall(data)
            time.sleep(0.01)

    return do


ENDLESS = {
    "silence": lambda peer: peer.recv(10**5) and time.sleep(LIMIT),
    "a status line, byte by byte": forever(b"H"),
    "headers, line by line": forever(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a request that is not read": lambda peer: time.sleep(LIMIT),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_the_limit_is_one_for_the_whole_call(raw, case):
    """A byte now and then would keep a limit for each read from ever being over."""
    with raw(ENDLESS[case]) as asking, pytest.raises(client.Timeout, match=r"within 0\.3 s"):
        body = [example(x=[b"a" * (50 << 20)])] if "not read" in case else []
        asking.regress(HALF, "", body, limit=0.3)


def test_the_limit_is_one_for_both_requests_of_a_predict(fake, asking, monkeypatch):
    """The first asks for the metadata."""
    limits, exchange = [], asking._connection.exchange

    def observed(verb, path, body, limit):
        limits.append(limit)
        return exchange(verb, path, body, limit)

    monkeypatch.setattr(asking._connection, "exchange", observed)
    fake.answers[PREDICT] = '{"outputs": [1.0]}'
    asking.predict(HALF, "", {"x": floats(1)}, limit=LIMIT)
    assert LIMIT == limits[0] > limits[1]


def test_a_request_that_is_not_read_on_a_connection_that_was_kept(raw):
    def do(peer):
        peer.recv(10**5)
        peer.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")
        time.sleep(LIMIT)

    with raw(do) as asking:
        asking.status(HALF, limit=LIMIT)
        with pytest.raises(client.Timeout):
            asking.regress(HALF, "", [example(x=[b"a" * (50 << 20)])], limit=0.3)


def test_an_answer_that_is_late_is_not_taken_for_the_next_one(raw):
    late = threading.Event()

    def do(peer):
        peer.recv(10**5)
        if not late.is_set():
            late.wait(LIMIT)
            peer.sendall(HEAD + b"Content-Length: 3\r\n\r\n[1]")
        else:
            peer.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")
        peer.recv(1)

    with raw(do) as asking:
        with pytest.raises(client.Timeout):
            asking.status(HALF, limit=0.2)
        late.set()
        assert asking.status(HALF, limit=LIMIT) == []


def test_a_body_byte_by_byte(raw):
    def do(peer):
        peer.recv(10**5)
        peer.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
        while True:
            peer.sendall(b" ")
            time.sleep(0.01)

    with raw(do) as asking, pytest.raises(client.Timeout):
        asking.status(HALF, limit=0.3)


def test_a_reset_connection(raw):
    def do(peer):
        peer.recv(1)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()

    with raw(do) as asking, pytest.raises(client.Unreachable):
        asking.regress(HALF, "", [example(x=[b"a" * 10**6])], limit=LIMIT)


def test_a_connection_closed_between_two_requests_is_opened_again(raw):
    count = []

    def do(peer):
        count.append(peer.recv(10**5))
        peer.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")

    with raw(do) as asking:
        assert asking.status(HALF, limit=LIMIT) == []
        while not asking._connection._http.is_stale():
            time.sleep(0.01)
        assert asking.status(HALF, limit=LIMIT) == []
    assert len(count) == 2


def test_a_request_is_sent_once(raw):
    """A server that dies of a request is not asked again as soon as it is back."""
    count = []

    def do(peer):
        for _ in range(2):
            count.append(peer.recv(10**5))
            if len(count) == 1:
                peer.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")

    with raw(do) as asking:
        assert asking.status(HALF, limit=LIMIT) == []
        with pytest.raises(client.Unreachable):
            asking.status(HALF, limit=LIMIT)
        assert len(count) == 2


def test_an_answer_that_ends_the_connection(raw):
    with raw(after_request(HEAD + b"Connection: close\r\n\r\n{}")) as asking:
        assert asking.status(HALF, limit=LIMIT) == []
        assert asking.status(HALF, limit=LIMIT) == []


def test_nobody_listens():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with (
        RestClient("127.0.0.1", port) as asking,
        pytest.raises(client.Unreachable, match="refused"),
    ):
        asking.status(HALF, limit=LIMIT)


def test_a_name_that_has_no_address():
    with RestClient("no-such-host.invalid", 1) as asking, pytest.raises(client.Unreachable):
        asking.status(HALF, limit=LIMIT)


def test_a_limit_that_is_over_already(asking):
    with pytest.raises(client.Timeout):
        asking.status(HALF, limit=0)


def test_a_client_may_be_used_after_an_error_and_after_close(fake, asking):
    fake.answers["/v1/models/half"] = "{"
    with pytest.raises(client.BadAnswer):
        asking.status(HALF, limit=LIMIT)
    fake.answers["/v1/models/half"] = STATUS
    assert asking.status(HALF, limit=LIMIT)
    asking.close()
    asking.close()


def test_ipv6():
    class Server6(Server):
        address_family = socket.AF_INET6

    try:
        server = Server6(("::1", 0), Fake)
    except OSError:
        pytest.skip("no IPv6 on this machine")
    server.answers, server.asked = {"/v1/models/half": STATUS}, []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    with server, RestClient("::1", server.server_port) as asking:
        assert asking.status(HALF, limit=LIMIT)
        server.shutdown()
