"""Choose the signatures and their calling convention (SIG-01..SIG-13, ATTR-04..ATTR-07,
IMP-01..IMP-06, API-03, V1-16).

Sources, in order: the argument; the object's own map of signatures; `_default_save_signature` and
the only function of the root that can be a signature. Each function is wrapped to take tensors by
name and return a dict of tensors. Functions that a loader made for signatures already do so.
"""

from __future__ import annotations

import inspect
import itertools
import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SavedModelError, SignatureError
from reference_impl.format import schema
from reference_impl.format.names import (
    DEFAULT_SIGNATURE,
    RESERVED_SIGNATURES,
    SIGNATURES_CHILD,
    base_name,
    plain_name,
)
from reference_impl.functions.function_settings import SETTABLE_ATTRIBUTES
from reference_impl.functions.names import ExportName, LiveName
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.functions.specs import shape_proto
from reference_impl.graph.argument_names import python_name, python_names
from reference_impl.graph.function_builder import FunctionBuilder
from reference_impl.kinds.bare_concrete_function import FunctionOfExport
from reference_impl.kinds.signature_map import is_live_map
from reference_impl.saving import traces
from reference_impl.saving.export_library import ExportLibrary, is_function
from reference_impl.saving.reach import Reached
from reference_impl.saving.traces import Trace

_log = logging.getLogger(__name__)

PREDICT = "tensorflow/serving/predict"
_ABSENT = object()
_WRAPPER = "signature_wrapper_"  # TensorFlow's name for the functions of signatures, too


@dataclass(eq=False)
class SignatureFunction(FunctionOfExport):
    """A signature, which takes flat tensors by name and returns a dict of tensors."""

    target: Any  # the concrete function behind it
    names: list[str]  # of its inputs, in the order of the target's arguments
    inputs: dict[str, tf.TensorSpec]
    outputs: dict[str, Any]  # TensorSpecs or composite specs
    order: list[int]  # for each flat result, its position among the results of the target
    defaults: dict[str, Any] = field(default_factory=dict)  # of optional inputs
    definition: Any = None  # the SignatureDef that it was read from
    direct: bool = False  # whether the target has this calling convention and needs no wrapper

    @property
    def method_name(self) -> str:
        return self.definition.method_name if self.definition is not None else PREDICT


def choose(reached: Reached, given: Optional[Any]) -> dict[str, SignatureFunction]:
    """Return the signatures of an export. Raises SignatureError."""
    own = _own(
        reached.root
    )  # an invalid value is refused even with the argument, which would hide it from every reader
    given = own if given is None else given
    if given is None:
        found = _inferred(reached)
        return {} if found is None else {DEFAULT_SIGNATURE: found}
    if is_function(given):
        given = {DEFAULT_SIGNATURE: given}
    if not isinstance(given, Mapping):
        raise SignatureError(
            f"Expected a TensorFlow function or a map of such, got {type(given).__name__}",
            node=SIGNATURES_CHILD,
            clause="API-03",
        )
    for key in given:
        if not isinstance(key, str):
            raise SignatureError(
                f"keys must be strings, got {key!r}", node=SIGNATURES_CHILD, clause="API-03"
            )
        if key in RESERVED_SIGNATURES:
            raise SignatureError(
                "the key is reserved for the initialisation of the model", node=key, clause="API-03"
            )
    return {key: signature_function(key, given[key], reached.strict) for key in given}


def _own(root: object) -> Optional[Mapping[str, Any]]:
    """Return the map of signatures that loading put on the root (ATTR-06).

    Raises SignatureError for other values (ATTR-07).
    """
    if isinstance(
        root, tuple
    ):  # its proxy may have no dict to look into; a field of that name is an element
        held = getattr(root, SIGNATURES_CHILD) if hasattr(type(root), SIGNATURES_CHILD) else _ABSENT
    else:
        held = inspect.getattr_static(root, SIGNATURES_CHILD, _ABSENT)
    if held is _ABSENT or isinstance(held, property):  # no property is run (FN-03)
        return None
    value = getattr(root, SIGNATURES_CHILD)
    if not is_live_map(value):
        reason = (
            "The attribute `signatures` is reserved for the map that loading makes, and holds a"
            f" {type(value).__name__}. Remove it with `del obj.signatures`, and give the functions"
            " as the argument `signatures`."
        )
        raise SignatureError(reason, node="root.signatures", clause="ATTR-07")
    return value


