"""tf.functions: parameters, bodies, results, and the calls that trace them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from hypothesis import strategies as st

from property_tests.strategies import nests, steps, values
from property_tests.strategies.values import Shape


@dataclass(frozen=True)
class Tensor:
    """What a tensor argument may be; ``kind``: dense, ragged, sparse, scaled (an extension type) or
    variable.
    """

    kind: str
    dtype: str
    shape: Shape

    def source(self, name: str = "") -> str:
        if self.kind == "scaled":
            dense = Tensor("dense", self.dtype, self.shape)
            return (
                f"Scaled.Spec(values={dense.source()}, scale=tf.TensorSpec([], tf.float32),"
                ' label="a")'
            )
        cls = {"dense": "TensorSpec", "ragged": "RaggedTensorSpec", "sparse": "SparseTensorSpec"}[
            self.kind
        ]
        named = f", name={name!r}" if name and self.kind == "dense" else ""
        return f"tf.{cls}({list(self.shape)}, tf.{self.dtype}{named})"


@dataclass(frozen=True)
class Python:
    """A Python argument: source of the literals it is traced with."""

    literals: tuple[str, ...]


@dataclass(frozen=True)
class Parameter:
    """``spec``: a nest of Tensor and Python; ``default``: a Python value, as source; ``star``: "*"
    of a tuple, "**" of a dict.
    """

    name: str
    spec: Any
    default: Optional[str] = None
    keyword_only: bool = False
    star: str = ""


@dataclass(frozen=True)
class Function:
    """``owner`` is the module it is an attribute of; ``calls`` are the arguments of the traces, as
    source.

    ``concrete``: its first trace is an attribute, too; ``method``: it is one of the owner's class,
    which is made for it.
    """

    owner: int
    name: str
    parameters: tuple[Parameter, ...]
    signature: bool
    body: tuple[steps.Step, ...]
    result: Any
    calls: tuple[str, ...]
    concrete: bool = False
    method: bool = False

    def captured(self) -> set[int]:
        """The objects it uses."""
        return {step.node for step in self.body if step.node is not None}

    def takes_variables(self) -> bool:
        """Whether its callers make variables, which other functions cannot."""
        found = [leaf for item in self.parameters for _, leaf in nests.leaves(item.spec)]
        return any(isinstance(leaf, Tensor) and leaf.kind == "variable" for leaf in found)

    def called(self) -> set[int]:
        """The functions it calls."""
        return {step.function for step in self.body if step.function is not None}

    def source(self, me: str, calls: dict[int, str]) -> list[str]:
        """Its definition; ``calls``: the source of a call of every function made before."""
        decorator = "autograph=False"
        if self.signature:
            decorator += (
                f", input_signature=[{', '.join([_spec(item) for item in self.parameters])}]"
            )
        names, star = ["self"] * self.method, False
        for item in self.parameters:
            if item.keyword_only and not star:
                names, star = [*names, "*"], True
            names.append(
                item.star + item.name if item.default is None else f"{item.name}={item.default}"
            )
        lines = [
            f"@tf.function({decorator})",
            f"def {me}({', '.join(names)}):",
            *[f"    {line}" for line in self._start()],
        ]
        for step in self.body:
            lines += [f"    {line}" for line in step.source(calls)]
        return [*lines, f"    return {nests.source(self.result, str)}"]

    def attached(self, me: str) -> list[str]:
        """The statements that make it an attribute, or a method; ``me`` is the one that is called
        from then on.
        """
        owner = f"n{self.owner}"
        if not self.method:
            return [f"{owner}.{self.name} = {me}"]
        return [
            (
                f'{owner}.__class__ = type("With_{self.name}", (type({owner}),), {{"{self.name}":'
                f" {me}}})"
            ),
            f"{me} = {owner}.{self.name}",
        ]

    def _start(self) -> list[str]:
        found = [
            (item.name + path, leaf)
            for item in self.parameters
            for path, leaf in nests.leaves(item.spec)
        ]
        dense = [
            path
            for path, leaf in found
            if isinstance(leaf, Tensor) and leaf.kind == "dense" and leaf.dtype == "float32"
        ]
        start = dense[0] if dense else "tf.constant([1.0, -2.0])"
        rest = [path for path, leaf in found if path != start]
        return [f"h = {start}", *[f"h = h + weight({path})" for path in rest]]


def _spec(item: Parameter) -> str:
    """The source of a parameter's specification, with its name where that is one tensor."""
    if isinstance(item.spec, Tensor):
        return item.spec.source(item.name)
    return nests.source(item.spec, lambda leaf: leaf.source())


