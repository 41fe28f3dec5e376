"""`serving upgrade` with clients that were written for the old export: what they rely on, the new
export has to keep.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from compat_matrix.requests.artifact import Artifact
from savedmodel_common.compare import EXACT
from savedmodel_common.tensors import Tensor
from savedmodel_compat.cli import main
from savedmodel_servers import drivers
from savedmodel_servers.drivers import Endpoint
from savedmodel_servers.upgrade.client_requests import ClientRequest
from savedmodel_servers.upgrade.clients import Clients, Lost, learn
from savedmodel_servers.upgrade.load import Load
from savedmodel_servers.upgrade.sides import NEW, OLD
from savedmodel_servers.upgrade.switching import LIMITS, TwoExports

HERE = "standin@local"
FIXTURES = Path(__file__).parents[2] / "fixtures_v1"

pytestmark = pytest.mark.tensorflow

Body = Callable[[Any, Any], dict[str, Any]]


def saved(
    folder: Path,
    body: Body,
    dtype: str = "float32",
    shape: tuple[int | None, ...] = (None,),
    name: str = "x",
) -> Path:
    """A SavedModel of one signature; requests are made up."""
    import tensorflow as tf

    spec = tf.TensorSpec(shape, dtype, name=name)
    function = tf.function(lambda x: body(tf, x), input_signature=[spec])
    tf.saved_model.save(tf.Module(), str(folder), signatures=function)
    return folder


def upgrade(tmp_path: Path, old: Path, new: Path, code: int) -> dict[str, Any]:
    """Put both exports behind two servers of one kind, and return upgrade.json."""
    out = tmp_path / "out"
    arguments = [
        "serving",
        "upgrade",
        str(old),
        str(new),
        "--old-server",
        HERE,
        "--new-server",
        HERE,
        "--out",
        str(out),
    ]
    done = CliRunner().invoke(main, arguments)
    assert (out / "upgrade.json").exists(), (done.output, done.exception)
    record: dict[str, Any] = json.loads((out / "upgrade.json").read_text())
    assert done.exit_code == code, record
    return record


def doubled(tf: Any, x: Any) -> dict[str, Any]:
    return {"y": 2 * x}


# A session runs what is fed, also of a shape that its placeholder no longer has: the answers show
# nothing.
PROMISES: dict[str, dict[str, Any]] = {
    "an input of another rank": {
        "body": lambda tf, x: {"y": tf.reshape(2 * x, [-1])},
        "shape": (None, 1),
    },
    "one size of batch": {"body": doubled, "shape": (2,)},
}
ANSWERS: dict[str, tuple[dict[str, Any], str]] = {
    "an output renamed": ({"body": lambda tf, x: {"q": 2 * x}}, "read the output 'y'"),
    "an output of another dtype": (
        {"body": lambda tf, x: {"y": tf.cast(2 * x, "float64")}},
        "as float32; it is float64",
    ),
    "an output of another rank": (
        {"body": lambda tf, x: {"y": tf.expand_dims(2 * x, 1)}},
        "with the shape",
    ),
    "a scalar for a batch": ({"body": lambda tf, x: {"y": tf.reduce_sum(x)}}, "request"),
    "a second output": ({"body": lambda tf, x: {"y": 2 * x, "z": x}}, "over rest"),
    "an input renamed": ({"body": doubled, "name": "w"}, "request"),
    "an input of another dtype": (
        {"body": lambda tf, x: {"y": tf.cast(2 * x, "float32")}, "dtype": "float64"},
        "request",
    ),
    "batches of two alone": ({"body": lambda tf, x: {"y": 2 * x + tf.zeros([2])}}, "in a batch of"),
}


@pytest.mark.parametrize("change", PROMISES)
def test_a_new_export_whose_signature_def_breaks_a_promise_goes_with_no_order(
    tmp_path: Path, change: str
) -> None:
    new = saved(tmp_path / "new", **PROMISES[change])
    record = upgrade(tmp_path, saved(tmp_path / "old", doubled), new, code=1)
    assert record["verdict"].startswith("neither, ") and "the old export" in record["verdict"]
    assert [pair["works"] for pair in record["pairs"]] == [True] * 4, (
        "each export answers its own requests"
    )
    assert "input x: " in record["verdict"] and "(INPUT_SHAPE_NARROWED)" in record["verdict"]
    assert [way["works"] for way in record["orders"]] == [False, False]


def learned(endpoint: Endpoint, model: str) -> Clients:
    """The clients of an old export that doubles."""
    asked, answer = np.float32([1, 2]), {"y": Tensor("float32", np.float32([2, 4]))}
    request = ClientRequest(
        model, "request-1", "", {"x": Tensor("float32", asked)}, {OLD: answer, NEW: answer}, EXACT
    )
    return learn(endpoint, [request])


def test_answers_of_a_new_export_that_break_old_clients_are_noticed(tmp_path: Path) -> None:
    """One server has a model for each change: the same clients as in an upgrade, which would start
    six servers for each.
    """
    saved(tmp_path / "old" / "model", doubled)
    old = Artifact(tmp_path / "old", False, EXACT, ())
    exports = {"unchanged": {OLD: old, NEW: old}}
    for change, (facts, _) in ANSWERS.items():
        name = change.replace(" ", "_")
        saved(tmp_path / name / "model", **facts)
        exports[name] = {OLD: old, NEW: Artifact(tmp_path / name, False, EXACT, ())}
    driver = drivers.of(HERE)
    server = TwoExports(driver, tmp_path / "work", exports, LIMITS)
    try:
        server.hold(OLD)
        clients = {model: learned(server.endpoint, model) for model in exports}
        server.hold(NEW)
        lost = {}
        for model, ours in clients.items():
            assert ours.questions
            with Load(ours) as load:
                load.aim(server.endpoint, NEW)
                try:
                    load.settle()
                except Lost as error:
                    lost[model] = str(error)
    finally:
        server.close()
        driver.close()
    assert "unchanged" not in lost
    for change, (_, said) in ANSWERS.items():
        assert said in lost[change.replace(" ", "_")], change


@pytest.mark.parametrize("change", ["an output renamed", "batches of two alone"])
def test_a_new_export_whose_answers_break_old_clients_goes_with_no_order(
    tmp_path: Path, change: str
) -> None:
    facts, said = ANSWERS[change]
    record = upgrade(
        tmp_path, saved(tmp_path / "old", doubled), saved(tmp_path / "new", **facts), code=1
    )
    assert record["verdict"].startswith("neither, because ")
    assert [pair["works"] for pair in record["pairs"]] == [True] * 4, (
        "each export answers its own requests"
    )
    for way in record["orders"]:
        assert way["works"] is False
        assert "request " in way["reason"] and "the new export" in way["reason"]
        assert said in way["reason"]


def test_values_of_a_model_that_was_trained_again_are_not_compared_and_that_is_said(
    tmp_path: Path,
) -> None:
    new = saved(tmp_path / "new", lambda tf, x: {"y": 3 * x})
    record = upgrade(tmp_path, saved(tmp_path / "old", doubled), new, code=0)
    assert record["verdict"] == "either"
    assert any("the two exports" in line for line in record["left_out"])


def test_clients_ask_batches_of_one_two_and_three_in_columns_and_rows(tmp_path: Path) -> None:
    record = upgrade(
        tmp_path, saved(tmp_path / "old", doubled), saved(tmp_path / "new", doubled), code=0
    )
    for way in record["orders"]:
        for step in way["steps"]:
            assert step["answers"]["grpc"] >= 3 * 3
            assert step["answers"]["rest"] >= 3 * 3 * 2


def test_more_outputs_beside_several_break_nobody(tmp_path: Path) -> None:
    old = saved(tmp_path / "old", lambda tf, x: {"y": 2 * x, "z": x})
    new = saved(tmp_path / "new", lambda tf, x: {"y": 2 * x, "z": x, "more": 3 * x})
    assert upgrade(tmp_path, old, new, code=0)["verdict"] == "either"


def test_a_signature_that_no_request_calls_is_held_by_its_signature_def(tmp_path: Path) -> None:
    """Its answers depend on earlier ones, so that no client can ask under load; the SignatureDefs
    still tell.
    """
    import tensorflow as tf

    class Counter(tf.Module):
        def __init__(self, key: str) -> None:
            super().__init__()
            self.count, self.key = tf.Variable(0.0), key

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
        def add(self, x: Any) -> dict[str, Any]:
            return {self.key: self.count.assign_add(tf.reduce_sum(x))}

    for folder, key in (("old", "y"), ("new", "q")):
        counter = Counter(key)
        tf.saved_model.save(counter, str(tmp_path / folder), signatures=counter.add)
    record = upgrade(tmp_path, tmp_path / "old", tmp_path / "new", code=1)
    assert record["verdict"].startswith("neither, ") and "the old export" in record["verdict"]
    assert (
        "output y: " in record["verdict"]
        and "'q'" in record["verdict"]
        and "(OUTPUT_REMOVED)" in record["verdict"]
    )


def test_a_new_export_that_nothing_answers_is_asked_by_the_old_clients(tmp_path: Path) -> None:
    """No loader answers its requests, so none is on record; the servers make it available all the
    same.
    """
    import tensorflow as tf

    root = tf.Module()
    root.gone = tf.Variable(1.0)
    root.f = tf.function(
        lambda x: {"y": 2 * x + root.gone},
        input_signature=[tf.TensorSpec([None], tf.float32, name="x")],
    )
    new = tmp_path / "new"
    tf.saved_model.save(root, str(new), signatures=root.f)
    shutil.rmtree(new / "variables")
    record = upgrade(tmp_path, saved(tmp_path / "old", doubled), new, code=1)
    assert record["verdict"].startswith("neither, because ")
    for way in record["orders"]:
        assert way["works"] is False
        assert "the new export" in way["reason"]
