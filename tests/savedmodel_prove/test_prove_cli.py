"""`savedmodel-compat prove` of SavedModels, answered by the evaluator: no TensorFlow is needed."""

import json
import shutil

import pytest
from click.testing import CliRunner
from model_edits import copy_checkpoint, edited, fixture, node

from savedmodel_common import tensors
from savedmodel_compat.cli import main
from savedmodel_tools.contract import file as contract_file
from savedmodel_tools.contract.form import Answers, Contract, Request, contract_of


def prove(*arguments, code=0):
    done = CliRunner().invoke(main, ["prove", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


def verdicts(tmp_path, original, converted, *more, code=0):
    """The verdicts and first nodes of a proof without TensorFlow."""
    out = tmp_path / "certificate.json"
    options = ["--without-tensorflow", "--out", out, "--random", 1]
    prove(original, converted, *options, *more, code=code)
    document = json.loads(out.read_text())
    kinds = {verdict["output"]: verdict["kind"] for verdict in document["verdicts"]}
    return kinds, document


CONV = fixture("conv_batch_norm")


def test_a_copy_has_equal_bits_and_its_certificate_holds(tmp_path):
    copy = shutil.copytree(CONV, tmp_path / "copy")
    kinds, document = verdicts(tmp_path, CONV, copy)
    assert kinds == {"y": "equal bits"}
    assert {record["name"] for record in document["records"]} >= {"random 0", "zeros", "batch 4"}
    prove("--check", tmp_path / "certificate.json")


def test_the_certificate_and_its_models_may_move_together(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    shutil.copytree(CONV, home / "one")
    shutil.copytree(CONV, home / "two")
    verdicts(home, home / "one", home / "two")
    moved = home.rename(tmp_path / "elsewhere")
    prove("--check", moved / "certificate.json")


def test_a_changed_model_ends_with_2(tmp_path):
    copy = shutil.copytree(CONV, tmp_path / "copy")
    verdicts(tmp_path, CONV, copy)
    (copy / "saved_model.pb").write_bytes((copy / "saved_model.pb").read_bytes() + b"\0")
    done = prove("--check", tmp_path / "certificate.json", code=2)
    assert "saved_model.pb" in done.output


def epsilon(message):
    for number in (0, 1):  # in training, and not
        node(message, "FusedBatchNorm", number).attr["epsilon"].f = 0.1


def test_another_epsilon_is_named(tmp_path):
    kinds, document = verdicts(tmp_path, CONV, edited(CONV, tmp_path / "e", epsilon), code=1)
    assert kinds == {"y": "differs"}
    assert document["nodes"]["y"][0]["op"].startswith("FusedBatchNorm")
    prove("--check", tmp_path / "certificate.json", code=1)


def test_a_changed_weight_is_named(tmp_path):
    copy = shutil.copytree(CONV, tmp_path / "copy")
    copy_checkpoint(copy, lambda key, array: array * 1.01 if key == "head/kernel" else array)
    _, document = verdicts(tmp_path, CONV, copy, code=1)
    assert document["nodes"]["y"][0]["node"].startswith("head/kernel")


def test_an_asset_that_is_gone_is_not_comparable(tmp_path):
    original = fixture("index_table_oov")
    copy = shutil.copytree(original, tmp_path / "copy")
    for path in (copy / "assets").iterdir():
        path.unlink()
    kinds, document = verdicts(tmp_path, original, copy, code=3)
    assert set(kinds.values()) == {"not comparable"}
    assert "asset" in document["verdicts"][0]["reason"]


def test_a_model_that_changes_its_state_is_not_comparable(tmp_path):
    original = fixture("mutable_hash_table")
    kinds, document = verdicts(tmp_path, original, original, "--signature", "insert", code=3)
    assert set(kinds.values()) == {"not comparable"}
    assert "earlier calls" in document["verdicts"][0]["reason"]


@pytest.mark.parametrize("where", ["io", "io/io.json", ".", "asked"])
def test_requests_are_asked_first(tmp_path, where):
    if where == "asked":
        folder = shutil.copytree(CONV.parent / "io", tmp_path / "asked")
    else:
        folder = CONV.parent / where
    _, document = verdicts(tmp_path, CONV, CONV, "--requests", folder)
    assert document["records"][0]["name"] == "request 0"


def test_the_inputs_of_a_contract_are_asked(tmp_path):
    document = json.loads((CONV.parent / "io" / "io.json").read_text())
    asked = [one for one in document["requests"] if one.get("signature") == "serving_default"]
    inputs = tensors.load(CONV.parent / "io" / asked[0]["inputs"])
    request = Request(("serve",), "serving_default", inputs, inputs)
    answers = Answers((request,), 0.0, 0.0, "")
    contract_file.write(
        tmp_path / "contract.json", Contract(contract_of(CONV).meta_graphs, answers)
    )
    _, document = verdicts(tmp_path, CONV, CONV, "--contract", tmp_path / "contract.json")
    assert document["records"][0]["name"] == "contract 0"


@pytest.mark.parametrize(
    ("name", "text"),
    [("m.h5", "Keras 2"), ("m.bin", "neither")],
)
def test_files_that_are_not_read_are_not_comparable(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(b"")
    _, document = verdicts(tmp_path, CONV, path, code=3)
    assert text in document["verdicts"][0]["reason"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        [CONV],
        [CONV, "absent.onnx"],
        ["absent", CONV],
        [CONV, CONV, "--signature", "absent"],
        [CONV, CONV, "--tags", "absent"],
        [CONV, CONV, "--name", "x"],
        ["--check", "absent.json"],
    ],
)
def test_wrong_usage(arguments):
    prove(*arguments, code=64)


def test_the_seed_decides_the_inputs(tmp_path):
    def first(seed):
        _, document = verdicts(tmp_path, CONV, CONV, "--seed", seed)
        return document["records"][0]["inputs"]

    assert first(1) == first(1) != first(2)


def test_a_folder_of_requests_that_cannot_be_read(tmp_path):
    (tmp_path / "io").mkdir()
    (tmp_path / "io" / "io.json").write_text("{")
    done = prove(CONV, CONV, "--requests", tmp_path / "io", "--without-tensorflow", code=3)
    assert "io.json" in done.output