def _inferred(reached: Reached) -> Optional[SignatureFunction]:
    """Return the signature that the root itself offers, or None if it offers none or several.

    Nobody asked for it, so what cannot be a signature is a warning, never an error (IMP-06). Inputs
    in a structure get the names that TensorFlow gives them: without a signature, no server could
    run the model.
    """
    offered = api.keras_signature(reached.root)
    if is_function(offered):  # Keras numbers the inputs of a structure: inputs, inputs_1
        try:
            return signature_function(DEFAULT_SIGNATURE, offered, strict=False)
        except SavedModelError as error:
            _without_default([f"the function of the Keras model cannot be it: {error}"])
            return None
    found, refused = {}, []
    for name, child in reached.children(reached.root, "root").items():
        if not is_function(child) or (
            isinstance(child, api.Function) and child.input_signature is None
        ):
            continue
        try:
            found[name] = signature_function(DEFAULT_SIGNATURE, child, strict=False)
        except SavedModelError as error:
            refused.append(f"root.{name} cannot be it: {error}")
    if len(found) == 1:
        ((name, signature),) = found.items()
        _say_numbered(name, signature)
        return signature
    if found:
        refused.insert(
            0, " and ".join(f"root.{name}" for name in sorted(found)) + " could all be it"
        )
    if refused:
        _without_default(refused)
    return None


def _without_default(reasons: Sequence[str]) -> None:
    _log.warning(
        "saved without a default signature, name one by the argument signatures: %s",
        "; ".join(reasons),
    )


def _say_numbered(name: str, signature: SignatureFunction) -> None:
    """Warn of inputs of the default signature whose names nobody chose (SIG-13)."""
    trace = traces.trace_of(signature.target)
    numbered = list(_numbered(_arguments(trace), trace.keywords))
    if numbered and not signature.direct:
        _log.warning(
            "root.%s is the default signature, and the parts of a structure are its inputs %s. A"
            " client could not know these names: give each TensorSpec a name, or say what to export"
            " by the argument signatures ({} for nothing) [SIG-13]",
            name,
            ", ".join(map(repr, itertools.chain(*numbered))),
        )


def signature_function(key: str, function: object, strict: bool) -> SignatureFunction:
    """Return a function as a signature.

    Raises:
      SignatureError: it cannot be a signature: SIG-04 (no concrete arguments), SIG-12 (results),
        SIG-13 (nested arguments).
    """
    concrete, signature = _concrete(key, function)
    trace = traces.trace_of(concrete)
    definition = getattr(concrete, "signature_def", None)
    defaults = dict(getattr(concrete, "defaults", None) or {})
    if (isinstance(concrete, RegisteredFunction) or _is_wrapper(concrete)) and traces.is_flat(
        trace
    ):
        given = [trace.inputs[1][name] for name in sorted(trace.inputs[1])]
        # Clients use the names of the flat arguments; names in the Python signature may have been
        # adapted to Python's rules.
        names = trace.keywords if len(trace.keywords) == len(given) else sorted(trace.inputs[1])
        if names == list(python_names(names)):
            inputs, outputs = dict(zip(names, given)), dict(sorted(trace.outputs.items()))
            order = list(range(len(traces.flat_outputs(outputs))))
            return SignatureFunction(
                concrete, names, inputs, outputs, order, defaults, definition, direct=True
            )
    inputs = _inputs(key, trace, strict)
    if not isinstance(concrete, RegisteredFunction):  # their names are kept
        _check_names(key, inputs)
    if signature is not None:
        defaults.update(_defaults(key, trace, signature, list(inputs), strict))
    outputs, order = _outputs(key, trace.outputs)
    return SignatureFunction(concrete, list(inputs), inputs, outputs, order, defaults, definition)


