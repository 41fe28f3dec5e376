"""The second stage of a save: collect the contents of the export.

Only in this stage may objects join the tree.

The contents of tables add functions. Optimizers add slots. Functions, including those of custom
gradients and of the extension, add the constants that they capture.

RFC: FN-05, FN-07, FN-17, FMT-14, OPT-02
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.format import schema
from reference_impl.format.names import CUSTOM_GRADIENT, is_generated_gradient
from reference_impl.functions.names import ExportName, LiveName
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.graph.node_attributes import text_of
from reference_impl.kinds.optimizer import LoadedOptimizer, SavedSlot, slots_of
from reference_impl.saving import cached_reads, contents, optimizer_writer, signatures
from reference_impl.saving.captures import Captures
from reference_impl.saving.contents import Content
from reference_impl.saving.export_library import ExportLibrary
from reference_impl.saving.gradients import ORDERS, Gradients
from reference_impl.saving.initial_value_writer import InitialValues
from reference_impl.saving.options import SaveOptions
from reference_impl.saving.replicas import Merger
from reference_impl.saving.shapes import Annotations
from reference_impl.saving.signatures import SignatureFunction
from reference_impl.saving.traces import Trace, saved_concrete, trace_of
from reference_impl.saving.tree import GrowingTree, Node, Tree


@dataclass(frozen=True)
class Functions:
    """The functions of an export, some by the number of the concrete function's node."""

    library: ExportLibrary
    traces: Mapping[int, Trace]
    names: Mapping[int, ExportName]
    bound: Mapping[int, Sequence[int]]  # the numbers of the objects that the function captures
    replicas: Mapping[
        int, Mapping[int, int]
    ]  # {index of a capture: replica of a distributed variable}, if not the first
    described: Mapping[ExportName, Any]  # the SavedConcreteFunctions
    # Op type of a custom gradient -> name of its function, or "" if there is none.
    gradients: Mapping[ExportName, str]
    traced: Sequence[Any]  # concrete functions that were traced in this process

    def captures(self, number: int) -> tuple[ExportName, list[Union[int, tuple[int, int]]]]:
        """Return the name of a function and its captures: numbers of nodes, or of a variable and
        one of its replicas.
        """
        replicas, bound = self.replicas.get(number, {}), self.bound[number]
        return self.names[number], [
            (n, replicas[i]) if i in replicas else n for i, n in enumerate(bound)
        ]

    def name_of(self, function: object, tree: Tree) -> Optional[ExportName]:
        """Return the name of a concrete function, which need not be in the tree, or None if the
        export does not have it.
        """
        if not isinstance(function, api.ConcreteFunction):
            return None
        number = tree.number_of(function)
        if number is not None and number in self.names:
            return self.names[number]
        if isinstance(function, RegisteredFunction):
            return self.library.find(function.library, function.saved_name)
        return self.library.find(None, LiveName(function.function_def.signature.name))


@dataclass(frozen=True)
class Collected:
    """The contents of an export: all objects, functions, slots of optimizers, and contents of
    tables by node number.

    The extension holds data that the shipped format cannot store.
    """

    tree: GrowingTree
    signatures: Mapping[str, SignatureFunction]
    functions: Functions
    contents: Mapping[int, Sequence[Content]]
    slots: Sequence[SavedSlot]
    extension: schema.Extension


def collect(
    tree: GrowingTree, chosen: Mapping[str, SignatureFunction], options: SaveOptions
) -> Collected:
    """Return the contents of the export of a tree. More objects join the tree. Raises SaveError."""
    content = contents.of_tree(tree)
    with api.eager_mode():  # in graph mode too: the user's graph is complete now
        slots = _add_slots(tree)
        collector = _Collector(tree, options)
        collector.add_functions()
        extension = collector.extension(slots)
        functions = collector.finish()
    return Collected(tree, chosen, functions, content, slots, extension)


