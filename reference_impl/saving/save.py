"""From an object to a SavedModel directory, in stages. Each stage takes what the stage before it returned.

    reach        the objects that can be reached from the root; functions that must be traced are traced
    signatures   which functions are the signatures
    tree         the objects get numbers
    collect      functions, captures, gradients, contents, slots: the only stage in which more objects join the tree
    freeze       names and checkpoint keys; checks of what was collected
    meta_graph   the MetaGraph
    directory    the SavedModel, the checkpoint, the assets

RFC: API-01, API-02, API-03, API-04, API-05
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Optional, Union

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import InsideFunctionError
from reference_impl.saving import directory
from reference_impl.saving.collect import collect
from reference_impl.saving.freeze import freeze
from reference_impl.saving.meta_graph import meta_graph
from reference_impl.saving.options import resolve
from reference_impl.saving.reach import reach
from reference_impl.saving.signatures import choose
from reference_impl.saving.tree import GrowingTree


def save(obj: Any, export_dir: Union[str, os.PathLike[str]], given: Optional[Any], options: Optional[Any]) -> None:
    """See `reference_impl.api.save`. Nothing is written before all is known to be right."""
    if tf.inside_function():
        raise InsideFunctionError("saving inside of a tf.function is not possible: take the call out of it", node="save")
    chosen = resolve(options)
    with contextlib.nullcontext() if chosen.expand else api.as_first_replica():
        reached = reach(obj, chosen)
        signatures = choose(reached, given)
        tree = GrowingTree(reached, signatures)
    frozen = freeze(collect(tree, signatures, chosen), chosen)
    directory.write(export_dir, frozen, meta_graph(frozen, chosen), chosen)
