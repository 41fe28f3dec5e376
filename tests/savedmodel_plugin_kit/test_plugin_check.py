"""``plugin-check``: a right consumer passes, and each mistake is called by its name.

Needs no TensorFlow.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from compat_matrix.plugins import found
from savedmodel_compat.cli import main
from savedmodel_plugin_kit.checks import CHECKS
from savedmodel_plugin_kit.rules import RULES
from savedmodel_plugin_kit.run import (
    FAILED,
    NOT_ASKED,
    PASSED,
    Settings,
    check,
)

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "savedmodel_plugin_kit" / "samples"

# mistake -> the check that finds it, what it says
MISTAKES = {
    "wrong_id": ("hello", "has the id 1, which is not that of the request"),
    "id_as_text": ("hello", "as text: it is a number"),
    "prints_to_stdout": ("hello", "printed to stdout; it belongs on the second descriptor"),
    "chats_on_the_channel": ("hello", "a line on the channel is not JSON"),
    "says_more": ("unknown-op", r"behind the reply|without being asked: b'\{\"progress\"|no reply to|has no id"),
    "no_versions": ("hello", "the reply to hello has no member 'versions'"),
    "misspelt_capability": ("hello", "capabilities has fetches; the protocol has"),
    "any_protocol": ("other-protocol", "hello of protocol 999 is answered with ok, not with unsupported"),
    "unknown_is_error": ("unknown-op", "an unknown op is answered with error, not with unsupported"),
    "unknown_hangs": ("unknown-op", "no reply to 'dance' within"),
    "swallows_errors": ("missing-model", "a model that is absent is answered with ok: an error must be reported, not swallowed"),
    "dies_of_errors": ("missing-model", "ended with status 1 while it was asked to 'load'"),
    "no_message": ("missing-model", "a reply with status 'error' has message '': it must say what went wrong"),
    "null_handle": ("half-plus-two", "member 'handle' of the reply to load is '1', not an integer"),
    "any_tags": ("wrong-tags", "load with the tags .* is answered with ok"),
    "names_outputs_by_tensor": ("half-plus-two", "the outputs are called y:0, the signature calls them y"),
    "nothing_written": ("half-plus-two", "the file that `outputs` names is not there"),
    "plain_npz": ("half-plus-two", "has no member meta.npy"),
    "ignores_key": ("signature-key", "this is the answer to the signature 'same': the key in the request is ignored"),
    "swaps_outputs": ("signature-key", "outputs 'a' and 'b' are swapped"),
    "keeps_state": ("no-state", "it keeps something between requests"),
    "returns_records": ("wrong-records", "the answer that is recorded, which is wrong on purpose"),
    "looks_beside_the_model": ("wrong-records", "the answer that is recorded, which is wrong on purpose"),
    "one_handle": ("many-models", "loaded models share a handle"),
    "close_does_nothing": ("close", "a call with a handle that is closed is answered with ok"),
    "remembers_inputs": ("wrong-inputs", "a call without the input 'x' is answered with ok"),
    "ignores_further_inputs": ("wrong-inputs", "a call with the further input 'zzz' is answered with ok"),
    "casts_inputs": ("wrong-inputs", "a call with input 'x' of int64, which is float32 in the signature, is answered with ok"),
    "transposes": ("dtypes", r"has the shape \[3, 2\], not \[2, 3\]: it was transposed"),
    "transposes_data": ("dtypes", "the elements are in another order"),
    "floats_as_text": ("dtypes", "has the dtype string, not float16: it was printed as text"),
    "big_endian": ("dtypes", r"is stored big-endian \(>f2\)"),
    "swaps_bytes": ("dtypes", "they are big-endian, under a header that says little-endian"),
    "no_scalars": ("dtypes", r"has the shape \[1\], not \[\]: a scalar was made a list of one"),
    "cuts_at_nul": ("dtypes", "the string was cut at a NUL"),
    "text_strings": ("dtypes", "strings are bytes, not UTF-8 text"),
    "one_nan": ("dtypes", "the payload of a NaN was lost"),
    "no_minus_zero": ("dtypes", "the sign of -0.0 was lost"),
    "all_float32": ("dtypes", "float64, .*has the dtype float32, not float64: it was converted"),
    "int64_through_double": ("dtypes", "int64, the least and the greatest number"),
    "dtypes_of_numpy": ("signatures", "'a' has the dtype <f4, expected float32"),
    "one_shape": ("signatures", r"'a' has the shape \[1\], expected None"),
    "falls_back": ("wrong-signature", "the signature 'no_such_key', which the model has not, is answered with ok"),
    "short_lines": ("large-messages", "a request line of 4 MiB is refused"),
    "dies_of_old_age": ("many-requests", r"after \d+ good requests: the worker ended .*: out of handles"),
    "claims_functions": ("functions", "hello claims functions, and request multiply-0 is unsupported"),
    "answers_functions": ("functions", "it does not claim functions: call must be unsupported, and is ok"),
    "one_thread_answers": ("threads", "in thread 2 of 4: the reply is ok, but the file that `outputs` names is not there"),
    "forgets_variables": ("variables", "5 of 5 values of the checkpoint are not among the consumer's variables"),
    "fetches_in_another_order": ("fetch", "variable a:0: the scalar is 2.0, expected 0.5"),
    "refuses_everything": ("understood", "it refuses every model of these checks"),
    "writes_into_model": ("untouched", "it has changed files of the model"),
    "claims_resave": ("resave", "resave is answered with unsupported"),
    "floods": ("quiet", "MiB to stdout and stderr"),
    "stays_after_bye": ("bye", "after bye the process still runs"),
    "hangs_at_the_end": ("end-of-channel", "it hangs at the end of its input"),
    "ignores_sigterm": ("sigterm", "it ignores the signal"),
}  # fmt: skip
HANGS = {"unknown_hangs": 1.0}  # of those that never answer; a right step has all the time there is
PATIENT = ("--large", "1", "--limit", "600", "--grace", "120")
ENDS = ("stays_after_bye", "hangs_at_the_end", "ignores_sigterm")


def outcome(mistake: str, only: str):
    program = found.command_of(
        f"{sys.executable} {ROOT / 'tests' / 'support' / 'wrong_plugins.py'} {mistake}"
    )
    settings = Settings(HANGS.get(mistake, 600.0), 0.5 if mistake in ENDS else 120.0, 1, [only])
    return next(one for one in check(program, settings) if one.state != PASSED)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_called_by_its_name(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    only, words = MISTAKES[mistake]
    seen = outcome(mistake, only)
    assert (seen.check, seen.state) == (only, FAILED) or (mistake, seen.check) == (
        "says_more",
        "hello",
    ), seen
    assert re.search(words, seen.message), seen.message
    record = seen.to_json()
    assert record["asks"] == RULES[record["rule"]] and record["where"].startswith(
        "docs/exporters/protocol.md"
    )
    assert record["sent"] or mistake == "floods"


@pytest.fixture(scope="module")
def numpy_outcomes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        return check(
            found.command_of(f"{sys.executable} {SAMPLES / 'numpy_consumer.py'}"),
            Settings(600.0, 120.0, 1),
        )


def test_the_python_sample_passes_everything(numpy_outcomes) -> None:
    assert [(one.check, one.message) for one in numpy_outcomes if one.state != PASSED] == []
    assert len(numpy_outcomes) == len(CHECKS)
    (dtypes,) = [one for one in numpy_outcomes if one.check == "dtypes"]
    assert "30 dtypes" in dtypes.notes[0]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C sample, compiled by whatever compiler there is."""
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if compiler is None:
        pytest.skip("no C compiler: the C sample is not tested")
    binary = tmp_path_factory.mktemp("toy") / "toy_consumer"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1"]
    subprocess.run(
        [compiler, *flags, "-o", str(binary), str(SAMPLES / "toy_consumer.c")], check=True
    )
    return binary


