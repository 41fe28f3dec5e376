"""Everything that `reference_impl` takes from TensorFlow without its being public API, and the border to its messages.

No other module imports from `tensorflow.python`. Each entry says why public API does not do and in which versions the
symbol was seen (read from the wheels of 2.12, 2.15 and 2.21).

Messages cross the border as bytes: `reference_impl.format.schema` has classes of its own, TensorFlow has its own, and
neither may be handed to the other.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl.format import schema


def _private(*candidates: str) -> Any:
    """The first of several homes `module:symbol` that exists in the running TensorFlow."""
    for candidate in candidates:
        module, _, symbol = candidate.partition(":")
        try:
            return getattr(importlib.import_module(module), symbol)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"TensorFlow {tf.__version__} has none of {', '.join(candidates)}; 2.12 to 2.21 do")


# The classes of tf.function objects: an imported function must be one, or neither Keras nor TensorFlow's own writer takes it
# for a function. tf.types.experimental has only abstract bases. Same module in 2.12-2.21.
Function = _private("tensorflow.python.eager.polymorphic_function.polymorphic_function:Function")
# concrete_function since 2.14 or 2.15; monomorphic_function in 2.12.
ConcreteFunction = _private(
    "tensorflow.python.eager.polymorphic_function.concrete_function:ConcreteFunction",
    "tensorflow.python.eager.polymorphic_function.monomorphic_function:ConcreteFunction",
)

# Resources and assets: public as tf.saved_model.Asset and tf.saved_model.experimental.TrackableResource, but the
# namespace tf.saved_model is what this package must do without. Same modules in 2.12-2.21.
Trackable = _private("tensorflow.python.trackable.base:Trackable")
Asset = _private("tensorflow.python.trackable.asset:Asset")
TrackableResource = _private("tensorflow.python.trackable.resource:TrackableResource")
CapturableResource = _private("tensorflow.python.trackable.resource:CapturableResource")

# A variable without a value, which a restore function is going to assign: tf.Variable always wants an initial one. In 2.4-2.21.
UninitializedVariable = _private("tensorflow.python.ops.resource_variable_ops:UninitializedVariable")


def last_variable_creator(creator: Callable[..., Any]) -> contextlib.AbstractContextManager[None]:
    """A scope in which `creator` makes the variables when strategies and other creators in force have had their say.

    `tf.variable_creator_scope` would ask it first. `Graph._variable_creator_scope` takes a priority in 2.4-2.21.
    """
    return tf.compat.v1.get_default_graph()._variable_creator_scope(creator, priority=50)  # type: ignore[no-any-return]


# Is a gradient tape or a forward accumulator active? No public API tells. In eager/tape.py and eager/record.py; what both ask
# is here in 2.4-2.21.
_tape_set_is_empty = _private("tensorflow.python.pywrap_tfe:TFE_Py_TapeSetIsEmpty")
_context = _private("tensorflow.python.eager.context:context")
# Eager execution inside of a graph that is being built; tf.init_scope only leads out of functions. In 2.4-2.21.
eager_mode = _private("tensorflow.python.eager.context:eager_mode")
_execute = _private("tensorflow.python.eager.execute:execute")
_op_def = _private("tensorflow.python.framework.op_def_registry:get")
_copy_handle_data = _private("tensorflow.python.ops.handle_data_util:copy_handle_data")
_get_handle_data = _private(
    "tensorflow.python.ops.handle_data_util:get_handle_data",  # since 2.15 or before
    "tensorflow.python.ops.resource_variable_ops:get_eager_safe_handle_data",
)
_gradient_registry = _private(
    "tensorflow.python.framework.ops:gradient_registry", "tensorflow.python.framework.ops:_gradient_registry"
)


def track(parent: Any, name: str, child: Any) -> None:
    """Make `child` a dependency of `parent` under a name, if it can be one. `Trackable._track_trackable` is in 2.4-2.21."""
    if isinstance(child, Trackable):
        parent._track_trackable(child, name, overwrite=True)


def variable_without_value(**keywords: Any) -> tf.Variable:
    """An UninitializedVariable, made through the strategies and variable creators in force."""
    with last_variable_creator(lambda _, **given: UninitializedVariable(**given)):
        return tf.Variable(None, **keywords)


class Adoptable(tf.Module):
    """A module that is told when it becomes an attribute of another trackable.

    Containers make a note of their dependencies by `Trackable._handle_deferred_dependencies`, which asks the new one to
    initialise itself (2.4-2.21). No argument says who asks; the caller's frame does.
    """

    def adopted(self, container: Any) -> None:
        raise NotImplementedError

    def _maybe_initialize_trackable(self) -> None:
        super()._maybe_initialize_trackable()
        caller = sys._getframe(1)
        if caller.f_code.co_name == "_handle_deferred_dependencies" and "keras" in sys.modules:
            container = caller.f_locals.get("self")
            if container is not None and container is not self:
                self.adopted(container)


def may_record() -> bool:
    """True while a `tf.GradientTape` or `tf.autodiff.ForwardAccumulator` could be watching what is executed."""
    return not _tape_set_is_empty()


def register_function(function_def: Any) -> None:
    """Make a FunctionDef (ours) known to the eager runtime, under its own name.

    Public API only registers what it traced. `context().add_function_def` is in 2.12-2.21.

    Raises:
      tf.errors.InvalidArgumentError: another function of that name is there already.
    """
    _context().add_function_def(function_def)


def remove_function(name: str) -> None:
    """Undo `register_function`. `context().remove_function` is in 2.12-2.21."""
    _context().remove_function(name)


def function_call_config() -> bytes:
    """The ConfigProto with which tf.function calls its functions, so that ours are optimised alike. In 2.12-2.21."""
    return _context().function_call_options.config_proto_serialized


@functools.cache
def op_def(op: str) -> Optional[Any]:
    """The OpDef (ours) of an op of the running TensorFlow, or None.

    The file's own list leaves out ops that are reached through control flow only. The registry is at this place in 2.4-2.21.
    """
    found = _op_def(op)
    return None if found is None else schema.parse(schema.OpDef, found.SerializeToString())


def copy_handle_data(source: tf.Tensor, target: tf.Tensor) -> None:
    """Tell the shape and dtype behind a resource or variant tensor to the gradient code. In 2.4-2.21."""
    _copy_handle_data(source, target)


def dtype_behind(handle: tf.Tensor) -> Optional[tf.DType]:
    """The dtype of the variable behind a handle, None when nothing is known. In 2.4-2.21."""
    found = _get_handle_data(handle)
    known = found is not None and found.is_set and len(found.shape_and_type) == 1
    return tf.dtypes.as_dtype(found.shape_and_type[0].dtype) if known else None


def set_loop_graphs(operation: Any, cond: Any, body: Any) -> None:
    """Give a While operation the graphs of concrete functions, as tf.while_loop does; its gradient uses them. In 2.4-2.21."""
    for function in (cond, body):
        function.graph.outer_graph = operation.graph
        function.graph.name = _text(function.name)  # the graph has not the number that makes it unique
    operation._cond_graph, operation._body_graph = cond.graph, body.graph


def gradient_function(op_type: str) -> Optional[Any]:
    """The Python gradient registered under `op_type`, or None. `tf.RegisterGradient` only registers. In 2.12-2.21."""
    try:
        return _gradient_registry.lookup(op_type)
    except LookupError:
        return None


def call_registered(name: str, tensors: Sequence[tf.Tensor], results: int) -> Sequence[tf.Tensor]:
    """Execute a registered function eagerly, as an op of its own name.

    tf.raw_ops.StatefulPartitionedCall would wrap it in another function, whose placement refuses int32 results of some ops
    and whose results XLA does not compile. `execute` is in 2.4-2.21.
    """
    attrs = ("executor_type", "", "config_proto", function_call_config())
    return _execute(name, results, list(tensors), attrs, _context()) or ()


def call_flat(function: Any, tensors: Sequence[tf.Tensor], captures: Sequence[tf.Tensor]) -> Any:
    """Call a concrete function with its inputs in order. The public call would bind and check arguments a second time.

    `ConcreteFunction._call_flat` is in 2.12-2.21.
    """
    return ConcreteFunction._call_flat(function, list(tensors), list(captures))


def to_tf(message: Any, kind: Any) -> Any:
    """One of our messages as a message of TensorFlow's class `kind`."""
    return kind.FromString(message.SerializeToString())


