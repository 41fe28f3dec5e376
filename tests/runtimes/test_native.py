"""The C++ worker without a TensorFlow: its protocol, and its readers of untrusted files, under sanitizers. Needs a compiler."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compat_matrix.checks.kinds.signatures import compare_signatures, unconventional
from compat_matrix.runtimes.native.build import COMPILERS, SOURCES
from compat_matrix.runtimes.process import CHANNEL, Crashed, Process, TimedOut
from compat_matrix.runtimes.worker import environment
from compat_matrix.workers import tensors

LIMIT = 120.0
COMPILER = next((name for name in (os.environ.get("CXX"), *COMPILERS) if name and shutil.which(name)), None)
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine: the C++ worker is not tried")
Tensors = dict[str, tensors.Tensor]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything but the part that needs TensorFlow, for which tests/support/native_double.cc stands in."""
    path = tmp_path_factory.mktemp("native") / "double"
    sources = [source for source in sorted(SOURCES.glob("*.cc")) if source.name != "loader.cc"]
    double = Path(__file__).parents[1] / "support" / "native_double.cc"
    strict = ["-std=c++14", "-Wall", "-Wextra", "-Werror", "-g", "-O1", "-pthread", f"-I{SOURCES}"]
    sanitized = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command = [str(COMPILER), *strict, *sanitized, "-o", str(path), *map(str, sources), str(double)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture
def worker(program: Path, tmp_path: Path) -> Iterator[Process]:
    process = Process([str(program)], environment("cpp_worker"), tmp_path, tmp_path / "log")
    yield process
    process.close()
    assert "Sanitizer" not in process.stderr.read_text() and "runtime error" not in process.stderr.read_text()


def ask(worker: Process, op: str, **fields: Any) -> dict[str, Any]:
    return worker.request({"op": op, **fields}, LIMIT)


def load(worker: Process, directory: str = "/good") -> int:
    handle: int = ask(worker, "load", dir=directory, tags=["serve"])["handle"]
    return handle


def call(worker: Process, handle: int, path: Path, signature: str = "echo", **changes: Any) -> dict[str, Any]:
    request = {"kind": "signature", "signature": signature, "inputs": path.name, **changes}
    return ask(worker, "call", handle=handle, request=request, io_dir=str(path.parent), outputs=str(path.with_name("out.npz")))


def echoed(worker: Process, path: Path) -> Tensors:
    reply = call(worker, load(worker), path)
    assert reply["status"] == "ok", reply
    return tensors.load(path.with_name("out.npz"))


def same(one: Tensors, other: Tensors) -> bool:
    return list(one) == list(other) and all(
        one[name].dtype == other[name].dtype
        and one[name].array.shape == other[name].array.shape
        and one[name].array.tolist() == other[name].array.tolist()
        for name in one
    )


# The protocol ---------------------------------------------------------------------------------------------------------


def test_hello(worker: Process) -> None:
    hello = ask(worker, "hello", protocol=1)
    assert (hello["status"], hello["name"], hello["protocol"], hello["capabilities"]) == ("ok", "cpp", 1, ["fetch", "tags"])
    assert hello["versions"]["tensorflow"] == "0.0.0"
    assert hello["imported"] == hello["libraries"] == []


@pytest.mark.parametrize(
    ("fields", "status", "error_class", "message"),
    [
        ({"op": "hello", "protocol": 2}, "unsupported", "Unsupported", "protocol 2; this worker speaks 1"),
        ({"op": "dance"}, "unsupported", "Unsupported", 'no operation called "dance"'),
        ({"op": "variables", "handle": 1}, "unsupported", "Unsupported", "variables"),
        ({"op": ["load"]}, "unsupported", "Unsupported", "no operation"),
        ({"op": "load", "tags": []}, "error", "KeyError", "'dir'"),
        ({"op": "load", "dir": 7, "tags": []}, "error", "TypeError", "expected a string, got an integer"),
        ({"op": "load", "dir": "/missing", "tags": []}, "error", "TF_NOT_FOUND", "nothing\N{REPLACEMENT CHARACTER} there"),
        ({"op": "load", "dir": "/refuse", "tags": []}, "rejected", "TF_UNIMPLEMENTED", "no kernel"),
        ({"op": "signatures", "handle": 5}, "error", "KeyError", "'no model has the handle 5'"),
        ({"op": "signatures", "handle": "x"}, "error", "KeyError", "no model has the handle"),
    ],
)
def test_errors_are_replies(worker: Process, fields: dict[str, Any], status: str, error_class: str, message: str) -> None:
    reply = worker.request(fields, LIMIT)
    assert (reply["status"], reply["error_class"]) == (status, error_class)
    assert message in reply["message"]
    assert ask(worker, "hello", protocol=1)["status"] == "ok"


def test_a_model_lives_until_it_is_closed(worker: Process) -> None:
    first, second = load(worker), load(worker)
    assert first != second
    assert ask(worker, "close", handle=first)["status"] == "ok"
    assert ask(worker, "signatures", handle=first)["error_class"] == "KeyError"
    assert ask(worker, "signatures", handle=second)["status"] == "ok"


def test_a_function_is_not_called(worker: Process, tmp_path: Path) -> None:
    tensors.save(tmp_path / "in.npz", {})
    assert call(worker, load(worker), tmp_path / "in.npz", kind="function")["status"] == "unsupported"


@pytest.mark.parametrize(
    "line",
    [b"", b"garbage", b"[]", b"null", b'{"op": ', b"[" * 5000, b'{"id": 1e999}', b'{"op": "\x01"}', b'{"id": 01}', b"{} {}",
     b'{"op": "\\x"}', b'{"op": "\\u12"}', b"\xff\xfe", b'{"id": 99999999999999999999}', b'{"a" 1}', b'{1: 2}', b"nul", b"-"],
)  # fmt: skip
def test_a_line_that_is_no_request_gets_a_named_error(program: Path, tmp_path: Path, line: bytes) -> None:
    ours_in, theirs_out = os.pipe()
    theirs_in, ours_out = os.pipe()
    with (
        (tmp_path / "err").open("wb") as log,
        subprocess.Popen(
            [str(program)], env={CHANNEL: f"{theirs_in},{theirs_out}"}, pass_fds=(theirs_in, theirs_out), stderr=log
        ) as process,
    ):
        os.close(theirs_in)
        os.close(theirs_out)
        with os.fdopen(ours_in, "rb") as replies, os.fdopen(ours_out, "wb", buffering=0) as requests:
            requests.write(line + b"\n" + b'{"id": "\\ud800 \\ud83d\\ude00", "op": "hello", "protocol": 1}\n')
            error, hello = json.loads(replies.readline()), json.loads(replies.readline())
            requests.write(b'{"op": "bye", "id": null}\n')
            assert json.loads(replies.readline())["status"] == "ok"
            assert process.wait(LIMIT) == 0
    assert (error["id"], error["status"], error["error_class"]) == (None, "error", "ValueError")
    assert hello["status"] == "ok"
    assert hello["id"].endswith(" \N{GRINNING FACE}")


def test_it_ends_with_its_harness_whatever_it_is_busy_with(program: Path, tmp_path: Path) -> None:
    theirs_in, ours_out = os.pipe()
    with (tmp_path / "err").open("wb") as log:
        process = subprocess.Popen(
            [str(program)], env={CHANNEL: f"{theirs_in},{log.fileno()}"}, pass_fds=(theirs_in, log.fileno()), stderr=log
        )
    os.close(theirs_in)
    os.write(ours_out, b'{"id": 1, "op": "load", "dir": "/hang", "tags": []}\n')
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.0)
    os.close(ours_out)
    assert process.wait(LIMIT) == 70


