"""Call a function with one node, without rebuilding it.

A function with control flow of TF 1.x cannot be traced node by node. Its call has values but no
gradients.

RFC: GOAL-02, NG-03
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import MalformedError
from reference_impl.format import schema
from reference_impl.format.names import V1_CONTROL_FLOW, plain_name
from reference_impl.functions import gradients
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import FileName
from reference_impl.functions.registration import register
from reference_impl.functions.runtime_copy import runtime_copy
from reference_impl.graph.node_attributes import text_of
from reference_impl.graph.node_defs import set_call


def opaque_call(
    library: FunctionLibrary, name: FileName, inputs: Sequence[tf.Tensor]
) -> tf.Operation:
    """Return a node that calls a function, in the graph that is being built; add the function and
    its references to the graph's library.

    Raises MalformedError: TensorFlow refuses the function.
    """
    live, function_def = register(library, name), library.get(name)
    _import_functions(library, name)
    call = schema.NodeDef()
    set_call(call, live, function_def.signature)
    attrs = {key: api.to_tf(value, tf.compat.v1.AttrValue) for key, value in call.attr.items()}
    attrs.update(gradients.refusal(_why_opaque(function_def, name)))
    graph = tf.compat.v1.get_default_graph()
    return graph.create_op(
        "StatefulPartitionedCall", list(inputs), dtypes=[], name="opaque", attrs=attrs
    )


def _import_functions(library: FunctionLibrary, name: FileName) -> None:
    graph_def = schema.GraphDef()
    graph_def.versions.producer = tf.version.GRAPH_DEF_VERSION
    for other in library.closure(name):
        graph_def.library.function.append(runtime_copy(library, other))
    theirs = api.to_tf(graph_def, tf.compat.v1.GraphDef)
    try:
        tf.graph_util.import_graph_def(theirs, name="")  # functions, and no node
    except ValueError as error:
        reason = f"TensorFlow does not take the function: {error}"
        raise MalformedError(reason, file=library.file, node=name) from error


def _why_opaque(function_def: schema.FunctionDef, name: FileName) -> str:
    """Return the reason that the file gives for control flow of TF 1.x, else a general one."""
    for node in function_def.node_def:
        if V1_CONTROL_FLOW in node.attr:
            return text_of(node.attr, V1_CONTROL_FLOW)
    return f"{plain_name(name)} has control flow of TF 1.x"