def _is_wrapper(concrete: tf.types.experimental.ConcreteFunction) -> bool:
    """Return whether `tf.saved_model.load` made a function of a signature.

    Wrapping it again would add a wrapper at each save.
    """
    return plain_name(tf.compat.as_str(concrete.name)).startswith(_WRAPPER)


def renamed(function: object) -> Optional[SignatureFunction]:
    """Return a function of the object tree as a signature if its argument names are invalid in
    Python; otherwise return None.

    Signatures of TF 1.x, and of writers before TensorFlow adapted the names, can be anywhere in the
    tree.
    """
    if all(python_name(name) == name for name in api.flat_arguments(function)[0]):
        return None
    try:
        return (
            signature_function("", function, strict=False)
            if traces.is_flat(traces.trace_of(function))
            else None
        )
    except (
        SavedModelError
    ):  # a type in its signature is not known here, so it is written as it was read
        return None


def _concrete(key: str, function: object) -> tuple[Any, Optional[inspect.Signature]]:
    """Return the concrete function of a signature, and the Python signature with the defaults."""
    if isinstance(function, api.ConcreteFunction):
        return function, None
    reason = getattr(function, "reason", None)
    if isinstance(
        reason, SavedModelError
    ):  # a signature of a TF 1.x model that could not be loaded
        raise SignatureError(
            f"the signature could not be loaded, so it cannot be saved: {reason}",
            node=key,
            clause="V1-16",
        )
    if not isinstance(function, api.Function):
        raise SignatureError(
            f"Expected a TensorFlow function, got {type(function).__name__}",
            node=key,
            clause="API-03",
        )
    found = api.traces(function)
    if function.input_signature is None:
        reason = (
            "Expected a TensorFlow function: Only tf.functions with an input signature or concrete"
            " functions can be signatures. Give the function an `input_signature`, or take"
            " `f.get_concrete_function(tf.TensorSpec(...))`."
        )
        raise SignatureError(reason, node=key, clause="SIG-04")
    concrete = traces.distinct(found)[0] if found else function.get_concrete_function()
    return concrete, api.python_signature(function)


def _inputs(key: str, trace: Trace, strict: bool) -> dict[str, tf.TensorSpec]:
    (args, kwargs), top = trace.inputs, _arguments(trace)
    for value in top:
        leaves = tf.nest.flatten(value, expand_composites=True)
        if any(
            isinstance(leaf, tf.Variable) or getattr(leaf, "dtype", None) == tf.resource
            for leaf in [value, *leaves]
        ):
            raise SignatureError(
                "a variable cannot be an input of a signature", node=key, clause="SIG-13"
            )
    flat = traces.flat_outputs((args, kwargs))
    if not args and kwargs.keys() == set(
        trace.keywords
    ):  # TensorFlow orders those of TF 1.x differently from the dict
        flat = [kwargs[name] for name in trace.keywords]
    if len(flat) != len(trace.keywords) or len(set(trace.keywords)) != len(flat):
        names = ", ".join(trace.keywords)
        raise SignatureError(
            f"its {len(flat)} input tensors have no names of their own ({names})",
            node=key,
            clause="SIG-07",
        )
    if strict:
        _check_nested(key, top, trace.keywords)
    return _as_python_binds(
        trace,
        {
            name: tf.TensorSpec(spec.shape, spec.dtype, name)
            for name, spec in zip(trace.keywords, flat)
        },
    )


def _arguments(trace: Trace) -> list[Any]:
    """Return the positional arguments of a trace, then its keyword arguments, sorted."""
    args, kwargs = trace.inputs
    return [*args, *(kwargs[name] for name in sorted(kwargs))]


def _check_nested(key: str, arguments: Sequence[Any], names: Sequence[str]) -> None:
    """Raise SignatureError if a tensor in a structure has no name of its own (SIG-13)."""
    for given in _numbered(arguments, names):
        reason = (
            "inputs of a signature must be plain tensors, or tensors in a structure that have"
            " different names of their own: a client could not know that"
            f" {', '.join(map(repr, given))} are the parts of one argument. Give each TensorSpec a"
            " name, wrap the function in one that takes tensors, or save with strict=False"
        )
        raise SignatureError(reason, node=key, clause="SIG-13")


