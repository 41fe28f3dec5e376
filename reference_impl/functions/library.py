"""The function library of one loaded MetaGraph: live names, and functions that are registered on
first use.

FunctionDefs of two models may share names. So each load gives every function a live name that no
other load uses, and every shared resource made inside a function such a shared name. A function and
its references are registered in TensorFlow's runtime at the first call, so an op that this
TensorFlow does not know affects only callers of the function that uses it. The original
FunctionDefs stay unchanged; a re-export writes them.

RFC: RP-06, RP-07, FN-05
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import CycleError, LimitError, MalformedError, MissingKeyError
from reference_impl.format import limits, schema
from reference_impl.functions.devices import checked_device
from reference_impl.graph import function_edges, node_attributes, op_rules, trusted_inputs
from reference_impl.graph.function_builder import with_shapes
from reference_impl.graph.order import targets_first
from reference_impl.graph.references import (
    FunctionIndex,
    function_attributes,
    function_values,
    nodes_of,
)
from reference_impl.graph.unique_names import unique_name
from reference_impl.remembering import found_once
from reference_impl.tracing import Watch

_loads = itertools.count(1)
_live: weakref.WeakValueDictionary[str, FunctionLibrary] = weakref.WeakValueDictionary()


class FunctionLibrary:
    """The functions of a MetaGraph.

    The FunctionDefLibrary is kept, not copied.

    `custom_gradients` maps registered op types to makers of the function objects that compute the
    gradients (FMT-14), given this library; the loader adds them once their captures are known. The
    library does not hold the objects themselves, because they hold the library and no reference
    cycle may hold a variable. `aliases` maps names of functions to their aliases in the file.
    """

    def __init__(
        self,
        library: schema.FunctionDefLibrary,
        file: str = "",
        aliases: Optional[Mapping[str, str]] = None,
    ):
        self.index = FunctionIndex(library)
        self.aliases = dict(aliases or {})
        self.file = file
        self.custom_gradients: dict[str, Callable[[FunctionLibrary], Any]] = {}
        # Live op type of a custom gradient -> graph (weak reference) and name of an operation that
        # has it.
        self.sites: dict[str, tuple[Callable[[], Any], str]] = {}
        self.rebuilt: dict[
            str, Any
        ] = {}  # of reference_impl.functions.rebuild: Python functions by name
        self.watch: Optional[Watch] = None  # of the load, if somebody watches it
        self.lock = threading.RLock()
        self.eager = tf.executing_eagerly()  # otherwise variables and functions belong to a graph
        self._suffix = f"__load{next(_loads)}"
        self._live_names: set[str] = (
            set()
        )  # which this library has given: other names may end with its suffix too
        self._registered: dict[str, None] = {}
        # Registered functions with nodes of ops that were not known then, and these ops.
        self.incomplete: dict[str, frozenset[str]] = {}
        self._checked: set[str] = set()
        self._references: dict[str, tuple[str, ...]] = {}
        _live[self._suffix] = self
        weakref.finalize(self, _unregister, self._registered, self._suffix).atexit = False

    def __contains__(self, name: str) -> bool:
        return name in self.index.functions

    def __iter__(self) -> Iterator[str]:
        return iter(self.index.functions)

    def get(self, name: str) -> Any:
        """Return a FunctionDef as it was read. Raises MissingKeyError."""
        try:
            return self.index.functions[name]
        except KeyError:
            raise MissingKeyError(
                "the function library has no such function", file=self.file, node=name
            ) from None

    def add(self, function: schema.FunctionDef) -> str:
        """Add a new function to the library; return its name, with a number if the name was
        taken.
        """
        name = function.signature.name = unique_name(function.signature.name, self.index.functions)
        self.index.functions[name] = function
        return name

    def live_name(self, name: str) -> str:
        """Return the name under which a function or a gradient is (or will be) registered in the
        runtime.
        """
        live = name + self._suffix
        self._live_names.add(live)
        return live

    def gave(self, live: str) -> bool:
        """Return whether a name is one that this library gave to a function, a gradient or a shared
        resource.
        """
        return live in self._live_names

    def closure(self, name: str) -> list[str]:
        """Return a function and all functions that it may call, each once and before the functions
        that it calls.

        Raises CycleError: a function calls itself. Tracing never makes such a function, and it
        crashes TensorFlow's runtime.
        """
        order = targets_first(
            [name],
            self._refers,
            lambda other: CycleError(
                f"the function {other} calls itself", file=self.file, node=name
            ),
        )
        return order[::-1]

    def check(self, name: str) -> None:
        """Raise the errors of `closure`. Each function is visited once."""
        if name not in self._checked:
            self._checked.update(self.closure(name))

    def register(self, name: str) -> str:
        """Make a function and its references callable; return its live name.

        Raises MissingKeyError, CycleError.

        A function that was registered before its ops were is registered anew: `localise` needs to
        know an op.
        """
        if name not in self._registered or self.incomplete:
            with self.lock:
                for other in self.closure(name):
                    if other not in self._registered or any(
                        map(api.op_def, self.incomplete.get(other, ()))
                    ):
                        self._register(other)
        return self.live_name(name)

    def _register(self, name: str) -> None:
        live = self.renamed(name)
        if name in self._registered:
            api.remove_function(live.signature.name)
        unknown = frozenset(
            node.op
            for node in self.get(name).node_def
            if node.op not in self and api.op_def(node.op) is None
        )
        api.register_function(live)
        self._registered[name] = None
        self.incomplete.pop(name, None)
        if unknown:
            self.incomplete[name] = unknown
        if self.watch is not None:
            self.watch.tell("registered", self.file, name, f"as {live.signature.name}", "RP-07")

    def register_for(self, name: str, shapes: Sequence[Optional[Any]]) -> str:
        """Make a function callable for arguments of some shapes; return the name under which it is
        registered.

        TensorFlow traces a loaded function for the shapes of each call, and then optimises it for
        them, which may change the last bits of its results. `shapes` are TensorShapeProtos, or None
        where nothing is known.
        """
        live = self.register(name)
        with self.lock:
            other = f"{name}__shapes{len(self._registered)}"
            api.register_function(
                with_shapes(self.live_name(other), live, self.get(name).signature, shapes)
            )
            self._registered[other] = None
            if self.watch is not None:
                said = f"as {self.live_name(other)}, for the shapes of a call"
                self.watch.tell("registered", self.file, name, said, "RP-07")
        return self.live_name(other)

    def _refers(self, name: str) -> tuple[str, ...]:
        if name not in self._references:
            found = map(self.functions_of, self.get(name).node_def)
            self._references[name] = tuple(dict.fromkeys(itertools.chain.from_iterable(found)))
        return self._references[name]

    def functions_of(self, node: schema.NodeDef) -> Iterator[str]:
        """Yield the functions that running a node may call, except its custom gradient and
        attributes that its op lacks.
        """
        return self.index.references(node, gradients=False, keys=_attributes(node.op, *_FUNCTIONS))

    def renamed(self, name: str) -> Any:
        """Return a copy of a function with live names, for the runtime.

        Shapes of results are left out, as by TensorFlow's loader: the runtime infers shapes itself,
        and would copy the noted ones in every pass over the graph (benchmark "first calls",
        docs/benchmarks.md).
        """
        copy = schema.copy_of(self.get(name))
        copy.signature.name = self.live_name(name)
        for attributes in (copy.attr, *[argument.attr for argument in copy.arg_attr.values()]):
            node_attributes.check(attributes, tuple(attributes), self.file, f"function {name}")
        self._check_lengths(copy.node_def, name)
        for node in copy.node_def:
            self.localise(node, name)
            node.attr.pop("_output_shapes", None)
        function_edges.check(self.get(name), self._rules, self.file)
        self._guard(copy, name)
        return copy

    def _guard(self, function: schema.FunctionDef, name: str) -> None:
        """Guard the inputs that kernels trust."""
        try:
            trusted_inputs.guard(function)
        except MalformedError as error:
            error.file, error.node = self.file, f"{error.node} of function {name}"
            raise

    def localise(self, node: schema.NodeDef, function: str) -> None:
        """Replace the function names and the shared name in a NodeDef by those of this load, in
        place.

        Every node passes through here on its way to the runtime, so nodes that would crash the
        process are refused here.

        Without the suffix two loads of one model would share tables, writers and iterators. A
        resource without a shared name gets one too, since a resource created in one function must
        still exist when another function uses its handle.

        RFC: RP-06
        """
        where = f"{node.name} of function {function}"
        rules = self._rules(node.op)
        op_rules.check_named(node, rules.attributes if rules is not None else (), self.file, where)
        node_attributes.check(
            node.attr, tuple(node.attr) if rules is None else ("_output_shapes",), self.file, where
        )
        if node.device:  # TensorFlow's error names neither the file nor the node
            checked_device(node.device, self.file, where)
        if node.op in node_attributes.TABLE_OPS:
            node_attributes.check_table(node, self.file, where)
        if node.op in self.index.functions:
            node.op = self.live_name(node.op)
        for value in function_attributes(node.attr, _attributes(node.op, *_FUNCTIONS)):
            for called in function_values(value):
                if called.name in self.index.functions:
                    called.name = self.live_name(called.name)
                elif (
                    rules is not None and called.name and node.op != "SymbolicGradient"
                ):  # that may name an op
                    raise MissingKeyError(
                        f"{node.op} calls {called.name!r}, which is not there",
                        file=self.file,
                        node=where,
                    )
        if node.op == "HashTableV2" and not node.attr["use_node_name_sharing"].b:
            node.attr["use_node_name_sharing"].b = True
        if "shared_name" in (_attributes(node.op, "string") or ()) and node.op not in _PRIVATE:
            shared = node.attr["shared_name"]
            original = self._without_mark(shared.s) or f"{node.name}_{function}".encode()
            shared.s = self.live_name(original.decode("utf-8", "surrogateescape")).encode(
                "utf-8", "surrogateescape"
            )

    def _check_lengths(self, nodes: Sequence[Any], function: str) -> None:
        """Raise LimitError if a node makes a list of tensors whose literal length would take
        gigabytes.
        """
        for node, length in node_attributes.literal_lengths(nodes):
            if length > limits.TENSOR_LIST_ELEMENTS:
                reason = f"{node.op} makes a list of {length} tensors"
                where = f"{node.name} of function {function}"
                raise LimitError(reason, limit="TENSOR_LIST_ELEMENTS", file=self.file, node=where)

    def _rules(self, op: str) -> Optional[op_rules.OpRules]:
        """Return the rules of an op or of a call of a function, or None if this TensorFlow does not
        know it.
        """
        if op in self.index.functions:
            return op_rules.of_definition(self.get(op).signature)
        return rules_of(op)

    def _without_mark(self, shared: bytes) -> bytes:
        """Return a shared name without the suffix of an earlier load. TensorFlow's save keeps the
        suffix, so the name would keep growing.

        Two loads of one model may have been saved together; names that differ only in their
        suffixes keep them.
        """
        plain = _unmarked(shared)
        if plain == shared:
            return shared
        others = {
            node.attr["shared_name"].s
            for node in nodes_of(self.index.functions.values())
            if "shared_name" in node.attr and node.attr["shared_name"].s.startswith(plain)
        }
        return shared if any(_unmarked(other) == plain for other in others - {shared}) else plain


def _unmarked(shared: bytes) -> bytes:
    while True:
        plain, mark, number = shared.rpartition(b"__load")
        if not mark or not number.isdigit():
            return shared
        shared = plain


def find_live(name: str) -> Optional[tuple[FunctionLibrary, str]]:
    """Return the library and original name of a live name, or None if no living load owns the
    function.
    """
    found = find_suffix(name)
    return found if found is not None and found[1] in found[0] else None


def find_suffix(live: str) -> Optional[tuple[FunctionLibrary, str]]:
    """Return the same as `find_live`, for other names that a load made unique: of shared resources
    and of gradients.

    The author of a model may choose a name that ends like one of these, so the library must have
    given it.
    """
    original, mark, number = live.rpartition("__load")
    library = _live.get(mark + number) if mark else None
    return None if library is None or not library.gave(live) else (library, original)


# The attribute types that hold functions.
_FUNCTIONS = ("func", "list(func)")
# Ops whose kernels refuse a shared name although they declare the attribute; each kernel has its
# own resource anyway.
_PRIVATE = frozenset({"OneShotIterator"})


@found_once
def _attributes(op: str, *kinds: str) -> Optional[tuple[str, ...]]:
    """Return the names of an op's attributes of given types, or None if this TensorFlow does not
    know the op.
    """
    op_def = api.op_def(op)
    return (
        None if op_def is None else tuple(attr.name for attr in op_def.attr if attr.type in kinds)
    )


@found_once
def rules_of(op: str) -> Optional[op_rules.OpRules]:
    """Return the rules of an op, or None if this TensorFlow does not know it."""
    op_def = api.op_def(op)
    return None if op_def is None else op_rules.of_definition(op_def)


def _unregister(names: dict[str, None], suffix: str) -> None:
    for name in names:
        api.remove_function(name + suffix)
