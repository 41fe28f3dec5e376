"""The third stage of a save: numbers, names and checkpoint keys are fixed, and what was collected is checked.

RFC: FN-14, FMT-09, PRIM-06, RES-14, V1-17
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.format.names import CREATE, INITIALIZE
from reference_impl.kinds import variable
from reference_impl.saving import checkpoint, dropped, hidden_state, python_calls, size
from reference_impl.saving.assets import Assets
from reference_impl.saving.collect import Collected, Functions
from reference_impl.saving.options import SaveOptions
from reference_impl.saving.tree import Node, Tree


@dataclass(frozen=True)
class Frozen:
    """An export in which no object can join any more.

    Attributes:
      tree: all objects, with their numbers.
      collected: what the export consists of.
      variables: number of a variable's node -> its name.
      keys: the checkpoint keys.
      object_graph: the TrackableObjectGraph of the checkpoint, serialised.
      assets: the files that go along.
      asset_names: number of an asset's node -> name of its file.
    """

    tree: Tree
    collected: Collected
    variables: Mapping[int, str]
    keys: checkpoint.Keys
    object_graph: bytes
    assets: Assets
    asset_names: Mapping[int, str]


def freeze(collected: Collected, options: SaveOptions) -> Frozen:
    """Return the export of what was collected.

    Raises:
      SaveError: something would be lost (with ``strict``), or the export is too large.
    """
    tree, functions = collected.tree.freeze(), collected.functions
    with api.eager_mode():
        size.check(tree, functions.library, functions.names)
        dropped.check(tree, functions.library)
        _share_names(tree, functions)
        _check_hidden_state(tree, functions)
        _check_python_calls(tree, functions)
        variables = {node.number: variable.name_of(node.object) for node in tree.nodes if api.is_variable(node.object)}
        stored = [slot for slot in collected.slots if not slot.listed]
        keys = checkpoint.Keys(tree, stored)
        graph = checkpoint.object_graph(tree, keys, variables, collected.contents, stored)
        assets = Assets(options.strict)
        assets.add_extra(tree.root, options.extra_assets)
        names = {node.number: assets.add(node.object, node.path) for node in tree.nodes if isinstance(node.object, api.Asset)}
    return Frozen(tree, collected, variables, keys, graph, assets, names)


def _share_names(tree: Tree, functions: Functions) -> None:
    """Derive the shared names of resources from the paths of their objects."""
    for node in _resources(tree, CREATE):
        functions.library.share(functions.names[tree.concrete(node.children[CREATE])], node.path)
    functions.library.apply_shared_names()


def _check_hidden_state(tree: Tree, functions: Functions) -> None:
    def named(child: str) -> list[str]:
        return [functions.names[tree.concrete(node.children[child])] for node in _resources(tree, child)]

    try:
        hidden_state.check(functions.library.definitions, named(CREATE), named(INITIALIZE))
    except SaveError as error:
        tree.lose(error, "state is left out")


def _check_python_calls(tree: Tree, functions: Functions) -> None:
    try:
        python_calls.check(functions.library, tree.paths(functions.names))
    except SaveError as error:
        tree.lose(error, "calls of Python are kept, which only this process can run")


def _resources(tree: Tree, child: str) -> list[Node]:
    """Return the resources that have a function under the name `child`."""
    return [node for node in tree.nodes if isinstance(node.object, api.CapturableResource) and child in node.children]
