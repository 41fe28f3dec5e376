"""The third stage of a save: fix numbers, names and checkpoint keys, and check the collected
contents.

RFC: FN-01, FN-14, FN-15, FMT-09, OPT-02, PRIM-06, RES-14, V1-17
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reference_impl.format import schema
from reference_impl.format.names import CREATE, VALUE, checkpoint_key, key_prefix, slot_prefix
from reference_impl.kinds import asset, variable
from reference_impl.kinds.optimizer import SavedSlot, write_slot
from reference_impl.saving.assets import Assets
from reference_impl.saving.checks import dropped, hidden_state
from reference_impl.saving.checks import functions as checks
from reference_impl.saving.collect import Collected
from reference_impl.saving.contents import Content
from reference_impl.saving.options import SaveOptions
from reference_impl.saving.tree import Tree


class Keys:
    """The checkpoint keys of a tree: the shortest path of each object, escaped."""

    def __init__(self, tree: Tree, slots: Sequence[SavedSlot]):
        self._prefixes = {0: ""}
        for node in tree.nodes:
            if node.number in self._prefixes:
                for name, child in node.children.items():
                    self._prefixes.setdefault(
                        child, self._prefixes[node.number] + key_prefix((name,))
                    )
        for slot in slots:
            optimizer, trained = self._prefixes[slot.optimizer], self._prefixes[slot.variable]
            self._prefixes.setdefault(slot.value, slot_prefix(trained, optimizer, slot.name))

    def key(self, number: int, attribute: str) -> str:
        return checkpoint_key(self._prefixes[number], attribute)


@dataclass(frozen=True)
class Frozen:
    """An export to which no more objects can be added."""

    tree: Tree
    collected: Collected
    variables: Mapping[int, str]  # number of a variable's node -> its name
    keys: Keys
    object_graph: bytes  # the TrackableObjectGraph of the checkpoint
    assets: Assets
    asset_names: Mapping[int, str]  # number of an asset's node -> name of its file


def freeze(collected: Collected, options: SaveOptions) -> Frozen:
    """Return the frozen export.

    Raises SaveError if data would be lost (with ``strict``) or the export is too large.
    """
    tree, functions = collected.tree.freeze(), collected.functions
    checks.check_size(tree, functions)
    dropped.check(tree, functions)
    for node, creator in tree.of_resources(
        CREATE
    ):  # the shared names of resources are those of their objects
        functions.library.share(functions.names[creator], node.path)
    functions.library.apply_shared_names()
    hidden_state.check(tree, functions)
    checks.check_python_calls(tree, functions)
    variables = {
        node.number: variable.name_of(node.object)
        for node in tree.nodes
        if node.kind is variable.KIND
    }
    stored = [slot for slot in collected.slots if not slot.listed]
    keys = Keys(tree, stored)
    graph = _object_graph(tree, keys, variables, collected.contents, stored)
    assets = Assets(options.strict)
    assets.add_extra(tree.root, options.extra_assets)
    names = {
        node.number: assets.add(node.object, node.path)
        for node in tree.nodes
        if node.kind is asset.KIND
    }
    return Frozen(tree, collected, variables, keys, graph, assets, names)


def _object_graph(
    tree: Tree,
    keys: Keys,
    variables: Mapping[int, str],
    contents: Mapping[int, Sequence[Content]],
    slots: Sequence[SavedSlot],
) -> bytes:
    """Return the TrackableObjectGraph.

    `variables` gives full names, `contents` the contents of tables, by number.
    """
    out = schema.TrackableObjectGraph()
    for node in tree.nodes:
        proto = out.nodes.add()
        for name, child in node.children.items():
            proto.children.add(node_id=child, local_name=name)
        if node.number in variables:
            key = keys.key(node.number, VALUE)
            proto.attributes.add(name=VALUE, full_name=variables[node.number], checkpoint_key=key)
        for content in contents.get(node.number, ()):
            for name, end in content.attributes().items():
                proto.attributes.add(
                    name=name, full_name=name, checkpoint_key=keys.key(node.number, end)
                )
    for slot in slots:
        write_slot(out.nodes, slot)
    return schema.serialize(out)