def from_tf(message: Any, kind: Any) -> Any:
    """A message of TensorFlow as one of ours."""
    return schema.parse(kind, message.SerializeToString())


# TypeSpecs: a class takes apart and puts together its own state by _serialize and _deserialize (2.4-2.21); names of classes are
# in a registry without public lookup (framework.type_spec_registry since 2.12 or before).
VariableSpec = _private("tensorflow.python.ops.resource_variable_ops:VariableSpec")
ExtensionTypeSpec = _private("tensorflow.python.framework.extension_type:ExtensionTypeSpec")
# What stands for an extension type whose package is not imported; public API makes only types with declared fields. In 2.12-2.21.
AnonymousExtensionTypeSpec = _private("tensorflow.python.framework.extension_type:AnonymousExtensionTypeSpec")
_lookup_type_spec = _private("tensorflow.python.framework.type_spec_registry:lookup")
_type_spec_name = _private("tensorflow.python.framework.type_spec_registry:get_name")


def registered_type_spec(name: str) -> Optional[Any]:
    """The TypeSpec class registered under a name, or None."""
    try:
        return _lookup_type_spec(name)
    except ValueError:
        return None


def type_spec_name(cls: type) -> Optional[str]:
    """The name under which a TypeSpec class is registered, or None."""
    try:
        return _type_spec_name(cls)
    except ValueError:
        return None


