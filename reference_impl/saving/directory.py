"""The last stage of a save: the directory with the SavedModel, the checkpoint and the files that go along.

RFC: API-04, FMT-09, FMT-10
"""

from __future__ import annotations

import os
from typing import Any, Union

from reference_impl import tensorflow_api as api
from reference_impl.errors import LimitError
from reference_impl.format import limits, schema
from reference_impl.format.container.writer import LayoutWriter
from reference_impl.format.schema.ordered import ordered_bytes
from reference_impl.saving import checkpoint, shards, size
from reference_impl.saving.debug_info import debug_info
from reference_impl.saving.fingerprint import fingerprint
from reference_impl.saving.freeze import Frozen
from reference_impl.saving.options import SaveOptions


def write(export_dir: Union[str, os.PathLike[str]], frozen: Frozen, meta_graph: Any, options: SaveOptions) -> None:
    """Write an export. An error leaves the directory as it was.

    Args:
      export_dir: the directory.
      frozen: the export.
      meta_graph: its MetaGraph.
      options: of the save.

    Raises:
      SaveError: a variable has no value, or the MetaGraph is too large for protobuf.
    """
    functions, assets = frozen.collected.functions, frozen.assets
    message = schema.SavedModel(saved_model_schema_version=1)
    message.meta_graphs.append(meta_graph)
    try:
        data = ordered_bytes(message)
    except LimitError as error:
        raise size.too_large(limits.SAVED_MODEL_BYTES + 1, frozen.tree, functions.library, functions.names) from error
    values = checkpoint.values(frozen.tree, frozen.keys, frozen.variables, frozen.collected.contents, frozen.object_graph)
    writer = LayoutWriter(export_dir, replace=True, keep_others=True, stage=options.stage, sync=options.sync)
    with api.eager_mode(), writer as out:
        shards.write(out.checkpoint_prefix, values, options)
        for name, source in assets.files.items():
            out.asset(name, source)
        for name, source in assets.extra.items():
            out.extra_asset(name, source)
        if options.debug_info:
            out.debug_info(debug_info(functions.library, functions.traced))
        out.fingerprint(fingerprint(message, data, out.checkpoint_prefix, assets.all_files))
        out.saved_model(message, data=data)
