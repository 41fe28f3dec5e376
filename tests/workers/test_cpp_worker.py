"""The worker `cpp` around its C++ program: how the program's death is told, and what Serving's
method names ask for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from compat_matrix.checks.kinds.signatures import compare_signatures, unconventional
from compat_matrix.runtimes import programs
from compat_matrix.runtimes.children import CHANNEL
from compat_matrix.runtimes.process import Crashed, Process, TimedOut
from compat_matrix.runtimes.worker import environment
from compat_matrix.workers import serving_methods, signature_wire
from compat_matrix.workers.tensor_wire import field

LIMIT = 120.0
# Speaks the frames of the C++ program; the directory that it is to load says how it misbehaves.
DOUBLE = r"""#!{python}
import os, select, signal, struct, sys
requests, replies = os.fdopen(int(sys.argv[1]), "rb"), os.fdopen(int(sys.argv[2]), "wb", buffering=0)
signal.signal(signal.SIGUSR1, lambda *_: os.write(2, b"asked what it is doing"))
while True:
    head = requests.read(8)
    if len(head) < 8:
        os._exit(70)
    asked, answer = requests.read(*struct.unpack("<Q", head)), b""
    if b"/abort" in asked:
        os.abort()
    if b"/leave" in asked:
        os._exit(3)
    if b"/half" in asked:
        replies.write(struct.pack("<Q", 100) + b"half of it")
        os.kill(os.getpid(), signal.SIGKILL)
    while b"/hang" in asked:
        signal.pause()
    if b"/slow" in asked:
        gone = select.poll()
        gone.register(requests, 0)
        gone.poll()
    if b"/missing" in asked:
        answer = b"\x18\x05\x22\x07nothing"
    if b"/refuse" in asked:
        answer = b"\x18\x0c\x22\x05no \xffk"
    replies.write(struct.pack("<Q", len(answer)) + answer)
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    program = tmp_path / "double"
    program.write_text(DOUBLE.replace("{python}", sys.executable))
    program.chmod(0o755)
    return [sys.executable, str(programs.FOLDER), "cpp_worker", str(program)]


@pytest.fixture
def worker(command: list[str], tmp_path: Path) -> Iterator[Process]:
    process = Process(command, environment("cpp_worker"), tmp_path, tmp_path / "log")
    yield process
    process.close()


def load(worker: Process, how: str, limit: float = LIMIT) -> dict[str, object]:
    return worker.request({"op": "load", "dir": f"/{how}", "tags": ["serve"]}, limit)


@pytest.mark.parametrize(
    ("how", "status", "error_class", "message"),
    [
        ("missing", "error", "TF_NOT_FOUND", "nothing"),
        ("refuse", "rejected", "TF_UNIMPLEMENTED", "no \N{REPLACEMENT CHARACTER}k"),
    ],
)
def test_a_status_of_tensorflow_is_a_reply(
    worker: Process, how: str, status: str, error_class: str, message: str
) -> None:
    reply = load(worker, how)
    assert (reply["status"], reply["error_class"], reply["message"]) == (
        status,
        error_class,
        message,
    )
    assert worker.request({"op": "hello", "protocol": 1}, LIMIT)["status"] == "ok"


@pytest.mark.parametrize(
    ("how", "error_class"), [("abort", "SIGABRT"), ("leave", "exit 3"), ("half", "SIGKILL")]
)
def test_the_death_of_the_program_is_that_of_the_worker(
    worker: Process, how: str, error_class: str
) -> None:
    with pytest.raises(Crashed) as caught:
        load(worker, how)
    assert caught.value.error_class == error_class


def test_a_program_that_hangs_is_asked_where(worker: Process) -> None:
    assert worker.request({"op": "hello", "protocol": 1}, LIMIT)["status"] == "ok"  # it has started
    with pytest.raises(TimedOut):
        load(worker, "hang", 1.0)
    assert "it is doing" in worker.stderr.read_text()


def test_the_program_ends_with_its_harness_whatever_it_is_busy_with(
    command: list[str], tmp_path: Path
) -> None:
    theirs_in, ours_out = os.pipe()
    with (tmp_path / "err").open("wb") as log:
        settings = {**environment("cpp_worker"), CHANNEL: f"{theirs_in},{log.fileno()}"}
        process = subprocess.Popen(
            command, env=settings, pass_fds=(theirs_in, log.fileno()), stderr=log
        )
    os.close(theirs_in)
    os.write(ours_out, b'{"id": 1, "op": "load", "dir": "/slow", "tags": []}\n')
    deadline = time.monotonic() + LIMIT
    while not (children := psutil.Process(process.pid).children()) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.close(ours_out)
    assert process.wait(LIMIT) == 70
    assert psutil.wait_procs(children, LIMIT)[1] == []