def deserialize_type_spec(cls: Any, state: Any) -> tf.TypeSpec:
    return cls._deserialize(state)


def serialize_type_spec(spec: tf.TypeSpec) -> Any:
    return spec._serialize()


# Saving. The hooks below are methods that TensorFlow itself calls on user objects; overriding classes are found everywhere
# (Keras, datasets, tables), so there is no way around them.


def trackable_children(obj: Any, for_export: bool) -> dict[str, Any]:
    """The dependencies of a trackable by name; functions and helpers of an export are among them if asked for.

    `tf.train.TrackableView` gives the same, but refuses objects that are no `Trackable`. The hook is in 2.8-2.21.
    """
    options: dict[str, Any] = {"save_type": "savedmodel", "cache": {}} if for_export else {"save_type": "checkpoint"}
    return dict(obj._trackable_children(**options))


def tracks_attributes(obj: Any) -> bool:
    """Does an object list its dependencies in the way of `tf.Module`, and nobody's override of it?"""
    return type(obj)._trackable_children is tf.__internal__.tracking.AutoTrackable._trackable_children


def traces(function: Any) -> list[Any]:
    """The concrete functions of a tf.function in the order of their making, without tracing anything. In 2.12-2.21."""
    listed = getattr(function, "concrete_functions", None)  # of functions that TensorFlow or we have loaded
    if listed is not None:
        return list(listed)
    caches = [getattr(function, name, None) for name in ("_function_cache",)]
    if caches[0] is not None:
        return list(caches[0].values())  # since 2.13 or so
    inner = [getattr(function, name, None) for name in ("_variable_creation_fn", "_no_variable_creation_fn")]
    return [trace for one in inner if one is not None for trace in one._list_all_concrete_functions()]


def creation_trace(function: Any) -> Optional[Any]:
    """The trace in which a tf.function made its variables, with the code that makes them; None if it made none (INIT-08).

    `_created_variables` and `_concrete_variable_creation_fn` are in 2.11-2.21; nothing else tells this trace from the others.
    """
    return getattr(function, "_concrete_variable_creation_fn", None) if getattr(function, "_created_variables", None) else None


def jit_compile(function: Any) -> Optional[bool]:
    """What tf.function was told about XLA. In 2.12-2.21."""
    return getattr(function, "_jit_compile", None)


def is_variable(obj: Any) -> bool:
    """A resource variable, or a wrapper that stands for one (of Keras 3, of a strategy). The hook is in 2.12-2.21."""
    if isinstance(obj, (tf.Variable, ConcreteFunction)):  # asking a loaded function for more than it has makes its graph
        return isinstance(obj, tf.Variable)
    # The handle of a variable of a strategy is there in some scopes only, and asking for it raises in others.
    return (
        bool(getattr(obj, "_should_act_as_resource_variable", False)) and inspect.getattr_static(obj, "handle", None) is not None
    )


def variable_components(obj: Any) -> list[Any]:
    """The plain variables behind a variable: one, or one for each replica of a strategy."""
    components = getattr(obj, "values", None)
    if isinstance(obj, tf.Variable) and isinstance(components, (tuple, list)):
        return list(components)
    value = getattr(obj, "value", None)
    return variable_components(value) if isinstance(value, tf.Variable) else [obj]


def resource_handle(obj: Any) -> Optional[tf.Tensor]:
    """The handle of a resource, None when nobody has asked for it yet. `_resource_handle` is in 2.12-2.21."""
    if type(obj).resource_handle is not CapturableResource.resource_handle:
        return obj.resource_handle  # a table around another one has that one's
    return obj._resource_handle