def _numbered(arguments: Sequence[Any], names: Sequence[str]) -> Iterator[list[str]]:
    """Yield the names of the tensors of each argument that is a structure, unless they have names
    of their own.

    TensorFlow names a tensor in a structure after its TensorSpec, or after the argument with a
    number.
    """
    for value, given in _with_names(arguments, names):
        if isinstance(value, tf.TensorSpec) or not given:
            continue
        own = [leaf.name for leaf in traces.flat_outputs(value)] == given or len(given) == 1
        if isinstance(value, tf.TypeSpec) or not own:
            yield given


def _with_names(arguments: Iterable[Any], names: Sequence[str]) -> Iterator[tuple[Any, list[str]]]:
    """Yield each argument of a trace, and the names of its tensors."""
    left = iter(names)
    for value in arguments:
        yield value, list(itertools.islice(left, len(traces.flat_outputs(value))))


def _defaults(
    key: str, trace: Trace, signature: inspect.Signature, names: Sequence[str], strict: bool
) -> dict[str, Any]:
    """Return the values of optional inputs.

    `names` are in the order of the function's arguments.
    """
    args, kwargs = trace.inputs
    parameters = [*list(signature.parameters)[: len(args)], *sorted(kwargs)]
    found: dict[str, Any] = {}
    for parameter, (value, given) in zip(parameters, _with_names(_arguments(trace), names)):
        default = (
            signature.parameters[parameter].default
            if parameter in signature.parameters
            else inspect.Parameter.empty
        )
        parts = tf.nest.flatten(default, expand_composites=True)
        if not any(isinstance(part, tf.Tensor) for part in parts):
            continue
        try:
            tf.nest.assert_same_structure(default, value, check_types=False, expand_composites=True)
        except (TypeError, ValueError) as error:
            lost = SignatureError(
                f"the default value of {parameter} has another structure: {error}",
                node=key,
                clause="FN-09",
            )
            if strict:
                raise lost from error
            warnings.warn(f"default values are left out: {lost}", stacklevel=2)
            continue
        leaves = tf.nest.flatten(value, expand_composites=True)
        tensors = [part for part, leaf in zip(parts, leaves) if isinstance(leaf, tf.TensorSpec)]
        found.update(
            (name, part) for name, part in zip(given, tensors) if isinstance(part, tf.Tensor)
        )
    return found


def _as_python_binds(trace: Trace, inputs: dict[str, tf.TensorSpec]) -> dict[str, tf.TensorSpec]:
    """Return the inputs in the order of the function's arguments, bound as TensorFlow binds them.

    A concrete function treats keywords as parameters of its Python function if they fit, otherwise
    as names of its tensors. The order differs if a TensorSpec has the name of another parameter.
    """
    if trace.signature is None:
        return inputs
    specs = _arguments(trace)
    try:
        parameters = [
            p.replace(default=p.empty) for p in trace.signature.parameters.values()
        ]  # a trace has no defaults
        found = inspect.Signature(parameters).bind(
            **{keyword: name for name, keyword in python_names(inputs).items()}
        )
    except (TypeError, ValueError):
        return inputs
    named = {python_name(keyword): name for keyword, name in found.kwargs.items()}
    names = [*found.args, *(named.get(python_name(keyword)) for keyword in sorted(trace.inputs[1]))]
    if len(specs) != len(names) or not all(
        name and _fits(inputs[name], spec) for name, spec in zip(names, specs)
    ):
        return inputs
    return {name: inputs[name] for name in names}


def _fits(given: tf.TensorSpec, wanted: Any) -> bool:
    plain = isinstance(wanted, tf.TensorSpec) and wanted.dtype == given.dtype
    return plain and wanted.shape.is_compatible_with(given.shape)


def _check_names(key: str, names: Iterable[str]) -> None:
    """Raise SignatureError if two names become the same Python parameter in `tf.saved_model.load`
    (SIG-07).
    """
    adapted: dict[str, str] = {}
    for name in names:
        other = adapted.setdefault(python_name(name), name)
        if other != name:
            reason = (
                f"TensorFlow cannot tell the names of its inputs {other!r} and {name!r} apart,"
                " rename one"
            )
            raise SignatureError(reason, node=key, clause="SIG-07")


