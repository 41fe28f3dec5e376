"""What the tests of loading models of TensorFlow 2 share."""

from __future__ import annotations

import collections
from pathlib import Path

from reference_impl.format import schema

Pair = collections.namedtuple("Pair", "first second")


def save(tf, tmp_path, root, **keywords):
    tf.saved_model.save(root, str(tmp_path / "model"), **keywords)
    return tmp_path / "model"


def edit(directory: Path, change) -> None:
    """Rewrite saved_model.pb."""
    file = directory / "saved_model.pb"
    message = schema.parse(schema.SavedModel, file.read_bytes())
    change(message.meta_graphs[0])
    file.write_bytes(message.SerializeToString())