def resource_device(obj: Any) -> str:
    """The device that a resource must be created on, or "". In 2.12-2.21."""
    return obj._resource_device or ""


def content_hooks(obj: Any) -> Optional[tuple[Any, Any]]:
    """The methods that give the content of a table and take it back, None for objects without. In 2.11-2.21."""
    save, restore = getattr(obj, "_serialize_to_tensors", None), getattr(obj, "_restore_from_tensors", None)
    if save is None or getattr(save, "__func__", None) is Trackable._serialize_to_tensors:
        return None
    return save, restore


def content_name(obj: Any) -> str:
    """The attribute of checkpoints under which older classes keep their content ("table"), or "". In 2.11-2.21."""
    return getattr(obj, "_LEGACY_SAVEABLE_NAME", None) or ""


def content_factories(obj: Any) -> dict[str, Any]:
    """Of objects in the older form: attribute -> maker of a saveable with `specs` and `restore`. In 2.4-2.21."""
    return dict(obj._gather_saveables_for_checkpoint())


def flat_arguments(concrete: Any) -> tuple[list[str], int]:
    """Names of the flat inputs of a concrete function, and how many may be positional. In 2.4-2.21."""
    return list(getattr(concrete, "_arg_keywords", None) or ()), getattr(concrete, "_num_positional_args", None) or 0


def function_definition(name: str) -> Optional[Any]:
    """The FunctionDef (ours) that the eager runtime has under a name, or None. In 2.4-2.21."""
    context = _context()
    if not context.has_function(name):
        return None
    return schema.parse(schema.FunctionDef, context.get_function_def(name).SerializeToString())


def is_unknown_argument(leaf: Any) -> bool:
    """Does a leaf of a trace's arguments stand for a Python object that TensorFlow did not keep (FN-09)?"""
    return type(leaf).__name__ == "UnknownArgument"


