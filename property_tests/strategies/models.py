"""Whole models: objects, the graph they form, functions, signatures, and what to ask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from property_tests.strategies import functions as fn
from property_tests.strategies import nests, objects, steps, values
from property_tests.strategies.functions import Function
from property_tests.strategies.prelude import END, PRELUDE


@dataclass(frozen=True)
class Model:
    """``objects[0]`` is the root. ``attributes``: (module, name, object), set after all objects
    were made, so that they may form cycles.

    ``requests``: (function, arguments) beside the traced ones; ``signatures``: key -> function.
    """

    objects: tuple[Any, ...]
    attributes: tuple[tuple[int, str, int], ...]
    functions: tuple[Function, ...] = ()
    requests: tuple[tuple[int, str], ...] = ()
    signatures: tuple[tuple[str, int], ...] = ()

    def edges(self, node: int) -> Iterator[tuple[str, int]]:
        """(step, child) of an object."""
        made = self.objects[node]
        if isinstance(made, objects.Container):
            for index, child in enumerate(made.children):
                yield made.step(index), child
        for owner, name, child in self.attributes:
            if owner == node:
                yield f".{name}", child

    def paths(self) -> dict[int, str]:
        """Object -> the shortest way to it from the root, of all that are reachable."""
        found, queue = {0: ""}, [0]
        while queue:
            node = queue.pop(0)
            for step, child in self.edges(node):
                if child not in found:
                    found[child] = found[node] + step
                    queue.append(child)
        return found

    def variables(self) -> list[str]:
        """Paths of the variables."""
        paths = self.paths()
        return [
            paths[index]
            for index, item in enumerate(self.objects)
            if isinstance(item, objects.Variable)
        ]

    def all_requests(self) -> list[tuple[str, str]]:
        """(path of a function, arguments), the traced ones first."""
        paths = self.paths()
        way = [f"{paths[item.owner]}.{item.name}" for item in self.functions]
        traced = [
            (way[index], call) for index, item in enumerate(self.functions) for call in item.calls
        ]
        concrete = [
            (f"{way[index]}_concrete", item.calls[0])
            for index, item in enumerate(self.functions)
            if item.concrete
        ]
        return [*traced, *concrete, *[(way[index], call) for index, call in self.requests]]

    def script(self, more: tuple[str, ...] = (), end: str = "") -> str:
        """The program: `build(folder)` gives (root, signatures), `REQUESTS` what to ask: (path,
        arguments) as source, `VARIABLES` where variables are.

        ``more``: statements after the last one, about ``n0``, … and the map ``signatures``;
        ``end``: lines behind it all.
        """
        body = [f"n{node} = {item.source(f'n{node}')}" for node, item in enumerate(self.objects)]
        body += [f"n{owner}.{name} = n{child}" for owner, name, child in self.attributes]
        calls: dict[int, str] = {}
        for index, item in enumerate(self.functions):
            body += [*item.source(f"f{index}", calls), *item.attached(f"f{index}")]
            body += [f"f{index}({call})" for call in item.calls]
            if item.concrete:
                body.append(
                    f"n{item.owner}.{item.name}_concrete ="
                    f" f{index}.get_concrete_function({item.calls[0]})"
                )
            calls[index] = f"f{index}({item.calls[0]})"
        keys = ", ".join([f"{key!r}: f{index}" for key, index in self.signatures])
        body += [f"signatures = {{{keys}}}", *more, "return n0, signatures"]
        asked = "".join(
            [f"    ({path!r}, {arguments!r}),\n" for path, arguments in self.all_requests()]
        )
        indented = "".join([f"    {line}\n" for line in body])
        asked = f"REQUESTS = [\n{asked}]\nVARIABLES = {self.variables()}{end}\n"
        return f"{PRELUDE}\n\ndef build(folder):\n{indented}\n\n{asked}{END}\n"


ATTRIBUTES = ("a", "b", "c", "_private", "layers", "w")


def _tracked(item: Any) -> bool:
    """Is it something a list may hold? A tensor in a list is a leaf, which no SavedModel has."""
    return not isinstance(item, objects.Constant)


@st.composite
def object_graphs(draw: st.DrawFn, max_objects: int = 7) -> Model:
    """Objects and the graph they form: shared children, aliases, cycles.

    Every object can be reached.
    """
    made: list[Any] = [objects.Module()]
    plain = st.one_of(
        *[objects.variables()] * 5, *[values.values().map(objects.Constant)] * 2,
        *[objects.tables()] * 2, objects.assets, objects.generators, st.just(objects.Module()),
        st.just(objects.Module()),
    )  # fmt: skip
    for _ in range(draw(st.integers(0, max_objects))):
        allowed = [index for index, item in enumerate(made) if index and _tracked(item)]
        holds = draw(st.integers(0, 3)) == 0
        floats = [i for i, item in enumerate(made) if _is_float(item)]
        if holds and floats and draw(st.integers(0, 2)) == 0:
            kinds = st.sampled_from(
                ["sgd", "momentum", "adam"]
            )  # not of compat.v1, which shipped TensorFlow cannot load: V1-18
            chosen = draw(st.lists(st.sampled_from(floats), unique=True, min_size=1, max_size=2))
            made.append(objects.Optimizer(draw(kinds), tuple(chosen)))
        else:
            made.append(
                draw(objects.containers(len(made), allowed) if holds and allowed else plain)
            )
    modules = [index for index, item in enumerate(made) if isinstance(item, objects.Module)]
    attributes: dict[tuple[int, str], int] = {}
    for module in modules:
        for name in draw(st.lists(st.sampled_from(ATTRIBUTES), unique=True, max_size=3)):
            attributes[module, name] = draw(st.integers(0, len(made) - 1))
    model = Model(tuple(made), tuple([(*key, child) for key, child in attributes.items()]))
    return _all_reachable(model)


def _all_reachable(model: Model) -> Model:
    """Attaches to the root what nothing leads to."""
    for node in range(len(model.objects)):
        if node not in model.paths():
            model = Model(model.objects, (*model.attributes, (0, f"extra_{node}", node)))
    return model


def _is_float(item: Any) -> bool:
    return (
        isinstance(item, objects.Variable)
        and item.value.dtype == "float32"
        and item.trainable
        and item.shape is None
    )


@st.composite
def differentiable(draw: st.DrawFn) -> Model:
    """A model whose last function answers with something that a trainable variable has a gradient
    through.
    """
    model = draw(models(max_objects=4, max_functions=2))
    node, last = len(model.objects), model.functions[-1]
    number = values.Value("float32", (2,), (draw(st.integers(-3, 3)) / 2, 1.5))
    body = tuple(draw(st.lists(steps.differentiated(node), min_size=1, max_size=2)))
    result = nests.Nest(nests.TUPLE, ("h", last.result))
    function = replace(last, body=(*last.body, *body), result=result)
    return replace(
        model,
        objects=(*model.objects, objects.Variable(number)),
        attributes=(*model.attributes, (0, "differentiated", node)),
        functions=(*model.functions[:-1], function),
        signatures=(),
    )


def _material(model: Model, functions: list[Function]) -> steps.Material:
    captures, assignable = [], []
    callable_ = tuple(
        [index for index, function in enumerate(functions) if not function.takes_variables()]
    )
    for index, item in enumerate(model.objects):
        kind = type(item).__name__
        if isinstance(item, (objects.Variable, objects.Constant)):
            if item.value.dtype in values.QUANTISED:
                continue
            captures.append((index, kind))
            if isinstance(item, objects.Variable) and item.value.dtype in (
                "float32",
                "float64",
                "int32",
                "int64",
            ):
                assignable.append(index)
        elif isinstance(item, objects.Table):
            captures.append((index, f"Table.{item.key_dtype}"))
        elif isinstance(item, (objects.Asset, objects.Generator)):
            captures.append((index, kind))
    return steps.Material(tuple(captures), tuple(assignable), callable_)


@st.composite
def models(
    draw: st.DrawFn,
    max_objects: int = 6,
    max_functions: int = 3,
    signatures: bool = False,
    literals: tuple[tuple[str, ...], ...] = fn.LITERALS,
) -> Model:
    """An object graph with functions, and with signatures where functions can be; with
    ``signatures`` always with one.

    ``literals``: what Python arguments may be.
    """
    graph = draw(object_graphs(max_objects))
    modules = [
        index for index, item in enumerate(graph.objects) if isinstance(item, objects.Module)
    ]
    made: list[Function] = []
    for index in range(draw(st.integers(1, max_functions))):
        flat = True if signatures and index == 0 else None
        owner = draw(st.sampled_from(modules))
        made.append(draw(fn.functions(owner, f"f{index}", _material(graph, made), flat, literals)))
    requests = []
    for index, item in enumerate(made):
        if draw(st.booleans()) and item.signature:
            requests.append((index, draw(fn.calls(item.parameters, 0))))
    able = [index for index, item in enumerate(made) if fn.can_be_signature(item)]
    names = st.sampled_from(["serving_default", "other", "train-1"])
    keys = (
        st.lists(names, unique=True, min_size=int(signatures), max_size=2) if able else st.just([])
    )
    chosen = [(key, draw(st.sampled_from(able))) for key in draw(keys)]
    return Model(graph.objects, _kept(graph, made), tuple(made), tuple(requests), tuple(chosen))


def _kept(model: Model, functions: list[Function]) -> tuple[tuple[int, str, int], ...]:
    """The attributes without tensors that no function uses: these would be lost, so a strict save
    refuses them (PRIM-06).
    """
    used = {node for function in functions for node in function.captured()}
    return tuple(
        [item for item in model.attributes if _tracked(model.objects[item[2]]) or item[2] in used]
    )
