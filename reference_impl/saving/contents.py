"""The contents of an export: all its objects, their state, and the functions.

Objects join the tree here. The states of tables add functions. Optimizers add slots. Functions,
including those of custom gradients and of hooks, add the constants that they capture. Then
the tree and the function library are closed.

RFC: FN-05, FN-07, FN-17, FMT-14, OPT-02, RES-14
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from reference_impl import tensorflow_api as api
from reference_impl.format import schema
from reference_impl.format.names import CREATE
from reference_impl.functions.names import ExportName
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.kinds import optimizer
from reference_impl.kinds.optimizer import LoadedOptimizer, SavedSlot, slots_of
from reference_impl.saving.captures import Captures
from reference_impl.saving.checkpoint_layout import CheckpointLayout, checkpoint_layout
from reference_impl.saving.export_library import ExportLibrary
from reference_impl.saving.exported_functions import ExportedFunction, ExportedFunctions
from reference_impl.saving.exported_gradients import add_gradients
from reference_impl.saving.hook_context import HookContext
from reference_impl.saving.hooks import Addition
from reference_impl.saving.options import SaveOptions
from reference_impl.saving.saveable_state import SaveableState, add_states
from reference_impl.saving.saver_functions import SaverFunctions, add_saver_functions
from reference_impl.saving.shared_names import apply_shared_names
from reference_impl.saving.signature_function import SignatureFunction
from reference_impl.saving.traced_shapes import TracedShapes
from reference_impl.saving.traces import saved_concrete
from reference_impl.saving.tree import Tree, TreeBuilder
from reference_impl.saving.tree_functions import add_functions


@dataclass(frozen=True)
class Contents:
    """The contents of an export.

    Attributes:
      states, slots: of tables by the number of their node, and of optimizers.
      checkpoint: the keys of the checkpoint, and its object graph.
      saver: the functions that save and restore in a session, unless they are left out.
      additions: what the hooks of the save add to its messages.
    """

    tree: Tree
    signatures: Mapping[str, SignatureFunction]
    states: Mapping[int, Sequence[SaveableState]]
    slots: Sequence[SavedSlot]
    functions: ExportedFunctions
    checkpoint: CheckpointLayout
    saver: Optional[SaverFunctions]
    additions: Sequence[Addition]


def collect_contents(
    tree: Tree, signatures: Mapping[str, SignatureFunction], options: SaveOptions
) -> Contents:
    """Return the contents of the export of a tree. Raises SaveError."""
    builder = TreeBuilder(tree)
    states = add_states(builder)
    with api.eager_mode():  # in graph mode too: the user's graph is complete now
        slots = _add_slots(builder)
        library = ExportLibrary()
        captures, shapes = Captures(builder, library), TracedShapes(library)
        functions = add_functions(builder, library, captures, shapes, options.expand)
        described = _described(functions, builder)
        additions = _additions(builder, library, captures, functions, slots, options)
        names = {number: function.name for number, function in functions.items()}
        gradients = add_gradients(
            builder, library, captures, shapes, names, options.custom_gradients
        )
        closed = builder.close()
        creators = [(names[number], node.path) for node, number in closed.of_resources(CREATE)]
        apply_shared_names(library, creators)
        checkpoint = checkpoint_layout(closed, states, slots)
        saver = (
            None
            if options.skip_saver
            else add_saver_functions(closed, library, functions, states, checkpoint, options.expand)
        )
    exported = ExportedFunctions(
        library.close(),
        functions,
        {**described, **gradients.described},
        gradients.functions,
        _traced(closed),
    )
    return Contents(closed, signatures, states, slots, exported, checkpoint, saver, additions)


def _add_slots(tree: TreeBuilder) -> list[SavedSlot]:
    """Return the slots of all optimizers among the objects. Their variables join the tree.

    RFC: OPT-02, V1-18
    """
    found = []
    variables = [node.object for node in tree.nodes if node.is_variable]
    for node in list(tree.nodes):
        slots: Sequence[tuple[Any, str, Any]] = ()
        if isinstance(node.object, LoadedOptimizer):
            slots = [(slot.variable, slot.name, slot.value) for slot in slots_of(node.object)]
        elif node.kind is optimizer.KIND:
            slots = api.optimizer_slots(node.object, variables)
        for variable, name, value in slots:
            number = tree.number_of(variable)
            if number is not None:
                listed = tree.number_of(value) is not None
                slot = tree.add(value, f"{node.path}.{name}[{tree.nodes[number].path}]")
                found.append(SavedSlot(node.number, number, name, slot, listed))
    return found


def _described(
    functions: Mapping[int, ExportedFunction], tree: Tree
) -> dict[ExportName, schema.SavedConcreteFunction]:
    """Return name of a function -> its SavedConcreteFunction."""
    return {
        function.name: saved_concrete(function.trace, function.captures, tree.nodes[number].path)
        for number, function in functions.items()
    }


def _additions(
    tree: TreeBuilder,
    library: ExportLibrary,
    captures: Captures,
    functions: Mapping[int, ExportedFunction],
    slots: Sequence[SavedSlot],
    options: SaveOptions,
) -> Sequence[Addition]:
    """Return what the hooks add to the messages.

    Their functions are added to the library, and the constants these capture to the tree.

    Raises UntrackedCaptureError if any function captures state that is not reachable.
    """
    context = HookContext(tree, library, captures, functions, slots, options.functional_optimizers)
    additions = tuple([hook.add(context) for hook in tree.hooks])
    captures.check()
    return additions


def _traced(tree: Tree) -> list[Any]:
    """Return the concrete functions of a tree that were traced in this process."""
    live = [node.object for node in tree.nodes if isinstance(node.object, api.ConcreteFunction)]
    live += [
        node.object.target for node in tree.nodes if isinstance(node.object, SignatureFunction)
    ]
    return [function for function in live if not isinstance(function, RegisteredFunction)]