def traced_arguments(concrete: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The ``structured_input_signature`` of a traced function, with the tf.TensorShapes among its arguments (PY-07).

    There, shapes are objects not kept. The trace type of an argument (`FunctionType.parameters` is public since 2.15; types of
    values are in core.function.trace_type, 2.12-2.21) has a weak reference to it: good as long as somebody holds the shape.
    """
    args, kwargs = concrete.structured_input_signature
    kind = getattr(concrete, "function_type", None)
    parameters = [] if kind is None else list(kind.parameters.values())  # 2.12 has none
    keyword = {p.name: p.type_constraint for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
    positional = [p.type_constraint for p in parameters if p.name not in keyword]
    found = tuple(map(_with_shapes, args, positional)) if len(positional) == len(args) else args
    return found, {name: _with_shapes(value, keyword.get(name)) for name, value in kwargs.items()}


def _with_shapes(value: Any, kind: Any) -> Any:
    if is_unknown_argument(value):
        held = getattr(kind, "_ref", lambda: None)()
        return held if isinstance(held, tf.TensorShape) else value
    if isinstance(value, dict) and hasattr(kind, "mapping"):
        return type(value)({key: _with_shapes(item, kind.mapping.get(key)) for key, item in value.items()})
    kind = getattr(kind, "attributes", getattr(kind, "components_tuple", kind))  # of namedtuples, of lists
    parts = getattr(kind, "components", ())
    if isinstance(value, (list, tuple)) and len(parts) == len(value):
        made = [_with_shapes(item, part) for item, part in zip(value, parts)]
        return value._make(made) if hasattr(value, "_make") else type(value)(made)  # type: ignore[attr-defined]
    return value


def python_signature(function: Any) -> Optional[inspect.Signature]:
    """The Python signature of a tf.function or concrete function, without `self`; None where there is none to be had.

    `_function_type` and `_default_values` are in 2.14-2.21, `_function_spec` with `fullargspec` in 2.4-2.13. `inspect.signature`
    of the Python function would not do: that of a function which TensorFlow loaded is `(*args, **kwargs)`.
    """
    kinds = inspect.Parameter
    kind = getattr(function, "_function_type", None) or getattr(function, "function_type", None)
    if kind is not None:
        defaults = getattr(function, "_default_values", None) or {}
        found = [kinds(name, p.kind, default=defaults.get(name, kinds.empty)) for name, p in kind.parameters.items()]
        return inspect.Signature(found, __validate_parameters__=False)  # type: ignore[call-arg]
    spec = getattr(getattr(function, "_function_spec", None), "fullargspec", None)
    if spec is None:
        return None
    names = list(spec.args)
    values = dict(zip(names[len(names) - len(spec.defaults or ()) :], spec.defaults or ()))
    if function._function_spec.is_method or names[:1] == ["self"]:
        names = names[1:]
    found = [kinds(name, kinds.POSITIONAL_OR_KEYWORD, default=values.get(name, kinds.empty)) for name in names]
    found += [kinds(spec.varargs, kinds.VAR_POSITIONAL)] if spec.varargs else []
    values = spec.kwonlydefaults or {}
    found += [kinds(name, kinds.KEYWORD_ONLY, default=values.get(name, kinds.empty)) for name in spec.kwonlyargs]
    found += [kinds(spec.varkw, kinds.VAR_KEYWORD)] if spec.varkw else []
    return inspect.Signature(found, __validate_parameters__=False)  # type: ignore[call-arg]


def nested_graphs(graph: Any) -> list[tuple[str, Any]]:
    """Name and graph of the functions that a graph knows. `Graph._functions` is in 2.4-2.21."""
    functions = [(name, getattr(function, "graph", None)) for name, function in graph._functions.items()]
    return [(_text(name), inner) for name, inner in functions if inner is not None]


def gradient_op_type(operation: Any) -> str:
    """The op type under which the gradient of an operation is registered, "" for the usual one.

    Public `get_attr` raises for a missing attribute, at the cost of an error for every operation.
    """
    return operation.node_def.attr["_gradient_op_type"].s.decode() if operation.type.startswith("Identity") else ""


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


# Optimizers. No public API tells which variable of an optimizer belongs to which variable of a model: Keras keeps
# lists beside `_trainable_variables` (Keras 2.11-3.15), tf.compat.v1 and the older Keras optimizers have `get_slot`.


def is_optimizer(obj: Any) -> bool:
    """An optimizer of Keras 2 or 3 or of tf.compat.v1.train."""
    return callable(getattr(obj, "apply_gradients", None)) and (
        isinstance(obj, tf.compat.v1.train.Optimizer) or callable(getattr(obj, "from_config", None))
    )


def optimizer_slots(optimizer: Any, variables: Sequence[Any]) -> list[tuple[Any, str, Any]]:
    """(variable, slot name, slot) for those of `variables` that the optimizer has slots for."""
    if hasattr(optimizer, "get_slot_names") and hasattr(optimizer, "get_slot"):
        found = [
            (variable, name, _get_slot(optimizer, variable, name))
            for name in optimizer.get_slot_names()
            for variable in variables
        ]
        return [item for item in found if item[2] is not None]
    known = list(getattr(optimizer, "_trainable_variables", None) or ())
    own = {id(variable_components(variable)[0].handle) for variable in known}
    out = []
    for name, value in sorted(vars(optimizer).items()):
        if not isinstance(value, (list, tuple)) or len(value) != len(known) or not all(map(is_variable, value)):
            continue
        if own.isdisjoint(id(variable_components(slot)[0].handle) for slot in value) and name != "_variables":
            out += [(variable, name.strip("_"), slot) for variable, slot in zip(known, value)]
    return out


def _get_slot(optimizer: Any, variable: Any, name: str) -> Any:
    try:
        return optimizer.get_slot(variable, name)
    except KeyError:  # optimizers of Keras have slots for some variables only
        return None


def optimizer_variables(optimizer: Any) -> dict[str, Any]:
    """The variables of an optimizer that belong to no variable of a model, by the attribute that holds them."""
    found = {}
    for name, value in vars(optimizer).items():
        if name.startswith("_self_"):  # where TensorFlow notes dependencies
            continue
        if isinstance(value, dict):
            found.update({f"{name}[{key!r}]": item for key, item in value.items() if is_variable(item)})
        elif is_variable(value):
            found[name] = value
    return found


def optimizer_twin(optimizer: Any) -> Any:
    """An optimizer of the same settings that shares no variable with the given one and has no slots."""
    if not isinstance(optimizer, tf.compat.v1.train.Optimizer):
        return type(optimizer).from_config(optimizer.get_config())
    twin = copy.copy(optimizer)  # its settings are Python values; it has no get_config
    twin._slots, twin._deferred_slot_restorations = {}, {}
    twin._non_slot_dict = {
        key: tf.Variable(value, trainable=False) for key, value in optimizer._non_slot_dict.items() if is_variable(value)
    }
    return twin
