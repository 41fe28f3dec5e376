"""Requests to a TensorFlow Serving and its answers, as data: what a real server of 2.15 was seen to
do, and what follows.

Each pair has the number of the observation it comes from:

    1 subnormal numbers       2 the parser's rounding    4 outputs without a tensor   6 wide numbers
                              7 batching
    8 members, text, ranks    9 load errors, OPTIONS     10 texts, base64, HTTP       11 the parser
                              since 2.18
    12 the second comparison with 2.15.1: what it answered otherwise than this table

OLD and NEW pairs hold for a server before and since 2.18, the others for each. A server of 2.15.1
was seen to give the answers of all but the NEW pairs: these are derived from the parser that came
with 2.18. ``test_standin_pairs.py`` asks all of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

BOTH, OLD, NEW = "", "before 2.18", "since 2.18"
PLAIN, BATCHING = "plain", "batching"  # the servers
FLOAT, DOUBLE, STRING, INT64 = 1, 2, 7, 9
NAN, INF = math.nan, math.inf


class Rest(NamedTuple):
    """A body for a path below ``/v1/models/``.

    The answer is a document, for 400 its error's text, or None for an empty body.
    """

    path: str
    body: bytes


class Http(NamedTuple):
    """A request line and headers.

    The answer is the status and some headers; None for one that must not be there.
    """

    line: str
    headers: tuple[str, ...] = ()


class Grpc(NamedTuple):
    """A message for a method.

    The answer is ``{alias: elements}``, or the code and the text of an error.
    """

    method: str
    message: Mapping[str, Any]


class Pair(NamedTuple):
    item: int
    ask: Rest | Http | Grpc
    status: Any
    answer: Any
    release: str = BOTH
    server: str = PLAIN


def pairs() -> list[Pair]:
    """Return all of them."""
    kinds = (
        _numbers,
        _members_and_text,
        _ranks,
        _parse_errors,
        _request_errors,
        _base64,
        _http,
        _grpc,
        _batching,
    )
    return [pair for kind in kinds for pair in kind()]


# Numbers
# --------------------------------------------------------------------------------------------------


def near(mantissa: int, power: int) -> float:
    """Return a number of few digits as the server's parser makes it: one multiplication or division
    by a power of ten.
    """
    return mantissa * float(f"1e{power}") if power >= 0 else mantissa / float(f"1e{-power}")


def _echo(dtype: str, text: str, value: Any, item: int) -> Pair:
    body = f'{{"signature_name": "{dtype}", "instances": [{text}]}}'
    return Pair(item, Rest("echo:predict", body.encode()), 200, {"predictions": [value]})


# Observed: a number beyond 2^53, or with a power beyond 22, is rounded twice.
ROUNDED_TWICE = [
    (mantissa, power)
    for mantissa in (1, 3, 15, 77, 12345, 999999999999999, 2**53 - 1)
    for power in range(-290, 291, 10)
    if abs(power) > 22
]
EXACT = [(mantissa, power) for mantissa in (1, 7, 123456789, 2**53) for power in range(-22, 23, 4)]
DOUBLES = {
    2: {
        "1.5e-22": 1.5000000000000002e-22,
        "0.1": 0.1,
        "-0.1": -0.1,
        "3.25": 3.25,
        "1234567.875": 1234567.875,
        "0.000123": 0.000123,
        "123456789012345.6": 123456789012345.6,
        "1.7976931348623157e308": 1.7976931348623157e308,
        "-0": 0.0,
        "-0.0": -0.0,
        "NaN": NAN,
        "Infinity": INF,
        "-Infinity": -INF,
        "Inf": INF,
        "-Inf": -INF,
    },
    6: {
        "9007199254740993": 9007199254740992.0,
        "9007199254740995": 9007199254740996.0,
        "-9007199254740993": -9007199254740992.0,
        "18446744073709551615": 18446744073709551616.0,
        "18446744073709551617": 18446744073709551616.0,
    },
    1: {
        "2.2250738585072014e-308": 2.2250738585072014e-308,
        "2.2250738585072009e-308": 0.0,
        "-1e-310": -0.0,
        "5e-324": 0.0,
        "1e-400": 0.0,
    },
    # The parser refuses by the exponent alone.
    12: {"1.7976931348623159e308": INF, "-1.7976931348623159e308": -INF},
}
FLOATS = {
    6: {
        "16777217": 16777216.0,
        "16777219": 16777220.0,
        "-16777217": -16777216.0,
        "9007199254740993": 9007199254740992.0,
        "1e38": float(np.float32(1e38)),
        "3.4028235e38": float(np.float32(3.4028235e38)),
        "3.5e38": INF,
        "-1e39": -INF,
        "1e300": INF,
        "NaN": NAN,
    },
    1: {"1.1754944e-38": float(np.float32(1.1754944e-38)), "1e-39": 0.0, "-1e-45": -0.0},
    # Nearer to the smallest normal number than to zero or any other float32, and still flushed.
    12: {"1.1754942920475699e-38": 0.0},
}
INTEGERS = {"int64": (-(2**63), 2**63 - 1, 0), "uint64": (2**64 - 1, 0)}


def _numbers() -> Iterator[Pair]:
    for mantissa, power in ROUNDED_TWICE:
        yield _echo("float64", f"{mantissa}e{power}", near(mantissa, power), 2)
    for mantissa, power in EXACT:
        yield _echo("float64", f"{mantissa}e{power}", float(f"{mantissa}e{power}"), 2)
    for dtype, table in (("float64", DOUBLES), ("float32", FLOATS)):
        for item, values in table.items():
            for text, value in values.items():
                yield _echo(dtype, text, value, item)
    for dtype, integers in INTEGERS.items():
        for integer in integers:
            yield _echo(dtype, str(integer), integer, 6)
    head = "Failed to process element: 0 of 'instances' list. Error: INVALID_ARGUMENT: JSON Value: "
    for dtype, text, shown in (
        ("int64", "9223372036854775808", "9223372036854775808"),
        ("uint64", "-1", "-1"),
        ("uint64", "18446744073709551616", "1.84467441e+19"),
        ("int64", "1.0", "1.0"),
    ):
        body = f'{{"signature_name": "{dtype}", "instances": [{text}]}}'.encode()
        yield Pair(
            6,
            Rest("echo:predict", body),
            400,
            f"{head}{shown} Type: Number is not of expected type: {dtype}",
        )
    for text in ("1e309", "-1e400", "1" * 400):
        body = f'{{"signature_name": "float64", "instances": [{text}]}}'
        error = (
            "JSON Parse error: Number too big to be stored in double. at offset:"
            f" {body.index(text)}"
        )
        yield Pair(2, Rest("echo:predict", body.encode()), 400, error)


# JSON
# --------------------------------------------------------------------------------------------------


def _members_and_text() -> Iterator[Pair]:
    first = (
        b'{"signature_name": "int64", "instances": [1], "signature_name": "float32", "instances":'
        b" [2, 3]}"
    )
    yield Pair(8, Rest("echo:predict", first), 200, {"predictions": [1]})
    inner = (
        b'{"signature_name": "float32", "inputs": {"x": [1.5], "x": [2.5]}, "signature_name": NaN}'
    )
    yield Pair(8, Rest("echo:predict", inner), 200, {"outputs": [1.5]})
    start = len('{"signature_name": "string", "instances": ["')
    for text in (r"\ud800", r"\ud800\u0041", r"\udbffx"):
        body = f'{{"signature_name": "string", "instances": ["{text}"]}}'.encode()
        error = f"JSON Parse error: The surrogate pair in string is invalid. at offset: {start}"
        yield Pair(8, Rest("echo:predict", body), 400, error)
    for text, value in ((r"\ud83d\ude00", "\U0001f600"), (r"\u00e9\n\"\/", 'é\n"/'), ("é", "é")):
        body = f'{{"signature_name": "string", "instances": ["{text}"]}}'.encode()
        yield Pair(8, Rest("echo:predict", body), 200, {"predictions": [value]})
    lone = b'{"signature_name": "lengths", "instances": ["\\udc41"]}'
    yield Pair(8, Rest("echo:predict", lone), 200, {"predictions": [3]})


def _nested(value: str, rank: int) -> str:
    return "[" * rank + value + "]" * rank


def _ranks() -> Iterator[Pair]:
    for rank in (0, 1, 31, 32, 33, 63, 64, 65, 128, 253, 254):
        body = f'{{"signature_name": "any", "inputs": {_nested("1.5", rank)}}}'.encode()
        yield Pair(
            8, Rest("echo:predict", body), 200, json.loads(f'{{"outputs": {_nested("1.5", rank)}}}')
        )
        if rank:
            rows = f'{{"signature_name": "any", "instances": {_nested("1.5", rank)}}}'.encode()
            yield Pair(
                8,
                Rest("echo:predict", rows),
                200,
                json.loads(f'{{"predictions": {_nested("1.5", rank)}}}'),
            )
    many = json.loads(_nested("[1.0, 2.0, 3.0]", 99))
    body = json.dumps({"signature_name": "any", "inputs": [many, many]}).encode()
    yield Pair(8, Rest("echo:predict", body), 200, {"outputs": [many, many]})
    rows = json.dumps({"signature_name": "any", "instances": [many, many]}).encode()
    yield Pair(8, Rest("echo:predict", rows), 200, {"predictions": [many, many]})
    for rank in (255, 300):
        body = f'{{"signature_name": "any", "inputs": {_nested("1.5", rank)}}}'.encode()
        yield Pair(8, Rest("echo:predict", body), 400, "tensor parsing error: x")


# Offsets are of bytes, and as RapidJSON 1.1 counts them: behind what it has taken.
PARSE_ERRORS = {
    "": "The document is empty",
    "  ": "The document is empty. at offset: 2",
    "\0": "The document is empty. at offset: 0",
    "{": "Missing a name for object member. at offset: 1",
    "{1: 2}": "Missing a name for object member. at offset: 1",
    "{'a': 2}": "Missing a name for object member. at offset: 1",
    '{"a": 1,}': "Missing a name for object member. at offset: 8",
    '{"a" 1}': "Missing a colon after a name of object member. at offset: 5",
    '{"a"}': "Missing a colon after a name of object member. at offset: 4",
    '{"a": 1': "Missing a comma or '}' after an object member. at offset: 7",
    '{"a": 1]': "Missing a comma or '}' after an object member. at offset: 7",
    '{"a": 1 "b": 2}': "Missing a comma or '}' after an object member. at offset: 8",
    '{"a": [1 2]}': "Missing a comma or ']' after an array element. at offset: 9",
    '{"a": [1': "Missing a comma or ']' after an array element. at offset: 8",
    '{"a": [1}': "Missing a comma or ']' after an array element. at offset: 8",
    '{"a": [1,]}': "Invalid value. at offset: 9",
    '{"a": "x}': "Missing a closing quotation mark in string. at offset: 9",
    '{"a': "Missing a closing quotation mark in string. at offset: 3",
    '{"a": "\0"}': "Missing a closing quotation mark in string. at offset: 7",
    '{"a": "é\n"}': "Invalid escape character in string. at offset: 9",
    '{"a": "\t"}': "Invalid escape character in string. at offset: 7",
    '{"a": "\\q"}': "Invalid escape character in string. at offset: 7",
    '{"a": "xy\\': "Invalid escape character in string. at offset: 9",
    '{"a": "\\u12"}': "Incorrect hex digit after \\u escape in string. at offset: 7",
    '{"a": "\\u12g4"}': "Incorrect hex digit after \\u escape in string. at offset: 7",
    '{"a": 1.}': "Miss fraction part in number. at offset: 8",
    '{"a": 1.e5}': "Miss fraction part in number. at offset: 8",
    '{"a": 1e}': "Miss exponent in number. at offset: 8",
    '{"a": 1e-}': "Miss exponent in number. at offset: 9",
    '{"a": 1e999}': "Number too big to be stored in double. at offset: 6",
    '{"a": -}': "Invalid value. at offset: 7",
    '{"a": +1}': "Invalid value. at offset: 6",
    '{"a": .5}': "Invalid value. at offset: 6",
    '{"a": 01}': "Missing a comma or '}' after an object member. at offset: 7",
    '{"a": nope}': "Invalid value. at offset: 7",
    '{"a": nul}': "Invalid value. at offset: 9",
    '{"a": True}': "Invalid value. at offset: 6",
    '{"a": tru}': "Invalid value. at offset: 9",
    '{"a": fals': "Invalid value. at offset: 10",
    '{"a": Na}': "Invalid value. at offset: 8",
    '{"a": nan}': "Invalid value. at offset: 7",
    '{"a": -In}': "Invalid value. at offset: 9",
    '{"a": Infinite}': "Invalid value. at offset: 13",
    '{"a": Infinityi}': "Missing a comma or '}' after an object member. at offset: 14",
    '{"a": undefined}': "Invalid value. at offset: 6",
    "\ufeff{": "Missing a name for object member. at offset: 4",
    "instances = [1, 2]": "Invalid value. at offset: 0",
}


def _parse_errors() -> Iterator[Pair]:
    for body, error in PARSE_ERRORS.items():
        for path in ("half_plus_two:predict", "half_plus_two:regress"):
            yield Pair(10, Rest(path, body.encode()), 400, f"JSON Parse error: {error}")
    right = '{"instances": [2.0]}'
    for more in ("x", " {}", "\n[1]", "}"):
        at = len(right) + len(more) - len(more.lstrip())
        error = (
            "JSON Parse error: The document root must not be followed by other values. at offset:"
            f" {at}"
        )
        yield Pair(11, Rest("half_plus_two:predict", (right + more).encode()), 400, error, OLD)
        yield Pair(
            11,
            Rest("half_plus_two:predict", (right + more).encode()),
            200,
            {"predictions": [3.0]},
            NEW,
        )
    for body in (right + " \n", "\ufeff" + right, right + "\0 anything"):
        yield Pair(10, Rest("half_plus_two:predict", body.encode()), 200, {"predictions": [3.0]})


# Requests that make no sense
# ----------------------------------------------------------------------------------------------

_ELEMENT = "Failed to process element: {} of 'instances' list. Error: INVALID_ARGUMENT: "
# body -> error of Predict on half_plus_two, whose one input is a float.
REFUSED = {
    "{}": "Missing 'inputs' or 'instances' key",
    '{"signature_name": "nope", "instances": [1]}': (
        'Serving signature name: "nope" not found in signature def'
    ),
    '{"instances": [], "x": 1}': (
        'JSON Value: {\n    "instances": [],\n    "x": 1\n} No values in \'instances\' array'
    ),
    '{"instances": 5}': (
        "JSON Value: {\n    \"instances\": 5\n} Expecting 'instances' to be an list/array"
    ),
    '{"instances": {"x": 5}}': (
        'JSON Value: {\n    "instances": {\n        "x": 5\n    }\n} '
        "Expecting 'instances' to be an list/array"
    ),
    '{"signature_name": 5}': (
        'JSON Value: {\n    "signature_name": 5\n} '
        "not formatted correctly. 'signature_name' key must be a string value."
    ),
    '{"inputs": 5, "instances": 6}': (
        'JSON Value: {\n    "inputs": 5,\n    "instances": 6\n} '
        "Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist "
    ),
    '{"instances": ["x"]}': (
        _ELEMENT.format(0) + 'JSON Value: "x" Type: String is not of expected type: float'
    ),
    '{"instances": [1, null]}': (
        _ELEMENT.format(1) + "JSON Value: null Type: Null is not of expected type: float"
    ),
    '{"instances": [true]}': (
        _ELEMENT.format(0) + "JSON Value: true Type: True is not of expected type: float"
    ),
    '{"instances": [false]}': (
        _ELEMENT.format(0) + "JSON Value: false Type: False is not of expected type: float"
    ),
    '{"instances": [[1.0, 2.0], [3.0]]}': (
        _ELEMENT.format(1) + "Expecting tensor size: 2 but got: 1"
    ),
    '{"instances": [[1.0, 2.0], [[3.0, 4.0]]]}': (
        _ELEMENT.format(1) + "Expecting shape [2] but got: [1,2]"
    ),
    '{"instances": [[1.0, [2.0]]]}': (
        _ELEMENT.format(0) + "Encountered list at unexpected level: 1 expected < 1"
    ),
    '{"instances": [[[1.0], 2.0]]}': (
        _ELEMENT.format(0)
        + "JSON Value: 2.0 found at incorrect level: 2 in the JSON DOM. Expected at level: 2"
    ),
    '{"instances": [[[1.0], [2.0, 3.0]]]}': (
        _ELEMENT.format(0) + "Encountered list at unexpected size: 2 at level: 1 expected size: 1"
    ),
    '{"instances": [{"y": 1.0}]}': (
        "Failed to process element: 0 key: y of 'instances' list. Error: INVALID_ARGUMENT: "
        "JSON object: does not have named input: y"
    ),
    '{"instances": [{}]}': (
        "Failed to process element: 0 of 'instances' list. JSON object: {} keys must be equal to: x"
    ),
    '{"instances": [{"x": 1.0}, 2.0]}': "Expecting object but got list at item 1 of input list",
    '{"instances": [2.0, {"x": 1.0}]}': (
        "Expecting value/list but got object at item 1 of input list"
    ),
    '{"instances": [{"b64": "YQ=="}]}': (
        _ELEMENT.format(0)
        + 'JSON Value: {\n    "b64": "YQ=="\n} Type: Object is not of expected type: float'
    ),
    '{"inputs": {"y": [1]}}': "Missing named input: x in 'inputs' object.",
    '{"inputs": "x"}': 'JSON Value: "x" Type: String is not of expected type: float',
    '{"inputs": null}': "JSON Value: null Type: Null is not of expected type: float",
}
# value in an error's text, before and since 2.18
SHOWN = {
    "[1]": ("[\n    1\n]", "[1]"),
    '[1, "a", [2, 3]]': (
        '[\n    1,\n    "a",\n    [\n        2,\n        3\n    ]\n]',
        '[1, "a", [2, 3]]',
    ),
    "[]": ("[]", "[]"),
    '["\\u0001\\"\\\\/"]': ('[\n    "\\u0001\\"\\\\/"\n]', '["\\u0001\\"\\\\/"]'),
    '"x"': ('"x"', '"x"'),
    "1.5": ("1.5", "1.5"),
    "true": ("true", "true"),
}
# The writer before 2.18 gives up at a number that it cannot write.
ENDED = {
    "[NaN]": ("[\n    ", "[]"),
    "[1, NaN, 2]": ("[\n    1,\n    ", "[1, , 2]"),
    "NaN": ("", ""),
}
CLASSIFY = {
    '{"examples": []}': "JSON Value: {\n    \"examples\": []\n} 'examples' value is an empty array",
    "{}": "JSON Value: {} When method is classify, key 'examples' is expected and was not found",
    '{"examples": 1}': (
        "JSON Value: {\n    \"examples\": 1\n} Expecting 'examples' value to be an list/array"
    ),
    '{"examples": [1]}': "Example must be JSON object but got JSON Number",
    '{"examples": [{"x": null}]}': "Feature: x has element with unexpected JSON type: Null",
    '{"examples": [{"x": [[1]]}]}': "Feature: x has element with unexpected JSON type: Array",
    '{"examples": [{"x": {"a": 1}}]}': "Feature: x has element with unexpected JSON type: Object",
    '{"examples": [{"x": [1, 1.5]}]}': (
        "Unexpected element type in feature: x expecting type: int64"
    ),
    '{"examples": [{"x": ["a", 1]}]}': (
        "Unexpected element type in feature: x expecting type: bytes"
    ),
    '{"context": 1, "examples": [{"x": 1.0}]}': "Example must be JSON object but got JSON Number",
}


def _request_errors() -> Iterator[Pair]:
    for body, error in REFUSED.items():
        yield Pair(10, Rest("half_plus_two:predict", body.encode()), 400, error)
    for body, error in CLASSIFY.items():
        for verb in ("classify", "regress"):
            yield Pair(10, Rest(f"half_plus_two:{verb}", body.encode()), 400, error)
    for item, table in ((11, SHOWN), (12, ENDED)):
        for value, shown in table.items():
            for release, text in zip((OLD, NEW), shown):
                error = f"JSON Value: {text} Is not object"
                yield Pair(item, Rest("half_plus_two:predict", value.encode()), 400, error, release)
    large = b'{"examples": [{"x": 18446744073709551615}]}'
    for verb in ("classify", "regress"):
        error = "Feature: x has uint64_t element. Only int64_t is supported."
        yield Pair(12, Rest(f"half_plus_two:{verb}", large), 400, error)
    twice = b'{"signature_name": "regress_x_to_y", "examples": [{"x": 1.0, "x": 2.0}]}'
    yield Pair(12, Rest("half_plus_two:regress", twice), 200, {"results": [3.0]})
    yield Pair(
        12,
        Rest("half_plus_two/versions/99999999999999999999:predict", b'{"instances": [1.0]}'),
        400,
        None,
    )
    for path, status, error in (
        ("half_plus_two/labels/nope:predict", 400, "Unrecognized servable version label: nope"),
        (
            "half_plus_two/versions/9:predict",
            404,
            "Servable not found for request: Specific(half_plus_two, 9)",
        ),
        ("nope:predict", 404, "Servable not found for request: Latest(nope)"),
        ("half_plus_two:explain", 400, "Malformed request: POST /v1/models/half_plus_two:explain"),
        ("half_plus_two", 400, "Malformed request: POST /v1/models/half_plus_two"),
    ):
        yield Pair(10, Rest(path, b'{"instances": [1.0]}'), status, error)


RIGHT_BASE64 = {
    "YWI=": 2,
    "YWI": 2,
    "YWI.": 2,
    "Y W\\tI =": 2,
    "YQ==": 1,
    "YQ..": 1,
    " YQ ==": 1,
    "YWJj": 3,
    "": 0,
}
WRONG_BASE64 = ("YQ=", "YWI==", "YWJj=", "Y*I=", "Y", "====")


def _base64() -> Iterator[Pair]:
    for text, length in RIGHT_BASE64.items():
        body = f'{{"signature_name": "lengths", "instances": [{{"b64": "{text}"}}]}}'
        yield Pair(10, Rest("echo:predict", body.encode()), 200, {"predictions": [length]})
    for text in WRONG_BASE64:
        body = f'{{"signature_name": "lengths", "instances": [{{"b64": "{text}"}}]}}'
        error = (
            "Failed to process element: 0 of 'instances' list. Error: INVALID_ARGUMENT: Unable to"
            " base64 decode"
        )
        yield Pair(10, Rest("echo:predict", body.encode()), 400, error)


# HTTP
# --------------------------------------------------------------------------------------------------

_NOT_ALLOWED = dict.fromkeys(
    (
        "Access-Control-Allow-Origin",
        "Access-Control-Allow-Methods",
        "Access-Control-Allow-Headers",
    )
)


def _http() -> Iterator[Pair]:
    here = "/v1/models/half_plus_two"
    for target, status in (
        (f"/{here}", 404),
        ("/v1/models/half%zz", 400),
        ("/v1/models/half%5Fplus%5Ftwo", 200),
        (f"http://anything{here}", 200),
        (f"https://anything:80{here}", 200),
        (f"{here}/versions/1", 200),
        (f"{here}/versions/2", 404),
        (f"{here}/metadata", 200),
        ("/V1/MODELS/half_plus_two", 200),
        ("/v1/models", 400),
        ("/v1/anything", 400),
        ("/v2/models", 404),
        ("/", 404),
    ):
        yield Pair(10, Http(f"GET {target} HTTP/1.1"), status, {})
    for method in ("PUT", "DELETE", "PATCH"):
        yield Pair(10, Http(f"{method} {here} HTTP/1.1"), 400, {"Content-Type": "application/json"})
    many = tuple(f"X-{index}: {'x' * 1000}" for index in range(200))
    yield Pair(10, Http(f"GET {here} HTTP/1.1", many), 200, {})
    yield Pair(10, Http(f"GET {here} HTTP/1.1", ("X: " + "x" * 200_000,)), 200, {})
    yield Pair(
        10, Http(f"GET {here} HTTP/1.1", ("Connection: close",)), 200, {"Connection": "close"}
    )
    yield Pair(
        10,
        Http(f"GET {here} HTTP/1.1"),
        200,
        {"Connection": None, "Content-Type": "application/json"},
    )
    yield Pair(9, Http(f"GET {here} HTTP/1.1", ("Origin: http://a",)), 200, _NOT_ALLOWED)
    yield Pair(9, Http("GET /v1/models/nope HTTP/1.1"), 404, _NOT_ALLOWED)
    yield Pair(9, Http("GET /v2 HTTP/1.1"), 404, _NOT_ALLOWED)
    for origin, status in (
        ("Origin: http://a", 200),
        ("Origin: https://a:80", 200),
        ("Origin: null", 400),
        ("X: y", 400),
    ):
        yield Pair(9, Http(f"OPTIONS {here}:predict HTTP/1.1", (origin,)), status, _NOT_ALLOWED)


# gRPC
# --------------------------------------------------------------------------------------------------


def _tensor(dtype: int, shape: list[int], **more: Any) -> dict[str, Any]:
    return {"dtype": dtype, "tensor_shape": {"dim": [{"size": size} for size in shape]}, **more}


def _asked(name: str, signature: str, **inputs: dict[str, Any]) -> Grpc:
    return Grpc(
        "Predict", {"model_spec": {"name": name, "signature_name": signature}, "inputs": inputs}
    )


def _grpc() -> Iterator[Pair]:
    for dtype, number, field, small in (
        ("float32", FLOAT, "float_val", 1e-45),
        ("float64", DOUBLE, "double_val", 5e-324),
    ):
        kept = [float(np.dtype(dtype).type(small))]
        yield Pair(
            1, _asked("echo", dtype, x=_tensor(number, [1], **{field: [small]})), "OK", {"y": kept}
        )
    for shape in ([], [1], [3]):
        unknown = _tensor(FLOAT, shape, float_val=[2.5])
        unknown["tensor_shape"]["unknown_rank"] = True
        yield Pair(10, _asked("echo", "any", x=unknown), "OK", {"y": [2.5] * math.prod(shape)})
    for rank in (64, 65, 254):
        deep = _tensor(FLOAT, [1] * (rank - 1) + [2], float_val=[1.0, 2.0])
        yield Pair(8, _asked("echo", "any", x=deep), "OK", {"y": [1.0, 2.0]})
        text = _tensor(STRING, [1] * (rank - 1) + [2], string_val=[b"a", b"bc"])
        yield Pair(8, _asked("echo", "any_string", x=text), "OK", {"y": [b"a", b"bc"]})
    parsing = "tensor parsing error: x"
    yield Pair(
        8,
        _asked("echo", "any", x=_tensor(FLOAT, [1] * 255, float_val=[1.0])),
        "INVALID_ARGUMENT",
        parsing,
    )
    yield Pair(
        8,
        _asked("echo", "any", x=_tensor(FLOAT, [-1], float_val=[1.0])),
        "INVALID_ARGUMENT",
        parsing,
    )
    one = _tensor(FLOAT, [1], float_val=[1.0])
    yield Pair(
        10, Grpc("MultiInference", {}), "INVALID_ARGUMENT", "ModelSpec has no name specified."
    )
    for method in ("Predict", "Classify", "Regress"):
        yield Pair(12, Grpc(method, {}), "INVALID_ARGUMENT", "Missing ModelSpec")
    yield Pair(
        10, _asked("nope", "", x=one), "NOT_FOUND", "Servable not found for request: Latest(nope)"
    )
    yield Pair(
        10,
        _asked("half_plus_two", "nope", x=one),
        "FAILED_PRECONDITION",
        'Serving signature key "nope" not found.',
    )
    composite = (
        "Tensor :0, specified in either feed_devices or fetch_devices was not found in the Graph"
    )
    sizes = _tensor(INT64, [3], int64_val=[3, 0, 2])
    yield Pair(4, _asked("ragged_io", "ranges", n=sizes), "INVALID_ARGUMENT", composite)
    relative = {"base_path": "nowhere", "name": "m", "model_platform": "tensorflow"}
    config = {"config": {"model_config_list": {"config": [relative]}}}
    text = "Expected model m to have an absolute path or URI; got base_path()=nowhere"
    yield Pair(10, Grpc("HandleReloadConfigRequest", config), "INVALID_ARGUMENT", text)


def _batching() -> Iterator[Pair]:
    """A server with ``max_batch_size { value: 1000 }``."""
    for size in (1, 999, 1000):
        body = json.dumps({"signature_name": "float32", "instances": [0.5] * size}).encode()
        yield Pair(
            7, Rest("echo:predict", body), 200, {"predictions": [0.5] * size}, server=BATCHING
        )
    for size in (1001, 5000):
        body = json.dumps({"signature_name": "float32", "instances": [0.5] * size}).encode()
        text = f"Task size {size} is larger than maximum input batch size 1000"
        yield Pair(7, Rest("echo:predict", body), 400, text, server=BATCHING)
    scalar = b'{"signature_name": "any", "inputs": 1.5}'
    text = "Batching Run() input tensors must have at least one dimension"
    yield Pair(7, Rest("echo:predict", scalar), 400, text, server=BATCHING)
