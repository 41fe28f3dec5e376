"""Numbers over the REST API of the stand-in server, through sockets: read and written as by a real TensorFlow Serving 2.15."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator

import numpy as np
import pytest
from standin_server import QUICK, Server, empty_config, predict, serving

pytestmark = pytest.mark.tensorflow

FLOAT, DOUBLE = 1, 2


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of one model, whose signatures give back what they get."""
    import tensorflow as tf

    import reference_impl

    folder = tmp_path_factory.mktemp("echo")
    signatures = {
        dtype.name: tf.function(lambda x: {"y": tf.identity(x)}, input_signature=[tf.TensorSpec([None], dtype, name="x")])
        for dtype in (tf.float32, tf.float64, tf.int64, tf.uint64, tf.string)
    }
    reference_impl.save(tf.Module(), folder / "echo" / "1", signatures)
    with serving(folder, empty_config(folder), *QUICK) as running:
        running.reload({"name": "echo", "base_path": str(folder / "echo")})
        yield running


def echo(server: Server, signature: str, numbers: str) -> list[float]:
    """The answer to the text of some numbers."""
    body = f'{{"signature_name": "{signature}", "instances": [{numbers}]}}'.encode()
    status, document = server.rest("/v1/models/echo:predict", body)
    assert status == 200, document
    return document["predictions"]


def same(found: list[float], expected: list[float]) -> None:
    pack = struct.Struct(f"<{len(expected)}d").pack
    assert len(found) == len(expected)
    wrong = [(one, other) for one, other in zip(found, expected) if pack_one(one) != pack_one(other)]
    assert pack(*found) == pack(*expected), wrong[:5]


def pack_one(value: float) -> bytes:
    return struct.pack("<d", value)


def near(mantissa: int, power: int) -> float:
    """A number of few digits as the server's parser makes it: one multiplication or division by a power of ten."""
    return mantissa * float(f"1e{power}") if power >= 0 else mantissa / float(f"1e{-power}")


SHORT = [(mantissa, power) for mantissa in (1, 3, 15, 77, 12345, 999999999999999, 2**53 - 1) for power in range(-290, 291, 10)]


def test_short_doubles_with_large_exponents_are_rounded_twice(server: Server) -> None:
    """406 numbers; about a quarter is not the nearest double."""
    expected = [near(mantissa, power) for mantissa, power in SHORT]
    same(echo(server, "float64", ",".join(f"{mantissa}e{power}" for mantissa, power in SHORT)), expected)
    assert sum(float(f"{mantissa}e{power}") != near(mantissa, power) for mantissa, power in SHORT) > 80


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5e-22", 1.5000000000000002e-22),
        ("0.1", 0.1),
        ("-0.1", -0.1),
        ("-0", 0.0),
        ("-0.0", -0.0),
        ("9007199254740993", 9007199254740992.0),
        ("9007199254740995", 9007199254740996.0),
        ("-9007199254740993", -9007199254740992.0),
        ("18446744073709551615", 18446744073709551616.0),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("NaN", math.nan),
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
        ("Inf", math.inf),
        ("2.2250738585072014e-308", 2.2250738585072014e-308),
        ("2.2250738585072009e-308", 0.0),
        ("-1e-310", -0.0),
        ("5e-324", 0.0),
        ("1e-400", 0.0),
    ],
)
def test_a_double(server: Server, text: str, value: float) -> None:
    same(echo(server, "float64", text), [value])


def test_exact_doubles(server: Server) -> None:
    """At most 2^53 and powers up to 22: the nearest double, whichever way the number is written."""
    texts = [f"{mantissa}e{power}" for mantissa in (1, 7, 123456789, 2**53) for power in range(-22, 23, 2)]
    texts += ["3.25", "1234567.875", "0.000123", "123456789012345.6"]
    same(echo(server, "float64", ",".join(texts)), [float(text) for text in texts])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16777217", 16777216.0),
        ("16777219", 16777220.0),
        ("-16777217", -16777216.0),
        ("9007199254740993", 9007199254740992.0),
        ("1e38", float(np.float32(1e38))),
        ("3.4028235e38", float(np.float32(3.4028235e38))),
        ("3.5e38", math.inf),
        ("-1e39", -math.inf),
        ("1e300", math.inf),
        ("1.1754944e-38", float(np.float32(1.1754944e-38))),
        ("1e-39", 0.0),
        ("-1e-45", -0.0),
        ("NaN", math.nan),
    ],
)
def test_a_float(server: Server, text: str, value: float) -> None:
    (found,) = echo(server, "float32", text)
    same([float(np.float32(found))], [value])


def test_numbers_that_no_double_holds_are_refused(server: Server) -> None:
    for text in ("1e309", "-1e400", "1" * 400):
        status, document = server.rest(
            "/v1/models/echo:predict", f'{{"signature_name": "float64", "instances": [{text}]}}'.encode()
        )
        assert (status, "Number too big to be stored in double." in document["error"]) == (400, True)


def test_grpc_keeps_subnormal_numbers_and_rest_writes_them_as_zero(server: Server) -> None:
    for dtype, number, field, small in (("float32", FLOAT, "float_val", 1e-45), ("float64", DOUBLE, "double_val", 5e-324)):
        answer = server.call("Predict", predict("echo", dtype, x=(number, field, [small])))
        assert list(getattr(answer.outputs["y"], field)) == [float(np.dtype(dtype).type(small))] != [0.0]


def test_the_first_member_of_a_name_counts(server: Server) -> None:
    body = b'{"signature_name": "int64", "instances": [1], "signature_name": "float32", "instances": [2, 3]}'
    assert server.rest("/v1/models/echo:predict", body) == (200, {"predictions": [1]})
    body = b'{"signature_name": "float32", "inputs": {"x": [1.5], "x": [2.5]}, "signature_name": NaN}'
    assert server.rest("/v1/models/echo:predict", body) == (200, {"outputs": [1.5]})


def test_halves_of_surrogate_pairs(server: Server) -> None:
    for text, status in ((r"\ud800", 400), (r"\ud800\u0041", 400), (r"\udc41", 200), (r"\ud83d\ude00", 200)):
        body = f'{{"signature_name": "string", "instances": ["{text}"]}}'.encode()
        assert server.rest_text("/v1/models/echo:predict", body)[0] == status, text


def test_integers_that_64_bits_hold(server: Server) -> None:
    for dtype, number in (("int64", -(2**63)), ("int64", 2**63 - 1), ("uint64", 2**64 - 1)):
        body = json.dumps({"signature_name": dtype, "instances": [number]}).encode()
        assert server.rest("/v1/models/echo:predict", body) == (200, {"predictions": [number]})
    for dtype, text in (("int64", "9223372036854775808"), ("uint64", "-1"), ("uint64", "18446744073709551616"), ("int64", "1.0")):
        body = f'{{"signature_name": "{dtype}", "instances": [{text}]}}'.encode()
        assert server.rest("/v1/models/echo:predict", body)[0] == 400
