"""Polymorphic functions: several traces behind one Python signature.

RFC: PRIM-03, FN-05, FN-13, PY-01, PY-09
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import FunctionMatchError, SavedModelError
from reference_impl.format import schema
from reference_impl.functions import binding, patterns, specs
from reference_impl.functions.binding import Binder
from reference_impl.functions.load_context import LoadContext
from reference_impl.functions.names import FileName
from reference_impl.functions.registered_function import RegisteredFunction, refuse_to_reduce
from reference_impl.functions.saved_functions import trace
from reference_impl.graph import node_kinds
from reference_impl.kinds.kind import Export, Kind, SavedNode, write_dependencies


class LoadedFunction(api.RestoredFunction):
    """A `tf.function` that chooses among the traces it was saved with, and never traces Python
    code.

    It is an instance of the class of tf.function objects, so that containers, Keras and
    TensorFlow's own writer recognise it. Its traces are in the order in which they were saved.
    """

    def __init__(self, name: str, binder: Binder, functions: Sequence[RegisteredFunction]):
        # The base class is initialised when one of its own attributes is accessed; see __getattr__.
        self.binder = binder
        self.concrete_functions = list(functions)
        self.saved_name = name
        self.__name__ = name
        self.__signature__ = (
            binder.signature
        )  # for `inspect`, which reads it from objects that have one

    def __getattr__(self, name: str) -> Any:
        if name.startswith("trace_") and name[6:] in map(str, range(len(self.concrete_functions))):
            return self.concrete_functions[
                int(name[6:])
            ]  # the names that they have in the object graph
        if (
            not name.startswith("_")
            or name.startswith(("__", "_self_", "_tf_", "_keras"))
            or self.has_python_function()
        ):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        me = weakref.ref(self)

        def python_function(*args: object, **kwargs: object) -> Any:
            return me()(*args, **kwargs)  # type: ignore[misc]  # called through this very object

        python_function.__name__ = self.saved_name if self.saved_name.isidentifier() else "function"
        python_function.__signature__ = self.binder.signature  # type: ignore[attr-defined]
        options = {"autograph": False, "jit_compile": self.binder.jit_compile}
        try:
            super().__init__(
                python_function,
                python_function.__name__,
                input_signature=self.input_signature,
                **options,
            )
        except (
            TypeError,
            ValueError,
        ):  # specs that do not fit the Python signature, such as those of older writers
            super().__init__(python_function, python_function.__name__, **options)
        return object.__getattribute__(self, name)

    @api.without_autograph
    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        """Call the trace that fits the arguments.

        Raises:
          BindingError: the arguments do not fit the Python signature.
          FunctionMatchError: no trace fits; the message lists every trace with its first
            difference. If the function was declared with an input signature, the error is a
            TypeError too.

        RFC: FN-13
        """
        function, tensors = self._choose(args, kwargs)
        return function.run(tensors, for_shapes=self.binder.input_signature is None)

    @api.without_autograph
    def get_concrete_function(self, *args: object, **kwargs: object) -> Any:
        """Return a concrete function for these arguments or TypeSpecs.

        Raises the errors of a call.

        It is the trace that a call would take, or a new function that calls this trace, if the
        arguments have other shapes, names or Python values: then it takes just what it was asked
        for, as a `tf.function` promises. A function with an input signature has only its trace.
        """
        declared = self.binder.input_signature is not None
        if not args and not kwargs and len(self.concrete_functions) == 1 and declared:
            return self.concrete_functions[0]
        function, tensors = self._choose(args, kwargs, specs=True)
        if declared or tensors.exact:
            return function
        return super().get_concrete_function(*args, **kwargs)

    @property
    def input_signature(self) -> Any:
        """The specs that the function was declared with, or None for a function traced by its
        calls.
        """
        declared = self.binder.input_signature
        return (
            None if declared is None else specs.decode(declared, self.binder.file, self.saved_name)
        )

    def __copy__(self) -> LoadedFunction:
        return type(self)(self.saved_name, self.binder, self.concrete_functions)

    __reduce_ex__ = refuse_to_reduce

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.saved_name}{self.binder.signature},"
            f" {len(self.concrete_functions)} traces>"
        )

    def _choose(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], specs: bool = False
    ) -> tuple[RegisteredFunction, patterns.Tensors]:
        """Return the trace that fits, and the tensors for it.

        With `specs`, TypeSpecs may stand for values.
        """
        if not self.concrete_functions:
            raise FunctionMatchError(
                "Found zero restored functions for caller function.",
                node=self.saved_name,
                clause="FN-06",
            )
        declared = self.binder.input_signature is not None
        positional, keywords = self.binder.canonical(args, kwargs)
        reasons: list[str] = []
        for convert in (False, True):
            reasons = []
            for function in self.concrete_functions:
                try:
                    return function, function.match(
                        positional, keywords, convert, patterns.Tensors(declared, specs)
                    )
                except (
                    patterns.Mismatch,
                    SavedModelError,
                ) as mismatch:  # the latter: a type in its signature is not known here
                    reasons.append(str(mismatch))
        if declared and len(shorter := self.binder.without_defaults(positional)) < len(positional):
            for function in self.concrete_functions:
                with contextlib.suppress(patterns.Mismatch, SavedModelError):
                    return function, function.match(
                        shorter, keywords, True, patterns.Tensors(declared, specs)
                    )
        raise _no_match(
            self.saved_name, self.concrete_functions, positional, keywords, reasons, declared
        )


class FunctionKind(Kind):
    """`tf.function` objects. The names of their traces, and their Python signature."""

    message = node_kinds.FUNCTION

    def read(self, load: LoadContext, number: int, node: schema.SavedObject) -> LoadedFunction:
        """Make the function of a `function` node."""
        name = load.name(number)
        binder = binding.read(load, node.function.function_spec, name)
        names = map(FileName, node.function.concrete_functions)
        return LoadedFunction(name, binder, [trace(load, each, binder) for each in names])

    def matches(self, obj: object) -> bool:
        return isinstance(obj, api.Function)

    def write(self, export: Export, node: SavedNode, out: schema.SavedObject) -> None:
        """Write a `tf.function`, loaded or not.

        Raises SaveError if a default value cannot be stored.

        RFC: FN-09, FMT-03
        """
        names = [export.function_name(child) for child in node.children.values()]
        out.function.concrete_functions.extend(names)
        _write_signature(out.function, node.object, node.path)
        write_dependencies(out, node.children)


def _write_signature(
    out: schema.SavedFunction, function: tf.types.experimental.GenericFunction, path: str
) -> None:
    if isinstance(function, LoadedFunction):
        binder = function.binder
        binding.write(
            out.function_spec, binder.signature, binder.input_signature, binder.jit_compile, path
        )
        return
    given = function.input_signature
    declared = None if given is None else specs.encode(tuple(given), path, "input_signature")
    binding.write(
        out.function_spec, api.python_signature(function), declared, api.jit_compile(function), path
    )


class InputSignatureError(FunctionMatchError, TypeError):
    """The arguments do not fit the input signature that a function was declared with.

    RFC: PY-09
    """

    clause = "PY-09"


def _no_match(
    name: str,
    functions: Sequence[Any],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    reasons: Sequence[str],
    declared: bool,
) -> FunctionMatchError:
    """Return the error for a canonical call that fits no trace, with the arguments and the reason
    for each trace.

    A function that was `declared` with an input signature has one trace, and the error is a
    TypeError as well.
    """
    got = f"Positional arguments ({len(args)} total): {_lines(args)}\n  Keyword arguments: {kwargs}"
    options = []
    for number, (function, reason) in enumerate(zip(functions, reasons), 1):
        try:
            wanted, keywords = function.structured[0]
            takes = (
                f"Positional arguments ({len(wanted)} total): {_lines(wanted)}\n  Keyword"
                f" arguments: {keywords}"
            )
        except SavedModelError:  # a type that is not known here; the reason says so
            takes = f"the arguments of {function.saved_name}"
        options.append(f"Option {number}:\n  {takes}\n  does not match: {reason}")
    text = (
        "Could not find matching concrete function to call loaded from the SavedModel. Got:\n "
        f" {got}\n\nExpected these arguments to match one of the following {len(functions)}"
        " option(s):\n\n" + "\n\n".join(options)
    )
    if declared:
        return InputSignatureError(
            f"Binding inputs to tf.function failed due to `{reasons[0]}`. {text}", node=name
        )
    return FunctionMatchError(text, node=name)


def _lines(values: Sequence[Any]) -> str:
    return "".join(f"\n    * {value!r}" for value in values)


KIND = FunctionKind()