def test_a_hang_and_a_crash_leave_last_words(program: Path, tmp_path: Path) -> None:
    for how, words, error in (("hang", "asked what it is doing: load", TimedOut), ("abort", "crashed in: load", Crashed)):
        worker = Process([str(program)], environment("cpp_worker"), tmp_path, tmp_path / how)
        with pytest.raises(error) as caught:
            worker.request({"op": "load", "dir": f"/{how}", "tags": []}, 1.0 if how == "hang" else LIMIT)
        assert words in worker.stderr.read_text(errors="replace")
        if isinstance(caught.value, Crashed):
            assert caught.value.error_class == signal.SIGABRT.name


def test_without_a_channel_it_says_how_it_is_started(program: Path) -> None:
    done = subprocess.run([str(program)], env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 64
    assert "started by savedmodel-compat" in done.stderr


# Serving's conventions ------------------------------------------------------------------------------------------------


def test_signatures_serving_would_refuse_are_marked(worker: Process) -> None:
    signatures = ask(worker, "signatures", handle=load(worker, "/odd"))["signatures"]
    reasons = {key: signature["method"]["reason"] for key, signature in signatures.items()}
    assert {key for key, reason in reasons.items() if reason is None} == {"classify", "regress"}
    for key, words in {
        "dense": "must be called 'inputs', it takes ['x']",
        "integers": "int64, not float32",
        "many": "3 outputs, one or two",
        "flat": "'scores' is not [batch, classes]",
        "named": "must be called 'outputs', it has ['y']",
    }.items():
        assert words in reasons[key]
        assert signatures[key]["method"]["conventional"] is False
    plain = {key: {side: signature[side] for side in ("inputs", "outputs")} for key, signature in signatures.items()}
    assert compare_signatures(plain, signatures) == []  # the member disturbs no comparison
    told = unconventional(["serve"], signatures)
    assert set(told) == {f"serve:{key}" for key in ("dense", "integers", "many", "flat", "named")}
    assert told["serve:flat"] == "tensorflow/serving/classify: its output 'scores' is not [batch, classes]"
    assert unconventional(["serve"], plain) == {}


# Tensor files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_every_dtype_comes_back_as_it_was(worker: Process, tmp_path: Path, shape: tuple[int, ...]) -> None:
    numbers = np.random.default_rng(0)
    given: Tensors = {}
    for dtype, carrier in tensors.CARRIERS.items():
        raw = numbers.integers(0, 2 if dtype == "bool" else 256, int(np.prod(shape)) * np.dtype(carrier).itemsize, np.uint8)
        given[dtype] = tensors.Tensor(dtype, raw.view(carrier).reshape(shape))
    words = np.empty(int(np.prod(shape)), object)
    words[:] = [bytes([i, 0, 255]) * (i % 3) for i in range(words.size)]
    given['a \N{SNOWMAN} name/\0"'] = tensors.Tensor("string", words.reshape(shape))
    tensors.save(tmp_path / "in.npz", given)
    back = echoed(worker, tmp_path / "in.npz")
    assert list(back) == list(given)
    for name, tensor in given.items():
        assert (back[name].dtype, back[name].array.shape) == (tensor.dtype, tensor.array.shape)
        if tensor.dtype == "string":
            assert back[name].array.tolist() == tensor.array.tolist()
        else:
            assert back[name].array.tobytes() == tensor.array.tobytes()


@pytest.mark.parametrize("content", ["zeros", "random", "text", "steps"])
@pytest.mark.parametrize("level", [1, 6, 9])
def test_all_kinds_of_deflate_blocks(worker: Process, tmp_path: Path, content: str, level: int) -> None:
    size = 300_000
    data = {
        "zeros": bytes(size),
        "random": random.Random(1).randbytes(size),
        "text": b" ".join(b"word %d of many" % (i * i % 977) for i in range(size // 16)),
        "steps": bytes(i // 700 % 256 for i in range(size)),
    }[content]
    given = {"x": tensors.from_numpy(np.frombuffer(data, np.uint8)), "y": tensors.from_numpy(np.array([data, b""], object))}
    tensors.save(tmp_path / "plain.npz", given)
    with zipfile.ZipFile(tmp_path / "plain.npz") as source, zipfile.ZipFile(tmp_path / "in.npz", "w") as target:
        for name in source.namelist():
            target.writestr(name, source.read(name), zipfile.ZIP_DEFLATED, level)
    assert same(echoed(worker, tmp_path / "in.npz"), given)


def npz(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name + ".npy", content)
    return path


def npy(value: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(value), allow_pickle=False)
    return stream.getvalue()


def meta(*entries: dict[str, Any]) -> bytes:
    return npy(np.frombuffer(json.dumps(list(entries)).encode(), np.uint8))


X = {"name": "x", "dtype": "float32", "shape": [2]}
WORDS = {"name": "x", "dtype": "string", "shape": [2]}
ARRAY = npy(np.float32([1, 2]))
HUGE = 1 << 40


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "no member called meta"),
        ({"meta": npy(np.frombuffer(b"{", np.uint8))}, "no JSON"),
        ({"meta": npy(np.frombuffer(b'{"name": 1}', np.uint8))}, "expected a list"),
        ({"meta": meta(X)}, "x is not there"),
        ({"meta": meta({**X, "dtype": "float64"}), "t0": ARRAY}, "x is <f4(2,), not float64(2,)"),
        ({"meta": meta({**X, "dtype": "resource"}), "t0": ARRAY}, "not resource"),
        ({"meta": meta({**X, "shape": [3]}), "t0": ARRAY}, "x is <f4(2,), not float32(3,)"),
        ({"meta": meta({**X, "shape": [-2]}), "t0": ARRAY}, "negative dimension"),
        ({"meta": meta({**X, "shape": [HUGE, HUGE, 0]}), "t0": ARRAY}, "more elements than can be"),
        ({"meta": meta({**X, "shape": [1] * 300}), "t0": ARRAY}, "too many dimensions"),
        ({"meta": meta({**X, "shape": [2.0]}), "t0": ARRAY}, "expected an integer"),
        ({"meta": meta(X), "t0": ARRAY[:-1]}, "another size than its shape"),
        ({"meta": meta(X), "t0": ARRAY + b"x"}, "another size than its shape"),
        ({"meta": meta(X), "t0": ARRAY.replace(b"(2,)", b"(2,,")}, "shape"),
        ({"meta": meta(X), "t0": ARRAY.replace(b"<f4", b">f4")}, "no tensor's type"),
        ({"meta": meta(X), "t0": ARRAY.replace(b"False", b"True ")}, "Fortran"),
        ({"meta": meta(X), "t0": ARRAY.replace(b"'shape'", b"'ehaps'")}, "without shape"),
        ({"meta": meta(X), "t0": ARRAY[:8] + b"\xff\xff" + ARRAY[10:]}, "ends behind the file"),
        ({"meta": meta(X), "t0": b"no npy file at all"}, "no .npy file"),
        ({"meta": meta(X), "t0": ARRAY[:6] + b"\x09" + ARRAY[7:]}, "unknown version"),
        ({"meta": meta(WORDS), "t0": npy(np.uint8([65]))}, "x is not there"),
        *(
            ({"meta": meta(WORDS), "t0": npy(np.uint8([65])), "t0.offsets": npy(np.int64(bounds))}, "offsets do not fit")
            for bounds in ([0, 1], [0, 1, 2], [0, -1, 1], [0, 5, 1], [1, 1, 1], [[0, 1, 1]], [0, HUGE, 1])
        ),
        ({"meta": meta(WORDS), "t0": npy(np.uint8([65])), "t0.offsets": npy(np.int32([0, 1, 1]))}, "offsets do not fit"),
    ],
)
def test_a_file_that_contradicts_itself_is_a_named_error(
    worker: Process, tmp_path: Path, members: dict[str, bytes], message: str
) -> None:
    reply = call(worker, load(worker), npz(tmp_path / "in.npz", members))
    assert (reply["status"], reply["error_class"]) == ("error", "ValueError"), reply
    assert message in reply["message"]
    assert str(tmp_path / "in.npz") in reply["message"]


def test_files_that_are_not_there(worker: Process, tmp_path: Path) -> None:
    handle = load(worker)
    reply = call(worker, handle, tmp_path / "none.npz")
    assert (reply["error_class"], "No such file" in reply["message"]) == ("FileNotFoundError", True)
    (tmp_path / "in.npz").write_bytes(b"")
    assert "no zip archive" in call(worker, handle, tmp_path / "in.npz")["message"]
    tensors.save(tmp_path / "in.npz", {})
    request = {"kind": "signature", "signature": "echo", "inputs": "in.npz"}
    lost = ask(worker, "call", handle=handle, request=request, io_dir=str(tmp_path), outputs=str(tmp_path / "no" / "out.npz"))
    assert lost["error_class"] == "FileNotFoundError"


def test_two_outputs_of_one_name_are_refused(worker: Process, tmp_path: Path) -> None:
    tensors.save(tmp_path / "in.npz", {"x": tensors.from_numpy(np.float32(1))})
    reply = call(worker, load(worker), tmp_path / "in.npz", "twice")
    assert (reply["error_class"], reply["message"]) == ("ValueError", "two tensors are called 'x'")
    assert not (tmp_path / "out.npz").exists()


def test_lying_sizes_take_no_memory(worker: Process, tmp_path: Path) -> None:
    """The directory announces four gigabytes where a few bytes are."""
    path = npz(tmp_path / "in.npz", {"meta": meta(X), "t0": ARRAY})
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = struct.pack("<I", 0xFFFFFFF0)
    path.write_bytes(data)
    reply = call(worker, load(worker), path)
    assert (reply["error_class"], "more bytes announced" in reply["message"]) == ("ValueError", True)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_damaged_files_are_refused_or_harmless(worker: Process, tmp_path: Path, method: int) -> None:
    """Cut at many places, and with many bytes changed: the same process answers all of it."""
    source = tmp_path / "source.npz"
    tensors.save(
        source, {"x": tensors.from_numpy(np.arange(40, dtype=np.float32)), "s": tensors.from_numpy(np.array([b"abc"] * 9))}
    )
    with zipfile.ZipFile(source) as archive:
        good = npz(tmp_path / "good.npz", {name[:-4]: archive.read(name) for name in archive.namelist()}, method).read_bytes()
    path, handle, chance = tmp_path / "in.npz", load(worker), random.Random(7)
    refused = 0
    for index in range(600):
        data = bytearray(good)
        if index % 3 == 0:
            del data[chance.randrange(len(data)) :]
        for _ in range(chance.randrange(0 if index % 3 == 0 else 1, 4)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        reply = call(worker, handle, path)
        refused += reply["status"] == "error"
        assert reply["status"] == "ok" or reply["error_class"] in ("ValueError", "KeyError", "TypeError"), reply
    assert refused > 300
