"""``migrate --to keras`` of attention: arguments that Keras 2 did not write into the
configuration.
"""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from reference_impl.format import schema
from savedmodel_compat import cli

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("name", ["Attention", "AdditiveAttention"])
def test_a_causal_mask_that_no_configuration_tells_of_is_read_from_the_graph(name, tmp_path):
    keras2 = pytest.importorskip(
        "tf_keras", reason="tf_keras writes the models: pip install tf_keras"
    )
    layer = getattr(keras2.layers, name)
    assert "causal" not in layer(causal=True).get_config()
    query, value = keras2.Input((4, 3)), keras2.Input((4, 3))
    inner = keras2.Model([query, value], layer(causal=True)([query, value]), name="inner")
    plain = keras2.Model([query, value], layer()([query, value]), name="plain")
    keras2.Model([query, value], inner([query, value]) + plain([query, value])).save(
        tmp_path / "model", save_format="tf"
    )
    result = CliRunner().invoke(
        cli.main,
        ["migrate", "--to", "keras", str(tmp_path / "model"), "--out", str(tmp_path / "out")],
    )
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / "out/records/model.json").read_text())
    assert (record["status"], record["reason"]) == ("rebuilt", "")


def without_configuration(folder):
    """The model as TF 2.0 would write it: `Attention` had no `get_config`, so neither it nor the
    model has a configuration.
    """
    path = folder / "keras_metadata.pb"
    metadata = schema.parse(schema.KerasMetadata, path.read_bytes())
    for item in metadata.nodes:
        found = json.loads(item.metadata)
        if item.node_id == 0:
            found |= {"class_name": "Model", "model_config": {"class_name": "Model"}}
        if item.node_id == 0 or found.get("class_name") in ("Attention", "AdditiveAttention"):
            del found["config"]
            item.metadata = json.dumps(found)
    path.write_bytes(metadata.SerializeToString())


def migrated(folder, tmp_path):
    result = CliRunner().invoke(
        cli.main, ["migrate", "--to", "keras", str(folder), "--out", str(tmp_path / "out")]
    )
    assert "differs" not in result.output, result.output
    return json.loads((tmp_path / "out/records/model.json").read_text())


def test_calls_of_layers_that_no_configuration_tells_of_are_read_from_the_graph(tmp_path):
    keras2 = pytest.importorskip(
        "tf_keras", reason="tf_keras writes the models: pip install tf_keras"
    )
    layers = keras2.layers
    query, value = keras2.Input((4, 3), name="query-1"), keras2.Input((4, 3), name="Value")
    shared = layers.Dense(3)
    scaled, causal = (
        layers.Attention(use_scale=True),
        layers.AdditiveAttention(use_scale=False, causal=True),
    )
    both = layers.Concatenate()(
        [scaled([shared(query), shared(value)]), causal([value, query, query])]
    )
    net = keras2.Model(
        [query, value], [layers.Dense(2, name="first")(both), layers.Flatten(name="second")(both)]
    )
    net.compile("adam", "mse")
    net.save(tmp_path / "model", save_format="tf")
    without_configuration(tmp_path / "model")
    record = migrated(tmp_path / "model", tmp_path)
    assert (record["status"], record["reason"]) == ("rebuilt", "")
    states = {one["what"]: one["state"] for one in record["parts"][0]["verdicts"]}
    assert (states["predictions"], states["weights"]) == ("equal", "equal"), states


@pytest.mark.parametrize("between", ["an operation", "a layer without a function"])
def test_a_model_whose_graph_holds_more_than_calls_of_layers_is_wrapped(between, tmp_path):
    keras2 = pytest.importorskip(
        "tf_keras", reason="tf_keras writes the models: pip install tf_keras"
    )
    query = keras2.Input((4, 3))
    inner = (
        query * 2.0
        if between == "an operation"
        else keras2.layers.Normalization(mean=[1.0] * 3, variance=[2.0] * 3)(query)
    )
    keras2.Model(query, keras2.layers.Attention()([inner, query])).save(
        tmp_path / "model", save_format="tf"
    )
    without_configuration(tmp_path / "model")
    record = migrated(tmp_path / "model", tmp_path)
    assert record["status"] == "wrapped"
    assert "no configuration" in record["reason"] or "Python code" in record["reason"]
