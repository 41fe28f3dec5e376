"""The callable part of a loaded SavedModel: its function, its losses, its variables."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Optional

ENDPOINTS = (
    "serve",
    "serving_default",
    "default",
)  # of Keras 3 exports, of most exports, of TF 1.x Hub modules


class Endpoint:
    """The function of a loaded SavedModel that a layer calls.

    Args:
      loaded: the object that `reference_impl.load` returned.
      name: a signature or an attribute of the model; by default the model itself if it is callable,
        else the first of `serve`, `serving_default`, `default` and the only signature.
      only_signatures: whether a name always means a signature, even if the model has an attribute
        of that name.

    Attributes:
      name: the name of the function, `""` for the model itself.
      is_signature: whether it takes its inputs by name.
      takes_training: whether it takes an argument `training`.

    Raises:
      ValueError: there is no such function.
    """

    def __init__(
        self, loaded: Any, name: Optional[str] = None, only_signatures: bool = False
    ) -> None:
        self.name, self.function = _choose(loaded, name, only_signatures)
        signatures = getattr(loaded, "signatures", {})  # a layer of a loaded model has none
        self.is_signature = self.name in signatures and self.function is signatures[self.name]
        self.takes_training = not self.is_signature and "training" in _parameters(self.function)
        keras_api = getattr(loaded, "keras_api", None)
        with_losses = (
            getattr(keras_api, "call_and_return_conditional_losses", None)
            if not self.name
            else None
        )
        self._with_losses: Optional[Callable[..., Any]] = (
            with_losses if callable(with_losses) else None
        )

    def __call__(
        self, inputs: Any, training: bool, arguments: Mapping[str, Any]
    ) -> tuple[Any, list[Any]]:
        """Return the outputs, and the losses that depend on the inputs (activity regularisation of
        Keras 2).
        """
        keywords = dict(arguments)
        if self.takes_training:
            keywords["training"] = training
        if self.is_signature:
            return self._call_signature(inputs, keywords), []
        inputs = _nested_as_traced(self._taken, inputs)
        if self._with_losses is not None:
            outputs, losses = self._with_losses(inputs, **keywords)
            return outputs, list(losses)
        return self.function(inputs, **keywords), []

    @functools.cached_property
    def _taken(self) -> list[Any]:
        """Return the first argument of each trace of the function: specs of tensors in their
        containers.
        """
        traces = getattr(self.function, "concrete_functions", None) or [self.function]
        positional = [
            (getattr(trace, "structured_input_signature", None) or ((), {}))[0] for trace in traces
        ]
        return [arguments[0] for arguments in positional if arguments]

    def _call_signature(self, inputs: Any, keywords: Mapping[str, Any]) -> Any:
        names = [
            name for name in self.function.structured_input_signature[1] if name not in keywords
        ]
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        else:
            listed = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            if len(listed) != len(names):
                raise ValueError(
                    f"signature {self.name!r} takes {len(names)} inputs ({', '.join(names)}),"
                    f" {len(listed)} were given. Give a dict of tensors by name."
                )
            given = dict(zip(names, listed))
        return self.function(**given, **keywords)


def _choose(loaded: Any, name: Optional[str], only_signatures: bool) -> tuple[str, Any]:
    signatures = getattr(loaded, "signatures", {})
    if name:
        if not only_signatures and callable(getattr(loaded, name, None)):
            return name, getattr(loaded, name)
        if name in signatures:
            return name, signatures[name]
        raise ValueError(
            f"the SavedModel has no function {name!r}. Signatures:"
            f" {', '.join(sorted(signatures)) or 'none'}."
        )
    if callable(loaded):
        return "", loaded.__call__
    for candidate in ENDPOINTS:
        if candidate == "serve" and callable(getattr(loaded, candidate, None)):
            return candidate, loaded.serve
        if candidate in signatures:
            return candidate, signatures[candidate]
    if len(signatures) == 1:
        ((only, function),) = signatures.items()
        return only, function
    others = (
        f"Name one of its signatures: {', '.join(sorted(signatures))}."
        if signatures
        else "It has no signatures."
    )
    raise ValueError(f"the SavedModel cannot be called as it is. {others}")


def _nested_as_traced(specs: Sequence[Any], value: Any) -> Any:
    """Return a nest with the lists, tuples and named tuples of a trace where no trace of a function
    has those of the nest.

    Keras makes a list of a tuple when it loads a functional model.
    """
    found = [_nested_as(spec, value) for spec in specs]
    return value if any(nest is value for nest in found) else next(iter(found), value)


def _nested_as(spec: Any, value: Any) -> Any:
    """Return a nest with the lists and tuples of a spec; the very nest if it has them."""
    if isinstance(spec, Mapping) and isinstance(value, Mapping):
        items = {key: _nested_as(spec.get(key), item) for key, item in value.items()}
        return value if all(items[key] is value[key] for key in items) else items
    if (
        isinstance(spec, (list, tuple))
        and type(value) in (list, tuple, type(spec))
        and len(spec) == len(value)
    ):
        listed = [_nested_as(*pair) for pair in zip(spec, value)]
        if type(spec) is type(value) and all(map(operator.is_, listed, value)):
            return value
        return type(spec)(*listed) if hasattr(spec, "_fields") else type(spec)(listed)
    return value


def _parameters(function: Any) -> Mapping[str, Any]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def variables_of(loaded: Any) -> list[tuple[Any, bool]]:
    """Return each variable of a loaded model once, and whether it is trainable."""
    trainable = list(getattr(loaded, "trainable_variables", ()))
    trains = {id(variable) for variable in trainable}
    # Keras 2 lists a lookup table among the variables of its layer; it is not one, and its place in
    # the list is empty.
    listed = [variable for variable in getattr(loaded, "variables", ()) if variable is not None]
    found = {id(variable): variable for variable in [*trainable, *listed, *_captured(loaded)]}
    return [(variable, key in trains) for key, variable in found.items()]


def _captured(loaded: Any) -> Iterator[Any]:
    """Yield the variables of the functions of a loaded model: Keras 2 does not list the states of a
    stateful RNN.
    """
    own = [loaded.__call__] if callable(loaded) else []
    for function in (*own, *getattr(loaded, "signatures", {}).values()):
        for trace in getattr(function, "concrete_functions", None) or [function]:
            yield from getattr(trace, "variables", ())


def regularization_losses(loaded: Any) -> list[Any]:
    """Return the losses of a loaded model that depend only on its weights, as functions to call."""
    found: dict[int, Any] = {}
    seen, waiting = {id(loaded)}, [loaded]
    while waiting:
        item = waiting.pop(0)
        found.update(
            (id(loss), loss)
            for loss in getattr(item, "regularization_losses", ())
            if callable(loss)
        )
        # Keras 2 lists the losses of the direct layers of a model only: those of a nested model are
        # in the list of that model.
        for layer in getattr(getattr(item, "keras_api", None), "layers", None) or ():
            if id(layer) not in seen:
                seen.add(id(layer))
                waiting.append(layer)
    return list(found.values())
