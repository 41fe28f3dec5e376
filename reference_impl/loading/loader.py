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
import logging
from collections.abc import Sequence
from typing import Any, Optional

from reference_impl import safety
from reference_impl.errors import UnsupportedModelError
from reference_impl.fast import calls
from reference_impl.fast import variables as fast_variables
from reference_impl.format import extension, schema
from reference_impl.format.container.layout import Layout
from reference_impl.format.names import SIGNATURES_CHILD
from reference_impl.functions import graph_versions, saved_functions
from reference_impl.functions.load_context import LoadContext, Origin
from reference_impl.functions.model_gradients import add_custom_gradients
from reference_impl.graph import object_references
from reference_impl.kinds import asset, function, resource, signature_map, user_object
from reference_impl.kinds import variable as variables
from reference_impl.kinds.registry import Registry
from reference_impl.load_options import LoadOptions
from reference_impl.loaded_model import add_function_aliases, provenance
from reference_impl.loading import registered_savers, steps
from reference_impl.loading.hooks import LoadHook
from reference_impl.loading.selection import Selection
from reference_impl.tracing import Watch

_log = logging.getLogger(__name__)


def load_object_graph(
    directory: Layout,
    meta_graph: schema.MetaGraphDef,
    options: LoadOptions,
    watch: Optional[Watch] = None,
) -> Any:
    """Return the root object of a MetaGraph that has an object graph."""
    file = str(directory.file)
    object_references.check(meta_graph.object_graph_def, file)
    refused = graph_versions.refusal(meta_graph.graph_def.versions)
    # the main graph is not imported here, so TensorFlow's loader does not look at its versions
    # either
    if refused:
        _log.warning(
            "%s: graph_def.versions: %s. Sessions and servers refuse the model", file, refused
        )
    message = (
        extension.read(meta_graph, file) if extension.KEY in meta_graph.collection_def else None
    )
    graph = extension.object_graph(meta_graph, message) if message else meta_graph.object_graph_def
    loader = Loader(directory, meta_graph, options, graph, watch)
    if watch is not None:
        steps.tell_graph(watch, loader)
    if options.only is not None:
        loader.select(Selection.of_paths(loader.whole, options.only, loader.library.index, file))
    origin = Origin(directory, meta_graph, loader.graph, options, message, _construct)
    return loader.load(origin, _extension_hooks(origin))


def _extension_hooks(origin: Origin) -> Sequence[LoadHook]:
    """Return the hooks of `reference_impl.extension`, or none for a file in which it has nothing to
    read.
    """
    if origin.extension is None and not any(
        node.registered_name or node.HasField("serialized_user_proto")
        for node in origin.graph.nodes
    ):
        return ()
    from reference_impl.extension.hooks import ExtensionHook

    return (ExtensionHook(origin),)


