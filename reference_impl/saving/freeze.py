"""The third stage of a save: fix numbers, names and checkpoint keys, and check the collected contents.

RFC: FN-14, FMT-09, PRIM-06, RES-14, V1-17
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reference_impl import tensorflow_api as api
from reference_impl.format.names import CREATE
from reference_impl.kinds import variable
from reference_impl.saving import checks, dropped, hidden_state
from reference_impl.saving.assets import Assets
from reference_impl.saving.collect import Collected
from reference_impl.saving.object_graph import Keys, serialized_object_graph
from reference_impl.saving.options import SaveOptions
from reference_impl.saving.tree import Tree


@dataclass(frozen=True)
class Frozen:
    """An export to which no more objects can be added.

    Attributes:
      tree: all objects, with their numbers.
      collected: the contents of the export.
      variables: number of a variable's node -> its name.
      keys: the checkpoint keys.
      object_graph: the TrackableObjectGraph of the checkpoint, serialised.
      assets: the asset files.
      asset_names: number of an asset's node -> name of its file.
    """

    tree: Tree
    collected: Collected
    variables: Mapping[int, str]
    keys: Keys
    object_graph: bytes
    assets: Assets
    asset_names: Mapping[int, str]


def freeze(collected: Collected, options: SaveOptions) -> Frozen:
    """Return the frozen export of the collected contents.

    Raises:
      SaveError: data would be lost (with ``strict``), or the export is too large.
    """
    tree, functions = collected.tree.freeze(), collected.functions
    checks.check_size(tree, functions)
    dropped.check(tree, functions.library)
    for node, creator in tree.of_resources(CREATE):  # the shared names of resources are those of their objects
        functions.library.share(functions.names[creator], node.path)
    functions.library.apply_shared_names()
    hidden_state.check(tree, functions)
    checks.check_python_calls(tree, functions)
    variables = {node.number: variable.name_of(node.object) for node in tree.nodes if api.is_variable(node.object)}
    stored = [slot for slot in collected.slots if not slot.listed]
    keys = Keys(tree, stored)
    graph = serialized_object_graph(tree, keys, variables, collected.contents, stored)
    assets = Assets(options.strict)
    assets.add_extra(tree.root, options.extra_assets)
    names = {node.number: assets.add(node.object, node.path) for node in tree.nodes if isinstance(node.object, api.Asset)}
    return Frozen(tree, collected, variables, keys, graph, assets, names)
