"""Files of a model as objects with an absolute path (RES-06, RES-07, RES-09, RES-14)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import MissingFileError, not_a_file
from reference_impl.format.container.layout import Asset, Layout
from reference_impl.format.container.regular_files import special

_log = logging.getLogger(__name__)


class Assets:
    """The assets of a MetaGraph.

    A missing file is an error when something needs it, which mostly is an initialiser while the model is loaded. One that nothing
    needs has been forgotten by others too: such models are in use, so it is only reported.

    Args:
      directory: the SavedModel.
      meta_graph: one of its MetaGraphs.

    Raises:
      PathEscapeError: a file name leads out of assets/.
      FileAccessError: an asset is a pipe, a socket, a device or a circle of links.
    """

    def __init__(self, directory: Layout, meta_graph: Any):
        self.definitions: list[Asset] = directory.assets(meta_graph)
        self._missing = [asset for asset in self.definitions if not asset.exists]
        self._made: dict[str, Any] = {}
        for asset in self.definitions:
            what = special(asset.path)
            if what:  # TensorFlow would wait for a pipe for ever, and read a device without end
                error = not_a_file(what, asset.path)
                error.node = asset.tensor or None
                raise error
        for asset in self._missing:
            _log.warning("%s: the asset %s is missing (RES-06)", directory.file, asset.filename)

    def make(self, asset: Asset) -> Any:
        """The asset object; two assets of one file are one."""
        path = str(asset.path)
        if path not in self._made:
            self._made[path] = api.Asset(path)
            if not tf.executing_eagerly():
                tf.compat.v1.add_to_collection(tf.compat.v1.GraphKeys.ASSET_FILEPATHS, self._made[path].asset_path)
        return self._made[path]

    @contextmanager
    def needed(self) -> Iterator[None]:
        """While initialisers run: what fails for want of a file is a MissingFileError that names it."""
        try:
            yield
        except tf.errors.OpError as error:
            if not self._missing:
                raise
            asset = self._missing[0]
            raise MissingFileError(
                f"the asset is missing: {error.message}", file=asset.path, node=asset.tensor, clause="RES-06"
            ) from None
