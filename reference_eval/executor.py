"""Run plans: one loop over the steps of a function, with the checks of every result.

An `Executor` belongs to a model; a `Run` to one call of a signature, whose steps and depth it
counts. `Call` is what an op sees of the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Optional

import numpy as np
import numpy.typing as npt

from reference_eval import sizes
from reference_eval.errors import (
    EvaluationError,
    EvaluationLimitError,
    RefusedOpError,
    UnknownOpError,
)
from reference_eval.frames import Frames
from reference_eval.plan import Plan, Step, make_plan
from reference_eval.reading import (
    Extracted,
    FunctionName,
    SavedModelError,
    Source,
    open_regular,
    schema,
)
from reference_eval.registry import Op, refusal, unknown
from reference_eval.state import size_of

Watch = Callable[["Ran"], object]
_FLOATS = ("float32", "float16", "bfloat16")


@dataclass(frozen=True, eq=False)
class Ran:
    """A node that ran.

    `inputs` are the values of its input arguments, a list for an argument that is one; `values` its
    results: arrays, or values of `reference_eval.state`. As text: one line, e.g.
    ``mul (Mul) -> float32[1, 1] [1.0]``.
    """

    function: str
    node: str
    op: str
    attributes: Mapping[str, Any]
    inputs: Sequence[Any]
    values: Sequence[Any]

    def __str__(self) -> str:
        return f"{self.node} ({self.op}) -> {', '.join(map(_shown, self.values))}"


class Executor:
    """Evaluates the functions of a model.

    Args:
      source: the model.
      ops: the functions by op name.
      watch: is called with each node that ran, or None.
      precision: the dtype that replaces float16, bfloat16 and float32, or None to keep them.
    """

    def __init__(
        self,
        source: Source,
        ops: Mapping[str, Op],
        watch: Optional[Watch] = None,
        precision: Optional[np.dtype[Any]] = None,
    ) -> None:
        self.source, self.ops, self.watch, self.precision = source, ops, watch, precision
        self._plans: dict[str, Plan] = {}
        self.resources: dict[tuple[str, bytes, bytes], Any] = {}

    def dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype in which values of `dtype` are computed."""
        if self.precision is None or dtype.name not in _FLOATS:
            return dtype
        return self.precision

    def convert(self, value: Any) -> Any:
        """Return a stored value in the dtype in which it is computed, or a list of values."""
        if isinstance(value, np.dtype):
            return self.dtype(value)
        if isinstance(value, np.ndarray):
            return value.astype(self.dtype(value.dtype), copy=False)
        if isinstance(value, list):
            return [self.convert(item) for item in value]
        return value

    def plan(self, name: str) -> Plan:
        """Return the plan of a function of the model, made at its first call."""
        if name not in self._plans:
            if name not in self.source.functions:
                raise EvaluationError(f"the model has no function {name!r}", file=self.source.file)
            self._plans[name] = self._prepared(self.source.functions[name])
        return self._plans[name]

    def plan_of(self, extracted: Extracted) -> Plan:
        """Return the plan of a function that was cut out of the main graph."""
        return self._prepared(self.source.add(extracted))

    def _prepared(self, function: schema.FunctionDef) -> Plan:
        """Return the plan of a function, with its kernels, in the computed dtypes."""
        plan = make_plan(function, self.source.program.ops)
        if self.precision is not None:
            plan.arguments = [(name, self.dtype(dtype)) for name, dtype in plan.arguments]
            for step in plan.steps:
                step.outputs = [(name, self.dtype(dtype)) for name, dtype in step.outputs]
                step.attributes = {key: self.convert(item) for key, item in step.attributes.items()}
        for step in plan.steps:
            step.kernel = self.ops.get(step.op)
            if step.kernel is not None:
                names = step.kernel.attributes & step.attributes.keys()
                step.keywords = {name: step.attributes[name] for name in names}
        return plan


