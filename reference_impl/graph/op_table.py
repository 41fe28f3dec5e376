"""What the outputs of a node are: the OpDefs a MetaGraph carries, and those of the ops the importer itself writes.

A GraphDef says ``node:1``, a FunctionDef says ``node:values:0``; turning one into the other needs the output
arguments of every op. They come from the function library, the MetaGraph's ``stripped_op_list``, a small table for the
ops of the reference-variable rewrite, and last a lookup handed in (the registry of a running TensorFlow).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from reference_impl import errors
from reference_impl.format import schema

STRING, INT64, BOOL, RESOURCE, VARIANT = 7, 9, 10, 20, 21
# Stateful ops that read a variable and change nothing.
VARIABLE_READS = frozenset({"ReadVariableOp", "VariableShape", "VarIsInitializedOp", "ResourceGather", "ResourceGatherNd"})
_MAX_OUTPUTS = 1 << 20  # a number_attr is read from the file

# op -> ((output name, type attr or DataType), ...): ops that the importer writes and a file may not describe.
_WRITTEN: dict[str, tuple[tuple[str, Any], ...]] = {
    "ReadVariableOp": (("value", "dtype"),),
    "VarHandleOp": (("resource", RESOURCE),),
    "VarIsInitializedOp": (("is_initialized", BOOL),),
    "ResourceCountUpTo": (("output", "T"),),
    "Identity": (("output", "T"),),
    "IdentityN": (("output", ("T",)),),
    "Const": (("output", "dtype"),),
    "Enter": (("output", "T"),),
    "Exit": (("output", "T"),),
    "NextIteration": (("output", "T"),),
    "Switch": (("output_false", "T"), ("output_true", "T")),
    "Merge": (("output", "T"), ("value_index", 3)),
    "HashTableV2": (("table_handle", RESOURCE),),
    "MutableHashTableV2": (("table_handle", RESOURCE),),
    "MutableHashTableOfTensorsV2": (("table_handle", RESOURCE),),
    "MutableDenseHashTableV2": (("table_handle", RESOURCE),),
    "IteratorV2": (("handle", RESOURCE),),
    "MakeIterator": (),
    "StatefulPartitionedCall": (("output", ("Tout",)),),
    "LookupTableFindV2": (("values", "Tout"),),
    "LookupTableSizeV2": (("size", INT64),),
    "LookupTableExportV2": (("keys", "Tkeys"), ("values", "Tvalues")),
    "NoOp": (),
    "AddV2": (("z", "T"),),
    "LogicalNot": (("y", BOOL),),
    "Fill": (("output", "T"),),
    "Assert": (),
    "LoopCond": (("output", BOOL),),
    "While": (("output", ("T",)),),
    "StatelessWhile": (("output", ("T",)),),
    "If": (("output", ("Tout",)),),
    "StatelessIf": (("output", ("Tout",)),),
    "TensorListReserve": (("handle", VARIANT),),
    "TensorListSetItem": (("output_handle", VARIANT),),
    "TensorListGetItem": (("item", "element_dtype"),),
    "TensorListGather": (("values", "element_dtype"),),
    "TensorListScatterIntoExistingList": (("output_handle", VARIANT),),
    "TensorListSplit": (("output_handle", VARIANT),),
    "TensorListConcat": (("tensor", "element_dtype"), ("lengths", INT64)),
    "TensorListElementShape": (("element_shape", "shape_type"),),
    "TensorListLength": (("length", 3),),
}
_STATELESS = {"Identity", "IdentityN", "LogicalNot", "Const", "Fill", "NoOp", "AddV2", "Enter", "Exit", "NextIteration"}
_STATELESS |= {"Switch", "Merge", "LoopCond"}
# Updates the rewrite writes put out nothing.
_WRITTEN_UPDATES = (
    "Assign",
    "ResourceApply",
    "ResourceSparseApply",
    "ResourceScatter",
    "ResourceStridedSliceAssign",
    "InitializeTable",
    "LookupTable",
)


class OpTable:
    """OpDefs by op name.

    Args:
      meta_graph: a MetaGraphDef message.
      file: named in errors.
      fallback: op name -> OpDef message (or None), asked last.
    """

    def __init__(self, meta_graph: Any, file: str, fallback: Optional[Callable[[str], Any]] = None):
        self.file = file
        self._fallback = fallback
        self._defs: dict[str, Any] = {op.name: op for op in meta_graph.meta_info_def.stripped_op_list.op}
        self.library = {function.signature.name: function for function in meta_graph.graph_def.library.function}
        self._defs.update((name, function.signature) for name, function in self.library.items())

    def get(self, op: str) -> Optional[Any]:
        """The OpDef of ``op`` or None."""
        if op not in self._defs:
            found = self._written(op)
            if found is None and self._fallback is not None:
                found = self._fallback(op)
            self._defs[op] = found
        return self._defs[op]

    def registered(self, op: str) -> Optional[Any]:
        """The OpDef of ``op`` of the running TensorFlow; None where it has none, or none is asked."""
        return self._fallback(op) if self._fallback is not None else None

    @staticmethod
    def _written(op: str) -> Optional[Any]:
        if op not in _WRITTEN and not op.startswith(_WRITTEN_UPDATES):
            return None
        definition = schema.OpDef(name=op, is_stateful=op not in _STATELESS and not op.startswith(("Stateless", "TensorList")))
        for name, kind in _WRITTEN.get(op, ()):
            argument = definition.output_arg.add(name=name)
            if isinstance(kind, tuple):
                argument.type_list_attr = kind[0]
            elif isinstance(kind, str):
                argument.type_attr = kind
            else:
                argument.type = kind
        return definition

    def outputs(self, node: Any) -> list[tuple[str, int, int]]:
        """(argument name, position inside the argument, DataType) for each output of ``node``.

        Raises:
          MissingKeyError: nothing describes the node's op (a custom op whose OpDef the exporter dropped).
          MalformedError: an attr that decides the outputs is absent or has the wrong kind.
        """
        definition = self.get(node.op)
        if definition is None:
            raise errors.MissingKeyError(
                f"nothing describes op {node.op!r}; load the library that registers it", file=self.file, node=node.name
            )
        out: list[tuple[str, int, int]] = []
        for argument in definition.output_arg:
            types = self._types(node, argument)
            out.extend((argument.name, position, kind) for position, kind in enumerate(types))
        return out

    def _types(self, node: Any, argument: Any) -> list[int]:
        if argument.type_list_attr:
            return list(self._attr(node, argument.type_list_attr).list.type)
        kind = argument.type or self._attr(node, argument.type_attr).type
        if not argument.number_attr:
            return [kind]
        count = self._attr(node, argument.number_attr).i
        if not 0 <= count <= _MAX_OUTPUTS:
            raise errors.LimitError(f"attr {argument.number_attr!r} asks for {count} outputs", file=self.file, node=node.name)
        return [kind] * count

    def _attr(self, node: Any, name: str) -> Any:
        if name in node.attr:
            return node.attr[name]
        # stripped_default_attrs: an absent attr has the default of the OpDef.
        definition = self.get(node.op)
        for attr in definition.attr if definition is not None else ():
            if attr.name == name and attr.HasField("default_value"):
                return attr.default_value
        raise errors.MalformedError(f"attr {name!r} of op {node.op!r} is absent", file=self.file, node=node.name)

    def is_stateful(self, node: Any) -> bool:
        """Whether the op of ``node`` is declared stateful; an op nobody describes is taken to be."""
        definition = self.get(node.op)
        return definition is None or definition.is_stateful
