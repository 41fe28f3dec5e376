"""``migrate --to keras`` of layers that Keras 3 has under the same name, with other dtypes or
arguments.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from reference_impl.format import schema
from savedmodel_compat import cli

pytestmark = pytest.mark.tensorflow

DEFAULT_SALT = [0xDECAFCAFFE] * 2
WORDS = ["red", "green", "blue"]


@pytest.fixture(scope="module")
def keras2():
    return pytest.importorskip(
        "tf_keras", reason="tf_keras writes the models: pip install tf_keras"
    )


def saved(keras2, folder, layer, shape, dtype):
    entry = keras2.Input(shape, dtype=dtype, name="entry")
    keras2.Model(entry, layer(entry)).save(folder, save_format="tf")


def configured(folder, change):
    """The model with another configuration of its last layer; its functions stay."""
    _with_last_configuration(folder, lambda config: config.update(change))


def without(folder, argument):
    """The model without an argument in the configuration of its last layer."""
    _with_last_configuration(folder, lambda config: config.pop(argument))


def _with_last_configuration(folder, change):
    path = folder / "keras_metadata.pb"
    metadata = schema.parse(schema.KerasMetadata, path.read_bytes())
    root = next(item for item in metadata.nodes if item.node_id == 0)
    found = json.loads(root.metadata)
    for config in (found["config"], found["model_config"]["config"]):
        change(config["layers"][-1]["config"])
    root.metadata = json.dumps(found)
    path.write_bytes(metadata.SerializeToString())


def test_preprocessing_is_rebuilt_with_the_dtypes_and_numbers_of_keras_2(keras2, tmp_path):
    layers, zoo = keras2.layers, tmp_path / "zoo"
    bins = layers.Discretization(num_bins=5)
    bins.adapt(np.random.default_rng(0).standard_normal((50, 1)).astype("float32"))
    texts = layers.TextVectorization(output_mode="tf_idf")
    texts.adapt(np.array(["red green", "red", "blue red"]))
    saved(
        keras2,
        zoo / "one_hot",
        layers.StringLookup(vocabulary=WORDS, output_mode="one_hot"),
        (1,),
        "string",
    )
    saved(
        keras2,
        zoo / "multi_hot",
        layers.IntegerLookup(vocabulary=[1, 5], output_mode="multi_hot"),
        (3,),
        "int64",
    )
    saved(
        keras2,
        zoo / "count",
        layers.TextVectorization(vocabulary=WORDS, output_mode="count"),
        (1,),
        "string",
    )
    given = layers.StringLookup(vocabulary=WORDS, idf_weights=[0.3, 0.5, 0.7], output_mode="tf_idf")
    saved(keras2, zoo / "tf_idf", given, (2,), "string")
    saved(keras2, zoo / "tf_idf_adapted", texts, (1,), "string")
    saved(keras2, zoo / "bins", bins, (4,), "float32")
    saved(
        keras2,
        zoo / "bins_given",
        layers.Discretization(bin_boundaries=[-0.5, 0.0, 0.5]),
        (4,),
        "float32",
    )
    saved(keras2, zoo / "hashes", layers.Hashing(num_bins=50), (2,), "string")
    configured(
        zoo / "hashes", {"salt": DEFAULT_SALT, "dtype": "float32"}
    )  # as TF 2.3 and 2.4 write it
    sequence = keras2.Sequential(
        [
            keras2.Input((1,), dtype="string"),
            layers.StringLookup(vocabulary=WORDS, output_mode="one_hot"),
        ]
    )
    sequence.save(zoo / "sequential", save_format="tf")
    result = CliRunner().invoke(
        cli.main, ["migrate", "--to", "keras", str(zoo), "--out", str(tmp_path / "out")]
    )
    names = sorted(path.name for path in zoo.iterdir())
    records = {
        name: json.loads((tmp_path / f"out/records/{name}.json").read_text()) for name in names
    }
    assert {
        name: (record["status"], record["reason"]) for name, record in records.items()
    } == dict.fromkeys(names, ("rebuilt", ""))
    verdicts = {name: record["parts"][0]["verdicts"][0] for name, record in records.items()}
    assert {
        name: (verdict["what"], verdict["state"]) for name, verdict in verdicts.items()
    } == dict.fromkeys(names, ("predictions", "equal"))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("shape", [(7, 9, 3), (9, 7, 3), (3, 5, 1), (4, 4, 1)])
def test_a_random_crop_cuts_out_and_resizes_the_centre_outside_of_training(keras2, shape, tmp_path):
    saved(keras2, tmp_path / "crop", keras2.layers.RandomCrop(4, 4, name="crop"), shape, "float32")
    result = CliRunner().invoke(
        cli.main,
        ["migrate", "--to", "keras", str(tmp_path / "crop"), "--out", str(tmp_path / "out")],
    )
    record = json.loads((tmp_path / "out/records/crop.json").read_text())
    assert (record["status"], record["reason"]) == ("rebuilt", ""), result.output
    import keras

    image = np.random.default_rng(0).standard_normal((2, *shape)).astype("float32")
    model = keras.saving.load_model(tmp_path / "out/models/crop/model.keras")
    crop = np.asarray(model(image, training=True))
    assert crop.shape == (2, 4, 4, shape[2])
    if min(shape[:2]) >= 4:  # in training it is a part of the image, not resized
        assert np.isin(crop, image).all()


def test_invert_of_a_normalization_is_read_from_the_graph_where_the_configuration_lacks_it(
    keras2, tmp_path
):
    """TF 2.12 has the argument and does not write it."""
    for name, invert in (("forth", False), ("back", True)):
        layer = keras2.layers.Normalization(
            mean=[1.5, 2.0], variance=[2.0, 3.0], invert=invert, name="scaled"
        )
        saved(keras2, tmp_path / "zoo" / name, layer, (2,), "float32")
        without(tmp_path / "zoo" / name, "invert")
    result = CliRunner().invoke(
        cli.main,
        ["migrate", "--to", "keras", str(tmp_path / "zoo"), "--out", str(tmp_path / "out")],
    )
    records = [
        json.loads((tmp_path / f"out/records/{name}.json").read_text())
        for name in ("forth", "back")
    ]
    assert [(record["status"], record["reason"]) for record in records] == [("rebuilt", "")] * 2, (
        result.output
    )


def test_bins_that_were_never_adapted_are_refused(keras2, tmp_path):
    saved(
        keras2,
        tmp_path / "bins",
        keras2.layers.Discretization(bin_boundaries=[0.0, 1.0]),
        (4,),
        "float32",
    )
    configured(tmp_path / "bins", {"bin_boundaries": None, "num_bins": 10**12})
    result = CliRunner().invoke(
        cli.main,
        [
            "migrate",
            "--to",
            "keras",
            "--no-wrap",
            str(tmp_path / "bins"),
            "--out",
            str(tmp_path / "out"),
        ],
    )
    assert result.exit_code == 1
    assert "never adapted" in json.loads((tmp_path / "out/records/bins.json").read_text())["reason"]


def test_the_number_of_tokens_that_tf_2_3_counts_is_not_missed(keras2, tmp_path):
    texts = keras2.layers.TextVectorization(output_mode="count", ngrams=2)
    texts.adapt(np.array(["red green", "red", "blue red"]))
    texts.num_elements = keras2.backend.variable(6, dtype="int32", name="num_elements")
    saved(keras2, tmp_path / "texts", texts, (1,), "string")
    result = CliRunner().invoke(
        cli.main,
        ["migrate", "--to", "keras", str(tmp_path / "texts"), "--out", str(tmp_path / "out")],
    )
    record = json.loads((tmp_path / "out/records/texts.json").read_text())
    assert (record["status"], record["reason"]) == ("rebuilt", ""), result.output
