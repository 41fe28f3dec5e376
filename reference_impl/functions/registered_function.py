"""Registered functions: what a load gives, called by name.

A call runs in one of two ways:

* In eager execution without a tape or accumulator, TensorFlow's runtime calls the function by its
  live name, without a Python graph.
* Otherwise the function is rebuilt once (:meth:`RegisteredFunction.rebuilt`), and the call goes to
  the concrete function of TensorFlow.

RFC: FN-05, RP-07, GOAL-02
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import BindingError, MalformedError
from reference_impl.functions import captures, patterns, rebuild, specs
from reference_impl.functions.argument_specs import input_specs
from reference_impl.functions.binding import Binder
from reference_impl.functions.bound_function import BoundFunction, Structure
from reference_impl.functions.captured_tensor import CapturedTensor
from reference_impl.functions.flat_arguments import difference_text, to_tensors, with_file_names
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import FileName, LiveName
from reference_impl.functions.rebuilt_function import RebuiltFunction
from reference_impl.functions.registration import register, register_for_shapes
from reference_impl.functions.unknown_ops import why_not_found


class _CallByName(NamedTuple):
    """The state of calls by name, found at the first call.

    Attributes:
      live: the name under which the function is registered.
      pack: makes the result of the flat results.
      results: the number of flat results.
      handles: the captures, or None if they have to be looked up at each call.
      take: returns the tensors of a call with args and kwargs, or None for a call that must be
        bound and converted; see `reference_impl.fast.calls`. None if every call must.
    """

    live: LiveName
    pack: Callable[..., Any]
    results: int
    handles: Optional[list[tf.Tensor]]
    take: Optional[Callable[..., Optional[list[tf.Tensor]]]] = None


def refuse_to_reduce(function: tf.types.experimental.Callable, _protocol: object) -> Any:
    """Refuse pickling and deep copies with a TypeError, as `__reduce_ex__`: the code of a function
    is in the runtime.
    """
    reason = (
        "can be neither pickled nor copied deeply: load the model again, or save it with"
        " reference_impl.save"
    )
    raise TypeError(f"the loaded function {function.saved_name!r} {reason}")


@api.unconverted
class RegisteredFunction(BoundFunction, api.RestoredConcreteFunction):
    """One trace of a loaded function, called by name.

    It is an instance of TensorFlow's class of concrete functions, so that containers, Keras and
    TensorFlow's own writer recognise it. The attributes of that class that describe a graph
    come from :meth:`rebuilt`.

    `before_run` is called with the function and the tensors before each run; it sets itself to None
    when it has nothing left to do.
    """

    def __init__(
        self,
        library: FunctionLibrary,
        name: FileName,
        signature: Callable[[], Structure],
        binder: Optional[Binder] = None,
    ):
        # The initialiser of TensorFlow's class wants a graph.
        BoundFunction.__init__(self, library, name, signature, binder)
        self.before_run: Optional[Callable[[RegisteredFunction, Sequence[tf.Tensor]], None]] = None
        self._pattern: Optional[patterns.Match] = None
        self._by_name: Optional[_CallByName] = None
        # Shapes of open arguments -> the name of the function that is registered for them.
        self._for_shapes: dict[tuple[Optional[tuple[Optional[int], ...]], ...], LiveName] = {}
        self._rebuilt: Optional[RebuiltFunction] = None
        self.set_flat_arguments(None, 0)

    def capture(self, owners: Sequence[Any]) -> None:
        super().capture(owners)
        self._by_name = None

    def rebuilt(self) -> RebuiltFunction:
        """Return the function as a concrete function of TensorFlow, with its graph.

        Raises UnknownOpError, UnsupportedModelError if this TensorFlow cannot build the graph.
        """
        if self._rebuilt is None:
            with self.library.lock:
                self._rebuilt = self._rebuilt or RebuiltFunction(self)
        return self._rebuilt

    def traced(self) -> tf.types.experimental.ConcreteFunction:
        return self.rebuilt().concrete

    @property
    def captured_inputs(self) -> list[tf.Tensor]:
        """The captured tensors: those of the graph, once there is one."""
        return self.captured() if self._rebuilt is None else self._rebuilt.captured_inputs(self)

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

    def __copy__(self) -> RegisteredFunction:
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

    @api.unconverted
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call with the arguments of the Python function or with flat arguments.

        Raises BindingError if neither fits.
        """
        call = self._by_name
        if call is not None and call.take is not None and self.before_run is None:
            tensors = None if self._needs_graph(False) else call.take(args, kwargs)
            if tensors is not None:
                return self._run_by_name(call, call.live, tensors)
        return self._bind_and_run(args, kwargs)

    @api.without_autograph
    def _bind_and_run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.defaults and not args:
            kwargs = {**self.defaults, **kwargs}
        # A signature takes only keywords; its positional arguments are flat.
        keywords_only = args and self.flat_keywords is not None and not self.structured[0][0]
        if keywords_only or (self.binder is None and self.flat_keywords is not None):
            return self.run(to_tensors(self, args, kwargs))
        try:
            canonical = (
                (args, kwargs) if self.binder is None else self.binder.canonical(args, kwargs)
            )
            tensors: list[tf.Tensor] = self.match(*canonical, convert=True)
        except (BindingError, patterns.Mismatch) as structured:
            reason = structured.reason if isinstance(structured, BindingError) else str(structured)
            tensors = self._flat(args, kwargs, reason)
        return self.run(tensors)

    def _flat(self, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str) -> list[tf.Tensor]:
        """Return the tensors of a call with flat arguments, which does not fit the structured ones
        for a reason.
        """
        if self.flat_keywords is None:
            raise BindingError(reason, node=self.label) from None
        try:
            return to_tensors(self, args, kwargs)
        except BindingError as flat:
            if not self.structured[0][0]:  # only keywords: the flat arguments are the same
                raise flat from None
            both = f"{reason}; as flat arguments: {flat.reason}"
            raise type(flat)(both, node=self.label) from None

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
        given = with_file_names(kwargs, wanted)
        tensors = patterns.Tensors() if tensors is None else tensors
        try:
            self._pattern((args, given), convert, tensors)
        except patterns.Mismatch as mismatch:
            if mismatch.path == "[1]":  # all keywords
                taken = ", ".join(map(str, wanted)) or "no keywords"
                mismatch.path, mismatch.args = (
                    "the call:",
                    (difference_text(given, list(wanted), f"it takes {taken}"),),
                )
            else:
                mismatch.path = _argument_path(mismatch.path, self.binder)
            raise
        return tensors

    def run(self, tensors: list[tf.Tensor], for_shapes: bool = False) -> Any:
        """Run with flat tensors (without captures) and build the structured result.

        With `for_shapes`, the function is optimised for the sizes of the tensors that its trace
        leaves open: `f` for ``[None, 2]`` called with ``[3, 2]`` is registered once more, for
        ``[3, 2]``. TensorFlow does so for calls of functions without a declared signature, so the
        results have the same bits.

        Raises UnknownOpError if this TensorFlow lacks an op, tf.errors.OpError if an op of the
        function failed.
        """
        if self.before_run is not None:
            self.before_run(self, tensors)
        if self._needs_graph(for_shapes):
            return self.rebuilt().run(self, tensors)
        call = self._by_name
        if call is None or self.library.incomplete:  # what was not known may be known now
            call = self._by_name = self._prepared(len(tensors))
        live = self._live_for(tensors) if for_shapes and self._open else call.live
        return self._run_by_name(call, live, tensors)

    def _run_by_name(self, call: _CallByName, live: LiveName, tensors: list[tf.Tensor]) -> Any:
        """Run the function that is registered as `live`, and build the structured result."""
        handles = self.captured() if call.handles is None else call.handles
        try:
            return call.pack(iter(api.call_registered(live, tensors + handles, call.results)))
        except tf.errors.NotFoundError as error:  # which may be about a file as well
            unknown = (
                why_not_found(self.library, self.saved_name)
                if "Op type not registered" in error.message
                else None
            )
            raise (unknown or error) from error.__cause__

    def _needs_graph(self, for_shapes: bool) -> bool:
        """Return whether a call goes to the rebuilt function."""
        if not tf.executing_eagerly() or api.may_record():
            return True
        if self._rebuilt is not None and not (for_shapes and self._open):
            return True
        # XLA compiles a function only when called as a function, not through an op.
        return self._by_name is None and "_XlaMustCompile" in self.definition.attr

    def _prepared(self, given: int) -> _CallByName:
        """Register the function, which takes `given` tensors and its captures.

        Raises MalformedError if the FunctionDef takes or gives other numbers of tensors.
        """
        signature = self.definition.signature
        wanted, captured = len(signature.input_arg), len(self.owners)
        if wanted != given + captured:
            reason = f"takes {wanted} tensors, has {given} arguments and {captured} captures"
            file = self.library.file
            raise MalformedError(reason, file=file, node=self.saved_name, rule="SM-FN-4")
        count, pack = patterns.packer(self.structured[1])
        gives = len(signature.output_arg)
        if count != gives:
            reason = f"gives {gives} tensors, its signature describes {count}"
            raise MalformedError(reason, file=self.library.file, node=self.saved_name)
        live = register(self.library, self.saved_name)
        handles = self.captured()
        changing = self.is_distributed or any(
            isinstance(owner, weakref.ref) for owner in self.owners
        )
        prepare = None if self.library.incomplete else self.library.prepare_call
        take = None if prepare is None else prepare(self)
        return _CallByName(live, pack, count, None if changing else handles, take)

    @functools.cached_property
    def _open(self) -> tuple[int, ...]:
        """The positions of the arguments, without captures, whose sizes the trace leaves open."""
        wanted = input_specs(self.definition)
        given = wanted[: len(wanted) - len(self.owners)]
        return tuple(index for index, spec in enumerate(given) if not spec.shape.is_fully_defined())

    def _live_for(self, tensors: list[tf.Tensor]) -> LiveName:
        """Return the name of the function that is registered for the shapes of the tensors."""
        declared = getattr(tensors, "shapes", {})
        shapes = [declared.get(position, tensor.shape) for position, tensor in enumerate(tensors)]
        key = tuple(
            None if shapes[position].rank is None else tuple(shapes[position].as_list())
            for position in self._open
        )
        if key not in self._for_shapes:
            known = [specs.shape_proto(shape) for shape in shapes]
            self._for_shapes[key] = register_for_shapes(
                self.library, self.saved_name, [*known, *(None for _ in self.owners)]
            )
        return self._for_shapes[key]

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
                # A tape around the differentiated call may request a second derivative.
                watch(owner)
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
