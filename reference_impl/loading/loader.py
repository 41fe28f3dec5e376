"""The sequence of a load, from a MetaGraph with an object graph to live objects.

    checkpoint keys are paired with nodes (no object needed)
    nodes become objects: variables with their values, functions without a graph
    children become attributes, bound inputs become captures
    resources are created and filled, then the initialisers run

`reference_impl.kinds` has one module for each kind of node. All node numbers in the file are
checked first.

RFC: RP-01, RP-02, RP-03, RP-04, RP-05, RP-06, RP-07, RP-08, RP-09, FMT-01, FMT-02, FMT-03, FMT-04,
FMT-05
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Optional

import tensorflow as tf

from reference_impl.errors import CycleError, MalformedError, SavedModelError, UnsupportedModelError
from reference_impl.extension import new_objects
from reference_impl.extension.hooks import Hooks, Origin
from reference_impl.format import extension, schema
from reference_impl.format.container.layout import Layout
from reference_impl.format.names import SIGNATURES_CHILD
from reference_impl.functions import captured_tensor, graph_versions, saved_functions
from reference_impl.functions.load_context import Load
from reference_impl.functions.model_gradients import add_custom_gradients
from reference_impl.functions.unknown_ops import UnknownOpError
from reference_impl.graph import order
from reference_impl.graph.object_graph import Paths
from reference_impl.graph.object_references import containers, dangling, dangling_captures, misfits
from reference_impl.graph.saved_variables import invalid
from reference_impl.kinds import (
    asset,
    constant,
    function,
    object_state,
    optimizer,
    registered_savers,
    resource,
    signature_map,
    user_object,
)
from reference_impl.kinds import variable as variables
from reference_impl.kinds.root import add_function_aliases, provenance
from reference_impl.load_options import LoadOptions
from reference_impl.loading import steps
from reference_impl.loading.selection import Selection
from reference_impl.safety import effects, machine_ops
from reference_impl.tracing import Watch

_log = logging.getLogger(__name__)

# The function that makes the object of a node, by kind. An optimizer is a user object with slots.
READERS: dict[Optional[str], Callable[[Load, int, Any], Any]] = {
    "asset": asset.read,
    "bare_concrete_function": saved_functions.read,
    "captured_tensor": captured_tensor.read,
    "constant": constant.read,
    "function": function.read,
    "optimizer": optimizer.read,
    "resource": resource.read,
    "user_object": user_object.read,
    "variable": variables.read,
}
# The function that gives an object its children, after all objects are made. Other kinds have none.
ATTACHERS: dict[Optional[str], Callable[[Load, int, Any], None]] = {
    "resource": resource.attach_children,
    "user_object": user_object.attach_children,
    "variable": user_object.attach_attributes,
}


def load_object_graph(
    directory: Layout,
    meta_graph: schema.MetaGraphDef,
    options: LoadOptions,
    watch: Optional[Watch] = None,
) -> Any:
    """Return the root object of a MetaGraph that has an object graph."""
    file = str(directory.file)
    _check(meta_graph.object_graph_def, file)
    refused = graph_versions.refusal(meta_graph.graph_def.versions)
    # the main graph is not imported here, so TensorFlow's loader does not look at its versions
    # either
    if refused:
        _log.warning(
            "%s: graph_def.versions: %s. Sessions and servers refuse the model", file, refused
        )
    message = extension.read(meta_graph, file)
    loader = Loader(
        directory, meta_graph, options, extension.object_graph(meta_graph, message), watch
    )
    if watch is not None:
        steps.tell_graph(watch, loader)
    if options.only is not None:
        loader.select(Selection.of_paths(loader.whole, options.only, loader.library.index, file))
    origin = Origin(
        directory,
        meta_graph,
        loader.graph,
        message,
        functools.partial(new_objects.construct, _load_part),
    )
    return loader.load(Hooks(origin))


def _check(graph: schema.SavedObjectGraph, file: str) -> None:
    """Check node numbers, variables and roles, and that no container contains itself.

    Raises MalformedError, CycleError.
    """
    if not graph.nodes:
        raise MalformedError("the object graph is empty", file=file, node="object_graph_def")
    for number, _, other in dangling(graph):
        raise MalformedError(
            f"refers to node {other} of {len(graph.nodes)}",
            file=file,
            node=f"object_graph_def.nodes[{number}]",
        )
    variables = (
        (number, node.variable)
        for number, node in enumerate(graph.nodes)
        if node.HasField("variable")
    )
    impossible = (
        (number, f"the variable {item.name!r}: {why}")
        for number, item in variables
        if (why := invalid(item))
    )
    for number, reason in itertools.chain(impossible, misfits(graph)):
        raise MalformedError(reason, file=file, node=Paths(graph.nodes).from_root(number))
    _needed_first(containers(graph), file)
    for name, other in dangling_captures(graph):
        raise MalformedError(
            f"a function captures node {other} of {len(graph.nodes)}", file=file, node=name
        )


def _needed_first(needs: Mapping[int, Iterable[int]], file: str) -> list[int]:
    """Return the nodes, each after the nodes that it is made of.

    Those that are not keys are ignored. Raises CycleError.
    """
    found = order.sources_first({number: needs[number] for number in sorted(needs)})
    if found is None:
        first = order.circles(needs)[0][0]
        reason = "a list, dict or tuple contains itself, or objects are made of each other"
        raise CycleError(reason, file=file, node=f"object_graph_def.nodes[{first}]")
    return found


def _load_part(hooks: Hooks, number: int) -> None:
    """Load the part of a model that begins at a node, without values; the hooks make the object of
    that node.
    """
    origin = hooks.origin
    loader = Loader(
        origin.directory, origin.meta_graph, LoadOptions(skip_checkpoint=True), origin.graph
    )
    loader.select(Selection(loader.whole, loader.library.index, {number}))
    loader.load(hooks, number)


class Loader(Load):
    """One load. `load` returns the root."""

    selected: Optional[frozenset[int]] = None  # the nodes to make, None for all
    hooks: Hooks

    def select(self, selection: Selection) -> None:
        """Load a part."""
        self.selected, self.graph = selection.nodes, selection.pruned()

    def load(self, hooks: Hooks, start: int = 0) -> Any:
        """Make all objects and return the object of the node `start`."""
        self.hooks = hooks
        hooks.check(self)
        self.assets = asset.Assets(self.directory, self.meta_graph)
        try:
            with variables.made_with_values() if self.library.eager else contextlib.nullcontext():
                self.make_objects()
            if self.watch is not None:
                steps.tell_left_out(self.watch, self, self.selected)
            self.checkpoint.finish()
            self.check_machine_ops()
            self.attach_children()
            self.bind_captures()
            hooks.attach(self)
            self.each_resource(resource.fill)
            object_state.restore(self)
            registered_savers.restore(self)
        finally:
            self.checkpoint.close()
        with self.assets.needed():
            self.each_resource(resource.run_initializer)
        self.describe(start)
        if self.watch is not None:
            found = getattr(self.objects[start], SIGNATURES_CHILD)
            if isinstance(found, signature_map.SignatureMap):
                signature_map.tell_signatures(self.watch, self.file, found, "ATTR-01")
        return self.objects[start]

    def make_objects(self) -> None:
        """Make the object of every node, after the objects that it is made of."""
        nodes = self.graph.nodes
        numbers = range(len(nodes)) if self.selected is None else sorted(self.selected)
        needs = {
            number: found
            for number in numbers
            if (found := list(user_object.made_of(nodes[number])))
        }
        for number in (
            *(number for number in numbers if number not in needs),
            *_needed_first(needs, self.file),
        ):
            made = self.make(number, nodes[number])
            self.objects[number] = made
            if self.watch is not None:
                steps.tell_made(self.watch, self, number, made)
            self.hooks.made(self, number, nodes[number], made)

    def make(self, number: int, node: schema.SavedObject) -> Any:
        """Return the object of a node."""
        made = self.hooks.make(self, number, node)
        if made is not None:
            return made
        kind = node.WhichOneof("kind")
        if kind not in READERS:
            raise UnsupportedModelError(
                f"an object of kind {kind}", file=self.file, node=self.path(number)
            )
        is_optimizer = (
            kind == "user_object" and node.slot_variables and not user_object.is_container(node)
        )
        return READERS["optimizer" if is_optimizer else kind](self, number, node)

    def check_machine_ops(self) -> None:
        """Report or refuse effects of initialisers on the machine.

        Only resources have initialisers.
        """
        if any(isinstance(made, resource.LoadedResource) for made in self.objects):
            starts = effects.object_starts(self.graph, Paths(self.graph.nodes))
            machine_ops.check(
                self.options.machine_ops,
                self.directory,
                self.meta_graph,
                self.graph,
                self.library.index,
                starts,
            )

    def attach_children(self) -> None:
        """Give every object its children, and optimizers their slots."""
        for number, node in enumerate(self.graph.nodes):
            kind = node.WhichOneof("kind")
            if kind in ATTACHERS:
                ATTACHERS[kind](self, number, node)
                if self.watch is not None:
                    steps.tell_children(self.watch, self, number)
        for number, node in enumerate(self.graph.nodes):
            if isinstance(self.objects[number], optimizer.LoadedOptimizer):
                optimizer.attach_slots(self, number, node)

    def bind_captures(self) -> None:
        """Bind the captures of functions.

        A function of a resource refers to the resource weakly, so that both can be freed.
        """
        owned = resource.owned_functions(self.graph)
        for name, made in self.functions.items():
            bound = self.graph.concrete_functions[name].bound_inputs
            made.capture([self.objects[number] for number in bound])
            if self.watch is not None:
                steps.tell_captures(self.watch, self, name, bound)
            for number in owned.get(name, ()):
                made.refer_weakly_to(self.objects[number])
        add_custom_gradients(self)

    def each_resource(self, action: Callable[[Load, int], None]) -> None:
        """Apply an action to every resource.

        A resource that needs an unknown op stays unfilled, and its users get the error.

        RFC: DR-05
        """
        for number, made in enumerate(self.objects):
            if isinstance(made, resource.LoadedResource) and made.unfilled is None:
                try:
                    action(self, number)
                except tf.errors.NotFoundError as error:
                    if "Op type not registered" not in error.message:
                        raise
                    reason = getattr(error, "reason", error.message.partition(". ")[0])
                    made.unfilled = UnknownOpError(
                        f"it is not filled: {reason}", file=self.file, node=self.path(number)
                    )
                    _log.warning("%s", made.unfilled)
                    if self.watch is not None:
                        said, rule = made.unfilled.reason, made.unfilled.clause
                        self.watch.tell("initializer", self.file, self.label(number), said, rule)
                except SavedModelError as error:
                    error.file = error.file or self.file
                    raise

    def describe(self, start: int) -> None:
        """Give the object of a node the attributes that every root has, unless the model has a
        child of that name.
        """
        root = self.objects[start]
        if self.options.load_function_aliases:
            polymorphic = [
                made for made in self.objects if isinstance(made, function.LoadedFunction)
            ]
            aliases = self.meta_graph.meta_info_def.function_aliases
            add_function_aliases(
                root, aliases, functools.partial(saved_functions.find, self), polymorphic
            )
        if getattr(root, SIGNATURES_CHILD, None) is None:
            user_object.set_plain(root, SIGNATURES_CHILD, signature_map.of_node(self, start))
        for name, value in provenance(self.directory, self.meta_graph).items():
            if getattr(root, name, None) is None:
                user_object.set_plain(root, name, value)
