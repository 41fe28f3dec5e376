"""savedmodel_servers.rest_json: tensors <-> the JSON of TensorFlow Serving's REST API.

Requests are read and answers written by functions of this file, which follow the API's
documentation.
"""

import base64
import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reference_impl.format import schema
from savedmodel_common.tensors import Tensor
from savedmodel_servers import rest_json
from savedmodel_servers.rest_json import CannotSay, Unreadable

NUMBERS = {
    "bool": 10,
    "int8": 6,
    "int16": 5,
    "int32": 3,
    "int64": 9,
    "uint8": 4,
    "uint32": 22,
    "uint64": 23,
}
NUMBERS.update(float32=1, float64=2, string=7)

# No limits of time: the first text that Hypothesis draws costs it seconds.
quiet = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def info(dtype, *sizes, unknown_rank=False):
    found = schema.TensorInfo(dtype=NUMBERS[dtype])
    found.tensor_shape.unknown_rank = unknown_rank
    for size in sizes:
        found.tensor_shape.dim.add(size=size)
    return found


def info_of(tensor):
    return info(tensor.dtype, *[-1, *tensor.array.shape[1:]][: tensor.array.ndim])


def strings(*values):
    out = np.empty(len(values), object)
    out[:] = values
    return Tensor("string", out)


@st.composite
def a_tensor(draw, shape):
    dtype = draw(st.sampled_from(sorted(NUMBERS)))
    count = math.prod(shape)
    if dtype == "string":
        array = np.empty(count, object)
        text = st.text(max_size=4).map(str.encode) | st.binary(max_size=4)
        array[:] = draw(st.lists(text, min_size=count, max_size=count))
        return Tensor(dtype, array.reshape(shape))
    if dtype == "bool":
        element = st.booleans()
    elif dtype.startswith("float"):
        special = [float(np.finfo(dtype).max), float(np.finfo(dtype).tiny), -0.0, 16777217.0, 1e16]
        element = st.floats(width=int(dtype[5:]), allow_subnormal=False) | st.sampled_from(
            [x for x in special if float(np.dtype(dtype).type(x)) == x]
        )
    else:
        element = st.integers(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    return Tensor(
        dtype,
        np.array(draw(st.lists(element, min_size=count, max_size=count)), dtype).reshape(shape),
    )


@st.composite
def some_tensors(draw, most=3, rows=False):
    """Tensors by name; in rows, all of one first dimension."""
    batch = draw(st.integers(1, 3))
    names = draw(
        st.lists(
            st.sampled_from(["x", "image_bytes", "b64", "y z", "é"]),
            min_size=1,
            max_size=most,
            unique=True,
        )
    )
    out = {}
    for name in names:
        shape = draw(st.lists(st.integers(1, 3), max_size=2)) + draw(st.sampled_from([[], [0]]))
        out[name] = draw(a_tensor([batch, *shape] if rows else shape))
    return out


def same(one, other):
    assert (one.dtype, one.array.dtype, one.array.shape) == (
        other.dtype,
        other.array.dtype,
        other.array.shape,
    )
    if one.dtype.startswith("float"):
        assert np.array_equal(one.array, other.array, equal_nan=True)
        numbers = ~np.isnan(one.array)
        assert np.array_equal(np.signbit(one.array)[numbers], np.signbit(other.array)[numbers])
    else:
        assert one.array.tolist() == other.array.tolist()


# The server, as documented


def is_base64(value):
    return isinstance(value, dict) and list(value) == ["b64"] and isinstance(value["b64"], str)


def shape_seen(value):
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        if not value:
            break
        value = value[0]
    return shape


def leaves(value):
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, list) else [value]


