"""Detect state inside functions, which a save cannot find.

A TF 1.x MetaGraph that tf.saved_model.load imports keeps its reference variables and its tables as
nodes of the functions. Their values live in the runtime and do not belong to any object, so the
export would lose them silently.

A resource with a shared name is saved if a resource object creates it too. A resource that never
changes after it was filled is also saved if an initialiser fills it, or if the function that uses
it does.

RFC: V1-17
"""

from __future__ import annotations

from collections.abc import Iterable

from reference_impl.errors import SaveError, listed
from reference_impl.format import schema
from reference_impl.format.names import CREATE, INITIALIZE
from reference_impl.functions.names import ExportName
from reference_impl.graph.closure import reachable
from reference_impl.graph.order import targets_first
from reference_impl.graph.references import FunctionIndex, nodes_of
from reference_impl.graph.variable_defs import REFERENCE_OPS
from reference_impl.saving.checks.resource_flow import Maker, ResourceFlow, maker_of, may_make
from reference_impl.saving.closed_library import ClosedLibrary
from reference_impl.saving.exported_functions import ExportedFunctions
from reference_impl.saving.tree import Tree

_VARIABLES = REFERENCE_OPS | {"AutoReloadVariable"}


def check(tree: Tree, functions: ExportedFunctions) -> None:
    """Report all internal state of functions that the export would lose.

    Functions must have their final shared names.
    """
    created = [functions.name(number) for _, number in tree.of_resources(CREATE)]
    initialized = [functions.name(number) for _, number in tree.of_resources(INITIALIZE)]
    found = sorted(_hidden(functions.library, created, initialized))
    if found:
        reason = (
            f"the functions keep {len(found)} variables or tables of TF 1.x inside, whose values no"
            " object holds: "
        )
        reason += (
            f"{listed(found)}. Load the model with reference_impl.load, which makes objects of them"
        )
        tree.report_loss(SaveError(reason, node=found[0], clause="V1-17"), "state is left out")


def _hidden(
    library: ClosedLibrary, created: Iterable[ExportName], initialized: Iterable[ExportName]
) -> set[str]:
    """Return the nodes of all functions that hold state of no object.

    `created` and `initialized` are the functions that create and fill resource objects.
    """
    with_variables = library.with_op(lambda op: op in _VARIABLES)
    found = {node.name for node in nodes_of(with_variables) if node.op in _VARIABLES}
    if not any(map(maker_of, nodes_of(library.with_op(may_make)))):
        return found
    index = FunctionIndex(schema.FunctionDefLibrary())
    index.functions = {str(name): item for name, item in library.definitions.items()}
    calls = index.calls()

    def makers(roots: Iterable[str]) -> set[tuple[str, bytes, bytes]]:
        called = nodes_of(index.functions[name] for name in reachable(roots, calls))
        return {maker[:3] for node in called if (maker := maker_of(node)) is not None}

    held, filled_at_load = makers(created), makers(initialized)
    flows: dict[str, ResourceFlow] = {}
    for name in targets_first(calls, calls.__getitem__):  # callees first, except inside a cycle
        flow = flows[name] = ResourceFlow(index.functions[name], index, flows)
        for maker in flow.used:
            if not isinstance(maker, Maker) or maker[:3] in held:
                continue
            if maker.may_change or not (maker[:3] in filled_at_load or maker in flow.filled):
                found.add(maker.node)
    return found
