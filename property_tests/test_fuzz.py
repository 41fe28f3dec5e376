"""Every parser on some hundred bytes nobody wrote, and on all that once broke one; `python -m
property_tests.fuzz` runs more.
"""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from property_tests.fuzz.loop import Fuzzer, run
from property_tests.fuzz.targets import TARGETS, Target
from property_tests.profiles import NAME, NIGHTLY

pytestmark = [
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="processes are forked and limited"
    ),
    pytest.mark.filterwarnings(
        "ignore:This process .* is multi-threaded:DeprecationWarning"
    ),  # the child starts no thread
]
CORPUS = Path(__file__).parent / "fuzz" / "corpus"
SECONDS = 10.0  # the contract says one; the machines that run this are shared


@pytest.mark.parametrize("name", TARGETS)
def test_a_named_error_or_a_correct_result(name):
    outcome = run(TARGETS[name], 200, 20251121, SECONDS)
    assert outcome.findings == {}
    assert sum(outcome.answers.values()) == 200
    assert (
        outcome.answers["accepted"] and len(outcome.endings) > 1
    )  # the inputs reach what is behind the first check


@pytest.mark.tensorflow
@pytest.mark.skipif(not find_spec("tensorflow"), reason="no TensorFlow")
def test_no_model_ends_the_process_that_loads_it(tmp_path):
    """Real models with hostile shapes, dtypes and tensors, loaded with TensorFlow.

    From a process of its own: a child that is forked where TensorFlow's threads run waits for them
    for ever.
    """
    runs = 100_000 if NAME == NIGHTLY else 500  # a tenth of a second each
    words = [
        "live_load",
        "--runs",
        str(runs),
        "--seed",
        "20261122",
        "--seconds",
        "60",
        "--out",
        str(tmp_path),
    ]
    command = [sys.executable, "-m", "property_tests.fuzz", *words]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        errors="replace",  # TensorFlow's log quotes the bytes of hostile names
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert (
        f"live_load: {runs} executions" in done.stdout and " 0 findings; accepted " in done.stdout
    )
    assert "ShapeError" in done.stdout


@pytest.mark.parametrize(
    "name", sorted(path.name for path in CORPUS.iterdir() if path.name in TARGETS)
)
def test_what_once_broke_a_parser(name):
    inputs = [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]
    assert run(TARGETS[name], 0, 0, SECONDS, inputs).findings == {}


def test_the_same_seed_makes_the_same_inputs():
    for target in (
        TARGETS["bundle"],
        TARGETS["saved_model_pb"],
        TARGETS["tensor_file"],
        TARGETS["saved_model_cpb"],
    ):
        first, second = Fuzzer(target, 5), Fuzzer(target, 5)
        assert [first.make(index) for index in range(100, 130)] == [
            second.make(index) for index in range(100, 130)
        ]
        assert first.make(100) != Fuzzer(target, 6).make(100)


def dies(folder):
    os.kill(os.getpid(), signal.SIGKILL)


def hoards(folder):
    return bytearray(1 << 29)


def dawdles(folder):
    end = time.process_time() + 1.1
    while time.process_time() < end:
        pass


def looks_around(folder):
    return Path("/etc/hostname").exists() and Path("/etc/hostname").read_text()


def writes(folder):
    (folder / "new").write_text("x")


def stumbles(folder):
    raise KeyError("oops")


@pytest.mark.parametrize(
    ("parser", "words"),
    [
        (dies, "SIGKILL"),
        (hoards, "more memory"),
        (dawdles, "CPU time"),
        (looks_around, "opens /etc/hostname"),
        (writes, "writes to"),
        (stumbles, "KeyError in test_fuzz.py:stumbles"),
    ],
)
def test_a_parser_that_breaks_the_contract_is_found(parser, words):
    """The second input is the one; what is before and behind it is run all the same."""

    def parse(folder):
        if json.loads((folder / "x").read_bytes()) == 1:
            parser(folder)

    target = Target(
        "broken",
        "x",
        lambda: [b"0"],
        lambda seeds: lambda rng, data: data,
        parse,
        lambda: (ValueError,),
    )
    outcome = run(target, 0, 0, 1.0, [b"0", b"1", b"2", b"3"])
    ((what, data),) = outcome.findings.items()
    assert words in what and data == b"1"
    assert outcome.answers["accepted"] >= 2
