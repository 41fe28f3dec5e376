"""From an object to a SavedModel directory: all steps in their order (API-01..API-05, FMT-01..FMT-14)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Any, Optional, Union

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import AliasError, InsideFunctionError, LimitError, SaveError
from reference_impl.format import extension, limits, schema
from reference_impl.format.container.writer import LayoutWriter
from reference_impl.format.names import CREATE, CUSTOM_GRADIENT, INIT_SIGNATURE, INITIALIZE, MAIN_OP, OPTIMIZER, VALUE
from reference_impl.format.schema.ordered import ordered_bytes
from reference_impl.graph.references import named_by
from reference_impl.kinds import asset, captured_tensor, constant, resource, traces, user_object, variable
from reference_impl.kinds import function as functions
from reference_impl.kinds.captured_tensor import CapturedTensor
from reference_impl.kinds.concrete_function import LoadedConcreteFunction
from reference_impl.kinds.export_library import Library, library_proto
from reference_impl.kinds.traces import Trace, saved_concrete, trace_of
from reference_impl.saving import (
    cached_reads,
    checkpoint,
    contents,
    dropped,
    hidden_state,
    numbers,
    optimizers,
    python_calls,
    registered,
    rewrites,
    shapes,
    shards,
    signatures,
    size,
)
from reference_impl.saving.annotations import Annotations
from reference_impl.saving.assets import Assets
from reference_impl.saving.captures import Captures
from reference_impl.saving.debug_info import debug_info
from reference_impl.saving.fingerprint import fingerprint
from reference_impl.saving.gradients import ORDERS, Gradients
from reference_impl.saving.graph import Key, MainGraph
from reference_impl.saving.initial_values import InitialValues
from reference_impl.saving.options import SaveOptions, resolve
from reference_impl.saving.replicas import Merger
from reference_impl.saving.saver import SavedContent, SavedVariable, add_saver
from reference_impl.saving.shared_captures import SharedCaptures
from reference_impl.saving.signatures import SignatureFunction
from reference_impl.saving.slots import add_slots
from reference_impl.saving.tree import Node, Tree


def save(obj: Any, export_dir: Union[str, os.PathLike[str]], given: Optional[Any], options: Optional[Any]) -> None:
    """See `reference_impl.api.save`."""
    if tf.inside_function():
        raise InsideFunctionError("saving inside of a tf.function is not possible: take the call out of it", node="save")
    chosen = resolve(options)
    with contextlib.nullcontext() if chosen.expand else api.as_first_replica():
        tree = Tree(obj, chosen.strict)
        if chosen.numbers_as_tensors:
            for path, function in list(tree.functions()):
                tree.add_traces(function, numbers.traces_with_tensors(function, path))
        tree.trace_signatures()
        found = signatures.choose(tree, given)
        tree.number(found)
    content = contents.of_tree(tree)
    with api.eager_mode():  # in graph mode too: what belongs to the user's graph is there now
        _Export(tree, found, content, chosen).write(export_dir)


class _Export:
    """The parts of one export, made in the constructor; nothing is written before all is known to be right."""

    def __init__(
        self,
        tree: Tree,
        found: dict[str, SignatureFunction],
        content: dict[int, list[contents.Content]],
        options: SaveOptions,
    ):
        self.tree, self.contents, self.options = tree, content, options
        self.slots = add_slots(tree)
        self.library = Library()
        self.annotations = Annotations(self.library)
        self.traces: dict[int, Trace] = {}
        self.names: dict[int, str] = {}
        self.bound: dict[int, list[int]] = {}
        self.saved_functions: dict[str, Any] = {}
        self.replicas: dict[int, list[str]] = {}  # handles of variables of a strategy beside the first
        self._functions()
        self.extension = self._extension()
        self._gradients()
        size.check(tree, self.library, self.names)
        dropped.check(tree, self.library)
        self._shared_names()
        self._hidden_state()
        self._python_calls()
        self.variables = {node.number: variable.name_of(node.object) for node in tree.nodes if api.is_variable(node.object)}
        stored = [slot for slot in self.slots if not slot.listed]
        self.keys = checkpoint.Keys(tree, stored)
        self.object_graph = checkpoint.object_graph(tree, self.keys, self.variables, self.contents, stored)
        self.meta_graph = schema.MetaGraphDef()
        self.assets = Assets(self.options.strict)
        self.assets.add_extra(tree.root, options.extra_assets)
        self._meta_graph(found)

    # Functions

    def _functions(self) -> None:
        """Names, captures and descriptions of all concrete functions of the tree."""
        captures = self.captures = Captures(self.tree, self.library)
        cached = []
        for node in self.tree.nodes:  # grows by constants
            if not isinstance(node.object, (api.ConcreteFunction, SignatureFunction)):
                continue
            self._check_saveable(node)
            trace = self._trace(node)
            name = self.library.add(trace.source, trace.name)
            trace, self.names[node.number] = cached_reads.read_variables(trace, name, self.library)
            if self.names[node.number] != name:
                cached.append(node.number)
            self.traces[node.number] = trace
            if isinstance(node.object, api.ConcreteFunction):
                self.annotations.complete(node.object)
            self.bound[node.number] = captures.resolve(trace, self._path(node), node)
        captures.check()
        expand = self.options.expand
        Merger(self.library).merge_all(self.tree, self.names, self.bound, captures.replicas, expand)
        if not expand:
            SharedCaptures(self.library).take_once(self.names, self.bound, sorted({*captures.replicas, *cached}))
            captures.replicas.clear()
        for number, trace in self.traces.items():
            self.saved_functions[self.names[number]] = saved_concrete(trace, self.bound[number], self.tree.nodes[number].path)

    def _check_saveable(self, node: Node) -> None:
        function = getattr(node.object, "target", node.object)
        marks = [] if isinstance(function, LoadedConcreteFunction) else api.saving_errors(function)
        if marks:
            reason = f"its code says that it cannot be saved: {'; '.join(marks)}"
            self.tree.lose(SaveError(reason, node=self._path(node), clause="FN-05"))

    def _extension(self) -> Any:
        """What the format has no place for. Its functions join the library, the constants they capture the tree."""
        out = schema.Extension()
        out.initial_values.extend(InitialValues(self.tree, self.library, self.captures, self._exported_name).messages())
        updates = optimizers.updates(self.tree, self.library, self.captures, self.options)
        out.optimizers.extend(optimizers.messages(self.tree, self.slots, updates))
        self.captures.check()
        return out

    def _exported_name(self, function: Any) -> Optional[str]:
        number = self.tree.number_of(function)
        return None if number is None else self.names.get(number)

    def _library_name(self, function: Any) -> Optional[str]:
        """The name of any function in the library, a function of the tree or not; None where the export has no such function."""
        if not isinstance(function, api.ConcreteFunction):
            return None
        if isinstance(function, LoadedConcreteFunction):
            return self._exported_name(function) or self.library.find(function.library, function.saved_name)
        return self._exported_name(function) or self.library.find(None, function.function_def.signature.name)

    def _path(self, node: Node) -> str:
        """How Python reaches a function. A signature is the function behind it, if the tree has that one."""
        target = getattr(node.object, "target", None)
        number = None if target is None else self.tree.number_of(target)
        return node.path if number is None else self.tree.nodes[number].path

    def _trace(self, node: Node) -> Trace:
        function = node.object if isinstance(node.object, SignatureFunction) else signatures.renamed(node.object)
        if function is None:
            return trace_of(node.object)
        if function.direct:
            return signatures.direct_trace(function)
        target = trace_of(function.target)
        name = self.library.add(target.source, target.name)
        self.annotations.complete(function.target)
        return signatures.write_wrapper(function, name, self.library)

    def _gradients(self) -> None:
        """Functions for the custom gradients that nodes name (FMT-14)."""
        live = [node.object for node in self.tree.nodes if isinstance(node.object, api.ConcreteFunction)]
        live += [item.object.target for item in self.tree.nodes if isinstance(item.object, SignatureFunction)]
        self.traced = [function for function in live if not isinstance(function, LoadedConcreteFunction)]
        finder = Gradients(self.library, self.traced)
        done: dict[str, str] = {}
        refused: dict[str, str] = {}
        users = self._users_of_gradients()
        orders = dict.fromkeys(self.library.gradients, 1)  # how many times one differentiates to meet the gradient
        while len(done) < len(self.library.gradients):
            for op_type in list(self.library.gradients):
                if op_type not in done:
                    path = f"a custom gradient in {users.get(op_type, 'the gradient of another function')}"
                    found = self._gradient(finder, op_type, orders[op_type], path) if self.options.custom_gradients else ""
                    done[op_type] = found if isinstance(found, str) else ""
                    if not isinstance(found, str):
                        refused[op_type] = found.reason
                    for other in self.library.gradients:
                        orders.setdefault(other, orders[op_type] + 1)
        self.captures.check()
        for function in finder.made:
            self.annotations.complete(function)
        lost = [op_type for op_type, name in done.items() if not name and op_type not in refused]
        kept = self.library.keep_op_types(lost, refused)
        self.registered = {op_type: done[before] for before, op_type in kept.items()}

    def _users_of_gradients(self) -> dict[str, str]:
        """Op type of a custom gradient -> the function that has a node of it, by its path if it has one."""
        if not self.library.gradients:
            return {}
        paths = self.tree.paths(self.names)
        return {
            node.attr[CUSTOM_GRADIENT].s.decode(): paths.get(name, name)
            for name, definition in reversed(self.library.definitions.items())
            for node in definition.node_def
            if CUSTOM_GRADIENT in node.attr
        }

    def _gradient(self, finder: Gradients, op_type: str, order: int, path: str) -> Union[str, SaveError]:
        """The name of a gradient function, "" where there is none; `path` tells where it is used.

        The error is returned, for the nodes to carry, where it is about the gradient of a gradient, which costs nobody the first
        one, or where the author of the gradient says that there is none.
        """
        if order > ORDERS and self.library.gradients[op_type][0] is None:
            return SaveError(f"the model was saved with custom gradients of up to order {ORDERS}", node=path)
        try:
            trace = finder.trace(op_type)
        except SaveError as error:
            if order > 1 or isinstance(error.__cause__, NotImplementedError):
                return error
            self.tree.lose(error, "a custom gradient is left out")
            return ""
        if trace is None:
            return ""
        if order > 1 and any(self.captures.owner(capture) is None for capture in trace.captures):
            return SaveError("the custom gradient uses what cannot be reached from the object that was saved", node=path)
        name = finder.add(trace)
        self.saved_functions[name] = saved_concrete(trace, self.captures.resolve(trace, path, None), path)
        return name

    def _hidden_state(self) -> None:
        try:
            hidden_state.check(self.library.definitions, self._of_resources(CREATE), self._of_resources(INITIALIZE))
        except SaveError as error:
            self.tree.lose(error, "state is left out")

    def _python_calls(self) -> None:
        try:
            python_calls.check(self.library, self.tree.paths(self.names))
        except SaveError as error:
            self.tree.lose(error, "calls of Python are kept, which only this process can run")

    def _shared_names(self) -> None:
        for node in self._resources(CREATE):
            self.library.share(self.names[self._concrete(node.children[CREATE])], node.path)
        self.library.apply_shared_names()

    def _resources(self, child: str) -> list[Node]:
        """Resources that have this function."""
        return [node for node in self.tree.nodes if isinstance(node.object, api.CapturableResource) and child in node.children]

    def _of_resources(self, child: str) -> list[str]:
        return [self.names[self._concrete(node.children[child])] for node in self._resources(child)]

    def _concrete(self, number: int) -> int:
        node = self.tree.nodes[number]
        return node.children["trace_0"] if isinstance(node.object, api.Function) else number

    # The MetaGraph

    def _meta_graph(self, found: dict[str, SignatureFunction]) -> None:
        out = self.meta_graph
        graph = MainGraph(self.tree, self.library, self._bound)
        asset_indices: dict[int, int] = {}
        constants: dict[int, str] = {}
        for node in reversed(self.tree.nodes):  # as TensorFlow: of variables of one name the last one has it without a number
            if node.number in self.variables:
                self._variable(graph, node)
        for node in self.tree.nodes:
            if isinstance(node.object, api.Asset):
                asset_indices[node.number] = len(out.asset_file_def)
                asset = out.asset_file_def.add(filename=self.assets.add(node.object, node.path))
                asset.tensor_info.name = graph.add_asset(node.number)
                asset.tensor_info.dtype = schema.DT_STRING
                asset.tensor_info.tensor_shape.SetInParent()
            elif tf.is_tensor(node.object) and node.number not in self.variables:
                constants[node.number] = graph.add_constant(node.number, node.object)
        self._saver_and_init(graph, found)
        out.graph_def.CopyFrom(graph.finish())
        self._object_graph(asset_indices, constants)
        extension.write(out, self.extension)
        self._aliases()
        out.graph_def.library.CopyFrom(library_proto(self.library))
        for op_type in sorted(self.registered):
            out.graph_def.library.registered_gradients.add(gradient_func=self.registered[op_type], registered_op_type=op_type)
        if self.options.namespaces is not None:
            rewrites.check_namespaces(out.graph_def, self.options.namespaces)
        if self.options.strip_debug_ops:
            rewrites.strip_debug_ops(out.graph_def)
        self._info()

    def _bound(self, number: int) -> tuple[str, list[Key]]:
        """The name of a function and what it captures."""
        replicas = self.captures.replicas.get(number, {})
        return self.names[number], [(n, replicas[i]) if i in replicas else n for i, n in enumerate(self.bound[number])]

    def _variable(self, graph: MainGraph, node: Node) -> None:
        parts = api.variable_components(node.object)
        devices = self.options.devices
        graph.add_variable(node.number, parts[0], self.variables[node.number], devices)
        for index, part in enumerate(parts[1:] if self.options.expand else (), 1):
            graph.add_variable((node.number, index), part, variable.name_of(part), devices)
            self.replicas.setdefault(node.number, []).append(graph.tensor((node.number, index)))

    def _saver_and_init(self, graph: MainGraph, found: dict[str, SignatureFunction]) -> None:
        out = self.meta_graph
        called: dict[str, Any] = {}
        for key in sorted(found):
            number = self.tree.number_of(found[key])
            assert number is not None  # it is a child of the map of signatures
            out.signature_def[key].CopyFrom(graph.add_signature(key, found[key], number))
            called[self.names[number]] = out.signature_def[key]
        shapes.infer_outputs(called, self.saved_functions, graph.graph_def, self.library)
        init = graph.add_init()
        out.collection_def[MAIN_OP].node_list.value.append(init)
        info = out.signature_def[INIT_SIGNATURE].outputs[INIT_SIGNATURE]
        info.name = init
        info.tensor_shape.unknown_rank = True
        if self.options.skip_saver:
            return
        variables = []
        for number in self.variables:
            dtype = api.variable_components(self.tree.nodes[number].object)[0].dtype.as_datatype_enum
            handles = [graph.tensor(number), *self.replicas.get(number, ())]
            variables.append(SavedVariable(self.keys.key(number, VALUE), handles, dtype))
        saved = [self._saved_content(graph, number, content) for number, items in self.contents.items() for content in items]
        out.saver_def.CopyFrom(add_saver(graph, self.library, variables, saved, self.object_graph))

    def _saved_content(self, graph: MainGraph, number: int, content: contents.Content) -> SavedContent:
        functions = [self.tree.number_of(function) for function in (content.save, content.restore)]
        save, restore = (self.names[function] for function in functions if function is not None)
        given, taken = ([graph.tensor(capture) for capture in self.bound[f]] for f in functions if f is not None)
        types = [self.library.definitions[save].signature.output_arg[place].type for place in content.results]
        keys = [self.keys.key(number, part) for part in content.parts]
        key = self.keys.key(number, content.name)
        return SavedContent(keys, types, save, restore, given, taken, content.results, key if content.takes_key else None)

    def _object_graph(self, assets: dict[int, int], constants: dict[int, str]) -> None:
        out = self.meta_graph.object_graph_def
        for node in self.tree.nodes:
            proto = out.nodes.add()
            for name, child in node.children.items():
                proto.children.add(node_id=child, local_name=name)
            self._saved_object(proto, node, assets, constants)
            for content in self.contents.get(node.number, ()):
                pair = proto.saveable_objects[content.name]
                numbers: Any = [self.tree.number_of(function) for function in (content.save, content.restore)]
                pair.save_function, pair.restore_function = numbers
        for slot in self.slots:
            if slot.listed:
                continue  # children of their optimizer, see the extension
            # Of the types that every shipped reader knows without any package, the one whose objects can have slots (V1-18).
            out.nodes[slot.optimizer].user_object.identifier = OPTIMIZER
            added = out.nodes[slot.optimizer].slot_variables.add(slot_name=slot.name)
            added.original_variable_node_id, added.slot_variable_node_id = slot.variable, slot.value
        for name, function in self.saved_functions.items():
            out.concrete_functions[name].CopyFrom(function)

    def _saved_object(self, out: Any, node: Node, assets: dict[int, int], constants: dict[int, str]) -> None:
        obj, needed = node.object, node.children
        if node.number in self.variables:
            variable.write(out.variable, obj, self.options.devices, self.options.expand)
        elif isinstance(obj, api.Function):
            functions.write(out.function, obj, [self.names[child] for child in node.children.values()], node.path)
        elif node.number in self.traces:
            traces.write_bare(out.bare_concrete_function, self.traces[node.number], self.names[node.number], node.path)
        elif isinstance(obj, api.Asset):
            asset.write(out, assets[node.number])
        elif isinstance(obj, CapturedTensor):
            captured_tensor.write(out, obj)
        elif isinstance(obj, api.CapturableResource):
            resource.write(out, obj)
        elif node.number in constants:
            constant.write(out, constants[node.number])
        else:
            user_object.write(out, obj)
            needed = node.dependencies
            state = registered.fill(out, node)
            if state is not None:
                self.extension.registered.append(state)
        if out.WhichOneof("kind") in ("function", "bare_concrete_function", "user_object"):
            for name, number in needed.items():
                out.dependencies.add(node_id=number, local_name=name)

    def _aliases(self) -> None:
        """Other names for the traces of functions, which may be in the library only: those behind a signature, those called.

        Raises:
          AliasError: what is aliased is not a function of the export.
        """
        for alias, given in sorted(self.options.function_aliases.items()):
            for function in given if isinstance(given, Iterable) else [given]:
                traces = self.tree.traces(function) if isinstance(function, api.Function) else [function]
                names = [name for trace in traces if (name := self._library_name(trace)) is not None]
                if not names:
                    raise AliasError(
                        "Unsupported type or not among the functions that are saved", node=f"function_aliases[{alias!r}]"
                    )
                for name in names:
                    self.meta_graph.meta_info_def.function_aliases[name] = alias

    def _info(self) -> None:
        """What the file says of itself: tags, versions, the ops it needs (COMPAT-04)."""
        info = self.meta_graph.meta_info_def
        info.tags.extend(self.options.tags)
        info.tensorflow_version, info.tensorflow_git_version = tf.version.VERSION, tf.version.GIT_VERSION
        info.stripped_default_attrs = True
        graph = self.meta_graph.graph_def
        nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
        for op in sorted({name for node in nodes for name in named_by(node)}):
            definition = api.op_def(op)
            if definition is not None:
                info.stripped_op_list.op.add().CopyFrom(definition)

    # The directory

    def write(self, export_dir: Union[str, os.PathLike[str]]) -> None:
        message = schema.SavedModel(saved_model_schema_version=1)
        message.meta_graphs.append(self.meta_graph)
        try:
            data = ordered_bytes(message)
        except LimitError as error:
            raise size.too_large(limits.SAVED_MODEL_BYTES + 1, self.tree, self.library, self.names) from error
        values = checkpoint.values(self.tree, self.keys, self.variables, self.contents, self.object_graph)
        stage, sync = self.options.stage, self.options.sync
        with LayoutWriter(export_dir, replace=True, keep_others=True, stage=stage, sync=sync) as out:
            shards.write(out.checkpoint_prefix, values, self.options)
            for name, source in self.assets.files.items():
                out.asset(name, source)
            for name, source in self.assets.extra.items():
                out.extra_asset(name, source)
            if self.options.debug_info:
                out.debug_info(debug_info(self.library, self.traced))
            out.fingerprint(fingerprint(message, data, out.checkpoint_prefix, self.assets.all_files))
            out.saved_model(message, data=data)