def _construct(
    origin: Origin, number: int, instance: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Fill an object that was made by calling the class of a loaded object."""
    from reference_impl.extension import new_objects

    new_objects.construct(_load_part, origin, number, instance, args, kwargs)


def _load_part(hook: LoadHook, origin: Origin, number: int) -> None:
    """Load the part of a model that begins at a node, without values; the hook makes the object of
    that node.
    """
    options = LoadOptions(skip_checkpoint=True, kinds=origin.options.kinds)
    loader = Loader(origin.directory, origin.meta_graph, options, origin.graph)
    loader.select(Selection(loader.whole, loader.library.index, {number}))
    loader.load(origin, (hook,), number)


class Loader(LoadContext):
    """One load. `load` returns the root."""

    selected: Optional[frozenset[int]] = None  # the nodes to make, None for all
    hooks: Sequence[LoadHook] = ()
    variables: dict[int, Any] = {}  # made by `reference_impl.fast` before their turn

    @property
    def uses_fast_code(self) -> bool:
        """Whether `reference_impl.fast` may make objects: nobody else takes part in the load or
        watches it.
        """
        return self.options.fast and self.watch is None and not self.hooks

    @property
    def has_resources(self) -> bool:
        """Whether the part that is loaded has tables or other resources."""
        return resource.KIND in self.kinds

    def select(self, selection: Selection) -> None:
        """Load a part."""
        self.selected, self.graph = selection.nodes, selection.pruned()

    def load(self, origin: Origin, hooks: Sequence[LoadHook], start: int = 0) -> Any:
        """Make all objects and return the object of the node `start`."""
        self.origin, self.hooks = origin, hooks
        if self.options.fast:
            self.library.prepare_call = calls.prepare
        for hook in hooks:
            hook.check(self)
        self.assets = asset.Assets(self.directory, self.meta_graph)
        self.find_kinds()
        try:
            with variables.made_with_values() if self.library.eager else contextlib.nullcontext():
                self.make_objects()
            if self.watch is not None:
                steps.tell_left_out(self.watch, self, self.selected)
            self.checkpoint.finish()
            self.check_machine_ops()
            self.attach_children()
            self.bind_captures()
            for hook in hooks:
                hook.attach(self)
            self.restore()
        finally:
            self.checkpoint.close()
        self.initialize()
        self.describe(start)
        if self.watch is not None:
            found = getattr(self.objects[start], SIGNATURES_CHILD)
            if isinstance(found, signature_map.SignatureMap):
                signature_map.tell_signatures(self.watch, self.file, found, "ATTR-01")
        return self.objects[start]

    def find_kinds(self) -> None:
        """Find the kind of every node that is loaded.

        Raises UnsupportedModelError if there is no such kind.
        """
        registry = Registry(self.options.kinds)
        nodes = self.graph.nodes
        for number in range(len(nodes)) if self.selected is None else sorted(self.selected):
            kind = self.kinds[number] = registry.of_node(nodes[number])
            if kind is None:
                reason = f"an object of kind {nodes[number].WhichOneof('kind')}"
                raise UnsupportedModelError(reason, file=self.file, node=self.path(number))

    def make_objects(self) -> None:
        """Make the object of every node, after the objects that it is made of."""
        nodes = self.graph.nodes
        self.variables = fast_variables.make_all(self) if self.uses_fast_code else {}
        needs: dict[int, list[int]] = {}
        for number, kind in enumerate(self.kinds):
            if kind is not None and (found := [*kind.made_of(nodes[number])]):
                needs[number] = found
        numbers = [
            number
            for number, kind in enumerate(self.kinds)
            if kind is not None and number not in needs
        ]
        for number in [*numbers, *object_references.needed_first(needs, self.file)]:
            made = self.make(number, nodes[number])
            self.objects[number] = made
            if self.watch is not None:
                steps.tell_made(self.watch, self, number, made)
            for hook in self.hooks:
                hook.made(self, number, nodes[number], made)

    def make(self, number: int, node: schema.SavedObject) -> Any:
        """Return the object of a node: of a hook, or of its kind."""
        if number in self.variables:
            return self.variables.pop(number)
        for hook in self.hooks:
            made = hook.make(self, number, node)
            if made is not None:
                return made
        return self.kinds[number].read(self, number, node)

    def check_machine_ops(self) -> None:
        """Report or refuse effects of initialisers on the machine.

        Only resources have initialisers.
        """
        if self.has_resources:
            safety.may_run(
                self.options.machine_ops,
                self.directory,
                self.meta_graph,
                self.library.index,
                objects=self.graph,
            )

    def attach_children(self) -> None:
        """Give every object its children, and optimizers their slots."""
        for number, node in enumerate(self.graph.nodes):
            if node.children or node.slot_variables:
                self.kinds[number].attach(self, number, node)
                if self.watch is not None:
                    steps.tell_children(self.watch, self, number)

    def restore(self) -> None:
        """Give every object its state, then let registered savers restore what they wrote."""
        for number, kind in enumerate(self.kinds):
            if kind is not None and self.objects[number] is not None:
                kind.restore(self, number, self.graph.nodes[number])
        if any(node.registered_saver for node in self.graph.nodes):
            registered_savers.restore(self)

    def initialize(self) -> None:
        """Run the initialisers. A missing asset is an error now."""
        with self.assets.needed():
            for number, kind in enumerate(self.kinds):
                if kind is not None:
                    kind.initialize(self, number, self.graph.nodes[number])

    def bind_captures(self) -> None:
        """Bind the captures of functions.

        A function of a resource refers to the resource weakly, so that both can be freed.
        """
        owned = resource.owned_functions(self.graph) if self.has_resources else {}
        for name, made in self.functions.items():
            bound = self.graph.concrete_functions[name].bound_inputs
            made.capture([self.objects[number] for number in bound])
            if self.watch is not None:
                steps.tell_captures(self.watch, self, name, bound)
            for number in owned.get(name, ()):
                made.refer_weakly_to(self.objects[number])
        add_custom_gradients(self)

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
