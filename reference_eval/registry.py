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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Optional

from reference_eval.reading import op_effects


@dataclass(frozen=True)
class Op:
    """The function of one op, which can be called as before.

    `attributes` are its keyword-only parameters; `wants_call` tells whether ``call`` is one.
    """

    names: tuple[str, ...]
    evaluate: Callable[..., Any]
    attributes: frozenset[str]
    wants_call: bool

    def __call__(self, *inputs: Any, **attributes: Any) -> Any:
        return self.evaluate(*inputs, **attributes)


_MACHINE = (
    op_effects.READS,
    op_effects.WRITES,
    op_effects.PRINTS,
    op_effects.CODE,
    op_effects.NETWORK,
    op_effects.PROCESS,
)
_DRAWS = frozenset(
    {
        *("RandomUniform", "RandomUniformInt", "RandomStandardNormal", "RandomShuffle"),
        *("TruncatedNormal", "Multinomial", "RandomGamma", "RandomPoissonV2"),
    }
)


def refusal(op: str) -> Optional[str]:
    """Return why an op is never evaluated, or None: it acts on the machine, or it draws random
    numbers that no seed determines.
    """
    if op in op_effects.PYTHON_OPS:
        return "runs Python of another process"
    effect = op_effects.OP_EFFECTS.get(op)
    if effect is not None and effect.kind in _MACHINE:
        return effect.does
    return "draws random numbers from a state that a model does not store" if op in _DRAWS else None


def op(*names: str) -> Callable[[Callable[..., Any]], Op]:
    """Make an `Op` of the decorated function: of these op names.

    Args:
      names: the op and its other versions, e.g. ``"Add", "AddV2"``.
    """
    return functools.partial(described, names)


def described(names: Iterable[str], evaluate: Callable[..., Any]) -> Op:
    """Return the `Op` of a function."""
    keywords = {
        parameter.name
        for parameter in inspect.signature(evaluate).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    return Op(tuple(names), evaluate, frozenset(keywords - {"call"}), "call" in keywords)


@functools.cache
def known() -> Mapping[str, Op]:
    """Return every `Op` in the modules of `reference_eval.ops`, by op name."""
    package = importlib.import_module("reference_eval.ops")
    found: dict[str, Op] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for value in vars(module).values():
            if isinstance(value, Op):
                found.update(dict.fromkeys(value.names, value))
    return MappingProxyType(found)