def test_the_c_sample_keeps_the_rules(toy: Path) -> None:
    done = CliRunner().invoke(main, ["plugin-check", str(toy), "--json", *PATIENT])
    record = json.loads(done.stdout)
    assert done.exit_code == record["exit_code"] == 0, done.output
    states = {one["check"]: one["state"] for one in record["checks"]}
    assert {name for name, state in states.items() if state != PASSED} == {
        "wrong-tags", "signature-key", "dtypes", "large-messages",
    }  # fmt: skip
    assert set(states.values()) == {PASSED, NOT_ASKED}


def test_a_right_plug_in_passes_a_single_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the one about all others."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    program = found.command_of(f"{sys.executable} {SAMPLES / 'numpy_consumer.py'}")
    outcomes = check(program, Settings(600.0, 120.0, 1, ["understood"]))
    assert [(one.check, one.state) for one in outcomes] == [
        ("hello", PASSED),
        ("understood", PASSED),
    ]


def test_every_check_has_a_mistake_and_rules() -> None:
    """A check that no wrong plug-in fails may check nothing."""
    proved = {name for name, _ in MISTAKES.values()}
    assert proved == {one.name for one in CHECKS}
    for one in CHECKS:
        assert one.summary and set(one.rules) <= set(RULES)


def test_the_samples_come_along(tmp_path: Path) -> None:
    """With the package, not with the repository alone; a file that is there stays."""
    for code in (0, 4):
        done = CliRunner().invoke(main, ["plugin-check", "--samples", str(tmp_path)])
        assert done.exit_code == code, done.output
    assert "File exists" in done.output
    for path in SAMPLES.iterdir():
        assert path.is_dir() or (tmp_path / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["plugin-check"], 64, "Missing argument 'CMD'"),
        (["plugin-check", "true", "--check", "nothing"], 64, "no check is called nothing"),
        (["plugin-check", "'"], 64, "is not a command line"),
        (["plugin-check", "./not-there"], 1, "the command does not start"),
        (["plugin-check", "/bin/false"], 1, "ended with status 1"),
        (["plugin-check", "--list"], 0, "P-21"),
    ],
)
def test_exit_codes(words: list[str], code: int, said: str) -> None:
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, said in done.output) == (code, True), done.output
