"""From a call's arguments to the canonical form that traces are compared with.

A FunctionSpec stores the Python signature of a function. The canonical form of a call has every argument that may be
positional in a tuple, everything else in a dict, and the defaults filled in; so ``f(x)``, ``f(x=x)`` and
``f(x, training=False)`` are one.

RFC: PY-01, PY-09, FMT-03
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from reference_impl.errors import BindingError
from reference_impl.graph.argument_names import python_name

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Binder:
    """The Python signature of a loaded function.

    Args:
      name: for messages.
      args, varargs, varkw, defaults, kwonlyargs, kwonlydefaults: as of `inspect.getfullargspec`.
      is_method: drop the first argument (files of older writers keep `self`).
      input_signature: the specs given to tf.function, or None.
      jit_compile: True, False or None.
    """

    def __init__(
        self,
        name: str,
        args: Sequence[str],
        varargs: Optional[str] = None,
        varkw: Optional[str] = None,
        defaults: Sequence[Any] = (),
        kwonlyargs: Sequence[str] = (),
        kwonlydefaults: Optional[Mapping[str, Any]] = None,
        is_method: bool = False,
        input_signature: Any = None,
        jit_compile: Optional[bool] = None,
    ):
        self.name = name
        self.input_signature = input_signature
        self.jit_compile = jit_compile
        names = list(args)
        values = dict(zip(names[len(names) - len(defaults) :], defaults)) if defaults else {}
        if is_method or names[:1] == ["self"]:
            names = names[1:]
        kinds = inspect.Parameter
        empty = inspect.Parameter.empty
        parameters = [kinds(_identifier(n), kinds.POSITIONAL_OR_KEYWORD, default=values.get(n, empty)) for n in names]
        self._simple = len(parameters) if not (varargs or varkw or kwonlyargs) else -1
        if varargs:
            parameters.append(kinds(_identifier(varargs), kinds.VAR_POSITIONAL))
        values = dict(kwonlydefaults or {})
        parameters += [kinds(_identifier(n), kinds.KEYWORD_ONLY, default=values.get(n, empty)) for n in kwonlyargs]
        if varkw:
            parameters.append(kinds(_identifier(varkw), kinds.VAR_KEYWORD))
        # Not validated: TensorFlow lets an argument without a default follow one that has one (functools.partial).
        self.signature = inspect.Signature(parameters, __validate_parameters__=False)

    def canonical(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the canonical form of a call.

        Raises:
          BindingError: an argument is missing, unknown or given twice; the message names it.
        """
        if not kwargs and len(args) == self._simple:
            return args, kwargs
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            reason = f"Binding inputs to tf.function failed due to `{error}`. Received args: {_short(args)} and kwargs: "
            raise BindingError(f"{reason}{_short(kwargs)} for signature: {self.name}{self.signature}", node=self.name) from None
        bound.apply_defaults()
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for name, parameter in self.signature.parameters.items():
            value = bound.arguments[name]
            if parameter.kind in _POSITIONAL:
                positional.append(value)
            elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                positional.extend(value)
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                keywords.update(value)
            else:
                keywords[name] = value
        return tuple(positional), keywords

    def without_defaults(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return canonical arguments as early releases (2.4 at least) stored them: only those that the declared specs cover.

        Arguments at the end that have their defaults are left out.

        RFC: FMT-03
        """
        parameters = [p for p in self.signature.parameters.values() if p.kind in _POSITIONAL]
        end = len(args)
        while 0 < end <= len(parameters) and _same(args[end - 1], parameters[end - 1].default):
            end -= 1
        return args[:end]


def _identifier(name: str) -> str:
    """Return a parameter name that `inspect` accepts; names in a file may be anything.

    Adapted as TensorFlow does it: in a re-export this name must fit the one that its reader makes of the input's name.

    RFC: SIG-07
    """
    return name if name.isidentifier() and not keyword.iskeyword(name) else python_name(name)


def _same(value: Any, default: Any) -> bool:
    plain = isinstance(value, (bool, int, float, str, bytes))
    return value is default or (plain and type(value) is type(default) and bool(value == default))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else text[:297] + "..."
