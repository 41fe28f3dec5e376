"""VariableDefs: the definitions of variables in the collections of a TF 1.x MetaGraph.

RFC: V1-01
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from reference_impl import errors
from reference_impl.format import schema

GLOBAL = "variables"
TRAINABLE = "trainable_variables"
# The ops that make a variable: with an output of references, and with a handle.
REFERENCE_OPS = frozenset({"Variable", "VariableV2"})
VARIABLE_OPS = REFERENCE_OPS | {"VarHandleOp"}
COLLECTIONS = (GLOBAL, TRAINABLE, "local_variables", "model_variables", "metric_variables")


def variable_defs(
    meta_graph: schema.MetaGraphDef,
    collections: Iterable[str] = COLLECTIONS,
    file: str = "",
    lenient: bool = False,
) -> Iterator[tuple[str, str, schema.VariableDef]]:
    """Return the collection, node and definition of each listed variable.

    The node is the variable itself, or the handle of a resource variable. A definition that cannot
    be parsed is left out if `lenient`; otherwise it raises MalformedError, which names `file`.
    """
    for key in collections:
        if key not in meta_graph.collection_def:
            continue
        for data in meta_graph.collection_def[key].bytes_list.value:
            try:
                definition = schema.parse(schema.VariableDef, data, file)
            except errors.SavedModelError:
                if lenient:
                    continue
                raise
            yield key, definition.variable_name.rpartition(":")[0], definition


def trainable_nodes(
    meta_graph: schema.MetaGraphDef, file: str = "", lenient: bool = False
) -> set[str]:
    """Return the nodes of the trainable variables: as their definitions say, or before TensorFlow
    1.9 their collection.

    `file` and `lenient` are as in `variable_defs`.
    """
    written = re.match(r"(\d+)\.(\d+)", meta_graph.meta_info_def.tensorflow_version)
    if written and tuple(map(int, written.groups())) < (1, 9):  # definitions had no such field yet
        return {node for _, node, _ in variable_defs(meta_graph, [TRAINABLE], file, lenient)}
    return {
        node
        for _, node, definition in variable_defs(meta_graph, COLLECTIONS, file, lenient)
        if definition.trainable
    }


def slice_spec(info: schema.SaveSliceInfoDef) -> str:
    """Return a part of a partitioned variable in RestoreV2's notation: the shape, then start and
    length in each dimension.
    """
    whole = "".join(f"{extent} " for extent in info.full_shape)
    return whole + ":".join(
        f"{start},{length}" for start, length in zip(info.var_offset, info.var_shape)
    )