def as_server_reads(value, dtype):
    """A tensor out of nested lists.

    Numbers with a point or an exponent are floats, all others integers.
    """
    flat = leaves(value)
    if dtype == "string":
        array = np.empty(len(flat), object)
        array[:] = [
            base64.b64decode(item["b64"]) if is_base64(item) else item.encode() for item in flat
        ]
    elif dtype == "bool":
        assert all(item is True or item is False for item in flat)
        array = np.array(flat, bool)
    elif dtype.startswith("float"):
        assert all(isinstance(item, float) for item in flat)
        array = np.array(flat, np.float64)
        if dtype == "float32":
            # The parser may be three units in the last place off; what is above the largest float32
            # is then refused.
            worst = array.copy()
            for _ in range(3):
                worst = np.where(
                    np.isfinite(worst), np.nextafter(worst, np.copysign(np.inf, worst)), worst
                )
            assert np.all((np.abs(worst) <= np.finfo(np.float32).max) | ~np.isfinite(worst))
            assert np.array_equal(
                worst.astype(np.float32), array.astype(np.float32), equal_nan=True
            )
    else:
        assert all(type(item) is int for item in flat)
        array = np.array(flat, dtype)
    return Tensor(
        dtype, array.astype(array.dtype if dtype == "string" else dtype).reshape(shape_seen(value))
    )


def as_server_writes(name, tensor):
    """The JSON text of a tensor, strings as the bytes that they are."""

    def number(value):
        if tensor.dtype == "bool":
            return b"true" if value else b"false"
        if tensor.dtype == "string":
            if name.endswith("_bytes"):
                return b'{"b64":"' + base64.b64encode(value) + b'"}'
            escaped = b"".join(
                b"\\u%04X" % c if c < 32 else b"\\" + bytes([c]) if c in b'"\\' else bytes([c])
                for c in value
            )
            return b'"' + escaped + b'"'
        if not tensor.dtype.startswith("float"):
            return b"%d" % value
        if not math.isfinite(value):
            return b"NaN" if math.isnan(value) else b"Infinity" if value > 0 else b"-Infinity"
        text = f"{value:.6g}"
        if np.dtype(tensor.dtype).type(text) != value:
            text = f"{value:.{9 if tensor.dtype == 'float32' else 17}g}"
        return (text if "." in text or "e" in text else text + ".0").encode()

    def nested(values):
        return (
            b"[" + b", ".join(map(nested, values)) + b"]"
            if isinstance(values, list)
            else number(values)
        )

    return nested(tensor.array.tolist())


@quiet
@given(some_tensors())
def test_requests_in_columns_say_what_they_mean(inputs):
    sent = json.loads(rest_json.dumps(rest_json.columns(inputs)))
    assert list(sent) == ["inputs"]
    assert not is_base64(sent["inputs"])
    assert set(sent["inputs"]) == set(inputs)
    for name, tensor in inputs.items():
        same(as_server_reads(sent["inputs"][name], tensor.dtype), tensor)


@quiet
@given(some_tensors(rows=True), st.booleans())
def test_requests_in_rows_say_what_they_mean(inputs, bare):
    bare = bare and len(inputs) == 1
    sent = json.loads(rest_json.dumps(rest_json.rows(inputs, bare=bare)))
    assert list(sent) == ["instances"]
    for name, tensor in inputs.items():
        if not bare:
            assert all(set(row) == set(inputs) and not is_base64(row) for row in sent["instances"])
        same(
            as_server_reads(
                sent["instances"] if bare else [row[name] for row in sent["instances"]],
                tensor.dtype,
            ),
            tensor,
        )


@quiet
@given(some_tensors())
def test_answers_in_columns_are_read_exactly(outputs):
    texts = [
        json.dumps(name).encode() + b": " + as_server_writes(name, tensor)
        for name, tensor in outputs.items()
    ]
    body = texts[0].partition(b": ")[2] if len(texts) == 1 else b"{" + b",\n".join(texts) + b"}"
    found = rest_json.read_columns(
        rest_json.loads(b'{\n    "outputs": ' + body + b"\n}"),
        {name: info_of(tensor) for name, tensor in outputs.items()},
    )
    assert set(found) == set(outputs)
    for name, tensor in outputs.items():
        same(found[name], tensor)


