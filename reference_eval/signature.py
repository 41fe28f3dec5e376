"""One signature of a model: checks the inputs, runs its function, names the outputs."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from reference_eval.arrays import array_of
from reference_eval.errors import EvaluationError
from reference_eval.executor import Executor, Run
from reference_eval.plan import Plan


class Signature:
    """A callable: inputs by name, outputs by name.

    Attributes:
      inputs: name -> (dtype, shape); -1 is an unknown dimension, None an unknown rank. The parts
        of a sparse input are ``name/indices``, ``name/values`` and ``name/dense_shape``.
      defaults: the values of inputs that a call may leave out.
    """

    def __init__(
        self,
        key: str,
        plan: Plan,
        inputs: dict[str, tuple[np.dtype[Any], Optional[tuple[int, ...]]]],
        defaults: dict[str, npt.NDArray[Any]],
        captures: list[Any],
        outputs: list[str],
        executor: Executor,
    ) -> None:
        self.key, self.inputs, self.defaults = key, inputs, defaults
        self._plan, self._captures, self._outputs = plan, captures, outputs
        self._executor = executor

    def __call__(self, **given: npt.ArrayLike) -> dict[str, Any]:
        """Return the outputs by name; the parts of a sparse output as ``name/indices``,
        ``name/values`` and ``name/dense_shape``.

        Args:
          given: an array for each input without a default.

        Raises EvaluationError: an input is missing, unknown or has another shape; a node fails.
        """
        unknown = sorted(set(given) - set(self.inputs))
        given = {**self.defaults, **given}
        missing = sorted(set(self.inputs) - set(given))
        if unknown or missing:
            reason = f"unknown inputs: {unknown}; missing inputs: {missing}"
            raise EvaluationError(reason, node=f"signature {self.key!r}")
        arguments = [self._argument(name, given[name]) for name in self.inputs]
        values = Run(self._executor).function(self._plan, [*arguments, *self._captures])
        return dict(zip(self._outputs, values))

    def _argument(self, name: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
        dtype, shape = self.inputs[name]
        array = array_of(value, dtype)
        fits = shape is None or (
            len(shape) == array.ndim
            and all(size in (-1, there) for size, there in zip(shape, array.shape))
        )
        if not fits:
            reason = f"input {name!r} has shape {list(array.shape)}, not {shape}"
            raise EvaluationError(reason, node=f"signature {self.key!r}")
        return array
