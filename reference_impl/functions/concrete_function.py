"""Concrete functions: a FunctionDef with its captures and its calling convention.

A call runs in one of two ways:

* In eager execution without a tape or accumulator, TensorFlow's runtime calls the function by name,
  without a Python graph.
* When a tape or an accumulator is active, when an outer function is being traced, or when an
  attribute needs a graph (``.graph``, ``.inputs``), the function is rebuilt once
  (`reference_impl.functions.rebuild`). From then on the object *is* an ordinary concrete function,
  and gradients, nesting and re-export are TensorFlow's own.

A function holds its captures: variables, tables and assets live as long as the function, even after
its root is deleted.

RFC: FN-05, RP-07, GOAL-02
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import (
    BindingError,
    MalformedError,
    MissingKeyError,
    UnsupportedModelError,
)
from reference_impl.format import schema
from reference_impl.format.names import plain_name
from reference_impl.functions import binding, captures, patterns, rebuild, specs
from reference_impl.functions.binding import Binder
from reference_impl.functions.captured_tensor import CapturedTensor
from reference_impl.functions.flat_arguments import as_named, differ, to_tensors
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.load_context import Load
from reference_impl.functions.unknown_ops import why_not_found
from reference_impl.graph.argument_names import python_name, python_names


def read(load: Load, number: int, node: schema.SavedObject) -> LoadedConcreteFunction:
    """Make the function of a `bare_concrete_function` node."""
    bare = node.bare_concrete_function
    name = bare.concrete_function_name
    known = load.functions.get(name)
    binder = (
        known.binder if known is not None else None
    )  # a trace of a known function has that function's signature
    if binder is None and bare.HasField("function_spec"):
        binder = binding.read(load, bare.function_spec, name)
    function = trace(load, name, binder)
    function.set_flat_arguments(list(bare.argument_keywords), bare.allowed_positional_arguments)
    return function


def trace(load: Load, name: str, binder: Optional[Binder]) -> LoadedConcreteFunction:
    """Return the concrete function of a name, the same object for all nodes that refer to it.

    Raises MissingKeyError: the library or the object graph has no such function.
    """
    if name not in load.functions:
        function_def = load.library.get(name)
        if name not in load.graph.concrete_functions:  # the property would create it
            raise MissingKeyError(
                "the object graph does not describe the function", file=load.file, node=name
            )
        saved = load.graph.concrete_functions[name]
        load.functions[name] = load.trace_class(
            load.library, name, _signature_of(saved, function_def, load.file), binder
        )
        load.functions[name].saved = saved
    function: LoadedConcreteFunction = load.functions[name]
    if function.binder is None:
        function.binder = binder
    return function


def _signature_of(
    saved: schema.SavedConcreteFunction, function: schema.FunctionDef, file: str
) -> Callable[[], tuple[Any, Any]]:
    """Return a function that returns ``((args, kwargs), results)`` of a SavedConcreteFunction:
    nests of TypeSpecs and literals.

    If the function has no structured arguments, its flat arguments are returned as positional
    arguments.
    """
    name = function.signature.name

    def decode() -> tuple[Any, Any]:
        inputs = specs.decode(saved.canonicalized_input_signature, file, name)
        if inputs is None:
            given = max(0, len(function.signature.input_arg) - len(saved.bound_inputs))
            inputs = tuple(rebuild.input_specs(function)[:given]), {}
        if not (
            isinstance(inputs, tuple)
            and len(inputs) == 2
            and isinstance(inputs[0], tuple)
            and isinstance(inputs[1], dict)
        ):
            raise MalformedError(
                "the input signature is not a pair of tuple and dict", file=file, node=name
            )
        return inputs, specs.decode(saved.output_signature, file, name)

    return decode


def _flat_signature(function: schema.FunctionDef) -> tuple[Any, Any]:
    """Return ``((args, kwargs), results)`` of a FunctionDef without another description: all its
    tensors in order.
    """
    results = [
        tf.TensorSpec(None, specs.tf_dtype(result.type)) for result in function.signature.output_arg
    ]
    return (tuple(rebuild.input_specs(function)), {}), results


def find(load: Load, name: str) -> Optional[LoadedConcreteFunction]:
    """Return a function of the library, or None.

    A function that the object graph does not describe takes the flat arguments of its FunctionDef.
    """
    if name in load.functions or name not in load.library:
        return load.functions.get(name)
    function_def = load.library.get(name)
    function = LoadedConcreteFunction(load.library, name, lambda: _flat_signature(function_def))
    arguments = [argument.name for argument in function_def.signature.input_arg]
    function.set_flat_arguments(arguments, len(arguments))
    return function


def add_custom_gradients(load: Load) -> None:
    """Register in the library the makers of the model's custom gradients.

    The library holds these makers. They refer weakly to resources, because resources hold the
    library.
    """
    for op_type, name in load.library.index.gradients.items():
        if name in load.graph.concrete_functions:
            load.library.custom_gradients[op_type] = _gradient_maker(load, name)


def _gradient_maker(load: Load, name: str) -> Callable[[FunctionLibrary], LoadedConcreteFunction]:
    saved = load.graph.concrete_functions[name]
    captured = [load.objects[number] for number in saved.bound_inputs]
    owners = [
        weakref.ref(owner) if isinstance(owner, api.Resource) else owner for owner in captured
    ]
    signature = _signature_of(saved, load.library.get(name), load.file)

    def make(library: FunctionLibrary) -> LoadedConcreteFunction:
        function = LoadedConcreteFunction(library, name, signature)
        function.saved = saved
        function.capture(owners)
        return function

    return make


def refuse_to_reduce(function: LoadedConcreteFunction, _protocol: object) -> Any:
    """Refuse pickling and deep copies with a TypeError, as `__reduce_ex__`: the code of a function
    is in the runtime.
    """
    reason = (
        "can be neither pickled nor copied deeply: load the model again, or save it with"
        " reference_impl.save"
    )
    raise TypeError(f"the loaded function {function.saved_name!r} {reason}")


class LoadedConcreteFunction(api.RestoredConcreteFunction):
    """One trace of a loaded function.

    Its captures are bound later by :meth:`capture`, since they need not exist yet.

    `signature` returns ``((args, kwargs), results)``, nested structures of TypeSpecs and literals.
    It is called on first use, so an unknown type affects only this function. `binder` is None for a
    function that takes only flat arguments.
    """

    def __init__(
        self,
        library: FunctionLibrary,
        name: str,
        signature: Callable[[], tuple[Any, Any]],
        binder: Optional[Binder] = None,
    ):
        # The base class wants a traced graph; its attributes appear when one is built, see
        # __getattr__.
        self.library = library
        self.saved_name = name
        self.label = plain_name(name)  # the name in messages
        self.saved: Any = None  # the SavedConcreteFunction that was read, for a re-export
        self.owners: tuple[Any, ...] = ()
        self.binder = binder
        self.defaults: dict[str, tf.Tensor] = {}  # of a signature: values of optional inputs
        self.signature_def: Any = None  # of a signature: its SignatureDef
        # a part of a TF 1.x graph: its type has no kinds of arguments and no names of results
        self.of_graph = False
        self.placeholders: Sequence[
            str
        ] = ()  # what the arguments are called in `graph`, if not as in the FunctionDef
        self._built = False
        self.signature = signature
        self._pattern: Optional[patterns.Match] = None
        self._results: Any = None
        self._handles: Optional[list[tf.Tensor]] = None
        self._live: Optional[str] = None
        self._fitted: dict[
            Any, str
        ] = {}  # shapes of open arguments -> the function that is registered for them
        self.set_flat_arguments(None, 0)

    def capture(self, owners: Sequence[Any]) -> None:
        """Bind the captured objects, the last arguments of the FunctionDef.

        Weak references are resolved at each call.
        """
        self.owners = tuple(owners)
        self._handles = None

    def belong_to(self, resource: object) -> None:
        """Refer weakly to the resource that this function creates, fills or saves, so that it does
        not keep its owner alive.
        """
        self.capture(
            [weakref.ref(resource) if owner is resource else owner for owner in self.owners]
        )

    @functools.cached_property
    def structured(self) -> tuple[Any, Any]:
        """``((args, kwargs), results)`` as returned by `signature`: nested structures of TypeSpecs
        and literals.
        """
        return self.signature()

    @property
    def structured_input_signature(self) -> Any:
        """The arguments as ``(args, kwargs)``, or None for a function that takes only flat
        arguments (`prune`).
        """
        flat = self.saved is not None and self.saved.canonicalized_input_signature.HasField(
            "none_value"
        )
        return None if flat else self.structured[0]

    @property
    def structured_outputs(self) -> Any:
        return self.structured[1]

    @property
    def output_dtypes(self) -> Any:
        return tf.nest.map_structure(lambda spec: getattr(spec, "dtype", None), self.structured[1])

    @property
    def output_shapes(self) -> Any:
        return tf.nest.map_structure(lambda spec: getattr(spec, "shape", None), self.structured[1])

    @property
    def variables(self) -> tuple[tf.Variable, ...]:
        return tuple(owner for owner in self.living_owners() if isinstance(owner, tf.Variable))

    @property
    def trainable_variables(self) -> tuple[tf.Variable, ...]:
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def captured_inputs(self) -> list[tf.Tensor]:
        return self._graph_captures() if self._built else self._captured()

    def __copy__(self) -> LoadedConcreteFunction:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    __reduce_ex__ = refuse_to_reduce

    def __repr__(self) -> str:
        return self._described(super().__repr__)

    def __str__(self) -> str:
        return self._described(super().__str__)

    def _described(self, describe: Callable[[], str]) -> str:
        """Return TensorFlow's description of the function, or its name if the graph cannot be
        built.
        """
        try:
            return describe()
        except Exception:  # a description must never fail
            return f"<ConcreteFunction {self.saved_name} at 0x{id(self):X}>"

    @api.without_autograph
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call with the arguments of the Python function or with flat arguments.

        Raises BindingError if neither fits.
        """
        if self.defaults and not args:
            kwargs = {**self.defaults, **kwargs}
        keywords_only = (
            args and self.flat_keywords is not None and not self.structured[0][0]
        )  # a signature
        if keywords_only or (self.binder is None and self.flat_keywords is not None):
            return self.run(to_tensors(self, args, kwargs))
        try:
            canonical = (
                (args, kwargs) if self.binder is None else self.binder.canonical(args, kwargs)
            )
            tensors: list[tf.Tensor] = self.match(*canonical, convert=True)
        except (BindingError, patterns.Mismatch) as structured:
            reason = structured.reason if isinstance(structured, BindingError) else str(structured)
            if self.flat_keywords is None:
                raise BindingError(reason, node=self.label) from None
            try:
                tensors = to_tensors(self, args, kwargs)
            except BindingError as flat:
                if not self.structured[0][0]:  # only keywords: the flat arguments are the same
                    raise flat from None
                raise type(flat)(
                    f"{reason}; as flat arguments: {flat.reason}", node=self.label
                ) from None
        return self.run(tensors)

    def match(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        convert: bool,
        tensors: Optional[patterns.Tensors] = None,
    ) -> patterns.Tensors:
        """Return the tensors of a canonical call, in the order of the FunctionDef.

        Raises `patterns.Mismatch`.

        They are added to `tensors`, which may allow TypeSpecs for values.
        """
        if self._pattern is None:
            self._pattern = patterns.pattern(self.structured[0])
        wanted = self.structured[0][1]
        given = as_named(kwargs, wanted)
        tensors = patterns.Tensors() if tensors is None else tensors
        try:
            self._pattern((args, given), convert, tensors)
        except patterns.Mismatch as mismatch:
            if mismatch.path == "[1]":  # all keywords
                taken = ", ".join(map(str, wanted)) or "no keywords"
                mismatch.path, mismatch.args = (
                    "the call:",
                    (differ(given, list(wanted), f"it takes {taken}"),),
                )
            else:
                mismatch.path = _argument_path(mismatch.path, self.binder)
            raise
        return tensors

    def run(self, tensors: list[tf.Tensor], fitted: bool = False) -> Any:
        """Run with flat tensors (without captures) and build the structured result.

        With `fitted`, the function is optimised for the sizes of the tensors that its trace leaves
        open. TensorFlow does so for calls of functions without a declared signature, so the results
        have the same bits.

        Raises UnknownOpError if this TensorFlow lacks an op, tf.errors.OpError if an op of the
        function failed.
        """
        graph = (
            not tf.executing_eagerly()
            or api.may_record()
            or (self._built and not (fitted and self._open))
        )
        # XLA compiles a function only when called as a function, not through an op.
        if graph or (
            self._results is None and "_XlaMustCompile" in self.library.get(self.saved_name).attr
        ):
            self._build()
            return api.call_flat(self, tensors, self._graph_captures())
        if self._results is None or self.library.incomplete:  # what was not known may be known now
            self._prepare(len(tensors))
        pack, count = self._results
        live = self._live_for(tensors) if fitted and self._open else self._live
        handles = self._captured() if self._handles is None else self._handles
        try:
            return pack(iter(api.call_registered(live or "", tensors + handles, count)))
        except tf.errors.NotFoundError as error:  # which may be about a file as well
            unknown = (
                why_not_found(self.library, self.saved_name)
                if "Op type not registered" in error.message
                else None
            )
            raise (unknown or error) from error.__cause__

    def _prepare(self, given: int) -> None:
        signature = self.library.get(self.saved_name).signature
        wanted = len(signature.input_arg)
        if wanted != given + len(self.owners):
            reason = (
                f"takes {wanted} tensors, has {given} arguments and {len(self.owners)} captures"
            )
            raise MalformedError(reason, file=self.library.file, node=self.saved_name)
        count, pack = patterns.packer(self.structured[1])
        if count != len(signature.output_arg):
            reason = f"gives {len(signature.output_arg)} tensors, its signature describes {count}"
            raise MalformedError(reason, file=self.library.file, node=self.saved_name)
        self._live = self.library.register(self.saved_name)
        handles = self._captured()
        if not any(isinstance(owner, (weakref.ref, captures.DISTRIBUTED)) for owner in self.owners):
            self._handles = handles
        self._results = pack, count

    @functools.cached_property
    def _open(self) -> tuple[int, ...]:
        """The positions of the arguments, without captures, whose sizes the trace leaves open."""
        wanted = rebuild.input_specs(self.library.get(self.saved_name))
        given = wanted[: len(wanted) - len(self.owners)]
        return tuple(index for index, spec in enumerate(given) if not spec.shape.is_fully_defined())

    def _live_for(self, tensors: list[tf.Tensor]) -> str:
        """Return the name of the function that is registered for the shapes of the tensors."""
        declared = getattr(tensors, "shapes", {})
        shapes = [declared.get(position, tensor.shape) for position, tensor in enumerate(tensors)]
        key = tuple(
            None if shapes[position].rank is None else tuple(shapes[position].as_list())
            for position in self._open
        )
        if key not in self._fitted:
            known = [specs.shape_proto(shape) for shape in shapes]
            self._fitted[key] = self.library.register_for(
                self.saved_name, [*known, *(None for _ in self.owners)]
            )
        return self._fitted[key]

    def living_owners(self) -> list[Any]:
        """Return the captured objects.

        Raises UnsupportedModelError if the resource that the function belongs to was deleted.
        """
        found = [owner() if isinstance(owner, weakref.ref) else owner for owner in self.owners]
        if any(owner is None for owner in found):
            raise UnsupportedModelError(
                "a resource that the function belongs to is gone", node=self.saved_name
            )
        return found

    def _captured(self, building: bool = False) -> list[tf.Tensor]:
        return captures.handles(self.library, self.saved_name, self.living_owners(), building)

    def _graph_captures(self) -> list[tf.Tensor]:
        """Return the captures of the rebuilt graph, each handle once; a distributed variable has
        one handle in each replica.

        RFC: DIST-01
        """
        if not any(isinstance(owner, captures.DISTRIBUTED) for owner in self.owners):
            return api.ConcreteFunction.captured_inputs.fget(self)
        return list({id(handle): handle for handle in self._captured()}.values())

    def call_with_tensors_of(
        self, given: Sequence[tf.Tensor], operation: tf.Operation, tensors: dict[str, tf.Tensor]
    ) -> Any:
        """Call the function as the custom gradient of `operation`, with captured tensors of the
        operation's graph.
        """
        inputs = list(given)
        watch = getattr(tf.compat.v1.get_default_graph(), "watch_variable", None)
        for owner in self.living_owners():
            if watch is not None and isinstance(owner, tf.Variable):
                watch(
                    owner
                )  # a tape around the differentiated call may request a second derivative
            if isinstance(owner, CapturedTensor):
                found = tensors.get(owner.tensor)
                inputs.append(
                    operation.graph.get_tensor_by_name(owner.tensor) if found is None else found
                )
            else:
                inputs.append(captures.handle_of(owner, self.saved_name))
        _, pack = patterns.packer(self.structured[1])
        flat = rebuild.specialised(self.library, self.saved_name, inputs)(*inputs)
        return pack(iter(tf.nest.flatten(flat, expand_composites=True)))

    def __getattr__(self, name: str) -> Any:
        # Only reached for missing attributes. Attributes that the base class's __init__ sets need
        # the graph. TensorFlow's containers look up other attributes, for which no graph may be
        # built.
        if not self._built and name in api.attributes_of_traces():
            self._build()
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _build(self) -> None:
        if self._built:
            return
        with (
            self.library.lock,
            tf.init_scope(),
            api.eager_mode() if self.library.eager else contextlib.nullcontext(),
        ):
            args, kwargs = self.structured[0]
            body = self._body()
            renamed = any(
                python_name(name) != name for name in kwargs
            )  # TensorFlow would sort them by its own names for them
            if renamed or (self.of_graph and not args):
                keywords = python_names(kwargs)
                body.__signature__ = rebuild.signature_with(
                    keywords[name] for name in sorted(kwargs)
                )
                args, kwargs = tuple(kwargs[name] for name in sorted(kwargs)), {}
            elif self.binder is not None:
                body.__signature__ = self.binder.signature
            args, kwargs = self._named_as_saved((args, kwargs))
            traced = rebuild.as_tf_function(
                self.library, self.saved_name, body
            ).get_concrete_function(*args, **kwargs)
            traced.graph.variables = self.variables
            self._built = True
            for key, value in vars(traced).items():
                self.__dict__.setdefault(key, value)
            if not self.of_graph:
                api.name_results(self, self.structured_outputs)
            elif self.placeholders:
                api.name_arguments(self)

    def _named_as_saved(self, specs: object) -> Any:
        """Return the specs of the arguments with the names of the placeholders: of the TF 1.x
        graph, else of the FunctionDef.
        """
        names = iter(
            self.placeholders
            or [item.name for item in self.library.get(self.saved_name).signature.input_arg]
        )

        def named(spec: object) -> Any:
            if not isinstance(spec, tf.TypeSpec):  # a Python value
                return spec
            own = [next(names, "") for _ in tf.nest.flatten(spec, expand_composites=True)]
            if type(spec) is not tf.TensorSpec:
                return spec
            return tf.TensorSpec(
                spec.shape, spec.dtype, captures.placeholder_name(own[0]) or spec.name
            )

        return tf.nest.map_structure(named, specs)

    def _body(self) -> Any:
        name, outputs = self.saved_name, self.structured[1]

        def body(*args: object, **kwargs: object) -> Any:
            graph = tf.compat.v1.get_default_graph()
            leaves = tf.nest.flatten((args, kwargs), expand_composites=True)
            inputs = [
                leaf.handle if isinstance(leaf, tf.Variable) else leaf
                for leaf in leaves
                if isinstance(leaf, (tf.Tensor, tf.Variable))
            ]
            names = [
                argument.name
                for argument in self.library.get(name).signature.input_arg[len(inputs) :]
            ]
            inputs += [
                graph.capture(handle, name=captures.placeholder_name(given))
                for handle, given in zip(self._captured(building=True), names)
            ]
            results = rebuild.interpret(self.library, name, inputs)
            leaves = tf.nest.flatten(outputs, expand_composites=True)
            for result, spec in zip(
                results, [leaf for leaf in leaves if isinstance(leaf, tf.TypeSpec)]
            ):
                # What a SignatureDef says of a tensor of a TF 1.x graph may be wrong; the graph is
                # followed.
                if isinstance(spec, tf.TensorSpec) and not (
                    self.of_graph and not result.shape.is_compatible_with(spec.shape)
                ):
                    result.set_shape(spec.shape)
            return patterns.packer(outputs)[1](iter(results))

        body.__name__ = plain_name(name)
        return body


def _argument_path(path: str, binder: Optional[Binder]) -> str:
    """Return the caller's name, such as ``x['a']``, of the position ``[0][1]['a']`` in (args,
    kwargs).
    """
    if path.startswith("[1]["):
        name, _, rest = path[4:].partition("]")
        return f"argument {name.strip(chr(39))}{rest}"
    if path.startswith("[0]["):
        index, _, rest = path[4:].partition("]")
        names = list(binder.signature.parameters) if binder is not None else []
        position = int(index)
        return f"argument {names[position] if position < len(names) else position}{rest}"
    return "the arguments" + path
