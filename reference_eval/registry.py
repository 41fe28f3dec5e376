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
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from reference_eval.reading import DRAWING_OPS, op_effects


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


def refusal(op: str) -> Optional[str]:
    """Return why an op is never evaluated, or None: it acts on the machine, or it draws random
    numbers that no seed determines.
    """
    if op in op_effects.PYTHON_OPS:
        return "runs Python of another process"
    effect = op_effects.OP_EFFECTS.get(op)
    if effect is not None and effect.kind in _MACHINE:
        return effect.does
    return (
        "draws random numbers from a state that a model does not store"
        if op in DRAWING_OPS
        else None
    )


_PROGRAMS = {
    "XlaCallModule": "holds a module of StableHLO",
    "SymbolicGradient": "names a function, and its gradient is not stored",
}


def unknown(op: str) -> str:
    """Return why an op without a function has none, to follow its name; "" if nobody says why."""
    return f", which {_PROGRAMS[op]}" if op in _PROGRAMS else ""


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


class Ops(Mapping[str, Op]):
    """Op name -> `Op`. A module is imported when one of its ops is asked for: a model needs a few
    ops, and all modules cost a tenth of a second.

    Args:
      modules: op name -> name of the module.
      added: ops that are used instead of those of the modules.
    """

    def __init__(self, modules: Mapping[str, str], added: Iterable[Op] = ()) -> None:
        self._modules = modules
        self._found: dict[str, Op] = {}
        for given in added:
            self._found.update(dict.fromkeys(given.names, given))

    def __getitem__(self, name: str) -> Op:
        if name not in self._found:
            module = importlib.import_module(self._modules[name])
            for value in vars(module).values():
                if isinstance(value, Op) and name in value.names:
                    self._found[name] = value
        return self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._modules or name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter({**self._modules, **self._found})

    def __len__(self) -> int:
        return len(self._modules.keys() | self._found.keys())


def known(added: Iterable[Op] = ()) -> Ops:
    """Return every `Op` in the modules of `reference_eval.ops`, by op name.

    Args:
      added: more ops, or others instead of ours.
    """
    return Ops(_modules(), added)


@functools.cache
def _modules() -> Mapping[str, str]:
    """Return the module of each op, from the texts of the modules."""
    modules = {}
    for path in sorted(Path(__file__).with_name("ops").glob("*.py")):
        names = _names(path.read_text(encoding="utf-8"))
        modules.update(dict.fromkeys(names, f"reference_eval.ops.{path.stem}"))
    return modules


def _names(source: str) -> list[str]:
    """Return the op names in the ``@op(...)`` decorators of a module."""
    listed = re.findall(r"^@op\((.*?)\)\n", source, re.MULTILINE | re.DOTALL)
    return re.findall(r'"([^"]+)"', "".join(listed))
