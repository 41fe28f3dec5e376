"""Directories and SavedModel messages that a reader must refuse."""

from __future__ import annotations

from pathlib import Path

from reference_impl.format import schema
from savedmodel_kit.forge.tables import varint
from savedmodel_kit.hostile.kind import copied, hostile, message_of, write_message

_BASE = "half_plus_two"
_WITH_ASSET = "module_functions"
_META_GRAPHS, _SIGNATURE_DEF = 2, 5  # numbers of fields of SavedModel and of MetaGraphDef
_LENGTH_DELIMITED = 2  # the wire type of messages and strings


def _field(number: int, content: bytes) -> bytes:
    """Return one field of a message as bytes: a message or a string."""
    return varint(number << 3 | _LENGTH_DELIMITED) + varint(len(content)) + content


@hostile("SM-DIR-7", "L0")
def schema_version_2(folder: Path) -> None:
    """A SavedModel of the schema version 2."""
    message = message_of(_BASE)
    message.saved_model_schema_version = 2
    write_message(copied(_BASE, folder), message)


@hostile("SM-DIR-9", "L0")
def empty_model(folder: Path) -> None:
    """A saved_model.pb without a byte."""
    (copied(_BASE, folder) / "saved_model.pb").write_bytes(b"")


@hostile("SM-DIR-9", "L0")
def no_meta_graph(folder: Path) -> None:
    """A SavedModel of schema version 1 that has no MetaGraph."""
    write_message(copied(_BASE, folder), schema.SavedModel(saved_model_schema_version=1))


@hostile("SM-DIR-11", "L0")
def signature_twice(folder: Path) -> None:
    """A map of signatures with the key `serving_default` twice."""
    message = message_of(_BASE)
    graph = message.meta_graphs[0]
    entry = _field(1, b"serving_default") + _field(2, schema.serialize(schema.SignatureDef()))
    added = _field(_SIGNATURE_DEF, entry)
    whole = _field(_META_GRAPHS, schema.serialize(graph) + added)
    (copied(_BASE, folder) / "saved_model.pb").write_bytes(b"\x08\x01" + whole)


def _asset_called(name: str, folder: Path) -> None:
    message = message_of(_WITH_ASSET)
    for graph in message.meta_graphs:
        for asset in graph.asset_file_def:
            asset.filename = name
    write_message(copied(_WITH_ASSET, folder), message)


@hostile("SM-DIR-4", "L0")
def asset_up(folder: Path) -> None:
    """An asset called `../../secret`."""
    _asset_called("../../secret", folder)


@hostile("SM-DIR-4", "L0")
def asset_absolute(folder: Path) -> None:
    """An asset called `/etc/passwd`."""
    _asset_called("/etc/passwd", folder)


@hostile("SM-DIR-4", "L0")
def asset_up_on_windows(folder: Path) -> None:
    r"""An asset called `..\..\secret`, which leads out on Windows."""
    _asset_called("..\\..\\secret", folder)


@hostile("SM-DIR-4", "L0")
def asset_with_a_control_character(folder: Path) -> None:
    """An asset whose name has a line feed."""
    _asset_called("vocabulary\n.txt", folder)


@hostile("SM-DIR-4", "L0")
def asset_without_a_name(folder: Path) -> None:
    """An asset of the empty name."""
    _asset_called("", folder)


@hostile("SM-DIR-5", "L0")
def asset_link_out(folder: Path) -> None:
    """An asset that is a symbolic link to the kit's list of constraints, outside the model."""
    copied(_WITH_ASSET, folder)
    for asset in (folder / "assets").iterdir():
        asset.unlink()
        asset.symlink_to("../../../../constraints.json")


@hostile("SM-META-6", "L0")
def node_twice(folder: Path) -> None:
    """A main graph with two nodes of one name and different ops."""
    message = message_of(_BASE)
    nodes = message.meta_graphs[0].graph_def.node
    nodes.add(name=nodes[0].name, op="NoOp")
    write_message(copied(_BASE, folder), message)


@hostile("SM-META-6", "L0")
def function_twice(folder: Path) -> None:
    """A library with two functions of one name, which differ."""
    message = message_of(_WITH_ASSET)
    functions = message.meta_graphs[0].graph_def.library.function
    other = functions.add()
    other.CopyFrom(functions[0])
    other.node_def.add(name="one_more", op="NoOp")
    write_message(copied(_WITH_ASSET, folder), message)
