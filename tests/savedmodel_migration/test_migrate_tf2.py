"""``migrate`` and models of TF 2: a copy is asked, what TensorFlow does not load is saved again,
and the rest is refused.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from reference_impl.format import schema
from savedmodel_common.exit_codes import ExitCode
from savedmodel_compat import cli

pytestmark = pytest.mark.tensorflow


def migrate(*arguments):
    result = CliRunner().invoke(cli.main, ["migrate", *map(str, arguments), "--json"])
    return result.exit_code, {
        Path(model["name"]).name: model for model in json.loads(result.stdout)["models"]
    }


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    """Models that tf.saved_model.save wrote, two of them edited."""
    import tensorflow as tf

    def model():
        made = tf.Module()
        made.v = tf.Variable(3.0, name="v")
        made.f = tf.function(
            lambda x: {"y": x * made.v}, input_signature=[tf.TensorSpec([None], name="x")]
        )
        return made

    folder = tmp_path_factory.mktemp("zoo")
    plain = model()
    tf.saved_model.save(plain, str(folder / "plain"), signatures=plain.f)
    tf.saved_model.save(plain, str(folder / "unsigned"), signatures={})
    for name in ("slots", "slots_unsigned"):
        trained = model()
        trained.optimizer = tf.compat.v1.train.AdamOptimizer(0.5)
        trained.optimizer.apply_gradients([(tf.constant(1.0), trained.v)])
        tf.saved_model.save(
            trained, str(folder / name), signatures=trained.f if name == "slots" else {}
        )
    for name, signed in (("unknown_op", "plain"), ("unknown_op_unsigned", "unsigned")):
        shutil.copytree(folder / signed, folder / name)
        path = folder / name / "saved_model.pb"
        message = schema.parse(schema.SavedModel, path.read_bytes())
        for function in message.meta_graphs[0].graph_def.library.function:
            for node in function.node_def:
                node.op = "NoSuchOp" if node.op == "Mul" else node.op
        path.write_bytes(message.SerializeToString())
    return folder


@pytest.fixture(scope="module")
def done(zoo, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    return (*migrate(zoo, "--out", out), out)


def states(model):
    return {item["what"]: item["state"] for part in model["parts"] for item in part["verdicts"]}


def test_a_copy_is_loaded_and_asked(done, zoo):
    _, models, out = done
    assert models["plain"]["status"] == "copied"
    assert models["plain"]["parts"][0]["asked"] == ["serving_default"]
    assert states(models["plain"]) == {
        "loads, tf2": "equal",
        "answers, tf2": "equal",
        "answers, c_api": "equal",
    }
    assert (out / "models/plain/saved_model.pb").read_bytes() == (
        zoo / "plain/saved_model.pb"
    ).read_bytes()


def test_a_copy_without_signatures_is_loaded(done):
    _, models, _ = done
    assert (models["unsigned"]["status"], states(models["unsigned"])["loads, tf2"]) == (
        "copied",
        "equal",
    )
    assert "equal" not in {
        state for what, state in states(models["unsigned"]).items() if what.startswith("answers")
    }


def test_what_tensorflow_does_not_load_is_saved_again_and_proved(done):
    import tensorflow as tf

    _, models, out = done
    repaired = models["slots"]
    assert repaired["status"] == "repaired"
    assert [
        note
        for note in repaired["parts"][0]["notes"]
        if "tf.saved_model.load" in note and "add_slot" in note
    ]
    assert {
        states(repaired)[what]
        for what in ("answers, tf2", "answers, c_api", "answers, reference", "weights")
    } == {"equal"}
    loaded = tf.saved_model.load(str(out / "models/slots"))
    answer = loaded.signatures["serving_default"](tf.constant([2.0]))["y"]
    assert answer.numpy().tolist() == [pytest.approx(2 * loaded.v.numpy())]


def test_gradients_that_a_session_never_makes_are_not_asked_for(done):
    """A session took up to half of the time of a model to say that there is no gradient of a call
    within a function.
    """
    _, models, _ = done
    notes = [note for note in models["slots"]["parts"][0]["notes"] if "makes no gradients" in note]
    assert notes and all("calls functions" in note for note in notes)


def test_what_was_repaired_but_cannot_be_asked_is_not_proved(done):
    _, models, out = done
    assert models["slots_unsigned"]["status"] == "unproved"
    assert (
        "no signature" in models["slots_unsigned"]["reason"]
        and "add_slot" in models["slots_unsigned"]["reason"]
    )
    assert not (out / "models/slots_unsigned").exists()


@pytest.mark.parametrize("name", ["unknown_op", "unknown_op_unsigned"])
def test_what_does_not_load_and_cannot_be_repaired_is_refused_with_the_reason(done, name):
    code, models, out = done
    assert code == ExitCode.UNEXPECTED
    assert models[name]["status"] == "refused"
    assert "NoSuchOp" in models[name]["reason"] and models[name]["fix"]
    assert not (out / "models" / name).exists()


def test_partial_takes_what_was_repaired_but_cannot_be_asked(zoo, tmp_path):
    import tensorflow as tf

    code, models = migrate(zoo / "slots_unsigned", "--partial", "--out", tmp_path)
    assert (code, models["slots_unsigned"]["status"]) == (ExitCode.UNEXPECTED, "unproved")
    tf.saved_model.load(str(tmp_path / "models/slots_unsigned"))


JUNK = b"not a request to warm up with"


@pytest.fixture(scope="module")
def decided(zoo, tmp_path_factory):
    """Models with an error of `verify` each.

    The first two: warm-up requests that a server refuses, a rule about loaders.
    """
    folder, out = tmp_path_factory.mktemp("errors"), tmp_path_factory.mktemp("out")
    for name, source in (("loads", "plain"), ("does_not_load", "slots"), ("broken", "plain")):
        (shutil.copytree(zoo / source, folder / name) / "assets.extra").mkdir()
    for name in ("loads", "does_not_load"):
        (folder / name / "assets.extra" / "tf_serving_warmup_requests").write_bytes(JUNK)
    (folder / "broken" / "fingerprint.pb").unlink()
    (
        folder / "broken" / "fingerprint.pb"
    ).mkdir()  # tf.saved_model.load does not mind: it is not asked
    return (*migrate(folder, "--out", out), out)


def error_notes(model):
    return [note.split(":")[0] for note in model["parts"][0]["notes"] if note.startswith("verify")]


def test_an_error_about_loaders_does_not_stop_a_copy_that_tensorflow_loads(decided):
    _, models, out = decided
    assert (
        error_notes(models["loads"]) == ["verify SMC541"] and models["loads"]["status"] == "copied"
    )
    assert states(models["loads"]) == {
        "loads, tf2": "equal",
        "answers, tf2": "equal",
        "answers, c_api": "equal",
    }
    assert (out / "models/loads/assets.extra/tf_serving_warmup_requests").read_bytes() == JUNK


def test_with_an_error_about_loaders_what_tensorflow_does_not_load_is_saved_again(decided):
    _, models, _ = decided
    assert (
        error_notes(models["does_not_load"]) == ["verify SMC541"]
        and models["does_not_load"]["status"] == "repaired"
    )
    assert any(
        "tf.saved_model.load" in note for note in models["does_not_load"]["parts"][0]["notes"]
    )


def test_any_other_error_stops_it_before_it_is_loaded(decided):
    code, models, out = decided
    assert code == ExitCode.UNEXPECTED
    assert (
        models["broken"]["status"] == "refused" and "fingerprint.pb" in models["broken"]["reason"]
    )
    assert not states(models["broken"]) and not (out / "models/broken").exists()