class Run:
    """One call from outside."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.steps = self.depth = self.held = 0

    def function(self, plan: Plan, arguments: Sequence[Any]) -> list[Any]:
        """Run a function; return its results.

        Raises EvaluationError and its subclasses, which name the function and the node.
        """
        if len(arguments) != len(plan.arguments):
            reason = f"it takes {len(plan.arguments)} arguments, not {len(arguments)}"
            self._fail(EvaluationError(reason), plan, None)
        self.depth += 1
        if self.depth > sizes.DEPTH:
            reason = f"functions call each other more than {sizes.DEPTH} deep"
            self._fail(EvaluationLimitError(reason, limit="DEPTH"), plan, None)
        with np.errstate(all="ignore"):  # IEEE results (NaN, infinity), as kernels give them
            run = self._in_frames if plan.has_frames else self._in_order
            results = run(plan, arguments)
        self.depth -= 1
        return results

    def _in_frames(self, plan: Plan, arguments: Sequence[Any]) -> list[Any]:
        """Run a function with control flow of TF 1.x; return its results."""
        try:
            frames = Frames(
                plan,
                lambda step, given: self.step(plan, step, given),
                lambda live, step: self.check_live(live, plan, step),
            )
            return frames.run(arguments)
        except EvaluationError as error:
            self._fail(error, plan, None)

    def _in_order(self, plan: Plan, arguments: Sequence[Any]) -> list[Any]:
        """Run the steps of a function in their order; return its results."""
        values = {name: value for (name, _), value in zip(plan.arguments, arguments)}
        live = sum(map(size_of, arguments))
        for step in plan.steps:
            results = self.step(plan, step, [values[key] for key in step.inputs])
            for (key, _), value in zip(step.outputs, results):
                values[key] = value
                live += size_of(value)
            self.check_live(live, plan, step)
            for key in step.last_used:
                live -= size_of(values.pop(key, None)) if key not in plan.results else 0
        return [values[key] for key in plan.results]

    def count(self) -> None:
        """Count a node that runs, or an element of a dataset.

        Raises EvaluationLimitError: it is one too many.
        """
        self.steps += 1
        if self.steps > sizes.STEPS:
            reason = f"the call runs more than {sizes.STEPS} nodes"
            raise EvaluationLimitError(reason, limit="STEPS")

    def check_live(self, live: int, plan: Plan, step: Step) -> None:
        """Raise EvaluationLimitError if the values of a function, `live` bytes, are too large."""
        if live > sizes.LIVE_BYTES:
            reason = f"the tensors of this function exceed {sizes.LIVE_BYTES} bytes"
            self._fail(EvaluationLimitError(reason, limit="LIVE_BYTES"), plan, step)

    def step(self, plan: Plan, step: Step, given: list[Any]) -> list[Any]:
        """Run a node; return its results. Raises EvaluationError, which names the node."""
        try:
            return self._step(plan, step, given)
        except (ArithmeticError, LookupError, TypeError, ValueError, MemoryError) as error:
            self._fail(EvaluationError(str(error) or type(error).__name__), plan, step, error)
        except SavedModelError as error:
            self._fail(error, plan, step)

    def _step(self, plan: Plan, step: Step, given: list[Any]) -> list[Any]:
        self.count()
        if step.op in self.executor.source.functions:
            results = self.function(self.executor.plan(step.op), given)
        else:
            results = self._kernel(step, given)
        results = [
            _checked(value, dtype, key) for value, (key, dtype) in zip(results, step.outputs)
        ]
        if self.executor.watch is not None:
            arguments = _grouped(given, step.groups)
            ran = Ran(plan.name, step.name, step.op, step.attributes, arguments, results)
            self.executor.watch(ran)
        return results

    def _kernel(self, step: Step, given: list[Any]) -> list[Any]:
        kernel = step.kernel
        if kernel is None:
            reason = refusal(step.op)
            if reason is not None:
                raise RefusedOpError(f"not evaluated: op {step.op!r} {reason}")
            raise UnknownOpError(f"not evaluated: op {step.op!r}{unknown(step.op)}")
        inputs = _grouped(given, step.groups)
        if kernel.wants_call:
            result = kernel.evaluate(*inputs, call=Call(self, step), **step.keywords)
        else:
            result = kernel.evaluate(*inputs, **step.keywords)
        return _flat(result, step)

    def _fail(
        self,
        error: SavedModelError,
        plan: Plan,
        step: Optional[Step],
        cause: Optional[BaseException] = None,
    ) -> NoReturn:
        """Raise an error with the place where it happened; an inner place is kept."""
        if error.node is None:
            where = f"function {plan.name!r}"
            error.node = f"{where}, node {step.name!r} ({step.op})" if step else where
            error.file = error.file or self.executor.source.file
        raise error from cause


@dataclass(frozen=True)
class Call:
    """The view that an op has of the run: its own dtypes, functions, and the files of the model."""

    _run: Run
    _step: Step

    @property
    def output_dtypes(self) -> list[np.dtype[Any]]:
        """The dtypes of the op's results, as its definition and attributes state them."""
        return [dtype for _, dtype in self._step.outputs]

    @property
    def name(self) -> str:
        """The name of the node."""
        return self._step.name

    @property
    def precision(self) -> Optional[np.dtype[Any]]:
        """The dtype that replaces the floats of the model, or None if they are kept."""
        return self._run.executor.precision

    def function(self, name: FunctionName, arguments: Sequence[Any]) -> list[Any]:
        """Run a function that an attribute names."""
        return self._run.function(self._run.executor.plan(name.name), arguments)

    def count(self) -> None:
        """Count an element of a dataset as a node. Raises EvaluationLimitError: one too many."""
        self._run.count()

    def hold(self, nbytes: int) -> None:
        """Count bytes that an object changed in place keeps until the call ends, or drops (< 0).

        Raises EvaluationLimitError: they are too many.
        """
        self._run.held += nbytes
        if self._run.held > sizes.LIVE_BYTES:
            reason = f"the stacks and arrays of this call exceed {sizes.LIVE_BYTES} bytes"
            raise EvaluationLimitError(reason, limit="LIVE_BYTES")

    def convert(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a stored array in the dtype in which it is computed."""
        converted: npt.NDArray[Any] = self._run.executor.convert(array)
        return converted

    def shared(self, container: bytes, name: bytes, make: Callable[[], Any]) -> Any:
        """Return the resource of a shared name, made at its first use. Without a name, make one."""
        if not name:
            return make()
        resources = self._run.executor.resources
        key = (self._step.op, container, name)
        if key not in resources:
            resources[key] = make()
        return resources[key]

    def read_asset(self, path: bytes) -> bytes:
        """Return the bytes of an asset.

        Raises:
          RefusedOpError: the file is not an asset of the model.
          EvaluationError: it is not a regular file, or cannot be read.
          EvaluationLimitError: it is larger than `TENSOR_BYTES`.
        """
        name = os.fsdecode(path)
        if name not in self._run.executor.source.asset_paths.values():
            raise RefusedOpError(f"the file {name!r} is not an asset of the model")
        try:
            with open_regular(name) as file:
                (size,) = sizes.check_shape([os.fstat(file.fileno()).st_size])
                return file.read(size)
        except OSError as error:
            raise EvaluationError(f"an asset cannot be read: {error}") from error

    def checkpoint(self, prefix: bytes) -> Any:
        """Open the model's own checkpoint. Raises RefusedOpError for any other prefix."""
        layout = self._run.executor.source.layout
        if prefix.decode() != str(layout.checkpoint_prefix):
            raise RefusedOpError(f"{prefix.decode()!r} is not the checkpoint of the model")
        return layout.open_checkpoint()


def _grouped(given: list[Any], groups: Sequence[Optional[int]]) -> list[Any]:
    """Return one value per input argument of the OpDef, a list for an argument that is one."""
    if groups.count(None) == len(groups):  # the common case
        return given
    found, position = [], 0
    for length in groups:
        count = 1 if length is None else length
        part = given[position : position + count]
        found.append(part[0] if length is None else part)
        position += count
    return found


def _flat(result: Any, step: Step) -> list[Any]:
    """Return one value per output. An op with one output argument returns its value alone."""
    if step.lists == [None]:  # the common case
        return [result]
    if not step.lists:
        return []
    parts = [result] if len(step.lists) == 1 else list(result)
    flat: list[Any] = []
    for part, length in zip(parts, step.lists):
        flat += [part] if length is None else list(part)
    if len(flat) != len(step.outputs):
        raise TypeError(f"the op gave {len(flat)} results; its definition has {len(step.outputs)}")
    return flat


def _checked(value: Any, dtype: np.dtype[Any], key: str) -> Any:
    """Return a result as an array of the dtype of its definition; handles and lists as they are."""
    if isinstance(value, (np.ndarray, np.generic, int, float)):
        array = np.asarray(value)
        if array.dtype != dtype:
            raise TypeError(f"the result {key!r} has dtype {array.dtype}, not {dtype}")
        return array
    if dtype != np.dtype(object):
        raise TypeError(f"the result {key!r} is {type(value).__name__}, not a {dtype} array")
    return np.asarray(value, object) if isinstance(value, bytes) else value


def _shown(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    first = ", ".join(map(str, value.ravel()[:3].tolist()))
    more = ", ..." if value.size > 3 else ""
    return f"{value.dtype}{list(value.shape)} [{first}{more}]"