@quiet
@given(some_tensors(rows=True))
def test_answers_in_rows_are_read_exactly(outputs):
    rows = []
    for index in range(next(iter(outputs.values())).array.shape[0]):
        values = {
            name: as_server_writes(name, Tensor(t.dtype, np.asarray(t.array)[index : index + 1]))
            for name, t in outputs.items()
        }
        texts = [json.dumps(name).encode() + b": " + value[1:-1] for name, value in values.items()]
        rows.append(
            texts[0].partition(b": ")[2] if len(texts) == 1 else b"{" + b", ".join(texts) + b"}"
        )
    found = rest_json.read_rows(
        rest_json.loads(b'{"predictions": [' + b",".join(rows) + b"]}"),
        {name: info_of(t) for name, t in outputs.items()},
    )
    for name, tensor in outputs.items():
        same(found[name], tensor)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("float32", 1e-45), ("float32", -1e-39), ("float64", 5e-324), ("float64", 1e-308)],
)
def test_subnormal_numbers_are_refused(dtype, value):
    tensor = Tensor(dtype, np.array([1.0, value], dtype))
    for ask in (rest_json.columns, lambda inputs: rest_json.rows(inputs, bare=True)):
        with pytest.raises(rest_json.CannotSay, match=r"input 'x' .*subnormal"):
            ask({"x": tensor})


def test_six_digits_are_rounded_once_and_twice_to_the_same_float32():
    """The claim of the module's text, at the decimals nearest to the middle between two float32
    values.
    """
    for text in (
        "1e-45",
        "7.00649e-46",
        "2.93874e-39",
        "8.58993e+09",
        "1.67772e+07",
        "3.40282e+38",
        "9.00719e+15",
    ):
        assert rest_json.numbers([float(text)], "float32")[0] == np.float32(text)


def test_a_request_as_it_is_written_in_the_documentation():
    tag, signal = (
        strings(b"foo", b"bar"),
        Tensor("int32", np.int32([[1, 2, 3, 4, 5], [3, 4, 1, 2, 5]])),
    )
    sensor = Tensor("float32", np.float32([[[1, 2], [3, 4]], [[4, 5], [6, 8]]]))
    inputs = {"tag": tag, "signal": signal, "sensor": sensor}
    assert rest_json.rows(inputs, bare=False) == {
        "instances": [
            {"tag": "foo", "signal": [1, 2, 3, 4, 5], "sensor": [[1, 2], [3, 4]]},
            {"tag": "bar", "signal": [3, 4, 1, 2, 5], "sensor": [[4, 5], [6, 8]]},
        ]
    }
    assert rest_json.columns(inputs) == {
        "inputs": {
            "tag": ["foo", "bar"],
            "signal": [[1, 2, 3, 4, 5], [3, 4, 1, 2, 5]],
            "sensor": [[[1, 2], [3, 4]], [[4, 5], [6, 8]]],
        }
    }
    assert rest_json.rows({"tag": tag}, bare=True) == {"instances": ["foo", "bar"]}


