"""`savedmodel-compat run`: inputs from texts and files, outputs to files, exit codes. Everything
runs without TensorFlow.
"""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner
from model_edits import fixture

from savedmodel_common import tensors
from savedmodel_compat.cli import main

HALF = (str(fixture("half_plus_two")), "--tags", "serve")


def run(*arguments, code=0):
    done = CliRunner().invoke(main, ["run", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


def answer(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


def given(tmp_path, kind):
    """Return an ``--input`` whose value is [[2], [4]]."""
    array, path = np.float32([[2], [4]]), tmp_path / f"x.{kind.partition(' ')[0]}"
    if kind == "text":
        return "x=[[2], [4]]"
    if kind == "npy":
        np.save(path, array)
    elif kind.startswith("npz"):
        np.savez(path, x=array)
    elif kind == "json":
        path.write_text("[[2], [4.0]]")
    elif kind == "json of all":
        path.write_text('{"x": {"dtype": "float32", "shape": [2, 1], "values": [2, 4]}}')
    return str(path) if kind.endswith("of all") else f"x={path}"


@pytest.mark.parametrize("kind", ["text", "npy", "npz", "npz of all", "json", "json of all"])
def test_an_input_comes_from_a_text_or_a_file(kind, tmp_path):
    found = answer(*HALF, "--input", given(tmp_path, kind))
    assert found == {"y": {"dtype": "float32", "shape": [2, 1], "values": [3.0, 4.0]}}


def test_the_recorded_request_of_an_artifact_is_an_input(tmp_path):
    io = fixture("half_plus_two").parent / "io"
    out = tmp_path / "answer.npz"
    run(*HALF, "--input", io / "serving_default-0.in.npz", "--out", out)
    expected = tensors.load(io / "serving_default-0.out.npz")
    with np.load(out) as written:
        assert written.files == list(expected)
        np.testing.assert_array_equal(written["y"], expected["y"].array)


def test_an_output_is_an_input_of_the_same_form(tmp_path):
    out = tmp_path / "answer.json"
    run(*HALF, "--input", "x=[[0.1]]", "--out", out)
    written = json.loads(out.read_text())
    assert written["y"]["values"] == [2.05]
    again = tmp_path / "again.json"
    again.write_text(json.dumps({"x": written["y"]}))
    assert answer(*HALF, "--input", again)["y"]["values"] == [3.025]


def test_strings_are_written_as_json_and_refused_as_npz(tmp_path):
    model = fixture("string_ops")
    spec = json.loads((model.parent / "io" / "io.json").read_text())
    request = spec["requests"][0]
    inputs = model.parent / "io" / request["inputs"]
    out = tmp_path / "out.npz"
    arguments = (model, request["signature"], "--input", inputs)
    assert any(value["dtype"] == "string" for value in answer(*arguments).values())
    assert "type for string" in run(*arguments, "--out", out, code=1).stderr
    assert not out.exists()


def test_without_json_the_answer_is_for_people():
    assert run(*HALF, "--input", "x=[[4]]").stdout == "y: float32[1, 1]\n[[4.]]\n"


def test_a_call_stops_at_a_node():
    until = answer(*HALF, "--input", "x=[[4]]", "--until", "Mul")
    assert until == {"Mul:0": {"dtype": "float32", "shape": [1, 1], "values": [2.0]}}
    named = answer(*HALF, "--input", "x=[[4]]", "--until", "signature_serving_default:Mul")
    assert named == until


def test_each_node_of_the_call_is_traced():
    traced = run(*HALF, "--input", "x=[[4]]", "--trace").stderr.splitlines()
    assert "Mul (Mul) -> float32[1, 1] [2.0]" in traced
    assert not any("Restore" in line for line in traced)


def test_double_precision():
    single = answer(*HALF, "--input", "x=[[0.1]]")["y"]
    double = answer(*HALF, "--input", "x=[[0.1]]", "--precision", "float64")["y"]
    assert (single["dtype"], double["dtype"]) == ("float32", "float64")
    assert double["values"] == [2.05]


def test_the_only_signature_is_chosen_and_several_are_listed():
    assert answer(fixture("stateful_counter"), "get_counter")
    several = run(fixture("stateful_counter"), code=64).stderr
    assert "incr_counter" in several


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["other"], "no signature 'other'"),
        (["--input", "y=1"], "no input 'y'; its inputs: x (float32[?, 1])"),
        (["--input", "x=[[1]]", "--input", "x=[[1]]"], "given twice"),
        ([], "the input 'x' is missing"),
        (["--input", 'x=["a"]'], "it is given as text"),
        (["--input", "x=[[1"], "neither JSON nor a file"),
        (["--input", "x=[[1]]", "--until", "Mull"], "Did you mean Mul?"),
        (["--input", "x=[1]"], "has the shape [1], not float32[?, 1]"),
        (["--input", "x=absent.npy"], "absent.npy: No such file or directory"),
        (["--input", "x=[[1]]", "--out", "y.txt"], "ends in none of .npz, .json"),
        (["--input", "x"], "neither NAME=VALUE nor an .npz or .json file"),
    ],
)
def test_a_wrong_request_is_wrong_usage(arguments, said):
    assert said in run(*HALF, *arguments, code=64).stderr


@pytest.mark.parametrize("value", ["[1.5]", "[300]", "[true]", '["1"]'])
def test_no_value_of_an_integer_input_changes_silently(value):
    from savedmodel_tools.evaluation import inputs

    with pytest.raises(inputs.InputError):
        inputs.fitted("n", json.loads(value), np.dtype("int8"), (-1,))


def test_types_that_numpy_lacks(tmp_path):
    from savedmodel_tools.evaluation import inputs

    array = np.asarray([1.5, -2], ml_dtypes.bfloat16)
    np.save(tmp_path / "x.npy", array)
    specs = {"x": (array.dtype, (-1,))}
    for text in (f"x={tmp_path / 'x.npy'}", "x=[1.5, -2]"):
        np.testing.assert_array_equal(inputs.parse([text], specs)["x"], array)


def test_a_broken_file_is_named(tmp_path):
    for name, content in {"a.npy": b"\x93NUMPY", "b.npz": b"PK", "c.json": b"{"}.items():
        (tmp_path / name).write_bytes(content)
        assert name in run(*HALF, "--input", f"x={tmp_path / name}", code=64).stderr


@pytest.mark.parametrize(
    "model, arguments, code, said",
    [
        ("py_func", ("serving_default", "--input", "x=[1]"), 3, "runs Python of another process"),
        ("py_func", ("absent",), 64, "no signature"),
    ],
)
def test_what_is_not_evaluated_is_incomplete(model, arguments, code, said):
    done = run(fixture(model), *arguments, code=code)
    assert said in done.stderr


def test_a_broken_model_is_refused(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"\xff\xff\xff\x01")
    run(tmp_path, code=1)
    (tmp_path / "none").mkdir()
    run(tmp_path / "none", code=64)
    run(tmp_path / "absent", code=64)


def test_start_to_answer_is_short_and_without_tensorflow():
    """The limit is CPU time, twice the aim of 0.4 s: other processes use this machine too."""
    program = (
        "import sys\nfrom savedmodel_compat.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as error:\n    assert not error.code\n"
        "unneeded = {'tensorflow', 'keras', 'scipy', 'compat_matrix.requests.questions'}\n"
        "assert not unneeded & set(sys.modules), unneeded & set(sys.modules)\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", program, "run", *HALF, "--input", "x=[[2]]"],
        check=True,
        capture_output=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        cwd=Path(__file__).parents[2],
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.8
