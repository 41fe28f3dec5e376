"""Every command judges the same model alike: what of it can be asked, and why the rest cannot."""

import dataclasses
import json

import pytest
from click.testing import CliRunner

from compat_matrix.runtimes import resolve
from compat_matrix.runtimes.runtime import local_runtime
from savedmodel_compat.cli import main

pytestmark = pytest.mark.tensorflow

ASKED = {"plain", "counts", "text", "any_rank", "fed_by_warm_up"}
RANDOM = "loaded again it answers otherwise: something is drawn at random"
UNANSWERED = "no request that was made up for it is answered ("


def bodies(tf, counter):
    """The signatures: name -> dtype and shape of the input, and the function."""

    def never(x):
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_any(x > 1e6), [x])]):
            return tf.identity(x)

    def fed_by_warm_up(x):
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(x > 100.0), [x])]):
            return tf.identity(x)

    return {
        "plain": (tf.float32, [None], lambda x: 2 * x),
        "counts": (tf.float32, [None], lambda x: x + counter.assign_add(1.0)),
        "noise": (tf.float32, [None], lambda x: x + tf.random.uniform(tf.shape(x))),
        "never": (tf.float32, [None], never),
        "text": (tf.string, [None], tf.strings.length),
        "any_rank": (tf.float32, None, lambda x: x + 1),
        "fed_by_warm_up": (tf.float32, [None], fed_by_warm_up),
    }


def answering(body):
    return lambda x: {"y": body(x)}


def of_tf2(tf, path):
    root = tf.Module()
    root.counter = tf.Variable(0.0)
    signatures = {}
    for name, (dtype, shape, body) in bodies(tf, root.counter).items():
        function = tf.function(answering(body), input_signature=[tf.TensorSpec(shape, dtype, "x")])
        setattr(root, name, function)
        signatures[name] = function
    tf.saved_model.save(root, str(path), signatures)


def of_tf1(tf, path):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        counter = v1.get_variable("counter", initializer=0.0, use_resource=True)
        signatures = {}
        for name, (dtype, shape, body) in bodies(tf, counter).items():
            x = v1.placeholder(dtype, shape, name)
            signatures[name] = v1.saved_model.predict_signature_def({"x": x}, {"y": body(x)})
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(str(path))
        builder.add_meta_graph_and_variables(session, ["serve"], signatures)
        builder.save()


@pytest.fixture(params=[of_tf2, of_tf1])
def model(request, tmp_path):
    import numpy as np
    import tensorflow as tf

    from compat_matrix.workers import warmup

    path = tmp_path / "model_of_many"
    request.param(tf, path)
    warmup.put(
        tf,
        str(path),
        [("predict", "fed_by_warm_up", {"x": np.array([101.0, 102.0], np.float32)})],
        "m",
    )
    return path


def invoke(*words):
    return CliRunner().invoke(main, [*map(str, words)])


def checked(model, folder, monkeypatch):
    document = json.loads(
        invoke(
            "check",
            model,
            "--out",
            folder / "check",
            "--check",
            "values",
            "--json",
            "--consumer",
            "tf2",
            "--consumer",
            "c_api",
        ).stdout
    )
    (export,) = document["exports"]
    answers = {
        name
        for cell in document["cells"]
        if cell["cell"].endswith("/values")
        for name in cell["details"].get("answers", ())
    }
    requests = json.loads((folder / "check/given/model_of_many/io/io.json").read_text())["requests"]
    return {request["signature"] for request in requests if request["id"] in answers}, export[
        "left_out"
    ]


def migrated(model, folder, monkeypatch):
    (found,) = json.loads(invoke("migrate", model, "--out", folder / "migrated", "--json").stdout)[
        "models"
    ]
    (part,) = found["parts"]
    return set(part["asked"]), [
        f"signature {name!r}: {why}" for name, why in part["not_asked"].items()
    ]


def contracted(model, folder, monkeypatch):
    path = folder / "m.contract.json"
    done = invoke("contract", "write", model, "--out", path, "--answers")
    assert done.exit_code == 0, done.output
    said = [
        line.removeprefix("not recorded: ")
        for line in done.stderr.splitlines()
        if line.startswith("not recorded: ")
    ]
    kept = invoke("contract", "check", model, path, "--answers")
    assert kept.exit_code == 0, kept.output
    return {
        request["signature"] for request in json.loads(path.read_text())["answers"]["requests"]
    }, said


def downgraded(model, folder, monkeypatch):
    def old(release):  # the local TensorFlow stands in for another one
        return dataclasses.replace(local_runtime(), name=f"tf{release}")

    monkeypatch.setattr(resolve, "resolve", old)
    done = invoke(
        "downgrade", model, "--out", folder / "old", "--target", "2.20", "--for", "c++", "--json"
    )
    (found,) = json.loads(done.stdout)["models"]
    assert found["proof"]["status"] == "PROVED", found
    assert any(f": {len(ASKED)} answers as recorded" in line for line in found["proof"]["lines"]), (
        found
    )
    return ASKED, found["proof"]["left_out"]


def test_every_command_says_the_same_of_each_signature(model, tmp_path, monkeypatch):
    for command in (checked, migrated, contracted, downgraded):
        asked, left_out = command(model, tmp_path, monkeypatch)
        assert asked == ASKED, (command.__name__, left_out)
        said = {line.split(": ")[0]: line.partition(": ")[2] for line in left_out}
        assert said.keys() == {"signature 'noise'", "signature 'never'"}, (
            command.__name__,
            left_out,
        )
        assert said["signature 'noise'"].startswith(RANDOM), command.__name__
        assert said["signature 'never'"].startswith(UNANSWERED), command.__name__
        assert "assertion failed" in said["signature 'never'"], command.__name__


def test_names_of_requests_lead_nowhere(tmp_path):
    """A request is called by its author; the file of its answer is not."""
    import shutil
    from pathlib import Path

    shutil.copytree(Path(__file__).parents[2] / "fixtures_v1/half_plus_two", tmp_path / "given")
    path = tmp_path / "given/io/io.json"
    document = json.loads(path.read_text())
    (request,) = [one for one in document["requests"] if one.get("signature") == "serving_default"][
        :1
    ]
    document["requests"] = [{**request, "id": "../../../outside", "outputs": None}]
    path.write_text(json.dumps(document))
    done = invoke(
        "check",
        tmp_path / "given/model",
        "--requests",
        tmp_path / "given/io",
        "--out",
        tmp_path / "a/b/c",
        "--check",
        "values",
    )
    assert done.exit_code == 0, done.output
    assert not list(tmp_path.rglob("outside*"))