WRITTEN = {
    "float32 of a whole number": (Tensor("float32", np.float32([1e9])), b"[1000000000.0]"),
    "the largest float32": (
        Tensor("float32", np.float32([3.4028234663852886e38])),
        b"[3.4028234e+38]",
    ),
    "numbers that are none": (
        Tensor("float64", np.array([np.nan, np.inf, -np.inf])),
        b"[NaN,Infinity,-Infinity]",
    ),
    "minus zero": (Tensor("float32", np.float32(-0.0)), b"-0.0"),
    "the largest uint64": (Tensor("uint64", np.uint64([2**64 - 1])), b"[18446744073709551615]"),
    "the least int64": (Tensor("int64", np.int64([-(2**63)])), b"[-9223372036854775808]"),
    "truth": (Tensor("bool", np.array([True, False])), b"[true,false]"),
    "text": (strings("é\0".encode(), b"\xff"), rb'["\u00e9\u0000",{"b64":"/w=="}]'),
    "nothing": (Tensor("int32", np.zeros((2, 0), np.int32)), b"[[],[]]"),
    "a scalar": (Tensor("string", np.array(b"a", object)), b'"a"'),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_values_as_they_are_written(case):
    tensor, text = WRITTEN[case]
    assert rest_json.dumps(rest_json.columns({"x": tensor})) == b'{"inputs":{"x":' + text + b"}}"


def test_strings_of_a_name_in_bytes_are_base64():
    assert rest_json.columns({"image_bytes": strings(b"abc")}) == {
        "inputs": {"image_bytes": [{"b64": "YWJj"}]}
    }
    # {"b64": "abc"} by itself would be read as base64 without a name.
    assert rest_json.columns({"b64": Tensor("string", np.array(b"abc", object))}) == {
        "inputs": {"b64": {"b64": "YWJj"}}
    }


SCALAR, VECTOR = Tensor("float32", np.float32(1)), Tensor("float32", np.float32([1, 2]))
REFUSED = {
    "half": (
        lambda: rest_json.columns({"x": Tensor("float16", np.float16([1]))}),
        "'x' is float16, which",
    ),
    "bfloat16": (lambda: rest_json.columns({"x": Tensor("bfloat16", np.uint16([1]))}), "bfloat16"),
    "complex": (
        lambda: rest_json.columns({"x": Tensor("complex64", np.complex64([1]))}),
        "complex64",
    ),
    "uint16": (lambda: rest_json.columns({"x": Tensor("uint16", np.uint16([1]))}), "uint16"),
    "quantised": (lambda: rest_json.columns({"x": Tensor("qint8", np.int8([1]))}), "qint8"),
    "dimensions behind a 0": (
        lambda: rest_json.columns({"x": Tensor("int8", np.zeros((0, 3), np.int8))}),
        r"shape \[0, 3\]",
    ),
    "rows of a scalar": (lambda: rest_json.rows({"x": SCALAR}, bare=True), "'x' is a scalar"),
    "rows of different numbers": (
        lambda: rest_json.rows({"x": VECTOR, "y": strings(b"")}, bare=False),
        r"not \[1, 2\]",
    ),
    "no rows": (lambda: rest_json.rows({"x": strings()}, bare=True), 'empty list of "instances"'),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_json_cannot_say_is_refused_before_it_is_sent(case):
    say, reason = REFUSED[case]
    with pytest.raises(CannotSay, match=reason):
        say()


def test_a_signature_is_held_against_what_the_server_can_do():
    one = schema.SignatureDef()
    with pytest.raises(CannotSay, match="without inputs"):
        rest_json.check_signature(one, {})
    one.inputs["x"].CopyFrom(info("float32", -1))
    one.inputs["k"].CopyFrom(info("float32"))
    one.defaults["k"].dtype = 1
    rest_json.check_signature(one, {"x": VECTOR, "k": SCALAR})
    with pytest.raises(CannotSay, match=r"'k' .* default"):
        rest_json.check_signature(one, {"x": VECTOR})
    for inputs in ({"k": SCALAR}, {}):  # the server says what is missing
        rest_json.check_signature(one, inputs)
    one.outputs["y"].dtype = schema.DT_HALF
    with pytest.raises(CannotSay, match=r"output 'y' .*float16"):
        rest_json.check_signature(one, {"x": VECTOR, "k": SCALAR})


def columns(text, **outputs):
    return rest_json.read_columns(
        rest_json.loads(text if isinstance(text, bytes) else text.encode()), outputs
    )


def test_dimensions_behind_a_0_come_from_the_signature():
    assert columns('{"outputs": []}', y=info("float32", -1, 3, 2))["y"].array.shape == (0, 3, 2)
    assert columns('{"outputs": [[], []]}', y=info("float32", -1, -1))["y"].array.shape == (2, 0)
    assert rest_json.read_rows(
        {"predictions": []}, {"y": info("string", -1, 2), "z": info("int8", -1)}
    )["y"].array.shape == (
        0,
        2,
    )
    with pytest.raises(CannotSay, match=r"dimensions \[-1\]"):
        columns('{"outputs": []}', y=info("float32", -1, -1))
    with pytest.raises(CannotSay, match="how many dimensions"):
        columns('{"outputs": []}', y=info("float32", unknown_rank=True))


def test_bytes_that_are_no_text_come_through():
    assert columns(b'{"outputs": ["a\xff\\u0000\xc3\xa9"]}', y=info("string", -1))[
        "y"
    ].array.tolist() == [b"a\xff\0\xc3\xa9"]
    assert columns('{"outputs": [{"b64": "/w=="}]}', y_bytes=info("string", -1))[
        "y_bytes"
    ].array.tolist() == [b"\xff"]


ONE = {"y": info("float32", -1)}
TWO = {"y": info("float32", -1), "z": info("float32", -1)}
UNREADABLE = {
    "nothing": (b"", ONE, "not JSON"),
    "no JSON": (b"<html>", ONE, "not JSON"),
    "cut off": (b'{"outputs": [1.0', ONE, "not JSON"),
    "deep": (b'{"outputs": ' + b"[" * 10**6, ONE, "nested too deep"),
    "deep, and closed": (
        b'{"outputs": ' + b"[" * 900 + b"1.0" + b"]" * 900 + b"}",
        ONE,
        "more than 254 dimensions",
    ),
    "more dimensions than NumPy has": (
        b'{"outputs": ' + b"[" * 100 + b"1.0" + b"]" * 100 + b"}",
        ONE,
        "dimension",
    ),
    "a long number": (b'{"outputs": [' + b"9" * 10**6 + b"]}", ONE, "a number of 1000000 digits"),
    "a list": (b"[1.0]", ONE, "a JSON list where an object is due"),
    "a key twice": (b'{"outputs": {"y": [1.0], "z": [1.0], "y": [2.0]}}', TWO, "one key twice"),
    "another key": (b'{"predictions": [1.0]}', ONE, "no 'outputs'"),
    "an output too few": (b'{"outputs": {"y": [1.0]}}', TWO, r"\['y'\] where \['y', 'z'\] are due"),
    "an output too much": (b'{"outputs": {"y": [1.0], "z": [1.0], "w": [1.0]}}', TWO, "'w'"),
    "no names": (b'{"outputs": [1.0]}', TWO, "a list where"),
    "names of one output": (b'{"outputs": {"y": [1.0]}}', ONE, "dict"),
    "ragged": (b'{"outputs": [[1.0], [1.0, 2.0]]}', ONE, "different lengths at depth 1"),
    "a list among values": (b'{"outputs": [1.0, [2.0]]}', ONE, "list"),
    "a value among lists": (b'{"outputs": [[1.0], 2.0]}', ONE, "different lengths"),
    "text": (b'{"outputs": ["1.0"]}', ONE, r"'1.0' \(str\) is not a value of float32"),
    "null": (b'{"outputs": [null]}', ONE, "None"),
    "truth for a number": (b'{"outputs": [true]}', ONE, "True"),
    "a number for truth": (b'{"outputs": [1]}', {"y": info("bool", -1)}, "is not a value of bool"),
    "too large a float": (b'{"outputs": [1e300]}', ONE, "too large for float32"),
    "an integer that is no float": (
        b'{"outputs": [9007199254740993]}',
        ONE,
        "is not a value of float32",
    ),
    "too large an integer": (
        b'{"outputs": [256]}',
        {"y": info("uint8", -1)},
        "256.*is not a value of uint8",
    ),
    "truth for an integer": (
        b'{"outputs": [true]}',
        {"y": info("int64", -1)},
        "True.*is not a value of int64",
    ),
    "a fraction": (b'{"outputs": [1.0]}', {"y": info("int64", -1)}, "1.0.*is not a value of int64"),
    "base64 where the name asks for none": (
        b'{"outputs": [{"b64": ""}]}',
        {"y": info("string", -1)},
        "dict is not a string",
    ),
    "none where it asks for it": (b'{"outputs": ["a"]}', {"y_bytes": info("string", -1)}, "b64"),
    "broken base64": (b'{"outputs": [{"b64": "%"}]}', {"y_bytes": info("string", -1)}, "base64"),
    "half a character": (
        rb'{"outputs": ["\ud800"]}',
        {"y": info("string", -1)},
        "half a character",
    ),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_an_answer_that_is_none(case):
    body, outputs, reason = UNREADABLE[case]
    with pytest.raises(Unreadable, match=reason):
        columns(body, **outputs)


@pytest.mark.parametrize(
    "body",
    [
        b'{"predictions": 1.0}',
        b'{"predictions": [{"y": 1.0}]}',
        b'{"predictions": [[1.0]]}',
        b'{"predictions": {}}',
    ],
)
def test_rows_that_are_none(body):
    with pytest.raises(Unreadable, match="prediction"):
        rest_json.read_rows(rest_json.loads(body), TWO)


@quiet
@given(
    st.binary(max_size=30)
    | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(
        lambda value: json.dumps({"outputs": value}).encode()
    )
)
def test_whatever_comes_back_is_read_or_refused(body):
    for dtype in NUMBERS:
        try:
            answer = columns(body, y=info(dtype, -1))
        except (Unreadable, CannotSay) as error:
            assert str(error)
        else:
            assert list(answer) == ["y"]
