"""What every root tells about where it comes from (A1)."""

from __future__ import annotations

import logging
from typing import Any

from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.container.layout import Layout
from reference_impl.loading import extra_assets

_log = logging.getLogger(__name__)


def provenance(directory: Layout, meta_graph: Any) -> dict[str, Any]:
    """Attributes of a root: ``tensorflow_version``, ``tensorflow_git_version`` of its writer, any strings; ``graph_debug_info``,
    a GraphDebugInfo that says where in the author's code the nodes were made, empty if the model does not say; ``extra_assets``,
    the files of assets.extra/ by name, which are saved again with the root.
    """
    info = meta_graph.meta_info_def
    try:
        debug_info = directory.debug_info
    except SavedModelError as error:  # no call depends on it
        _log.warning("the debug info is left out: %s", error)
        debug_info = None
    return {
        "tensorflow_version": info.tensorflow_version,
        "tensorflow_git_version": info.tensorflow_git_version,
        "graph_debug_info": debug_info or schema.GraphDebugInfo(),
        extra_assets.ATTRIBUTE: extra_assets.find(directory),
    }