def _outputs(key: str, outputs: object) -> tuple[dict[str, Any], list[int]]:
    """Return the outputs by name, sorted, and for each flat output its position among the results
    of the function.
    """
    if isinstance(outputs, tf.TypeSpec):
        named: Sequence[tuple[Any, Any]] = [("output_0", outputs)]
    elif isinstance(outputs, Mapping):
        named = list(outputs.items())
    elif isinstance(outputs, tuple) and hasattr(outputs, "_fields"):
        named = list(zip(outputs._fields, outputs))
    elif isinstance(outputs, (list, tuple)):
        named = [(f"output_{i}", item) for i, item in enumerate(outputs)]
    else:
        raise SignatureError(
            f"Got a non-Tensor value {outputs!r} as the result", node=key, clause="SIG-12"
        )
    for name, item in named:
        if not isinstance(name, str) or not isinstance(item, tf.TypeSpec):
            what = (
                f"the output {name!r}" if isinstance(name, str) else f"the non-string key {name!r}"
            )
            reason = (
                f"Got a non-Tensor value {item!r} for {what}; results must be a tensor, a flat list"
                " or a flat dict"
            )
            reason += " with string keys"
            raise SignatureError(reason, node=key, clause="SIG-12")
    # TensorFlow flattens a nested structure with the keys of a dict sorted, and a sequence in
    # order.
    places: dict[str, list[int]] = {}
    start = 0
    for name, item in sorted(named) if isinstance(outputs, Mapping) else named:
        count = len(traces.flat_outputs(item))
        places[name] = list(range(start, start + count))
        start += count
    names = sorted(places)
    items = dict(named)
    ordered = list(itertools.chain.from_iterable(places[name] for name in names))
    return {name: items[name] for name in names}, ordered


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
    for name in names:
        argument = inner.signature.input_arg[signature.names.index(name)]
        shape = shape_proto(signature.inputs[name].shape)
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
        traces.flat_outputs(traces.trace_of(signature.target).outputs),
        len(inner.signature.output_arg),
    )
    _add_results(builder, signature, call.name, inner.signature)
    for (
        key
    ) in SETTABLE_ATTRIBUTES:  # attributes that a runtime reads from the function that it runs
        if key in inner.attr and key != "_noinline":
            builder.function.attr[key].CopyFrom(inner.attr[key])
    if inner.signature.is_stateful:
        builder.control_output(call.name)
    written = library.write(builder.function, f"{_WRAPPER}{base_name(target)}")
    structure = _structure(signature)
    captures = traces.trace_of(signature.target).captures
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
    specs = traces.flat_outputs(signature.outputs)
    for position, place in enumerate(signature.order):
        kind = called.output_arg[place].type
        node = builder.identity("Identity", f"{call}:output:{place}", kind)
        if len(specs) == len(
            signature.order
        ):  # TensorFlow infers no shape of a call when it loads a function (ATTR-03)
            node.attr["_output_shapes"].list.shape.add().CopyFrom(
                shape_proto(specs[position].shape)
            )
        builder.result("identity", f"{node.name}:output:0", kind)


def direct_trace(signature: SignatureFunction) -> Any:
    """Return the Trace of a signature that needs no wrapper.

    A single input may be passed without its name.

    RFC: ATTR-02
    """
    trace = traces.trace_of(signature.target)
    keywords = python_names(signature.names)
    if trace.inputs[1].keys() != set(
        keywords.values()
    ):  # of TF 1.x, or of a writer that kept names that are invalid in Python
        structure = _structure(signature)
        trace = Trace(
            trace.source, trace.name, trace.captures, lambda: structure, traced=trace.traced
        )
    trace.keywords, trace.positional = signature.names, int(len(signature.names) == 1)
    trace.signature = trace.signature or _keyword_only(keywords.values())
    return trace


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
        node.attr["_output_shapes"].list.shape.extend(shape_proto(spec.shape) for spec in specs)
