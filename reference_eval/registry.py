"""Which function evaluates an op.

A function takes the inputs of an op in the order of its OpDef, an input with `number_attr` or
`type_list_attr` as one list. Keyword-only parameters receive the attributes of their names. The
parameter ``call`` receives the running `executor.Call`, for ops that run functions, read assets or
need the dtypes of their outputs.

    @op("MatMul")
    def matmul(a, b, *, transpose_a=False, transpose_b=False): ...
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

Evaluate = TypeVar("Evaluate", bound=Callable[..., Any])


@dataclass(frozen=True)
class Op:
    """The function of one op.

    `attributes` are its keyword-only parameters; `wants_call` tells whether ``call`` is one.
    """

    names: tuple[str, ...]
    evaluate: Callable[..., Any]
    attributes: frozenset[str]
    wants_call: bool


_FOUND: dict[str, Op] = {}

# Ops that act on the machine or draw random numbers which no seed determines.
REFUSED = {
    **dict.fromkeys(
        ["ReadFile", "WriteFile", "MatchingFiles", "SaveV2", "Save", "SaveSlices", "PrintV2"],
        "reads or writes files",
    ),
    **dict.fromkeys(["PyFunc", "PyFuncStateless", "EagerPyFunc"], "runs Python of another process"),
    **dict.fromkeys(
        [
            *("RandomUniform", "RandomUniformInt", "RandomStandardNormal", "RandomShuffle"),
            *("TruncatedNormal", "Multinomial", "RandomGamma", "RandomPoissonV2"),
        ],
        "draws random numbers from a state that a model does not store",
    ),
}


def op(*names: str) -> Callable[[Evaluate], Evaluate]:
    """Register the decorated function for these op names.

    Args:
      names: the op and its other versions, e.g. ``"Add", "AddV2"``.
    """

    def register(evaluate: Evaluate) -> Evaluate:
        found = described(names, evaluate)
        _FOUND.update(dict.fromkeys(names, found))
        return evaluate

    return register


def described(names: Iterable[str], evaluate: Callable[..., Any]) -> Op:
    """Return the `Op` of a function, without registering it."""
    keywords = {
        parameter.name
        for parameter in inspect.signature(evaluate).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    return Op(tuple(names), evaluate, frozenset(keywords - {"call"}), "call" in keywords)


@functools.cache
def known() -> dict[str, Op]:
    """Return every op of `reference_eval.ops` by name, after importing its modules."""
    package = importlib.import_module("reference_eval.ops")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return _FOUND