LITERALS: tuple[tuple[str, ...], ...] = (
    ("True", "False"),
    ("0", "1", "-3"),
    ("0.5", "-2.0"),
    ('"mode"', '""'),
    ("None", "True"),
    ("tf.float32", "tf.int64"),
)
# tf.saved_model.save leaves a trace with one of these out, without a word: PY-07. TensorFlow keeps
# one while the program does.
SHAPES = (tuple([f"SHAPES[{index}]" for index in range(4)]),)


@st.composite
def tensors(draw: st.DrawFn, signature: bool) -> Tensor:
    rare = ["ragged", "sparse", "scaled", *["variable"] * (not signature)]
    kind = draw(st.sampled_from([*["dense"] * 5, *rare]))
    if kind == "ragged":
        return Tensor(kind, draw(st.sampled_from(["float32", "int64", "string"])), (None, None))
    if kind == "sparse":
        # Traces that differ only in the shape of a sparse argument are one to tf.saved_model.save:
        # docs/evidence/property_findings.md
        rows = None if signature else draw(st.integers(0, 2))
        return Tensor(
            kind, draw(st.sampled_from(["float32", "int64"])), (rows, draw(st.integers(1, 3)))
        )
    dtype = draw(st.sampled_from(["float32", "float32", "float32", *values.COUNTABLE]))
    shape: Shape = draw(values.shapes())
    if signature:
        shape = draw(values.relaxed(tuple([size or 0 for size in shape])))
    return Tensor(kind, dtype, shape)


@st.composite
def arguments(draw: st.DrawFn, leaf: Any, literal: int) -> str:
    """The source of a value for a leaf of a parameter."""
    if isinstance(leaf, Python):
        return leaf.literals[literal % len(leaf.literals)]
    plain = values.values((leaf.dtype,), shape=leaf.shape)
    if leaf.kind == "dense":
        return draw(plain).source()
    if leaf.kind == "variable":
        return f"tf.Variable({draw(plain).source()})"
    if leaf.kind == "scaled":
        return f'Scaled({draw(plain).source()}, {draw(st.sampled_from([0.5, -2.0]))}, "a")'
    if leaf.kind == "ragged":
        rows = [
            draw(values.values((leaf.dtype,), shape=(None,)))
            for _ in range(draw(st.integers(0, 2)))
        ]
        lengths = [len(row.items) for row in rows]
        flat = values.Value(
            leaf.dtype, (sum(lengths),), tuple([item for row in rows for item in row.items])
        )
        return (
            f"tf.RaggedTensor.from_row_lengths({flat.source()}, tf.constant({lengths}, tf.int64))"
        )
    return f"tf.sparse.from_dense({draw(plain).source()})"


@st.composite
def calls(
    draw: st.DrawFn, parameters: tuple[Parameter, ...], literal: int, omit: bool = False
) -> str:
    """The arguments of a call; those with a default may be left out."""
    parts, keyword = [], False
    for item in parameters:
        if item.default is not None and omit:
            keyword = True
            continue
        keyword = keyword or item.keyword_only
        values_of = nests.map_leaves(item.spec, lambda leaf: draw(arguments(leaf, literal)))
        if item.star:
            members = [nests.source(member, str) for member in values_of.members]
            parts += (
                [f"k{index}={part}" for index, part in enumerate(members)]
                if item.star == "**"
                else members
            )
            continue
        given = nests.source(values_of, str)
        parts.append(f"{item.name}={given}" if keyword else given)
    return ", ".join(parts)


