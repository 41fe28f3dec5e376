"""``migrate --to keras`` of configurations that attack: refused with the layer and a reason,
nothing run, nothing written.
"""

from __future__ import annotations

import json
import shutil
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner

from property_tests.attacks import keras_configurations
from savedmodel_compat import cli

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def keras2():
    return pytest.importorskip(
        "tf_keras", reason="tf_keras writes the models: pip install tf_keras"
    )


def test_a_configuration_that_attacks_is_refused_and_nothing_happens(keras2, tmp_path):
    entry = keras2.Input((4,), name="entry")
    keras2.Model(entry, keras2.layers.Dense(3, name="dense")(entry)).save(
        tmp_path / "sound", save_format="tf"
    )
    place = tmp_path / "was_here"
    for name in keras_configurations.ATTACKS:
        shutil.copytree(tmp_path / "sound", tmp_path / "zoo" / name)
        keras_configurations.attack(tmp_path / "zoo" / name, name, place)
    command = [
        "migrate",
        "--to",
        "keras",
        "--no-wrap",
        str(tmp_path / "zoo"),
        "--out",
        str(tmp_path / "out"),
    ]
    result = CliRunner().invoke(cli.main, command)
    assert result.exit_code == 1, result.output
    records = {
        name: json.loads((tmp_path / f"out/records/{name}.json").read_text())
        for name in keras_configurations.ATTACKS
    }
    unlike = {
        name: (record["status"], record["reason"])
        for name, record in records.items()
        if record["status"] != "refused"
        or keras_configurations.ATTACKS[name].refused not in record["reason"]
    }
    assert unlike == {}
    assert not place.exists() and not list((tmp_path / "out").rglob("*.keras"))
    assert "root:" not in json.dumps(records)


def test_a_keras_file_writes_nothing_outside_and_runs_no_saved_model_unless_it_is_trusted(tmp_path):
    import keras
    import tensorflow as tf

    from savedmodel_compat.keras import SavedModelLayer

    root = tf.Module()
    root.v = tf.Variable([2.0])
    root.__call__ = tf.function(
        lambda x: x * root.v, input_signature=[tf.TensorSpec([None, 4], tf.float32)]
    )
    tf.saved_model.save(root, str(tmp_path / "model"))
    entry = keras.Input((4,))
    model = keras.Model(entry, SavedModelLayer(tmp_path / "model")(entry))
    model.save(tmp_path / "sound.keras")
    expected = model.predict(np.ones((1, 4)), verbose=0)
    del model
    keras.utils.clear_session(free_memory=True)
    with (
        zipfile.ZipFile(tmp_path / "sound.keras") as sound,
        zipfile.ZipFile(tmp_path / "evil.keras", "w") as evil,
    ):
        for item in sound.infolist():
            data = sound.read(item)
            if (
                item.filename == "config.json"
            ):  # a key of no layer in this process, as in another one
                data = data.replace(json.dumps(_key(data)).encode(), b'"of-another-process"')
            evil.writestr(item, data)
        assets = next(
            name for name in sound.namelist() if name.endswith("saved_model.pb")
        ).rpartition("/")[0]
        evil.writestr(f"{assets}/../../../../../../../../{tmp_path}/was_here", "x")
        evil.writestr(f"{tmp_path}/was_here", "x")
        link = zipfile.ZipInfo(f"{assets}/assets.extra/passwd")
        link.external_attr = 0o120777 << 16
        evil.writestr(link, "/etc/passwd")
    with pytest.raises(ValueError, match="a program"):
        keras.saving.load_model(tmp_path / "evil.keras")
    with pytest.warns(UserWarning, match="Skipping invalid path"):  # Keras unpacks the file
        loaded = keras.saving.load_model(tmp_path / "evil.keras", safe_mode=False)
    np.testing.assert_array_equal(loaded.predict(np.ones((1, 4)), verbose=0), expected)
    assert not (tmp_path / "was_here").exists()
    loaded.save(tmp_path / "again.keras")
    with zipfile.ZipFile(tmp_path / "again.keras") as again:
        assert not any(b"root:" in again.read(name) for name in again.namelist())


def _key(config):
    layers = json.loads(config)["config"]["layers"]
    return next(
        layer["config"]["saved_model"]
        for layer in layers
        if layer["class_name"] == "SavedModelLayer"
    )
