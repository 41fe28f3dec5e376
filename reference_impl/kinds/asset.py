"""Assets: files of a model as objects with an absolute path.

RFC: RES-06, RES-07, RES-09, RES-14
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import MalformedError, MissingFileError, not_a_file
from reference_impl.format import schema
from reference_impl.format.container.files import special_kind
from reference_impl.format.container.layout import Asset, Layout
from reference_impl.functions.load_context import LoadContext
from reference_impl.graph import node_kinds
from reference_impl.kinds.kind import Export, Kind, SavedNode

_log = logging.getLogger(__name__)


class AssetKind(Kind):
    """Assets. The object names an entry of the MetaGraph's asset_file_def, which names the file."""

    message = node_kinds.ASSET

    def read(self, load: LoadContext, number: int, node: schema.SavedObject) -> Any:
        """Return the object of an `asset` node.

        Raises MalformedError if the MetaGraph has no such asset.
        """
        definitions, index = load.assets.definitions, node.asset.asset_file_def_index
        if not 0 <= index < len(definitions):
            raise MalformedError(
                f"asset {index} of {len(definitions)}",
                file=load.file,
                node=load.path(number),
                rule="SM-OBJ-2",
            )
        return load.assets.make(definitions[index])

    def matches(self, obj: object) -> bool:
        return isinstance(obj, api.Asset)

    def write(self, export: Export, node: SavedNode, out: schema.SavedObject) -> None:
        """Write the position of the asset in the asset_file_def of the MetaGraph."""
        out.asset.asset_file_def_index = export.asset_index(node.number)
        out.asset.SetInParent()


class Assets:
    """The assets of a MetaGraph.

    A missing file is an error when something needs it, usually an initialiser that runs while the
    model is loaded. A missing file that nothing needs is only reported: such models are in use.

    Raises:
      PathEscapeError: a file name leads out of assets/.
      FileAccessError: an asset is a pipe, a socket, a device or a cycle of links.
    """

    def __init__(self, directory: Layout, meta_graph: schema.MetaGraphDef):
        self.definitions: list[Asset] = directory.assets(meta_graph)
        self._missing = [asset for asset in self.definitions if not asset.exists]
        self._made: dict[str, Any] = {}
        for asset in self.definitions:
            what = special_kind(asset.path)
            if what:  # TensorFlow would wait for a pipe or read a device forever
                error = not_a_file(what, asset.path)
                error.node = asset.tensor or None
                raise error
        for asset in self._missing:
            _log.warning("%s: the asset %s is missing (RES-06)", directory.file, asset.filename)

    def make(self, asset: Asset) -> Any:
        """Return the asset object. Two assets with the same file are one object."""
        path = str(asset.path)
        if path not in self._made:
            self._made[path] = api.Asset(path)
            if not tf.executing_eagerly():
                tf.compat.v1.add_to_collection(
                    tf.compat.v1.GraphKeys.ASSET_FILEPATHS, self._made[path].asset_path
                )
        return self._made[path]

    @contextmanager
    def needed(self) -> Iterator[None]:
        """Convert the failure of an initialiser to a MissingFileError if a file is missing."""
        try:
            yield
        except tf.errors.OpError as error:
            if not self._missing:
                raise
            asset, reason = self._missing[0], f"the asset is missing: {error.message}"
            raise MissingFileError(
                reason, file=asset.path, node=asset.tensor, clause="RES-06"
            ) from None


def write_file(out: schema.AssetFileDef, name: str, tensor: str) -> None:
    """Write an AssetFileDef.

    `name` is the name of the file in assets/; the loader feeds its path to `tensor`.
    """
    out.filename = name
    out.tensor_info.name = tensor
    out.tensor_info.dtype = schema.DT_STRING
    out.tensor_info.tensor_shape.SetInParent()


KIND = AssetKind()
