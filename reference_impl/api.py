"""The two public symbols that need TensorFlow (API-01)."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any, Optional, Union

import tensorflow as tf

from reference_impl.errors import MetaGraphChoiceError
from reference_impl.format import layout
from reference_impl.format.errors import NoMetaGraphError

__all__ = ["load"]


def load(
    export_dir: Union[str, os.PathLike[str]], tags: Union[None, str, Collection[str]] = None, options: Optional[Any] = None
) -> Any:
    """Load a SavedModel (API-01, DR-02).

    Args:
      export_dir: the directory.
      tags: the tags of the MetaGraph to load, as a set; not needed when there is only one (V1-04, V1-05, V1-07).
      options: None.

    Returns:
      One object. For a TF 2 model it has the attributes of the object that was saved, whatever of them can be saved; for a
      TF 1.x model the variables and signatures. Both have ``signatures``, ``variables``, ``tensorflow_version``.

    Raises:
      MetaGraphChoiceError: no MetaGraph has these tags, or tags are needed to choose one.
      SavedModelError: the directory is no SavedModel, or is damaged, or uses what is not known; the class says which.
    """
    directory = layout.read(export_dir)
    try:
        meta_graph = directory.meta_graph(tags)
    except NoMetaGraphError as error:
        raise MetaGraphChoiceError(error.reason, file=error.file, node=error.node, clause=error.clause) from None
    with tf.init_scope():
        if len(directory.saved_model.meta_graphs) == 1 and meta_graph.HasField("object_graph_def"):
            from reference_impl.loading.loader import load_object_graph

            return load_object_graph(directory, meta_graph)
        from reference_impl.v1 import load_meta_graph

        return load_meta_graph(directory, meta_graph)
