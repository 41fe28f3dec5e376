"""From a MetaGraph with an object graph to live objects (RP-01..RP-09, FMT-01..FMT-05).

    checkpoint keys are paired with nodes (no object needed)
    nodes become objects: variables with their values, functions without a graph
    children become attributes, bound inputs become captures
    resources are created and filled, then the initialisers run

Everything the file says about numbers of nodes is checked first.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Optional

import tensorflow as tf

from reference_impl.errors import MalformedError, MissingKeyError, MissingValueError, SavedModelError, UnsupportedModelError
from reference_impl.extension import additions, registered_objects
from reference_impl.extension.optimizer import LoadedOptimizer
from reference_impl.format import extension
from reference_impl.format import names as reserved
from reference_impl.format.container.layout import Layout
from reference_impl.graph.object_graph import Paths
from reference_impl.inspection import effects, machine_ops
from reference_impl.kinds import constant, graph_mode, keras_identity, listed_variables
from reference_impl.kinds import user_object as objects
from reference_impl.kinds import variable as variables
from reference_impl.kinds.asset import Assets
from reference_impl.kinds.binding import Binder
from reference_impl.kinds.concrete_function import CapturedTensor, LoadedConcreteFunction
from reference_impl.kinds.function import LoadedFunction
from reference_impl.kinds.function_specs import flat_signature, make_binder, signature_of
from reference_impl.kinds.library import FunctionLibrary
from reference_impl.kinds.resource import TENSORS, LoadedResource, named_content
from reference_impl.kinds.root import add_function_aliases, provenance
from reference_impl.kinds.signature_map import SignatureMap, complete
from reference_impl.load_options import LoadOptions
from reference_impl.loading.checkpoint import Checkpoint
from reference_impl.loading.graph_checks import check, needed_first
from reference_impl.loading.origin import Origin
from reference_impl.loading.selection import Selection

_log = logging.getLogger(__name__)


def load_object_graph(directory: Layout, meta_graph: Any, options: LoadOptions) -> Any:
    """The root object of a MetaGraph that has an object graph.

    Args:
      directory: the SavedModel; assets and checkpoint are read from it.
      meta_graph: one of its MetaGraphs.

    Raises:
      SavedModelError: of the classes named in the modules that make the objects.
    """
    return Loader(directory, meta_graph, options).load()


class Loader:
    """One load. `load` gives the root."""

    trace_class = LoadedConcreteFunction

    def __init__(self, directory: Layout, meta_graph: Any, options: LoadOptions):
        self.directory = directory
        self.options = options
        self.meta_graph = meta_graph
        self.file = str(directory.file)
        check(meta_graph.object_graph_def, self.file)
        additional = extension.read(meta_graph, self.file)
        self.graph = extension.object_graph(meta_graph, additional)
        self.library = FunctionLibrary(meta_graph.graph_def.library, self.file)
        self.checkpoint = Checkpoint(directory, self.graph)
        self.selection: Optional[Selection] = None
        if options.only is not None:
            self.selection = Selection(self.graph, options.only, self.library.index, self.file)
            self.graph = self.selection.pruned()
        self.assets = Assets(directory, meta_graph)
        self.functions: dict[str, LoadedConcreteFunction] = {}
        self.objects: list[Any] = [None] * len(self.graph.nodes)
        self.origin = Origin(directory, meta_graph, self.graph, additional)
        self.growth = constant.Growth()
        self.start = 0  # the node that becomes the root

    def load(self) -> Any:
        try:
            with variables.made_with_values() if self.library.eager else contextlib.nullcontext():
                self.make_all()
            self.check_machine_ops()
            for number, node in enumerate(self.graph.nodes):
                self.attach_children(number, node)
            self.attach_slots()
            self.bind_captures()
            self.attach_additions()
            self.each_resource(self.fill)
        finally:
            self.checkpoint.close()
        with self.assets.needed():
            self.each_resource(self.initialize)
        root = self.objects[self.start]
        self.describe(root)
        return root

    def check_machine_ops(self) -> None:
        if any(isinstance(made, LoadedResource) for made in self.objects):  # nothing else runs
            starts = effects.object_starts(self.graph, Paths(self.graph.nodes))
            machine_ops.check(self.options.machine_ops, self.directory, self.meta_graph, self.graph, self.library.index, starts)

    # Objects

    def make_all(self) -> None:
        later = []
        for number, node in enumerate(self.graph.nodes):
            if node.WhichOneof("kind") == "user_object" and (self.is_tuple(number) or node.dependencies):
                later.append(number)
            elif self.selection is None or number in self.selection.nodes:
                self.objects[number] = self.make(number, node)
        for number in needed_first(later, self.needs, self.file):
            node = self.graph.nodes[number]
            if self.is_tuple(number):
                children = [(child.local_name, child.node_id) for child in node.children]
                self.objects[number] = objects.new_tuple(children, self.objects, root=number == 0)
            else:
                self.objects[number] = self.make(number, node)

    def is_tuple(self, number: int) -> bool:
        return self.graph.nodes[number].user_object.identifier == reserved.TUPLE

    def needs(self, number: int) -> Iterator[int]:
        """The nodes that a tuple or a user object is made of."""
        node = self.graph.nodes[number]
        return (item.node_id for item in (node.children if self.is_tuple(number) else node.dependencies))

    def make(self, number: int, node: Any) -> Any:
        kind = node.WhichOneof("kind")
        if kind == "user_object":
            return self.user_object(number, node)
        if kind == "variable":
            device = node.variable.device if self.options.keep_variable_devices else ""
            return variables.make(node.variable, self.value(number, node.variable), device)
        if kind == "function":
            return self.polymorphic(number, node.function)
        if kind == "bare_concrete_function":
            return self.bare(node.bare_concrete_function)
        if kind == "constant":
            return constant.make(node.constant.operation, self.graph_nodes, self.growth)
        if kind == "asset":
            return self.asset(number, node.asset)
        if kind == "resource":
            return LoadedResource(device=node.resource.device)
        if kind == "captured_tensor":
            return CapturedTensor(node.captured_tensor.name, node.captured_tensor.concrete_function)
        raise UnsupportedModelError(f"an object of kind {kind}", file=self.file, node=self.checkpoint.path(number))

    def value(self, number: int, variable: Any) -> Optional[tf.Tensor]:
        """The value of a variable from the checkpoint; None where the options leave it out."""
        if self.options.skip_checkpoint:
            return None
        try:
            return self.checkpoint.variable(number, variable)
        except SavedModelError as error:
            if self.options.allow_partial_checkpoint and isinstance(error, MissingValueError):
                return None
            error.node = error.node or self.checkpoint.path(number)
            raise

    @functools.cached_property
    def graph_nodes(self) -> dict[str, Any]:
        return {node.name: node for node in self.meta_graph.graph_def.node}

    def user_object(self, number: int, node: Any) -> Any:
        identifier = node.user_object.identifier
        if identifier == reserved.LIST:
            return objects.new_list()
        if identifier == reserved.DICT:
            return objects.new_dict(root=number == 0)
        if identifier == reserved.SIGNATURES:
            return None  # made of its children, which come later
        state = self.origin.registered.get(number)
        if node.registered_name:
            dependencies = {item.local_name: self.objects[item.node_id] for item in node.dependencies}
            revived_object = registered_objects.make(
                node, state, dependencies, self.checkpoint.path(number), self.directory, self.meta_graph
            )
            if revived_object is not None:
                return revived_object
        made = self.new_object(number, node)
        if node.registered_name or node.HasField("serialized_user_proto"):
            registered_objects.keep(made, node, state)
        if identifier.startswith(keras_identity.PREFIX) and self.selection is None:
            keras_identity.keep(made, node.user_object, self.keras_metadata.get(number))
        return made

    @functools.cached_property
    def keras_metadata(self) -> dict[int, Any]:
        return keras_identity.described(self.directory)

    def new_object(self, number: int, node: Any) -> Any:
        return objects.user_object(self.class_of(number, node))

    def class_of(self, number: int, node: Any) -> type:
        """The class of a generic object."""
        left_out = self.selection.left_out(number) if self.selection is not None else frozenset()
        base = LoadedOptimizer if node.slot_variables or number in self.origin.optimizers else objects.LoadedObject
        cls = objects.user_class(any(child.local_name == "__call__" for child in node.children), left_out, base)
        self.origin.add_class(number, cls)
        return cls

    def asset(self, number: int, asset: Any) -> Any:
        definitions = self.assets.definitions
        index = asset.asset_file_def_index
        if not 0 <= index < len(definitions):
            raise MalformedError(f"asset {index} of {len(definitions)}", file=self.file, node=self.checkpoint.path(number))
        return self.assets.make(definitions[index])

    # Functions

    def concrete(self, name: str, binder: Optional[Binder]) -> LoadedConcreteFunction:
        """The function of that name, one object however often it is referred to."""
        if name not in self.functions:
            function_def = self.library.get(name)
            if name not in self.graph.concrete_functions:  # asking for it would make it
                raise MissingKeyError("the object graph does not describe the function", file=self.file, node=name)
            saved = self.graph.concrete_functions[name]
            self.functions[name] = self.trace_class(self.library, name, signature_of(saved, function_def, self.file), binder)
            self.functions[name].saved = saved
        function = self.functions[name]
        if function.binder is None:
            function.binder = binder
        return function

    def find_function(self, name: str) -> Optional[LoadedConcreteFunction]:
        """A function of the library: as the object graph describes it, else with all arguments of its FunctionDef, flat."""
        if name in self.functions or name not in self.library:
            return self.functions.get(name)
        function_def = self.library.get(name)
        function = LoadedConcreteFunction(self.library, name, lambda: flat_signature(function_def))
        arguments = [argument.name for argument in function_def.signature.input_arg]
        function.set_flat_arguments(arguments, len(arguments))
        return function

    def gradient(self, name: str) -> Callable[[FunctionLibrary], LoadedConcreteFunction]:
        """A maker of the custom gradient `name`. The library will hold it, so it refers weakly to what holds the library."""
        function_def = self.library.get(name)
        saved = self.graph.concrete_functions[name]
        captured = [self.objects[number] for number in saved.bound_inputs]
        owners = [weakref.ref(owner) if isinstance(owner, LoadedResource) else owner for owner in captured]
        signature = signature_of(saved, function_def, self.file)

        def make(library: FunctionLibrary) -> LoadedConcreteFunction:
            function = LoadedConcreteFunction(library, name, signature)
            function.saved = saved
            function.capture(owners)
            return function

        return make

    def polymorphic(self, number: int, function: Any) -> LoadedFunction:
        name = self.names.get(number, "function")
        binder = make_binder(name, function.function_spec, self.file)
        return LoadedFunction(name, binder, [self.concrete(trace, binder) for trace in function.concrete_functions])

    def bare(self, bare: Any) -> LoadedConcreteFunction:
        name = bare.concrete_function_name
        known = self.functions.get(name)
        binder = known.binder if known is not None else None  # a trace of a function that is known has its signature
        if binder is None and bare.HasField("function_spec"):
            binder = make_binder(name, bare.function_spec, self.file)
        function = self.concrete(name, binder)
        function.set_flat_arguments(list(bare.argument_keywords), bare.allowed_positional_arguments)
        return function

    @functools.cached_property
    def names(self) -> dict[int, str]:
        """A name for every node: the first under which it is a child."""
        names: dict[int, str] = {}
        for node in self.graph.nodes:
            for child in node.children:
                names.setdefault(child.node_id, child.local_name)
        return names

    def bind_captures(self) -> None:
        """Bound inputs to objects. What belongs to a resource refers to it weakly, or neither could ever be freed."""
        owned = self.owned_functions()
        for name, function in self.functions.items():
            function.capture([self.objects[number] for number in self.graph.concrete_functions[name].bound_inputs])
            for number in owned.get(name, ()):
                function.belong_to(self.objects[number])
        for op_type, name in self.library.index.gradients.items():
            if name in self.graph.concrete_functions:
                self.library.custom_gradients[op_type] = self.gradient(name)

    def attach_additions(self) -> None:
        additions.attach(self)

    def owned_functions(self) -> dict[str, set[int]]:
        """Function name -> the resources whose life it manages."""
        owned: dict[str, set[int]] = {}
        for number, node in enumerate(self.graph.nodes):
            if node.WhichOneof("kind") != "resource":
                continue
            members = [child.node_id for child in node.children]
            members += [n for pair in node.saveable_objects.values() for n in (pair.save_function, pair.restore_function)]
            for member in members:
                for name in self.names_of(member):
                    owned.setdefault(name, set()).add(number)
        return owned

    def names_of(self, number: int) -> list[str]:
        node = self.graph.nodes[number]
        kind = node.WhichOneof("kind")
        if kind == "function":
            return list(node.function.concrete_functions)
        return [node.bare_concrete_function.concrete_function_name] if kind == "bare_concrete_function" else []

    # Structure

    def attach_children(self, number: int, node: Any) -> None:
        parent = self.objects[number]
        children = {child.local_name: self.objects[child.node_id] for child in node.children}
        if node.WhichOneof("kind") == "user_object":
            identifier = node.user_object.identifier
            if number == 0 and isinstance(parent, (list, dict)):  # the signatures of such a root are no element of it
                for child in node.children:
                    if self.is_signature_map(child.node_id):
                        self.attach(parent, child.local_name, child.node_id)
                        children.pop(child.local_name, None)
            if identifier == reserved.LIST:
                objects.fill_list(parent, children)
            elif identifier == reserved.DICT:
                objects.fill_dict(parent, children)
            elif identifier not in (reserved.TUPLE, reserved.SIGNATURES) and parent is not None:
                for child in node.children:
                    self.attach(parent, child.local_name, child.node_id)
                if isinstance(parent, objects.LoadedObject):
                    listed_variables.note_unlisted(parent, self.graph, number)
        elif isinstance(parent, LoadedResource):
            for name, child in children.items():
                if name in (reserved.CREATE, reserved.INITIALIZE, reserved.DESTROY):
                    parent.functions[name] = child
                else:
                    objects.attach(parent, name, child)
        elif isinstance(parent, tf.Variable):  # as the root it has signatures
            for child in node.children:
                self.attach(parent, child.local_name, child.node_id)

    def is_signature_map(self, number: int) -> bool:
        node = self.graph.nodes[number]
        return node.WhichOneof("kind") == "user_object" and node.user_object.identifier == reserved.SIGNATURES

    def attach(self, parent: Any, name: str, number: int) -> None:
        node = self.graph.nodes[number]
        if self.is_signature_map(number):
            # Not a dependency: whoever saves the object again decides about its signatures from the map itself (ATTR-06).
            functions = {child.local_name: self.objects[child.node_id] for child in node.children}
            for key, function in functions.items():
                if not isinstance(function, LoadedConcreteFunction):
                    raise MalformedError("a signature is not a concrete function", file=self.file, node=f"signatures[{key!r}]")
                if key in self.meta_graph.signature_def:
                    complete(function, self.meta_graph.signature_def[key])
            objects.set_plain(parent, name, SignatureMap(functions))
        else:
            objects.attach(parent, name, self.objects[number])

    def attach_slots(self) -> None:
        for number, node in enumerate(self.graph.nodes):
            parent = self.objects[number]
            if node.slot_variables and isinstance(parent, objects.LoadedObject):
                slots = []
                state = self.origin.optimizers.get(number)
                listed = {slot.value for slot in state.slots} if state is not None else set()
                for slot in node.slot_variables:
                    variable, value = self.objects[slot.original_variable_node_id], self.objects[slot.slot_variable_node_id]
                    slots.append(objects.Slot(variable, slot.slot_name, value, slot.slot_variable_node_id in listed))
                vars(parent)["_slots"] = slots

    def each_resource(self, action: Callable[[int, LoadedResource], Any]) -> None:
        """Do something with every resource. One that needs an op unknown here is left alone: its users will be told (DR-05)."""
        for number, resource in enumerate(self.objects):
            if isinstance(resource, LoadedResource):
                try:
                    action(number, resource)
                except tf.errors.NotFoundError as error:
                    if "Op type not registered" not in error.message:
                        raise
                    _log.warning(
                        "%s: %s cannot be used: %s", self.file, self.checkpoint.path(number), error.message.partition(".")[0]
                    )

    def initialize(self, number: int, resource: LoadedResource) -> None:
        if not tf.executing_eagerly():  # else a resource is created by the first who uses it; perhaps it cannot be
            resource.resource_handle  # noqa: B018  made here, so that only what fills it is noted
        with graph_mode.noted_as_initializers():
            resource.initialize()

    def fill(self, number: int, resource: LoadedResource) -> None:
        pairs = self.graph.nodes[number].saveable_objects
        if len(pairs) > 1:
            raise UnsupportedModelError("a resource with several contents", file=self.file, node=self.checkpoint.path(number))
        for name, pair in pairs.items():
            functions = self.objects[pair.save_function], self.objects[pair.restore_function]
            if not all(isinstance(function, LoadedConcreteFunction) for function in functions):
                reason = "save and restore functions that are no concrete functions"
                raise MalformedError(reason, file=self.file, node=self.checkpoint.path(number))
            if name != TENSORS:
                functions = named_content(name, *functions, [weakref.ref(resource)])
            resource.set_content(*functions)
        if not self.options.skip_checkpoint and resource.content is not None:
            resource.resource_handle  # noqa: B018  made here, so that only what fills it is noted
            with graph_mode.noted_as_initializers():
                resource.restore(self.checkpoint.read, self.checkpoint.keys(number))

    def describe(self, root: Any) -> None:
        """What every root has, whatever it is; for a variable or a container it is just an attribute."""
        info = self.meta_graph.meta_info_def
        if self.options.load_function_aliases:
            polymorphic = [function for function in self.objects if isinstance(function, LoadedFunction)]
            add_function_aliases(root, info.function_aliases, self.find_function, polymorphic)
        for name, value in (
            ("signatures", SignatureMap({})),
            *provenance(self.directory, self.meta_graph).items(),
        ):
            if getattr(root, name, None) is None:
                objects.set_plain(root, name, value)
