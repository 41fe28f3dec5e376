"""Concrete functions that are objects of the model: traces and signatures.

The function itself is a FunctionDef of the library. The object adds the names of its arguments, and
the object graph says what the function captures.

RFC: PRIM-03, RP-07, FMT-02
"""

from __future__ import annotations

from typing import Any

from reference_impl import tensorflow_api as api
from reference_impl.format import schema
from reference_impl.functions import saved_functions
from reference_impl.functions.load_context import LoadContext
from reference_impl.graph import node_kinds
from reference_impl.kinds.kind import Export, Kind, SavedNode, write_dependencies


class FunctionOfExport:
    """A base for functions that exist only in an export, such as the wrapper of a signature."""


class BareConcreteFunctionKind(Kind):
    """Concrete functions. A FunctionDef, and how Python calls it."""

    message = node_kinds.BARE_CONCRETE_FUNCTION

    def read(self, load: LoadContext, number: int, node: schema.SavedObject) -> Any:
        """Make the function of a `bare_concrete_function` node."""
        return saved_functions.read(load, number, node)

    def matches(self, obj: object) -> bool:
        return isinstance(obj, (api.ConcreteFunction, FunctionOfExport))

    def write(self, export: Export, node: SavedNode, out: schema.SavedObject) -> None:
        """Write the name of the FunctionDef and the names of the arguments."""
        export.write_trace(node.number, out.bare_concrete_function)
        write_dependencies(out, node.children)


KIND = BareConcreteFunctionKind()
