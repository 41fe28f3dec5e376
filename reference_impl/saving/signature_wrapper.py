"""The function of a signature in the file: a wrapper that calls the function behind the signature,
or that function itself.

RFC: SIG-05, SIG-10, ATTR-02, ATTR-03
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from reference_impl.format import schema
from reference_impl.format.names import base_name
from reference_impl.functions.function_settings import SETTABLE_ATTRIBUTES
from reference_impl.functions.names import ExportName, LiveName
from reference_impl.functions.specs import shape_protos
from reference_impl.graph.argument_names import python_names
from reference_impl.graph.function_builder import FunctionBuilder
from reference_impl.saving import traces
from reference_impl.saving.export_library import ExportLibrary
from reference_impl.saving.signature_function import WRAPPER, SignatureFunction
from reference_impl.saving.traces import Trace


def write_wrapper(
    signature: SignatureFunction, target: ExportName, library: ExportLibrary
) -> Trace:
    """Write the function of a signature, which calls the function `target` of the library, and
    return its Trace.

    The function takes its inputs in the order in which Python sorts their names. Its outputs are
    sorted by name.
    """
    inner = library.definitions[target]
    keywords = python_names(signature.inputs)
    names = list(keywords)
    builder = FunctionBuilder(is_stateful=inner.signature.is_stateful)
    argument_of = {}
    shapes = shape_protos([signature.inputs[name].shape for name in names])
    for name, shape in zip(names, shapes):
        argument = inner.signature.input_arg[signature.names.index(name)]
        argument_of[name] = builder.argument(argument.name, argument, shape=shape, user_name=name)
    captured = [
        builder.argument(argument.name, argument)
        for argument in list(inner.signature.input_arg)[len(names) :]
    ]
    call = builder.call(
        None, target, inner.signature, [*(argument_of[name] for name in signature.names), *captured]
    )
    set_output_shapes(
        call,
        traces.flat_outputs(signature.trace.outputs),
        len(inner.signature.output_arg),
    )
    _add_results(builder, signature, call.name, inner.signature)
    # Attributes that a runtime reads from the function that it runs.
    for key in SETTABLE_ATTRIBUTES:
        if key in inner.attr and key != "_noinline":
            builder.function.attr[key].CopyFrom(inner.attr[key])
    if inner.signature.is_stateful:
        builder.control_output(call.name)
    written = library.write(builder.function, f"{WRAPPER}{base_name(target)}")
    structure = _structure(signature)
    captures = signature.trace.captures
    return Trace(
        None,
        LiveName(written),  # under which the library finds what a save wrote
        captures,
        lambda: structure,
        names,
        int(len(names) == 1),
        _keyword_only(keywords.values()),
    )


def _add_results(
    builder: FunctionBuilder, signature: SignatureFunction, call: str, called: schema.OpDef
) -> None:
    """Add the results of a signature: the results of the function that it calls, sorted by name.

    Nodes have the names that TensorFlow gives them: programs that freeze a signature find its
    results by ``Identity:0``.
    """
    shapes = shape_protos([spec.shape for spec in traces.flat_outputs(signature.outputs)])
    for position, place in enumerate(signature.order):
        kind = called.output_arg[place].type
        node = builder.identity("Identity", f"{call}:output:{place}", kind)
        # TensorFlow infers no shape of a call when it loads a function (ATTR-03).
        if len(shapes) == len(signature.order):
            node.attr["_output_shapes"].list.shape.append(shapes[position])
        builder.result("identity", f"{node.name}:output:0", kind)


def direct_trace(signature: SignatureFunction) -> Trace:
    """Return the Trace of a signature that needs no wrapper.

    A single input may be passed without its name.

    RFC: ATTR-02
    """
    trace = signature.trace
    keywords = python_names(signature.names)
    if trace.inputs[1].keys() != set(keywords.values()):
        # of TF 1.x, or of a writer that kept names that are invalid in Python
        structure = _structure(signature)
        trace = Trace(
            trace.source, trace.name, trace.captures, lambda: structure, traced=trace.traced
        )
    return dataclasses.replace(
        trace,
        keywords=signature.names,
        positional=int(len(signature.names) == 1),
        signature=trace.signature or _keyword_only(keywords.values()),
    )


def _structure(signature: SignatureFunction) -> tuple[Any, Any]:
    """Return the arguments and results of a signature for its readers, with names that are valid in
    Python.
    """
    inputs = {
        keyword: signature.inputs[name] for name, keyword in python_names(signature.inputs).items()
    }
    return ((), inputs), signature.outputs


def _keyword_only(names: Iterable[str]) -> inspect.Signature:
    return inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    )


def set_output_shapes(node: schema.NodeDef, specs: Sequence[tf.TensorSpec], count: int) -> None:
    """Record the shapes of the results of a call at its node, where readers of a graph look, since
    inference finds none.

    RFC: ATTR-03
    """
    if len(specs) == count:
        node.attr["_output_shapes"].list.SetInParent()
        node.attr["_output_shapes"].list.shape.extend(shape_protos([spec.shape for spec in specs]))
