"""Parts of the stand-in that need no TensorFlow: its JSON, its flags, and what gathers the
image.
"""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from savedmodel_common.serving import messages
from savedmodel_common.tensors import Tensor, from_numpy
from savedmodel_standin import (
    flags,
    image,
    json_predict,
    json_reader,
    json_writer,
    libraries,
    rootfs,
    tensor_protos,
)
from savedmodel_standin.errors import ServingError


@pytest.mark.parametrize(
    ("value", "single", "text"),
    [
        (9000000, True, "9e+06"),
        (999999, True, "999999.0"),
        (0.00003, True, "3e-05"),
        (555557.5, True, "555557.5"),
        (0.1, True, "0.1"),
        (0.669074059, True, "0.669074059"),
        (0.1, False, "0.1"),
        (1 / 3, False, "0.33333333333333331"),
        (float("nan"), True, "NaN"),
        (float("-inf"), False, "-Infinity"),
    ],
)
def test_decimals_are_written_as_the_real_server_writes_them(
    value: float, single: bool, text: str
) -> None:
    number = np.float32(value) if single else value
    assert json_writer.decimal(number, single) == text.encode()


def test_rows_of_several_outputs() -> None:
    outputs = {
        "b_bytes": from_numpy(np.array([b"hello", b"\xff"], object), "string"),
        "a": from_numpy(np.array([[1, 2], [3, 4]], np.int64)),
    }
    rows = json_predict.response(outputs, rows=True).decode()
    assert rows.splitlines()[2:6] == [
        "        {",
        '            "a": [1, 2],',
        '            "b_bytes": {',
        '                "b64": "aGVsbG8="',
    ]
    empty = {
        "a": from_numpy(np.zeros((0, 2), np.float32)),
        "b": from_numpy(np.zeros((0,), np.int32)),
    }
    assert json_predict.response(empty, rows=True) == b'{\n    "predictions": []\n}'
    for outputs, text in (
        ({"a": from_numpy(np.float32(1))}, "Tensor name: a has no shape information "),
        (
            {"a": from_numpy(np.zeros(1)), "b": from_numpy(np.zeros(2))},
            "Tensor name: b has inconsistent batch size: 2 expecting: 1",
        ),
        (
            {"a": from_numpy(np.zeros(1, np.complex64))},
            "Failed to write JSON value for tensor type: complex64",
        ),
        ({}, "Cannot convert empty tensor map to JSON"),
    ):
        with pytest.raises(ServingError) as caught:
            json_predict.response(outputs, rows=True)
        assert caught.value.message == text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"{", "Missing a name for object member. at offset: 1"),
        (b'{"a" 1}', "Missing a colon after a name of object member. at offset: 5"),
        (b'{"a": 1', "Missing a comma or '}' after an object member. at offset: 7"),
        (b'{"a": "x}', "Missing a closing quotation mark in string. at offset: 9"),
        (b'{"a": "\\q"}', "Invalid escape character in string. at offset: 7"),
        (b'{"a": 1.}', "Miss fraction part in number. at offset: 8"),
        (b'{"a": 1e}', "Miss exponent in number. at offset: 8"),
        (b'{"a": 1e999}', "Number too big to be stored in double. at offset: 6"),
        (b'{"a": nope}', "Invalid value. at offset: 7"),
    ],
)
def test_json_errors_name_the_place(body: bytes, text: str) -> None:
    with pytest.raises(ServingError) as caught:
        json_reader.parse(body)
    assert caught.value.message == f"JSON Parse error: {text}"


def test_both_parsers_read_the_same() -> None:
    body = (
        b'{"a": [1, -2.5e3, true, null, "\\u00e9\\ud83d\\ude00\\n"], "b": {"c": []}, "d":'
        b" 18446744073709551615}"
    )
    assert json_reader.parse(body) == json_reader._Slow(body.decode()).document()
    assert json_reader.parse(b'{"a": -Inf, "b": "\xff"}') == {"a": float("-inf"), "b": "\udcff"}


