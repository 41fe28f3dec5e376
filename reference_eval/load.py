"""Open a model for evaluation: state, restore, init op, signatures."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from reference_eval import registry
from reference_eval.errors import EvaluationError
from reference_eval.executor import Executor, Ran, Run, Watch
from reference_eval.reading import Extracted, SavedModelError, Source, dtype_of, schema, shape_sizes
from reference_eval.signature import Signature
from reference_eval.state import Table, Variable


def load(
    path: Union[str, os.PathLike[str]],
    tags: Union[str, Iterable[str], None] = None,
    *,
    new_ops: Sequence[registry.Op] = (),
    trace: Optional[Callable[[str], object]] = None,
    watch: Optional[Watch] = None,
    precision: Optional[npt.DTypeLike] = None,
) -> Model:
    """Load a SavedModel for evaluation.

    Args:
      path: the directory.
      tags: the tags of the MetaGraph; None if there is only one.
      new_ops: functions for more ops, or instead of ours: ``registry.described(["MyOp"], my_op)``.
      trace: is called with one line for each node that runs, e.g. ``print``.
      watch: is called with each node that runs, as an `executor.Ran` with its results. An exception
        of its own ends the call.
      precision: ``np.float64`` computes float16, bfloat16 and float32 in double precision.

    Raises the errors of reading a SavedModel. A part that cannot be evaluated fails when it is
    used.
    """
    wanted = None if precision is None else np.dtype(precision)
    source = Source(os.fspath(path), tags)
    return Model(Executor(source, registry.known(new_ops), _watch_of(trace, watch), wanted))


def _watch_of(trace: Optional[Callable[[str], object]], watch: Optional[Watch]) -> Optional[Watch]:
    """Return one function that calls both, or None if there is none."""
    if trace is None:
        return watch

    def both(ran: Ran) -> None:
        trace(str(ran))
        if watch is not None:
            watch(ran)

    return both


class Model:
    """A loaded model.

    Attributes:
      signatures: key -> `Signature`, made at the first use.
      variables: name -> `state.Variable`.
      errors: those of the restore and of the init op; a session would not load such a model.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor, self._program = executor, executor.source.program
        self.variables = {
            item.name: Variable(item.name, executor.dtype(dtype_of(item.dtype)))
            for item in self._program.variables
        }
        self._handles: dict[str, Any] = dict(self.variables)
        for node, path in executor.source.asset_paths.items():
            self._handles[node] = np.asarray(path.encode(), object)
        self.errors: list[SavedModelError] = []
        self._init_failure = ""
        self._restore()
        self._initialize()
        self.signatures = Signatures(self)

    def _restore(self) -> None:
        layout = self._executor.source.layout
        if not layout.has_checkpoint:
            # As in C++: this is a model without variables, and a call that reads one fails.
            for variable in self.variables.values():
                variable.why_empty = str(layout.no_checkpoint())
            return
        with self._recorded():
            extracted = self._program.restore_function
            if extracted is not None:
                prefix = np.asarray(str(layout.checkpoint_prefix).encode(), object)
                self._call(extracted, [prefix])

    def _initialize(self) -> None:
        failed_before = len(self.errors)
        with self._recorded():
            extracted = self._program.init_function
            if extracted is not None:
                self._call(extracted, [])
        for error in self.errors[failed_before:]:
            self._init_failure = str(error)
            for made in self._handles.values():
                if isinstance(made, Table):
                    made.why_empty = str(error)

    @property
    def meta_graph(self) -> schema.MetaGraphDef:
        """The MetaGraph as it is in the file."""
        return self._executor.source.meta_graph

    @property
    def failures(self) -> list[str]:
        """The messages of `errors`."""
        return [str(error) for error in self.errors]

    @contextlib.contextmanager
    def _recorded(self) -> Iterator[None]:
        """Record an error of the restore or the init op, so that other parts of the model can be
        used.

        A variable that stays empty tells this reason when it is read.
        """
        try:
            yield
        except SavedModelError as error:
            self.errors.append(error)
            for variable in self.variables.values():
                variable.why_empty = variable.why_empty or str(error)

    def _call(self, extracted: Extracted, arguments: list[Any]) -> list[Any]:
        plan = self._executor.plan_of(extracted)
        captures = [self.handle(node) for node in extracted.captures]
        return Run(self._executor).function(plan, [*arguments, *captures])

    def handle(self, node: str) -> Any:
        """Return the state that a node makes: it is made at its first use."""
        if node not in self._handles:
            made = self._call(self._program.create_function(node), [])[0]
            if isinstance(made, Table):
                made.why_empty = self._init_failure
            self._handles[node] = made
        return self._handles[node]

    def signature(self, key: str) -> Signature:
        """Return one signature. Raises EvaluationError if there is none of this name."""
        definition = self._program.signatures.get(key)
        if definition is None:
            there = ", ".join(self._program.signatures)
            raise EvaluationError(f"the model has no signature {key!r}; there are: {there}")
        extracted = self._program.signature_function(key)
        executor = self._executor
        plan = executor.plan_of(extracted)
        names = executor.source.input_names(key)
        inputs = {
            names[feed.name]: (executor.dtype(dtype_of(feed.dtype)), shape_sizes(feed.shape))
            for feed in definition.inputs
        }
        captures = [self.handle(node) for node in extracted.captures]
        outputs = []
        for output in definition.outputs:
            outputs += output_names(output.key, output.kind, len(output.tensors))
        defaults = executor.source.defaults(key)
        return Signature(key, plan, inputs, defaults, captures, outputs, executor)

    def signature_keys(self) -> list[str]:
        """Return the names of the signatures, sorted."""
        return list(self._program.signatures)


def output_names(key: str, kind: str, count: int) -> list[str]:
    """Return the names of the tensors of an output, e.g. ``key/indices``, ``key/component_0``."""
    if kind == "sparse":
        return [f"{key}/{part}" for part in ("indices", "values", "dense_shape")]
    if kind == "composite":
        return [f"{key}/component_{part}" for part in range(count)]
    return [key]


class Signatures(Mapping[str, Signature]):
    """The signatures of a model; each is made when it is first asked for."""

    def __init__(self, model: Model) -> None:
        self._model, self._made = model, dict[str, Signature]()

    def __getitem__(self, key: str) -> Signature:
        if key not in self._model.signature_keys():
            raise KeyError(key)
        if key not in self._made:
            self._made[key] = self._model.signature(key)
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._model.signature_keys())

    def __len__(self) -> int:
        return len(self._model.signature_keys())
