"""`prove` on TFLite, Keras and OpenVINO files, and the converters of `--with`."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from model_edits import fixture
from prove_environments import interpreter

from savedmodel_compat.cli import main

DATA = Path(__file__).parents[1] / "data" / "prove"
MODEL = DATA / "model"
FINE = {"equal bits", "within the model's own noise"}


def prove(folder, original, converted, *more, code=0):
    """The document of a proof without TensorFlow."""
    out = folder / "certificate.json"
    options = ["--without-tensorflow", "--random", 1, "--out", out, *more]
    arguments = ["prove", *map(str, [original, converted, *options])]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == code, done.output
    return json.loads(out.read_text()) if out.exists() else done.output


def kinds(document):
    return {verdict["kind"] for verdict in document["verdicts"]}


@pytest.fixture(scope="module")
def tensorflow():
    return interpreter("tensorflow.txt")


@pytest.fixture(scope="module")
def keras_files(tensorflow, tmp_path_factory):
    folder = tmp_path_factory.mktemp("keras")
    script = Path(__file__).with_name("make_keras.py")
    subprocess.run([str(tensorflow), str(script), str(folder)], check=True, capture_output=True)
    return folder


def test_a_tflite_file_answers_as_its_original(tensorflow, tmp_path):
    document = prove(tmp_path, MODEL, DATA / "model.tflite", "--python", tensorflow)
    assert kinds(document) <= FINE
    assert "litert" in document["versions"]["converted"]


def test_a_fault_in_a_tflite_file_is_caught(tensorflow, tmp_path):
    content = bytearray((DATA / "model.tflite").read_bytes())
    bound = bytes.fromhex("0000c0bf")  # -1.5, of the clip
    assert content.count(bound) == 1
    place = content.index(bound)
    content[place : place + 4] = bytes.fromhex("000080bf")
    (tmp_path / "wrong.tflite").write_bytes(content)
    document = prove(tmp_path, MODEL, tmp_path / "wrong.tflite", "--python", tensorflow, code=1)
    assert "differs" in kinds(document)
    named = {parting[0]["node"] for parting in document["nodes"].values()}
    assert named <= {"clip", "clip/y"}


def test_keras_files(keras_files, tensorflow, tmp_path):
    original = keras_files / "model"
    document = prove(tmp_path, original, keras_files / "model.keras", "--python", tensorflow)
    assert kinds(document) <= FINE
    wrong = keras_files / "wrong.keras"
    assert "differs" in kinds(prove(tmp_path, original, wrong, "--python", tensorflow, code=1))


def test_openvino_ir(tmp_path):
    python = interpreter("openvino.txt")
    script = Path(__file__).with_name("make_ir.py")
    subprocess.run(
        [str(python), str(script), str(DATA / "model.onnx"), str(tmp_path)],
        check=True,
        capture_output=True,
    )
    document = prove(tmp_path, MODEL, tmp_path / "model.xml", "--python", python)
    assert kinds(document) <= FINE
    assert sorted(document["converted"]["files"]) == ["", "model.bin"]
    document = prove(tmp_path, MODEL, tmp_path / "wrong.xml", "--python", python, code=1)
    assert "differs" in kinds(document)
    named = {parting[0]["node"] for parting in document["nodes"].values()}
    assert named == {"stem/ReadVariableOp"}  # the first weight that is rounded


def test_litert_converts_first(tensorflow, tmp_path):
    out = tmp_path / "new.tflite"
    document = prove(tmp_path, MODEL, out, "--with", "litert", "--python", tensorflow)
    assert out.is_file()
    assert kinds(document) <= FINE


@pytest.mark.parametrize(
    ("case", "signature"), [("conv_batch_norm", "serving_default"), ("cond_case", "case")]
)
def test_openvino_converts_the_signature_that_is_asked(case, signature, tmp_path):
    python, out = interpreter("openvino.txt"), tmp_path / "new.xml"
    more = ["--with", "openvino", "--signature", signature, "--python", python]
    document = prove(tmp_path, fixture(case), out, *more)
    assert kinds(document) <= FINE
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "certificate.json",
        "new.bin",
        "new.xml",
    ]
    out.unlink()
    (tmp_path / "certificate.json").unlink()
    assert "new.bin exists" in prove(tmp_path, fixture(case), out, *more, code=64)


def test_a_converter_writes_a_new_file_of_its_kind(tmp_path):
    there = tmp_path / "there.onnx"
    there.write_bytes(b"")
    assert "exists" in prove(tmp_path, MODEL, there, "--with", "tf2onnx", code=64)
    assert ".onnx" in prove(tmp_path, MODEL, tmp_path / "a.tflite", "--with", "tf2onnx", code=64)


def test_a_converter_that_fails_is_not_comparable(tmp_path):
    false = Path("/bin/false")
    more = ["--with", "tf2onnx", "--python", false]
    output = prove(tmp_path, MODEL, tmp_path / "a.onnx", *more, code=3)
    assert "'serving_default'" in output
    assert not (tmp_path / "a.onnx").exists()