def test_an_interrupted_worker_says_which_signal_it_was(worker: Process) -> None:
    assert worker.request({"op": "hello", "protocol": 1}, LIMIT)["status"] == "ok"
    os.kill(worker.pid, signal.SIGTERM)
    with pytest.raises(Crashed) as caught:
        load(worker, "missing")
    assert caught.value.error_class == "SIGTERM"


# Serving's conventions
# ------------------------------------------------------------------------------------------------


class OddModel:
    """Signatures of the method names that Serving knows, as their serialized protos say it."""

    def __init__(
        self,
        **methods: tuple[str, dict[str, tuple[int, list[int]]], dict[str, tuple[int, list[int]]]],
    ) -> None:
        self.signature_defs = {
            key: (
                self._side(1, given)
                + self._side(2, produced)
                + field(3, f"tensorflow/serving/{method}".encode())
            )
            for key, (method, given, produced) in methods.items()
        }
        self.signatures = signature_wire.described(self.signature_defs)

    @staticmethod
    def _side(number: int, infos: dict[str, tuple[int, list[int]]]) -> bytes:
        out = b""
        for name, (dtype, shape) in infos.items():
            dims = b"".join(field(2, field(1, size % (1 << 64))) for size in shape)
            info = field(1, f"{name}:0".encode()) + field(2, dtype) + field(3, dims)
            out += field(number, field(1, name.encode()) + field(2, info))
        return out


FLOAT, STRING, INT64 = 1, 7, 9
EXAMPLES = {"inputs": (STRING, [-1])}
CLASSES = {"classes": (STRING, [-1, 3]), "scores": (FLOAT, [-1, 3])}


def test_signatures_serving_would_refuse_are_marked() -> None:
    model = OddModel(
        classify=("classify", EXAMPLES, CLASSES),
        regress=("regress", EXAMPLES, {"outputs": (FLOAT, [-1, 1])}),
        predict=("predict", {"x": (FLOAT, [])}, {"y": (FLOAT, [])}),
        dense=("classify", {"x": (FLOAT, [-1, 4])}, CLASSES),
        scalar=("classify", {"inputs": (STRING, [])}, CLASSES),
        numbers=("regress", {"inputs": (FLOAT, [-1])}, {"outputs": (FLOAT, [-1])}),
        integers=("regress", EXAMPLES, {"outputs": (INT64, [-1])}),
        square=("regress", EXAMPLES, {"outputs": (FLOAT, [-1, 2])}),
        named=("regress", EXAMPLES, {"y": (FLOAT, [-1])}),
        many=("classify", EXAMPLES, {**CLASSES, "more": (FLOAT, [-1])}),
        flat=("classify", EXAMPLES, {"scores": (FLOAT, [-1])}),
        words=("classify", EXAMPLES, {"scores": (STRING, [-1, 3])}),
        other=("classify", EXAMPLES, {"y": (FLOAT, [-1, 3])}),
    )
    plain = signature_wire.describe(model.signatures)
    signatures = serving_methods.marked(signature_wire.describe(model.signatures), model)
    reasons = {
        key: signature["method"]["reason"]
        for key, signature in signatures.items()
        if "method" in signature
    }
    allowed = {"classify", "regress"}
    assert {key for key, reason in reasons.items() if reason is None} == allowed
    facts = {
        "dense": "['x']",
        "scalar": "0 dimensions",
        "numbers": "float32",
        "integers": "int64",
        "square": "[batch, 1]",
        "named": "['y']",
        "many": "3 outputs",
        "flat": "[batch, classes]",
        "words": "'scores' is string",
        "other": "'classes' nor 'scores'",
    }
    assert set(facts) == set(reasons) - allowed
    for key, fact in facts.items():
        assert fact in reasons[key], key
    assert compare_signatures(plain, signatures) == []  # the member disturbs no comparison
    told = unconventional(["serve"], signatures)
    assert set(told) == {f"serve:{key}" for key in reasons if reasons[key]}
    assert (
        told["serve:flat"].startswith("tensorflow/serving/classify: ")
        and "'scores'" in told["serve:flat"]
    )
    assert unconventional(["serve"], plain) == {}
