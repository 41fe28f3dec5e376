"""The extension of ours in a file."""

from __future__ import annotations

from pathlib import Path

from reference_impl.format import extension, schema
from reference_impl.format.container import layout


def extension_of(path):
    return extension.read(layout.read(path).saved_model.meta_graphs[0], str(path))


def rewrite(path, change):
    """Save the MetaGraph again after `change` was applied to it."""
    message = layout.read(path).saved_model
    change(message.meta_graphs[0])
    (Path(path) / "saved_model.pb").write_bytes(schema.serialize(message))
