"""Replace OneShotIterators by iterators that are filled when the model is loaded.

A OneShotIterator makes its dataset with a function in an attribute, on first use, and refuses a shared name. Loaders of TF 2 give
a shared name to every op that declares the attribute, so a function with this op fails. An IteratorV2 that one MakeIterator fills
gives the same elements.

RFC: V1-16, V1-17
"""

from __future__ import annotations

from reference_impl.format import schema
from reference_impl.graph.node_index import Graph


def rewrite_one_shot_iterators(graph: Graph) -> dict[str, str]:
    """Replace every OneShotIterator in place; return for each the node that fills it, which has to run once."""
    found = {}
    for node in [node for node in graph if node.op == "OneShotIterator" and node.attr["dataset_factory"].func.name]:
        dataset = schema.NodeDef(name=graph.free_name(f"{node.name}/dataset"), op="StatefulPartitionedCall", device=node.device)
        dataset.attr["f"].CopyFrom(node.attr["dataset_factory"])
        dataset.attr["Tin"].list.SetInParent()
        dataset.attr["Tout"].list.type.append(schema.DT_VARIANT)
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
