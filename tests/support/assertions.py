"""Find tests that can pass without an assertion, by reading them.

A test *surely asserts* when each way through it reaches an assertion: an ``assert``,
``pytest.raises`` and the like, a function that surely asserts itself, a subprocess that must
succeed. A loop counts if it runs at least once: over a literal, a constant in capitals, a parameter
of the function or what one of these was made of. Anything else that a test computes may be empty;
the test then asserts first that it is not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
ASSERTING = frozenset(
    {"raises", "warns", "deprecated_call", "fail", "check_call", "check_output", "reject"}
)
SAME_LENGTH = frozenset(
    {
        "enumerate",
        "sorted",
        "reversed",
        "list",
        "tuple",
        "set",
        "zip",
        "product",
        "items",
        "values",
        "keys",
    }
)


class Tests:
    """The tests of some files, and the helpers they share."""

    def __init__(self, files: Iterable[Path]) -> None:
        self.trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}
        self.functions: dict[str, dict[Path, list[Function]]] = {}
        for file, tree in self.trees.items():
            for function in _functions(tree):
                self.functions.setdefault(function.name, {}).setdefault(file, []).append(function)
        self.sure: set[tuple[Path, str]] = set()
        while self._learn():
            pass

    def unsure(self) -> list[str]:
        """``file: test`` of the tests that can pass without an assertion."""
        return [
            f"{file.name}: {function.name}"
            for file, tree in self.trees.items()
            for function in _functions(tree)
            if function.name.startswith("test_") and not _Reader(self, file, function).asserts()
        ]

    def _learn(self) -> bool:
        before = len(self.sure)
        for name, by_file in self.functions.items():
            for file, functions in by_file.items():
                if (file, name) not in self.sure and all(
                    _Reader(self, file, one).asserts() for one in functions
                ):
                    self.sure.add((file, name))
        return len(self.sure) > before

    def surely_asserts(self, file: Path, name: str, module: str = "") -> bool:
        """Whether a call of ``name`` asserts: the function of the module, of this file, else each
        of that name.
        """
        by_file = self.functions.get(name, {})
        places = [one for one in by_file if one.stem == module] or (
            [file] if file in by_file else list(by_file)
        )
        return bool(places) and all((place, name) in self.sure for place in places)


class _Reader:
    """One function, read along its statements."""

    def __init__(self, tests: Tests, file: Path, function: Function) -> None:
        self.tests, self.file, self.function = tests, file, function
        arguments = function.args
        self.filled = {
            one.arg for one in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        }

    def asserts(self) -> bool:
        return self._block(self.function.body) is True

    def _block(self, statements: list[ast.stmt]) -> bool | None:
        """True: an assertion is reached.

        None: the block may be left before one. False: it goes on without one.
        """
        for statement in statements:
            found = self._statement(statement)
            if found is not False:
                return found
        return False

    def _statement(self, statement: ast.stmt) -> bool | None:
        if isinstance(statement, (ast.Assert, ast.Raise)):
            return True  # whatever follows: a test that is sure to assert can fail
        if isinstance(statement, (ast.Return, ast.Continue, ast.Break)):
            return True if self._calls(statement) else None
        if isinstance(statement, ast.If):
            return self._calls(statement.test) or self._either(
                self._block(statement.body), self._block(statement.orelse)
            )
        if isinstance(statement, ast.With):
            inside = self._block(statement.body)
            suppressed = any(
                "suppress" in ast.unparse(item.context_expr) for item in statement.items
            )
            return any(self._calls(item) for item in statement.items) or (inside and not suppressed)
        if isinstance(statement, ast.Try):
            body = self._block([*statement.body, *statement.orelse])
            handlers = [self._block(handler.body) for handler in statement.handlers]
            return self._block(statement.finalbody) or (
                body if all(handlers) else None if body is None else False
            )
        if isinstance(statement, (ast.For, ast.While)):
            head = statement.iter if isinstance(statement, ast.For) else statement.test
            return self._calls(head) or (
                self._block(statement.body) is True and self._runs(statement)
            )
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            return False
        if isinstance(statement, ast.Assign) and self._is_filled(statement.value):
            self.filled |= {
                name.id
                for target in statement.targets
                for name in ast.walk(target)
                if isinstance(name, ast.Name)
            }
        return self._calls(statement)

    @staticmethod
    def _either(one: bool | None, other: bool | None) -> bool | None:
        if one is None or other is None:
            return None
        return one and other

    def _runs(self, loop: ast.For | ast.While) -> bool:
        return (
            isinstance(loop.test, ast.Constant)
            if isinstance(loop, ast.While)
            else self._is_filled(loop.iter)
        )

    def _is_filled(self, value: ast.expr) -> bool:
        """Whether a collection cannot be empty, as far as its expression shows."""
        if isinstance(value, (ast.Tuple, ast.List, ast.Set, ast.Dict)):
            return bool(value.keys if isinstance(value, ast.Dict) else value.elts)
        if isinstance(value, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return all(self._is_filled(one.iter) and not one.ifs for one in value.generators)
        if isinstance(value, ast.IfExp):
            return self._is_filled(value.body) and self._is_filled(value.orelse)
        if isinstance(value, ast.BinOp):
            return self._is_filled(value.left) or self._is_filled(value.right)
        if isinstance(value, (ast.Attribute, ast.Subscript, ast.Starred)):
            return (isinstance(value, ast.Attribute) and value.attr.isupper()) or self._is_filled(
                value.value
            )
        if isinstance(value, ast.Call):
            return self._call_is_filled(value)
        if isinstance(value, ast.Constant):
            return bool(value.value)
        return isinstance(value, ast.Name) and (value.id in self.filled or value.id.isupper())

    def _call_is_filled(self, call: ast.Call) -> bool:
        name = _name(call)
        if name == "range":
            return all(isinstance(one, ast.Constant) or self._is_filled(one) for one in call.args)
        if name in SAME_LENGTH:
            made_of = call.args or (
                [call.func.value] if isinstance(call.func, ast.Attribute) else []
            )
            return bool(made_of) and all(self._is_filled(one) for one in made_of)
        return (
            isinstance(call.func, ast.Name) and call.func.id in self.filled
        )  # a fixture that is a function

    def _calls(self, node: ast.AST) -> bool:
        """Whether an expression calls what asserts."""
        stack: list[ast.AST] = [node]
        while stack:
            one = stack.pop()
            if isinstance(one, ast.Call):
                name = _name(one)
                checked = any(
                    key.arg == "check" and getattr(key.value, "value", None) is True
                    for key in one.keywords
                )
                if (
                    checked
                    or name in ASSERTING
                    or name.startswith("assert_")
                    or self._asserting(one, name)
                ):
                    return True
            if not isinstance(one, (ast.Lambda, ast.FunctionDef)):
                stack.extend(ast.iter_child_nodes(one))
        return False

    def _asserting(self, call: ast.Call, name: str) -> bool:
        module = getattr(getattr(call.func, "value", None), "id", "")
        return self.tests.surely_asserts(self.file, name, module)


def _functions(tree: ast.Module) -> Iterator[Function]:
    return (
        node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )


def _name(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))
