"""Certificates: they come back as they were; a changed or hostile one is refused."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from savedmodel_common.tensors import from_numpy
from savedmodel_prove import certificate as certificates
from savedmodel_prove.certificate import Certificate, CertificateError, Node, files_of
from savedmodel_prove.records import CONVERTED, EXACT, ORIGINAL, Answer, Record


@pytest.fixture
def proved(tmp_path):
    """The path of a certificate beside its two models."""
    model = tmp_path / "model"
    (model / "variables").mkdir(parents=True)
    (model / "saved_model.pb").write_bytes(b"graph")
    (model / "variables" / "variables.index").write_bytes(b"index")
    (tmp_path / "model.onnx").write_bytes(b"converted")
    tensors = {
        "y": from_numpy(np.float32([1, np.nan, -np.inf])),
        "text": from_numpy(np.array([b"a", b"\xff"], object)),
        "n": from_numpy(np.int64([3])),
    }
    answers = {side: Answer(tensors) for side in (ORIGINAL, CONVERTED, EXACT)}
    record = Record(
        "random 0", {"x": from_numpy(np.float32([0.1]))}, answers, {"y": {"threads": 1e-7}}
    )
    refused = Record("zeros", {}, {ORIGINAL: Answer(tensors), CONVERTED: Answer(error="no rows")})
    made = Certificate(
        files_of(model, tmp_path),
        files_of(tmp_path / "model.onnx", tmp_path),
        ("serve",),
        "serving_default",
        7,
        {ORIGINAL: "TensorFlow"},
        {ORIGINAL: {"tensorflow": "2.21.0"}},
        [record, refused],
        {"y": [Node("dense/MatMul", "MatMul", "dense/MatMul:0", "random 0", 0.5, 1e-6)]},
        ["a note"],
    )
    path = tmp_path / "certificate.json"
    certificates.write(made, path)
    return path


def test_a_certificate_comes_back(proved):
    found = certificates.read(proved)
    assert (found.signature, found.tags, found.seed) == ("serving_default", ("serve",), 7)
    answers = found.records[0].answers[CONVERTED].outputs
    np.testing.assert_array_equal(answers["y"].array, np.float32([1, np.nan, -np.inf]))
    assert answers["text"].array.tolist() == [b"a", b"\xff"]
    assert found.nodes["y"][0].node == "dense/MatMul"
    assert found.records[1].answers[CONVERTED].error == "no rows"
    assert certificates.changed(found, proved.parent) is None


def test_a_large_input_is_a_hash(proved):
    found = certificates.read(proved)
    large = Record("large", {"x": from_numpy(np.zeros(5000, np.float32))}, found.records[0].answers)
    certificates.write(Certificate(**{**vars(found), "records": [large]}), proved)
    (record,) = certificates.read(proved).records
    assert record.inputs == {}
    assert "sha256" in json.loads(proved.read_text())["records"][0]["inputs"]["x"]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model/saved_model.pb", b"other"),
        ("model/saved_model.pb", b"longer graph"),
        ("model/variables/variables.index", None),
        ("model/assets", b"more"),
        ("model.onnx", b"konverted"),
        ("model.onnx", None),
    ],
)
def test_changed_files_are_noticed(proved, file, content):
    path = proved.parent / file
    path.unlink() if content is None else path.write_bytes(content)
    reason = certificates.changed(certificates.read(proved), proved.parent)
    assert Path(file).name in reason


@pytest.mark.parametrize("name", ["model.onnx.data", "model.onnx_data", "model.bin"])
def test_the_weights_beside_a_file_belong_to_it(proved, name):
    found = certificates.read(proved)
    weights = proved.parent / name
    weights.write_bytes(b"weights")
    assert "was added" in certificates.changed(found, proved.parent)
    converted = files_of(proved.parent / "model.onnx", proved.parent)
    found = Certificate(**{**vars(found), "converted": converted})
    assert certificates.changed(found, proved.parent) is None
    weights.write_bytes(b"veights")
    assert name in certificates.changed(found, proved.parent)


def signed(proved, change):
    """Change the certificate and give it the digest that fits."""
    document = json.loads(proved.read_text())
    document.pop("digest")
    change(document)
    document["digest"] = certificates._digest(document)
    proved.write_text(json.dumps(document))


def deep(document):
    document["notes"] = []
    for _ in range(400):
        document["notes"] = [document["notes"]]


HOSTILE = {
    "another schema": lambda d: d.update(schema=2),
    "no records": lambda d: d.pop("records"),
    "records of another kind": lambda d: d.update(records={"a": 1}),
    "too many records": lambda d: d.update(records=[{}] * 10_001),
    "a record that is a text": lambda d: d.update(records=["a"]),
    "an unknown side": lambda d: d["records"][0]["answers"].update(friend={"outputs": {}, "error": ""}),
    "an unknown dtype": lambda d: d["records"][0]["answers"][CONVERTED]["outputs"]["y"].update(dtype="object"),
    "a shape that does not fit": lambda d: d["records"][0]["answers"][CONVERTED]["outputs"]["y"].update(shape=[10**30]),
    "a negative shape": lambda d: d["records"][0]["answers"][CONVERTED]["outputs"]["n"].update(shape=[-1]),
    "a number out of range": lambda d: d["records"][0]["answers"][CONVERTED]["outputs"]["n"].update(values=[2**70]),
    "noise that is a text": lambda d: d["records"][0]["spread"]["y"].update(threads="1"),
    "negative noise": lambda d: d["records"][0]["spread"]["y"].update(threads=-1),
    "a path that leads out": lambda d: d["original"]["files"].update({"../secret": [1, "00"]}),
    "an absolute path": lambda d: d["original"]["files"].update({"/etc/passwd": [1, "00"]}),
    "a file without a size": lambda d: d["original"]["files"].update(a=["00"]),
    "a size that is a text": lambda d: d["original"]["files"].update(a=["1", "00"]),
    "other verdicts": lambda d: d["verdicts"][0].update(kind="differs"),
    "no verdicts": lambda d: d.update(verdicts=[]),
    "a node without an op": lambda d: d["nodes"]["y"][0].pop("op"),
    "no node": lambda d: d["nodes"].update(y=[]),
    "a seed that is a list": lambda d: d.update(seed=[1]),
    "deep nesting": deep,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_certificates_are_refused(proved, name):
    signed(proved, HOSTILE[name])
    with pytest.raises(CertificateError, match=r"certificate\.json"):
        certificates.read(proved)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{}", '{"schema": 1}', "[" * 100_000, '{"schema": NaN}', "\ud800"]
)
def test_files_that_are_no_certificates(proved, text):
    proved.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(CertificateError):
        certificates.read(proved)


def test_every_changed_byte_is_noticed(proved):
    content = bytearray(proved.read_bytes())
    accepted = []
    for position in range(0, len(content), 41):
        changed = bytearray(content)
        changed[position] ^= 1
        proved.write_bytes(bytes(changed))
        try:
            certificates.read(proved)
        except CertificateError:
            continue
        accepted.append(json_equal(content, changed))
    assert all(accepted)


def json_equal(one, other):
    """Whether two texts have the same content, as with other white space."""
    try:
        return json.loads(one) == json.loads(other)
    except ValueError:
        return False


def test_a_pipe_in_place_of_a_file_is_not_opened(proved):
    found = certificates.read(proved)
    (proved.parent / "model.onnx").unlink()
    os.mkfifo(proved.parent / "model.onnx")
    assert "plain file" in certificates.changed(found, proved.parent)


def test_a_certificate_about_the_whole_disk_ends_at_the_first_file(proved):
    signed(proved, lambda document: document["original"].update(path="/"))
    began = time.monotonic()
    reason = certificates.changed(certificates.read(proved), proved.parent)
    assert "was added" in reason or "folders" in reason
    assert time.monotonic() - began < 10


def test_a_check_is_fast_and_needs_no_tensorflow(proved):
    program = (
        "import sys; from savedmodel_compat.cli import main;"
        "sys.modules['tensorflow'] = None; main(['prove', '--check', sys.argv[1]])"
    )
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program, str(proved)], capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    assert seconds < 10  # under one second on an idle machine