def _add_slots(tree: GrowingTree) -> list[SavedSlot]:
    """Return the slots of all optimizers among the objects. Their variables join the tree.

    RFC: OPT-02, V1-18
    """
    found = []
    variables = [node.object for node in tree.nodes if api.is_variable(node.object)]
    for node in list(tree.nodes):
        slots: Sequence[tuple[Any, str, Any]] = ()
        if isinstance(node.object, LoadedOptimizer):
            slots = [(slot.variable, slot.name, slot.value) for slot in slots_of(node.object)]
        elif api.is_optimizer(node.object):
            slots = api.optimizer_slots(node.object, variables)
        for variable, name, value in slots:
            number = tree.number_of(variable)
            if number is not None:
                listed = tree.number_of(value) is not None
                slot = tree.add(value, f"{node.path}.{name}[{tree.nodes[number].path}]")
                found.append(SavedSlot(node.number, number, name, slot, listed))
    return found


class _Collector:
    def __init__(self, tree: GrowingTree, options: SaveOptions):
        self._tree, self._options = tree, options
        self._library = ExportLibrary()
        self._annotations = Annotations(self._library)
        self._captures = Captures(tree, self._library)
        self._traces: dict[int, Trace] = {}
        self._names: dict[int, ExportName] = {}
        self._bound: dict[int, list[int]] = {}
        self._described: dict[ExportName, Any] = {}

    def finish(self) -> Functions:
        """Add the functions of custom gradients; return all functions."""
        live = [
            node.object
            for node in self._tree.nodes
            if isinstance(node.object, api.ConcreteFunction)
        ]
        live += [
            node.object.target
            for node in self._tree.nodes
            if isinstance(node.object, SignatureFunction)
        ]
        traced = [function for function in live if not isinstance(function, RegisteredFunction)]
        gradients = self._gradients(Gradients(self._library))
        replicas = self._captures.replicas
        return Functions(
            self._library,
            self._traces,
            self._names,
            self._bound,
            replicas,
            self._described,
            gradients,
            traced,
        )

    # Functions of the tree

    def add_functions(self) -> None:
        """Add the concrete functions of the tree, with their names, captures and descriptions."""
        captures, cached = self._captures, []
        for node in self._tree.nodes:  # constants are added meanwhile
            if not isinstance(node.object, (api.ConcreteFunction, SignatureFunction)):
                continue
            self._check_saveable(node)
            trace = self._trace(node)
            name = self._library.add(trace.source, trace.name, trace.traced)
            trace, self._names[node.number] = cached_reads.read_variables(
                trace, name, self._library
            )
            if self._names[node.number] != name:
                cached.append(node.number)
            self._traces[node.number] = trace
            self._annotations.complete(getattr(node.object, "target", node.object))
            self._bound[node.number] = captures.resolve(trace, self._path(node), node)
        captures.check()
        expand = self._options.expand
        merger = Merger(self._tree, self._library, self._names, self._bound)
        merger.use_first_replica(captures.replicas, expand)
        if not expand:
            merger.take_once(sorted({*captures.replicas, *cached}))
            captures.replicas.clear()
        for number, trace in self._traces.items():
            path = self._tree.nodes[number].path
            self._described[self._names[number]] = saved_concrete(trace, self._bound[number], path)

    def _check_saveable(self, node: Node) -> None:
        function = getattr(node.object, "target", node.object)
        marks = [] if isinstance(function, RegisteredFunction) else api.saving_errors(function)
        if marks:
            reason = f"its code says that it cannot be saved: {'; '.join(marks)}"
            raise SaveError(reason, node=self._path(node), clause="FN-05")

    def _path(self, node: Node) -> str:
        """Return the Python path of a function.

        For a signature, return the path of its function if that is in the tree.
        """
        target = getattr(node.object, "target", None)
        number = None if target is None else self._tree.number_of(target)
        return node.path if number is None else self._tree.nodes[number].path

    def _trace(self, node: Node) -> Trace:
        function = (
            node.object
            if isinstance(node.object, SignatureFunction)
            else signatures.renamed(node.object)
        )
        if function is None:
            return trace_of(node.object)
        if function.direct:
            return signatures.direct_trace(function)
        target = trace_of(function.target)
        called = self._library.add(target.source, target.name, target.traced)
        return signatures.write_wrapper(function, called, self._library)

    # The extension

    def extension(self, slots: Sequence[SavedSlot]) -> schema.Extension:
        """Return the extension message.

        Its functions are added to the library, and the constants they capture to the tree.
        """
        out = schema.Extension()
        values = InitialValues(self._tree, self._library, self._captures, self._exported_name)
        out.initial_values.extend(values.messages())
        updates = optimizer_writer.updates(
            self._tree, self._library, self._captures, self._options.functional_optimizers
        )
        out.optimizers.extend(optimizer_writer.messages(self._tree, slots, updates))
        self._captures.check()
        return out

    def _exported_name(self, function: object) -> Optional[ExportName]:
        number = self._tree.number_of(function)
        return None if number is None else self._names.get(number)

    # Custom gradients

    def _gradients(self, finder: Gradients) -> dict[ExportName, str]:
        """Add functions for the custom gradients that nodes name; return op type -> name of the
        function.
        """
        done: dict[ExportName, str] = {}
        refused: dict[ExportName, str] = {}
        users = self._users_of_gradients()
        orders = dict.fromkeys(
            self._library.gradients, 1
        )  # the order of the derivative that needs the gradient
        while len(done) < len(self._library.gradients):
            for op_type in list(self._library.gradients):
                if op_type not in done:
                    path = (
                        "a custom gradient in"
                        f" {users.get(op_type, 'the gradient of another function')}"
                    )
                    found = (
                        self._gradient(finder, op_type, orders[op_type], path)
                        if self._options.custom_gradients
                        else ""
                    )
                    done[op_type] = found if isinstance(found, str) else ""
                    if not isinstance(found, str):
                        refused[op_type] = found.reason
                    for other in self._library.gradients:
                        orders.setdefault(other, orders[op_type] + 1)
        self._captures.check()
        self._report_doubtful()
        for function in finder.made:
            self._annotations.complete(function)
        lost = []
        for op_type, name in done.items():
            if name or op_type in refused:
                continue
            if is_generated_gradient(self._library.gradients[op_type][1]):
                refused[op_type] = self._why_lost()
            else:
                lost.append(op_type)
        kept = self._library.keep_op_types(lost, refused)
        return {op_type: done[before] for before, op_type in kept.items()}

    def _why_lost(self) -> str:
        if not self._options.custom_gradients:
            return "the model was saved with experimental_custom_gradients=False"
        return (
            "the custom gradient was not in the model that was loaded, or does not say what it"
            " captures"
        )

    def _report_doubtful(self) -> None:
        """Report the custom gradients that tf.saved_model.load gave a number that the file uses for
        another gradient.
        """
        for site in self._library.sites.doubtful:
            if self._library.find(None, site.function) is not None:
                reason = (
                    f"the custom gradient of {site.operation.name!r} is one of two:"
                    " tf.saved_model.load gave it a number that "
                )
                reason += (
                    "the file already has for another gradient. Load the model with"
                    " reference_impl.load instead"
                )
                error = SaveError(reason, node=site.function, clause="FMT-14")
                self._tree.lose(error, "the custom gradient is left out")

    def _users_of_gradients(self) -> dict[str, str]:
        """Return op type of a custom gradient -> the function that has such a node, by its path if
        it has one.
        """
        if not self._library.gradients:
            return {}
        paths = self._tree.paths(self._names)
        users: dict[str, str] = {}
        for name, definition in reversed(self._library.definitions.items()):
            for node in definition.node_def:
                if CUSTOM_GRADIENT in node.attr:
                    users[text_of(node.attr, CUSTOM_GRADIENT)] = paths.get(name, name)
        return users

    def _gradient(
        self, finder: Gradients, op_type: ExportName, order: int, path: str
    ) -> Union[str, SaveError]:
        """Return the name of a gradient function, or "" if there is none; `path` is where it is
        used.

        An error is returned, to be stored at the nodes, in two cases: if it concerns the gradient
        of a gradient, which does not affect the first gradient, or if the author declared that
        there is no gradient.
        """
        if order > ORDERS and self._library.gradients[op_type][0] is None:
            return SaveError(
                f"the model was saved with custom gradients of up to order {ORDERS}", node=path
            )
        try:
            trace = finder.trace(op_type)
        except SaveError as error:
            if order > 1 or isinstance(error.__cause__, NotImplementedError):
                return error
            self._tree.lose(error, "a custom gradient is left out")
            return ""
        if trace is None:
            return ""
        if order > 1 and any(self._captures.owner(capture) is None for capture in trace.captures):
            return SaveError(
                "the custom gradient uses what cannot be reached from the object that was saved",
                node=path,
            )
        name = finder.add(trace)
        self._described[name] = saved_concrete(
            trace, self._captures.resolve(trace, path, None), path
        )
        return name
