"""Find the Python code that made a concrete function.

A `tf.function` has its Python function; a concrete function has not. But TensorFlow keeps for each
node of a graph the lines that were running when the node was made. They lead to code objects by way
of the source, or of the modules where there is none (in ``python -c``).

RFC: PRIM-06
"""

from __future__ import annotations

import itertools
import linecache
import sys
import types
from collections.abc import Iterator, Sequence

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.saving.checks import byte_code
from reference_impl.saving.checks.authorship import is_framework_file

_TRACING = "func_graph_from_py_func"  # the function of TensorFlow that calls the traced code
_MODULE = "<module>"


def traced_codes(function: tf.types.experimental.ConcreteFunction) -> list[types.CodeType]:
    """Return the code objects of functions that were running while nodes of a concrete function
    were made, each once.
    """
    lines: dict[tuple[str, int, str], None] = {}
    for operation in function.graph.get_operations():
        frames = list(operation.traceback or ())
        starts = [index for index, frame in enumerate(frames) if frame.name == _TRACING]
        inside = (
            frames[starts[-1] + 1 :] if starts else []
        )  # TensorFlow adds further nodes after the trace
        lines.update(((frame.filename, frame.lineno, frame.name), None) for frame in inside)
    found: dict[types.CodeType, None] = {}
    known: dict[str, list[types.CodeType]] = {}
    for file, line, name in lines:
        if not is_framework_file(file):
            if file not in known:
                known[file] = [code for code in _codes_of(file) if code.co_name != _MODULE]
            at_line = [code for code in known[file] if line in byte_code.lines(code)]
            named = [code for code in at_line if code.co_name == name]
            found.update(dict.fromkeys(named or _innermost(at_line)))
    return list(found)


def _innermost(codes: Sequence[types.CodeType]) -> list[types.CodeType]:
    """Return the code objects that contain no other one.

    AutoGraph tells no names of lambdas.
    """

    def contains_another(code: types.CodeType) -> bool:
        return any(other in codes for other in byte_code.nested(code) if other is not code)

    return [code for code in codes if not contains_another(code)]


def _codes_of(file: str) -> Iterator[types.CodeType]:
    """Yield the code objects of the functions of a file."""
    source = "".join(linecache.getlines(file))
    if source:
        try:
            yield from byte_code.nested(compile(source, file, "exec", dont_inherit=True))
        except (SyntaxError, ValueError):
            pass
        else:
            return
    for name, module in list(sys.modules.items()):
        members = vars(module) if isinstance(module, types.ModuleType) else {}
        if name == "__main__" or members.get("__file__") == file:
            found = map(_functions, list(members.values()))
            for function in itertools.chain.from_iterable(found):
                if function.__code__.co_filename == file:
                    yield from byte_code.nested(function.__code__)


def _functions(item: object) -> Iterator[types.FunctionType]:
    for member in list(vars(item).values()) if isinstance(item, type) else [item]:
        if isinstance(member, api.Function):
            member = member.python_function
        elif isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        if isinstance(member, types.FunctionType):
            yield member
