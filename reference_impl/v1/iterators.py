"""OneShotIterators as iterators that are filled when the model is loaded.

A OneShotIterator makes its dataset by a function in an attribute when it is first asked, and refuses a shared name. Every loader
of TF 2 gives one to whatever has the attribute, so none of them can take the op out of a function. An IteratorV2 that one
MakeIterator fills hands out the same elements.

RFC: V1-16, V1-17
"""

from __future__ import annotations

from reference_impl.format import schema
from reference_impl.graph.node_index import Graph
from reference_impl.graph.op_table import VARIANT


def rewrite_one_shot_iterators(graph: Graph) -> dict[str, str]:
    """Rewrite ``graph`` in place; returns for each such iterator the node that fills it, which has to run once."""
    found = {}
    for node in [node for node in graph if node.op == "OneShotIterator" and node.attr["dataset_factory"].func.name]:
        dataset = schema.NodeDef(name=graph.free_name(f"{node.name}/dataset"), op="StatefulPartitionedCall", device=node.device)
        dataset.attr["f"].CopyFrom(node.attr["dataset_factory"])
        dataset.attr["Tin"].list.SetInParent()
        dataset.attr["Tout"].list.type.append(VARIANT)
        graph.add(dataset)
        fill = schema.NodeDef(name=graph.free_name(f"{node.name}/fill"), op="MakeIterator", device=node.device)
        fill.input.extend([dataset.name, node.name])
        graph.add(fill)
        del node.attr["dataset_factory"]
        node.op = "IteratorV2"
        node.attr["shared_name"].s = node.attr["shared_name"].s or node.name.encode()
        node.attr["container"].s = node.attr["container"].s
        found[node.name] = fill.name
    return found