@pytest.mark.parametrize(
    "dtype",
    [
        "float16",
        "bfloat16",
        "int8",
        "uint16",
        "qint32",
        "complex64",
        "complex128",
        "bool",
        "float8_e5m2",
    ],
)
@pytest.mark.parametrize("as_content", [False, True])
def test_tensors_cross_in_both_forms(dtype: str, as_content: bool) -> None:
    carrier = np.dtype(tensor_protos.CARRIERS[dtype])
    raw = (np.arange(6 * carrier.itemsize) % (2 if dtype == "bool" else 60)).astype(np.uint8)
    tensor = Tensor(dtype, raw.view(carrier).reshape(2, 3))
    proto = messages.TensorProto()
    tensor_protos.encode(tensor, proto, as_content)
    assert bool(proto.tensor_content) == as_content
    found = tensor_protos.decode(messages.TensorProto.FromString(proto.SerializeToString()))
    assert found.dtype == dtype
    assert found.array.tobytes() == tensor.array.tobytes()


def test_messages_that_are_no_tensors() -> None:
    for text in (
        {"dtype": 0},
        {"dtype": 20},
        {"dtype": 1, "tensor_shape": {"dim": [{"size": -1}]}},
        {"dtype": 1, "tensor_shape": {"dim": [{"size": 1 << 40}]}},
        {"dtype": 1, "tensor_shape": {"dim": [{"size": 1 << 62}] * 254}},
        {"dtype": 7, "tensor_shape": {"dim": [{"size": 1 << 62}] * 254}},
        {"dtype": 7, "tensor_shape": {"dim": [{"size": 1}] * 255}, "string_val": [b"a"]},
        {"dtype": 1, "tensor_shape": {"dim": [{"size": 2}]}, "tensor_content": b"123"},
        {"dtype": 7, "tensor_shape": {"dim": [{"size": 2}]}, "tensor_content": b"\x05\x01a"},
    ):
        with pytest.raises(tensor_protos.NotATensor):
            tensor_protos.decode(messages.TensorProto(**text))


def test_flags_are_read_as_tensorflow_reads_them(capfd: pytest.CaptureFixture[str]) -> None:
    line = [
        "--port=1",
        "--enable_batching",
        "--enable_model_warmup=false",
        "--port",
        "2",
        "--nope=1",
        "--num_unload_threads=3",
    ]
    parsed = flags.parse(line)
    assert (
        parsed.values["port"],
        parsed.values["enable_batching"],
        parsed.values["enable_model_warmup"],
    ) == (1, True, False)
    assert parsed.unknown == ["--port", "2", "--nope=1"]
    assert parsed.readable
    assert "--num_unload_threads" in capfd.readouterr().err
    assert not flags.parse(["--enable_batching=1"]).readable
    assert not flags.parse(["--help"]).readable


def test_what_an_executable_needs_is_listed() -> None:
    if sys.platform != "linux":
        pytest.skip("executables of this system are no ELF files")
    python = Path(sys.executable).resolve()
    found = libraries.needed([python])
    assert all(path.is_file() for path in found.values())
    assert any(name.startswith("libc.so") for name in found)
    assert any(name.startswith("/") for name in found), "the loader is known by its full path"
    libc = next(path for name, path in found.items() if name.startswith("libc.so"))
    assert libc not in libraries.needed([python], [libc.parent]).values()


def test_a_library_that_is_nowhere_is_named_with_the_file_that_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ldd").write_text(
        '#!/bin/sh\nfor file; do echo "$file:"; printf "\tlibodd.so.1 => not found\n"; done\n'
    )
    (tmp_path / "ldd").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(libraries.Missing, match=r"/one needs libodd\.so\.1") as caught:
        libraries.needed([Path("/one"), Path("/two")])
    assert caught.value.path == Path("/one")


def test_the_archive_is_the_same_on_every_machine(tmp_path: Path) -> None:
    source = tmp_path / "b"
    source.write_bytes(b"binary")
    entries = {
        "/a/b": rootfs.Entry(0o755, source),
        "/a/c": rootfs.Entry(0o644, text="text"),
        "/m": rootfs.Entry(0o755),
    }
    derived = {**entries, "/z": rootfs.Entry(0o644, text="compiled", derived=True)}
    trees = [rootfs.Tree(entries, "2.0.0"), rootfs.Tree(derived, "2.0.0")]
    assert trees[0].digest() == trees[1].digest()
    out = io.BytesIO()
    image.pack(trees[0], out)
    with tarfile.open(fileobj=io.BytesIO(out.getvalue())) as archive:
        members = {member.name: (member.mode, member.mtime, member.uid) for member in archive}
    assert members == {
        "a": (0o755, 0, 0),
        "a/b": (0o755, 0, 0),
        "a/c": (0o644, 0, 0),
        "m": (0o755, 0, 0),
    }
