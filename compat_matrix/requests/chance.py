"""Outputs of a TF 1.x signature that depend on chance: one call reads and updates a variable, and
the graph does not say which comes first. A session may answer either value, and not always the same
one. Metrics of Estimators are an example.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reference_impl.errors import SavedModelError
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import Edge, parse_input
from reference_impl.graph.node_index import Graph
from reference_impl.graph.signature_tensors import parts_of
from reference_impl.graph.variable_defs import VARIABLE_OPS

# Ops that pass references and handles on; the output of an update is the reference too.
PASSING = (
    "RefSwitch",
    "RefMerge",
    "RefEnter",
    "RefExit",
    "RefNextIteration",
    "RefIdentity",
    "RefSelect",
    "Switch",
    "Enter",
)
UPDATES = ("Assign", "Scatter", "Apply", "SparseApply", "StridedSliceAssign", "CountUpTo")
_READS = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd")


def left_to_chance(meta_graph: Any, key: str) -> dict[str, str]:
    """Return output -> variable for the signature ``key``; empty for a graph that contradicts
    itself.
    """
    signature = meta_graph.signature_def[key]
    outputs = tensors_of(signature.outputs)
    fetched = list(itertools.chain.from_iterable(outputs.values()))
    fed = list(refs_of(signature.inputs))
    try:
        graph = Graph(meta_graph.graph_def, "")
        needed = graph.ancestors(fetched, stop=fed)
    except SavedModelError:
        return {}
    flow = _Flow(graph, needed, {ref.source for ref in fetched})
    found: dict[str, str] = {}
    for name in needed:
        if graph.nodes[name].op not in VARIABLE_OPS:
            continue
        for reader in flow.racing(name):
            behind = flow.reach([reader], flow.data)
            for output, refs in outputs.items():
                if any(ref.source in behind for ref in refs):
                    found[output] = name
    return found


def chance_notes(signature: str, chance: Mapping[str, str]) -> list[str]:
    """Return a sentence for each output of a signature that is left to chance; ``chance``: output
    -> variable.
    """
    said = (
        "of signature {!r} is not compared, the old model leaves it to chance: one call reads"
        " variable {!r} and updates it"
    )
    return [
        f"output {name!r} {said.format(signature, variable)}, in no order"
        for name, variable in sorted(chance.items())
    ]


def random_notes(signature: str, random: Mapping[str, str]) -> list[str]:
    """Return a sentence for each output of a signature that is random; ``random``: output -> node
    that draws, or "".
    """
    said = f"of signature {signature!r} is not compared, the old model answers otherwise"
    why = {
        name: f"in each call: node {node!r} draws numbers" if node else "when it is loaded again"
        for name, node in random.items()
    }
    return [f"output {name!r} {said} {text}" for name, text in sorted(why.items())]


def tensors_of(infos: Mapping[str, Any]) -> dict[str, list[Edge]]:
    """Return the tensor of each output: several outputs for a sparse or a composite one, with names
    as in requests.
    """
    found: dict[str, list[Edge]] = {}
    for name, info in infos.items():
        for part, tensor, _, _ in parts_of(info)[1]:
            found[f"{name}/{part}" if part else name] = [parse_input(tensor)] if tensor else []
    return found


def refs_of(infos: Mapping[str, Any]) -> Iterator[Edge]:
    """Yield the tensors of the inputs or outputs of a signature."""
    for info in infos.values():
        for _, name, _, _ in parts_of(info)[1]:
            if name:
                yield parse_input(name)


class _Flow:
    """Return the order of the nodes that a signature needs."""

    def __init__(self, graph: Graph, needed: Iterable[str], fetched: set[str]) -> None:
        self.graph, self.fetched = graph, fetched
        self.after: dict[str, list[str]] = {name: [] for name in needed}
        self.data: dict[str, list[str]] = {name: [] for name in self.after}
        self.before: dict[str, list[str]] = {name: [] for name in self.after}
        self.users: dict[Edge, list[tuple[str, int]]] = {}
        for name in self.after:
            for position, text in enumerate(graph.nodes[name].input):
                ref = parse_input(text)
                if ref.source in self.after:
                    self.after[ref.source].append(name)
                    self.before[name].append(ref.source)
                    if not ref.is_control:
                        self.data[ref.source].append(name)
                        self.users.setdefault(ref, []).append((name, position))

    def racing(self, variable: str) -> set[str]:
        """Return the readers of a variable that are neither before nor after one of its updates."""
        readers, updates = self._uses(variable)
        found: set[str] = set()
        for update in updates if readers else ():
            found |= readers - self.reach([update], self.after) - self.reach([update], self.before)
        return found

    def _uses(self, variable: str) -> tuple[set[str], set[str]]:
        """Return the names of the nodes that read a variable, and of those that update it."""
        readers: set[str] = set()
        updates: set[str] = set()
        is_handle = self.graph.nodes[variable].op == "VarHandleOp"
        seen, stack = {Edge(variable)}, [Edge(variable)]
        while stack:
            for name, position in self.users.get(stack.pop(), ()):
                op = self.graph.nodes[name].op
                updating = position == 0 and op.removeprefix("Resource").startswith(UPDATES)
                if updating:
                    updates.add(name)
                elif (
                    op == "Identity" and not is_handle
                ):  # it returns the buffer, which is read when it is used
                    readers.update(user for user, _ in self.users.get(Edge(name), ()))
                    readers.update({name} & self.fetched)
                elif op in _READS or not (is_handle or op in PASSING):
                    readers.add(name)
                if (
                    (updating and not is_handle)
                    or op in PASSING
                    or (op == "Identity" and is_handle)
                ):
                    passed = {Edge(name), Edge(name, "1")} - seen
                    seen |= passed
                    stack += passed
        return readers, updates

    def reach(self, start: Iterable[str], edges: Mapping[str, list[str]]) -> set[str]:
        """Return all nodes that ``edges`` lead to, the starts included."""
        return set(reachable(start, edges))