@st.composite
def parameters(
    draw: st.DrawFn, signature: bool, flat: bool, literals: tuple[tuple[str, ...], ...]
) -> tuple[Parameter, ...]:
    made, defaults = [], False
    for name in ("x", "y", "z")[: draw(st.integers(0, 3))]:
        leaf: Any = tensors(signature)
        if flat:
            made.append(Parameter(name, draw(leaf.filter(lambda spec: spec.kind == "dense"))))
            continue
        if not signature:
            leaf = leaf | st.sampled_from(literals).map(Python)
        spec = draw(nests.nests(leaf, 3))
        default = None
        if isinstance(spec, Python) and (defaults or draw(st.booleans())):
            default = spec.literals[0]
        elif defaults:
            continue
        defaults = defaults or default is not None
        made.append(Parameter(name, spec, default, keyword_only=defaults and draw(st.booleans())))
    # Once keyword-only, the rest is.
    found = False
    for index, item in enumerate(made):
        found = found or item.keyword_only
        made[index] = Parameter(item.name, item.spec, item.default, found)
    if signature or defaults:
        return tuple(made)
    for name, star, kind in (("rest", "*", nests.TUPLE), ("more", "**", nests.DICT)):
        if draw(st.integers(0, 3)) == 0:
            members = draw(
                st.lists(nests.nests(tensors(False), 2), min_size=1, max_size=2).map(tuple)
            )
            made.append(Parameter(name, nests.Nest(kind, members), star=star))
    return tuple(made)


@st.composite
def results(draw: st.DrawFn, parameters: tuple[Parameter, ...], flat: bool) -> Any:
    """A nest of expressions of the body's value ``h`` and the tensors among the arguments."""
    found = [
        (item.name + path, leaf) for item in parameters for path, leaf in nests.leaves(item.spec)
    ]
    passed = [
        f"tf.identity({path})"
        for path, leaf in found
        if isinstance(leaf, Tensor) and (leaf.kind == "dense")
    ]
    whole = [path for path, leaf in found if isinstance(leaf, Tensor) and leaf.kind != "dense"]
    one = st.sampled_from(["h", "h", "h", "tf.reduce_sum(h)", "tf.shape(h)", *passed])
    if flat:
        # Different ones, so that one in place of another shows.
        members = st.lists(one, min_size=1, max_size=3, unique=True).map(tuple)
        several = st.lists(one, min_size=2, max_size=4, unique=True).map(tuple)
        return draw(one | st.builds(nests.Nest, st.just(nests.DICT), members | several))
    return draw(nests.nests(one | st.sampled_from(["None", "h", "h", *whole])))


@st.composite
def functions(
    draw: st.DrawFn,
    owner: int,
    name: str,
    material: steps.Material,
    servable: Optional[bool] = None,
    literals: tuple[tuple[str, ...], ...] = LITERALS,
) -> Function:
    """A function whose body may use the material; a servable one can be a signature."""
    signature = servable or draw(st.booleans())
    flat = servable or (signature and draw(st.integers(0, 2)) > 0)
    given = draw(parameters(signature, flat, literals))
    body = tuple(draw(st.lists(steps.steps(material), max_size=4)))
    count = 1 if signature else draw(st.integers(1, 3))
    made = [
        draw(calls(given, number, omit=number == 1 and draw(st.booleans())))
        for number in range(count)
    ]
    concrete, method = draw(st.integers(0, 3)) == 0, draw(st.integers(0, 3)) == 0
    traced = tuple(dict.fromkeys(made))
    return Function(
        owner, name, given, signature, body, draw(results(given, flat)), traced, concrete, method
    )


def can_be_signature(function: Function) -> bool:
    """Dense arguments by name, a tensor or a flat dict of tensors."""
    flat = all(
        isinstance(item.spec, Tensor) and item.spec.kind == "dense" for item in function.parameters
    )
    leaf = list(nests.leaves(function.result))
    one_level = not isinstance(function.result, nests.Nest) or (
        function.result.kind == nests.DICT
        and not any(isinstance(member, nests.Nest) for member in function.result.members)
    )
    return function.signature and flat and one_level and all(item != "None" for _, item in leaf)
