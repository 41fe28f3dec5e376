"""Load a model, choose one of its signatures and call it, whole or up to a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Optional

import reference_eval
from reference_eval.executor import Ran
from reference_impl.errors import like
from savedmodel_tools.evaluation import inputs

DEFAULT = "serving_default"


class ChoiceError(ValueError):
    """Raised when the model has no such signature, or a call runs no such node."""


class _Reached(Exception):
    """Ends a call at the node that was asked for."""


class Watcher:
    """Sees each node of a call.

    Args:
      trace: is called with a line for each node, or None.
      until: the node that ends the call, as ``NODE`` or ``FUNCTION:NODE``; None runs all.

    Attributes:
      reached: the results of that node, ``NODE:0`` and so on, once it ran.
    """

    def __init__(
        self, trace: Optional[Callable[[str], object]] = None, until: Optional[str] = None
    ) -> None:
        self._trace, self._until = trace, until
        self._seen: set[str] = set()
        self.is_on = False  # not during the load, which runs the restore and the init op
        self.reached: dict[str, Any] = {}

    def __call__(self, ran: Ran) -> None:
        if not self.is_on:
            return
        if self._trace is not None:
            self._trace(str(ran))
        if self._until is None:
            return
        self._seen.add(ran.node)
        if self._until in (ran.node, f"{ran.function}:{ran.node}"):
            self.reached = {f"{ran.node}:{index}": value for index, value in enumerate(ran.values)}
            raise _Reached

    @property
    def ends_early(self) -> bool:
        """Whether a node was named that ends the call."""
        return self._until is not None

    def not_reached(self) -> ChoiceError:
        """Return the error of a call that ended without the node."""
        near = like(str(self._until), self._seen)
        return ChoiceError(f"the call runs no node {self._until!r}.{near}")


def answer(
    path: str,
    key: Optional[str],
    given: Sequence[str],
    *,
    tags: Optional[Iterable[str]] = None,
    precision: Optional[str] = None,
    watcher: Optional[Watcher] = None,
) -> Mapping[str, Any]:
    """Return the outputs of a signature by name, or the results of the node that ends the call.

    Args:
      path: the SavedModel.
      key: the signature; None takes ``serving_default``, or the only one.
      given: the inputs as texts (`inputs.parse`).
      tags: of the MetaGraph; None if there is one.
      precision: ``float64`` computes smaller floats in double precision.
      watcher: sees the nodes, and may end the call.

    Raises:
      ChoiceError: there is no such signature or node.
      InputError: the inputs do not fit.
      SavedModelError: the model cannot be read, or a node cannot be evaluated.
    """
    watcher = watcher or Watcher()
    model = reference_eval.load(path, tags, precision=precision, watch=watcher)
    call = model.signatures[chosen(list(model.signatures), key)]
    arguments = inputs.parse(given, call.inputs, call.defaults)
    watcher.is_on = True
    try:
        outputs = call(**arguments)
    except _Reached:
        return watcher.reached
    if watcher.ends_early:
        raise watcher.not_reached()
    return outputs


def chosen(keys: Sequence[str], key: Optional[str]) -> str:
    """Return the signature to call: ``key``, else ``serving_default`` or the only one.

    Raises ChoiceError: there is no such signature, or several.
    """
    if key is not None and key not in keys:
        listed = f" There are: {', '.join(keys)}." if keys else " It has none."
        raise ChoiceError(f"the model has no signature {key!r}.{like(key, keys) or listed}")
    if key is not None:
        return key
    if DEFAULT in keys or len(keys) == 1:
        return DEFAULT if DEFAULT in keys else keys[0]
    if not keys:
        raise ChoiceError("the model has no signatures")
    raise ChoiceError(f"the model has several signatures: name one of {', '.join(keys)}")
