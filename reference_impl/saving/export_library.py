"""The function library of an export, while functions are added.

FunctionDefs are copied: those of traced functions out of the eager runtime, those of loaded
functions out of the file they were read from. Each gets a name in this export, made of its own name
and a number in the order of the walk, so that names depend only on the object. References to it are
renamed too. Two libraries may have functions of the same name.

RFC: FN-05, FN-17, FMT-03, FMT-14, COMPAT-04
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from types import MappingProxyType
from typing import Any, Optional

from reference_impl import tensorflow_api as api
from reference_impl.format import schema
from reference_impl.format.names import (
    CUSTOM_GRADIENT,
    GRADIENT_NOT_SAVED,
    IMPLEMENTS,
    NO_GRADIENT_BECAUSE,
    base_name,
)
from reference_impl.functions.gradients import REFUSED
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import ExportName, LiveName
from reference_impl.graph.closure import reachable
from reference_impl.graph.function_builder import remove_nodes
from reference_impl.graph.node_attributes import text_of
from reference_impl.graph.references import (
    function_values_of,
    mentions,
    names_in,
)
from reference_impl.saving.closed_library import ClosedLibrary
from reference_impl.saving.function_sources import (
    FileFunctions,
    FunctionSource,
    Origin,
    RuntimeFunctions,
    SourceName,
)
from reference_impl.saving.gradient_sites import Site
from reference_impl.saving.node_defaults import add_input_shapes, strip_defaults
from reference_impl.saving.process_numbers import remove_process_numbers

_PREFIX = "__inference_"
# Attributes of a FunctionDef that name other functions.
_TEXT_REFERENCES = ("forward_function_name", "backward_function_name")
# Ops without a result or effect on values that TensorFlow before 2.6 does not know: reading without
# a copy (COMPAT-04).
_HINTS = ("DisableCopyOnRead",)

_Claim = tuple[FunctionSource, SourceName, ExportName]


class ExportLibrary:
    """Collects functions and everything that they refer to.

    Attributes:
      definitions: name in this export -> FunctionDef.
      gradients: op type of a custom gradient in this export -> its source, the op type there.
      runtime: the functions of the eager runtime, as this export sees them.
    """

    def __init__(self) -> None:
        self.definitions: dict[ExportName, schema.FunctionDef] = {}
        self.gradients: dict[ExportName, Origin] = {}
        self.runtime = RuntimeFunctions()
        self._names: dict[Origin, ExportName] = {}
        self._op_types: dict[Origin, ExportName] = {}
        self._sources: dict[ExportName, FunctionSource] = {}

    def add(
        self, library: Optional[FunctionLibrary], name: SourceName, traced: Optional[Any] = None
    ) -> ExportName:
        """Add a function and its closure, and return its name in this export.

        Args:
          library: the library of the loaded model that has the function; None for the eager
            runtime.
          traced: the concrete function, if it is in the eager runtime. Its graph says which of the
            custom gradients that its nodes name belong to this process; without it, generated names
            are not followed.

        Raises SaveError if there is no such function.
        """
        if traced is not None:
            self.runtime.sites.visit(traced)
        claim = self._claim(self._source(library), name)
        self._complete([claim])
        return claim[2]

    def derive(self, definition: schema.FunctionDef, hint: str) -> ExportName:
        """Add a FunctionDef derived from a function of the eager runtime, with the runtime's names.
        Return its name in this export.
        """
        name = self._put(definition, hint)
        remove_process_numbers(definition)
        self._complete(reversed(list(self._rename(self.runtime, definition, name))))
        return name

    def write(self, definition: schema.FunctionDef, hint: str) -> ExportName:
        """Add a new function whose references are names of this export already. Return its name."""
        name = self._put(definition, hint)
        definition.signature.name = name
        add_input_shapes(definition)
        return name

    def find(self, library: Optional[FunctionLibrary], name: SourceName) -> Optional[ExportName]:
        """Return the name of a function in this export, or None if the export does not have it."""
        source = self._source(library)
        found = self._names.get((source, name))
        return found if found is not None else self._names.get(source.owner(name))

    def source(self, name: ExportName) -> FunctionSource:
        """Return the source of a function of the export."""
        return self._sources[name]

    def closure(self, name: ExportName) -> list[ExportName]:
        """Return a function and all functions of the export that it calls, in the order of
        discovery.
        """
        return list(reachable([name], self._called))

    def _called(self, name: ExportName) -> list[ExportName]:
        names = names_in(self.definitions[name].node_def)
        return [ExportName(other) for other in names if other in self.definitions]

    def site_of_gradient(self, op_type: ExportName) -> Optional[Site]:
        """Return an operation of this process that has the custom gradient with this op type in the
        export, or None.
        """
        sites = self.runtime.sites
        traced = {
            exported: LiveName(name)
            for (source, name), exported in self._names.items()
            if source is self.runtime
        }
        found = sites.find(self.gradients[op_type][1], traced.values())
        if found is not None:
            return found
        # Graphs are searched for the op that tf.custom_gradient makes; a program may give a
        # gradient to any op.
        for exported, name in traced.items():
            for node in self.definitions[exported].node_def if exported in self.definitions else ():
                if text_of(node.attr, CUSTOM_GRADIENT) == op_type:
                    return sites.site(name, node.name)
        return None

    def close(self) -> ClosedLibrary:
        """Return the library with its present functions."""
        mentioned = mentions(self.definitions)
        return ClosedLibrary(
            MappingProxyType(dict(self.definitions)),
            MappingProxyType(dict(self._names)),
            MappingProxyType(dict(self._sources)),
            MappingProxyType({name: found.calls for name, found in mentioned.items()}),
            MappingProxyType({name: found.ops for name, found in mentioned.items()}),
            frozenset().union(*[found.names for found in mentioned.values()]),
            self.runtime,
        )

    # Adding a function

    def _source(self, library: Optional[FunctionLibrary]) -> FunctionSource:
        return self.runtime if library is None else FileFunctions(library)

    def _put(self, definition: schema.FunctionDef, hint: str) -> ExportName:
        name = ExportName(f"{_PREFIX}{hint}_{len(self._names)}")
        # A function that a save makes: the runtime has none of this name.
        self._names[self.runtime, LiveName(name)] = name
        self.definitions[name], self._sources[name] = definition, self.runtime
        return name

    def _claim(self, source: FunctionSource, name: str) -> _Claim:
        """Give a function its name in this export, before it is read.

        This is the only place where a live name or a file name becomes an export name.
        """
        owner, original = source.owner(name)
        exported = self._names.get((owner, original))
        if exported is None:
            exported = ExportName(f"{_PREFIX}{base_name(original)}_{len(self._names)}")
            self._names[owner, original] = exported
        return owner, original, exported

    def _complete(self, claimed: Iterable[_Claim]) -> None:
        """Add functions that already have a name, and everything that they refer to."""
        pending = list(claimed)
        while pending:
            source, old, new = pending.pop()
            if new not in self.definitions:
                definition = source.definition(old)
                self.definitions[new], self._sources[new] = definition, source
                pending += reversed(list(self._rename(source, definition, new)))

    def _rename(
        self, source: FunctionSource, definition: schema.FunctionDef, name: ExportName
    ) -> Iterator[_Claim]:
        """Rename a copied FunctionDef and its references; yield the functions that it refers to."""
        original = LiveName(definition.signature.name)
        definition.signature.name = name
        add_input_shapes(definition)
        if hints := {node.name for node in definition.node_def if node.op in _HINTS}:
            remove_nodes(definition, hints)
        known_ops = api.op_defs({node.op for node in definition.node_def})
        for node, called in zip(definition.node_def, function_values_of(definition.node_def)):
            node.ClearField("experimental_debug_info")
            yield from self._rename_calls(source, node, called, known_ops)
            if CUSTOM_GRADIENT in node.attr:
                self._rename_gradient(source, original, node)
        strip_defaults(definition.node_def, known_ops)
        yield from self._rename_texts(source, definition)
        if IMPLEMENTS in definition.attr:
            interface = definition.attr[IMPLEMENTS].s
            for other in source.implementations().get(interface, ()):
                yield self._claim(source, other)

    def _rename_calls(
        self,
        source: FunctionSource,
        node: schema.NodeDef,
        called: Iterable[schema.NameAttrList],
        known_ops: Container[str],
    ) -> Iterator[_Claim]:
        """Rename the functions that a node calls by its type and by its attributes."""
        if source.is_called(node.op, known_ops):
            claim = self._claim(source, node.op)
            node.op = claim[2]
            yield claim
        for function in called:
            if function.name and source.may_have(function.name):
                claim = self._claim(source, function.name)
                function.name = claim[2]
                yield claim

    def _rename_texts(
        self, source: FunctionSource, definition: schema.FunctionDef
    ) -> Iterator[_Claim]:
        """Rename the functions that attributes of a function name as text."""
        for key in _TEXT_REFERENCES:
            name = text_of(definition.attr, key) if key in definition.attr else ""
            if name and source.is_called(name, api.op_defs([name])):
                claim = self._claim(source, name)
                definition.attr[key].s = claim[2].encode()
                yield claim

    def _rename_gradient(
        self, source: FunctionSource, function: SourceName, node: schema.NodeDef
    ) -> None:
        """Give a node the name that its custom gradient has in this export.

        `function` has the name that it has in `source`.
        """
        gradient = text_of(node.attr, CUSTOM_GRADIENT)
        if gradient == REFUSED:
            del node.attr[CUSTOM_GRADIENT]
        elif gradient == GRADIENT_NOT_SAVED:
            return
        elif source.means_gradient(function, gradient):
            node.attr[CUSTOM_GRADIENT].s = self._op_type(source, gradient).encode()
        else:
            # The name has a number of another process, which must not be looked up in this one.
            refuse_gradient(
                node,
                f"the file that was loaded names the custom gradient {gradient!r} and does not"
                " have it",
            )

    def _op_type(self, source: FunctionSource, op_type: str) -> ExportName:
        """Return the name of a custom gradient's op type in this export."""
        key = source.owner_of_name(op_type)
        if key not in self._op_types:
            self._op_types[key] = ExportName(f"CustomGradient-{len(self._op_types)}")
            self.gradients[self._op_types[key]] = key
        return self._op_types[key]


def refuse_gradient(node: schema.NodeDef, reason: str) -> None:
    """Write into a node that its custom gradient is not in the export, so that no reader uses the
    standard gradient of its op.
    """
    node.attr[CUSTOM_GRADIENT].s = GRADIENT_NOT_SAVED.encode()
    node.attr[NO_GRADIENT_BECAUSE].s = reason.encode()
