"""Where a module can be changed, and how: each `Place` is one small change of one expression or
statement.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Optional

_OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Break: ast.Continue, ast.Continue: ast.Break,
}  # fmt: skip
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_JUDGED = (
    ast.Compare,
    ast.BoolOp,
    ast.UnaryOp,
    ast.Constant,
)  # conditions that have changes of their own


@dataclasses.dataclass(frozen=True)
class Place:
    """One change.

    ``key`` outlives changes elsewhere in the module; ``lines`` are where a test must have been to
    see it.
    """

    module: str  # path in the project
    key: str
    kind: str
    lines: tuple[int, int]
    at_import: bool  # what it changes is computed when the module is imported
    names: tuple[str, ...]  # what the statement assigns, at import
    in_message: bool  # inside an f-string


def _skipped(tree: ast.AST) -> set[ast.AST]:
    """Annotations, decorators and format specs: none of the program's doing, or text."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        for name in ("annotation", "returns", "decorator_list", "format_spec"):
            held = getattr(node, name, None)
            for part in held if isinstance(held, list) else [held] if held else []:
                found.update(ast.walk(part))
    return found


def _kinds(node: ast.AST) -> Iterator[tuple[str, str]]:
    """(kind, field that is changed) of every change of this node."""
    if isinstance(node, ast.Compare):
        yield from (("compare", str(n)) for n, op in enumerate(node.ops) if type(op) in _OTHER)
    elif isinstance(node, ast.BoolOp):
        yield "and/or", ""
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", ""
    elif isinstance(node, ast.Constant) and type(node.value) in (int, bool):
        yield ("number" if type(node.value) is int else "flag"), ""
    elif isinstance(node, ast.BinOp) and type(node.op) in _OTHER:
        yield "arithmetic", ""
    elif isinstance(node, ast.Raise):
        yield "raise", ""
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "call", ""
    elif isinstance(node, (ast.Break, ast.Continue)):
        yield "jump", ""
    elif isinstance(node, (ast.If, ast.While, ast.IfExp)) and not isinstance(node.test, _JUDGED):
        yield "condition", "test"
    elif isinstance(node, ast.comprehension):
        yield from (
            ("condition", str(n))
            for n, test in enumerate(node.ifs)
            if not isinstance(test, _JUDGED)
        )


def _changed(node: ast.AST, kind: str, field: str, up: bool) -> ast.AST:
    """Another node in its place."""
    made = copy.deepcopy(node)
    if kind == "compare":
        made.ops[int(field)] = _OTHER[type(made.ops[int(field)])]()
    elif kind in ("and/or", "arithmetic"):
        made.op = _OTHER[type(made.op)]()
    elif kind == "not":
        return made.operand
    elif kind == "number":
        made.value += 1 if up else -1
    elif kind == "flag":
        made.value = not made.value
    elif kind == "jump":
        return ast.copy_location(_OTHER[type(made)](), node)
    elif kind == "condition" and field == "test":
        made.test = ast.UnaryOp(ast.Not(), made.test)
    elif kind == "condition":
        made.ifs[int(field)] = ast.UnaryOp(ast.Not(), made.ifs[int(field)])
    else:
        return ast.copy_location(ast.Pass(), node)
    return made


def _text(node: ast.AST) -> str:
    """The part that changes, in short."""
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        node = node.test
    elif isinstance(node, ast.comprehension):
        return " ".join(f"if {ast.unparse(test)}" for test in node.ifs)[:80]
    return ast.unparse(node)[:80]


class _Walk:
    """Every change of a module, in the order of its text."""

    def __init__(self, module: str, tree: ast.Module, seed: int) -> None:
        self.module, self.seed, self.skipped = module, seed, _skipped(tree)
        self.seen: Counter[str] = Counter()
        self.found: list[tuple[Place, ast.AST, ast.AST]] = []
        self.names: list[str] = []
        self.visit(tree, None, False, False)

    def visit(
        self, node: ast.AST, statement: Optional[ast.stmt], runs: bool, in_message: bool
    ) -> None:
        if node in self.skipped:
            return
        if isinstance(node, ast.stmt):
            statement = node
        in_message = in_message or isinstance(node, ast.JoinedStr)
        for kind, field in _kinds(node):
            self.add(node, kind, field, statement, runs, in_message)
        named = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        self.names += [node.name] if named else []
        for name, held in ast.iter_fields(node):
            inside = runs or (isinstance(node, _FUNCTIONS) and name == "body")
            for child in held if isinstance(held, list) else [held]:
                if isinstance(child, ast.AST):
                    self.visit(child, statement, inside, in_message)
        if named:
            self.names.pop()

    def add(
        self,
        node: ast.AST,
        kind: str,
        field: str,
        statement: Optional[ast.stmt],
        runs: bool,
        in_message: bool,
    ) -> None:
        stem = f"{'.'.join(self.names)} {kind} {_text(node)}"
        number = self.seen[stem]
        self.seen[stem] += 1
        up = hashlib.sha256(f"{self.seed} {stem} {number}".encode()).digest()[0] % 2 == 0
        made = _changed(node, kind, field, up)
        key = f"{stem} -> {_text(made)}" + (f" #{number + 1}" if number else "")
        reach = (
            node.test
            if isinstance(node, (ast.If, ast.While))
            else node.ifs[int(field)]
            if isinstance(node, ast.comprehension)
            else node
        )
        names = () if runs else tuple(_assigned(statement)) or tuple(self.names)
        lines = (reach.lineno, reach.end_lineno or reach.lineno)
        self.found.append(
            (Place(self.module, key, kind, lines, not runs, names, in_message), node, made)
        )


def _assigned(statement: Optional[ast.stmt]) -> Iterator[str]:
    """The names that a statement gives a value."""
    for node in ast.walk(statement) if isinstance(statement, (ast.Assign, ast.AnnAssign)) else ():
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def places(module: str, source: str, seed: int) -> list[Place]:
    """Every change of a module's text."""
    return [place for place, _, _ in _Walk(module, ast.parse(source), seed).found]


def mutant(place: Place, source: str, seed: int) -> ast.Module:
    """The module with this change."""
    tree = ast.parse(source)
    old, new = next(
        (old, new)
        for found, old, new in _Walk(place.module, tree, seed).found
        if found.key == place.key
    )

    class Swap(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return new if node is old else self.generic_visit(node)

    return ast.fix_missing_locations(Swap().visit(tree))
