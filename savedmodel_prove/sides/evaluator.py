"""`reference_eval` as a side: the referee, and the original where TensorFlow is absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import numpy as np

import reference_eval
from reference_eval.executor import Ran
from reference_eval.registry import Op
from reference_impl.errors import SavedModelError
from savedmodel_common import tensors
from savedmodel_common.gist import gist
from savedmodel_common.tensors import Tensor
from savedmodel_prove.sides.side import SideError
from savedmodel_tools.evaluation.inputs import InputError, fitted


@dataclass(frozen=True)
class Trace:
    """One call: the nodes that ran, and the outputs, which are results of some of them."""

    ran: Sequence[Ran]
    outputs: Mapping[str, Any]


class Evaluator:
    """A signature evaluated with NumPy.

    Args:
      model: the directory of the SavedModel.
      tags: of the MetaGraph.
      key: of the signature.
      precision: ``float64`` computes smaller floats in double precision.
      new_ops: functions instead of the evaluator's own.

    Raises SideError: the model cannot be read, or has no such signature.
    """

    def __init__(
        self,
        model: Path,
        tags: Sequence[str],
        key: str,
        precision: Optional[str] = None,
        new_ops: Sequence[Op] = (),
    ) -> None:
        self._ran: Optional[list[Ran]] = None
        try:
            loaded = reference_eval.load(
                model, tags, precision=precision, new_ops=new_ops, watch=self._watch
            )
            self._call = loaded.signatures[key]
        except KeyError:
            raise SideError(f"{model}: there is no signature {key!r}") from None
        except SavedModelError as error:
            raise SideError(str(error)) from error
        self.name = f"reference_eval ({precision})" if precision else "reference_eval"
        self.versions: Mapping[str, str] = {"numpy": np.__version__}

    def _watch(self, ran: Ran) -> None:
        if self._ran is not None:
            self._ran.append(ran)

    def answer(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the outputs. Raises SideError: a node cannot be evaluated."""
        found = self._evaluated(inputs)
        return {name: tensors.from_numpy(value) for name, value in found.items()}

    def _evaluated(self, inputs: Mapping[str, Tensor]) -> dict[str, Any]:
        try:
            given = {
                name: fitted(name, tensor, *self._call.inputs[name])
                for name, tensor in inputs.items()
            }
            return self._call(**given)
        except KeyError as error:
            raise SideError(f"the signature has no input {error}") from None
        except (SavedModelError, InputError, TypeError) as error:
            raise SideError(gist(str(error))) from error

    def trace(self, inputs: Mapping[str, Tensor]) -> Trace:
        """Return the nodes of one call in the order in which they ran. Raises SideError."""
        self._ran = []
        try:
            outputs = self._evaluated(inputs)
            return Trace(self._ran, outputs)
        finally:
            self._ran = None

    def values(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the results of all nodes as ``FUNCTION/NODE:0`` and so on.

        Of a node in a loop, it is the last one. Raises SideError.
        """
        found = {}
        for ran in self.trace(inputs).ran:
            for index, value in enumerate(ran.values):
                if isinstance(value, np.ndarray):
                    found[f"{ran.function}/{ran.node}:{index}"] = tensors.from_numpy(value)
        return found
