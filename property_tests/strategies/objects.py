"""The objects of a model: what they are, and the statement that makes each.

A container holds only objects made before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from hypothesis import strategies as st

from property_tests.strategies import values
from property_tests.strategies.values import Shape, Value


@dataclass(frozen=True)
class Module:
    def source(self, me: str) -> str:
        return "tf.Module()"


@dataclass(frozen=True)
class Variable:
    """``shape`` is what later values may have, if that is wider than the value's."""

    value: Value
    shape: Optional[Shape] = None
    trainable: bool = True
    name: str = "Variable"

    def source(self, me: str) -> str:
        more = "" if self.shape is None else f", shape=tf.TensorShape({list(self.shape)})"
        more += "" if self.trainable else ", trainable=False"
        return f"tf.Variable({self.value.source()}, name={self.name!r}{more})"


@dataclass(frozen=True)
class Constant:
    value: Value

    def source(self, me: str) -> str:
        return self.value.source()


@dataclass(frozen=True)
class Container:
    """``kind``: list, tuple, pair (a namedtuple) or dict; ``keys`` are those of a dict."""

    kind: str
    children: tuple[int, ...]
    keys: tuple[str, ...] = ()

    def source(self, me: str) -> str:
        names = [f"n{child}" for child in self.children]
        if self.kind == "dict":
            return (
                "{" + ", ".join([f"{key!r}: {name}" for key, name in zip(self.keys, names)]) + "}"
            )
        if self.kind == "pair":
            return f"Pair({', '.join(names)})"
        return (
            f"[{', '.join(names)}]"
            if self.kind == "list"
            else f"({', '.join(names)},)"
            if names
            else "()"
        )

    def step(self, index: int) -> str:
        """The way to a child."""
        return f"[{self.keys[index]!r}]" if self.kind == "dict" else f"[{index}]"


@dataclass(frozen=True)
class Table:
    """``kind``: static, file, vocabulary (both with an asset), mutable or dense.

    ``keys`` are ints or strings.
    """

    kind: str
    keys: tuple[object, ...]

    @property
    def key_dtype(self) -> str:
        return (
            "string"
            if self.kind in ("file", "vocabulary") or (self.keys and isinstance(self.keys[0], str))
            else "int64"
        )

    def source(self, me: str) -> str:
        keys = f"tf.constant({list(self.keys)}, tf.{self.key_dtype})"
        numbers = f"tf.constant({[3 * index + 1 for index in range(len(self.keys))]}, tf.int64)"
        if self.kind == "static":
            return (
                f"tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer({keys},"
                f" {numbers}), -1)"
            )
        if self.kind in ("file", "vocabulary"):
            lines = "".join([f"{key}\n" for key in self.keys])
            made = f'lines(written(folder, "{me}.txt", {lines!r}))'
            table = (
                "StaticHashTable({}, -1)" if self.kind == "file" else "StaticVocabularyTable({}, 2)"
            )
            return "tf.lookup." + table.format(made)
        ends = {"int64": "-101, -102", "string": '"<e>", "<d>"'}[self.key_dtype].split(", ")
        dense = f", empty_key={ends[0]}, deleted_key={ends[1]}" if self.kind == "dense" else ""
        cls = "DenseHashTable" if self.kind == "dense" else "MutableHashTable"
        return (
            f"filled(tf.lookup.experimental.{cls}(tf.{self.key_dtype}, tf.int64, -1{dense}),"
            f" {keys}, {numbers})"
        )


@dataclass(frozen=True)
class Asset:
    text: str

    def source(self, me: str) -> str:
        return f'tf.saved_model.Asset(written(folder, "{me}.txt", {self.text!r}))'


@dataclass(frozen=True)
class Generator:
    seed: int

    def source(self, me: str) -> str:
        return f"tf.random.Generator.from_seed({self.seed})"


@dataclass(frozen=True)
class Optimizer:
    """One that has made a step with ``variables``, which are float32."""

    kind: str
    variables: tuple[int, ...]

    def source(self, me: str) -> str:
        # named: Keras counts those without a name, and their variables are called after them
        made = {
            "sgd": 'tf.keras.optimizers.SGD(0.5, name="sgd")',
            "momentum": 'tf.keras.optimizers.SGD(0.5, momentum=0.5, name="momentum")',
            "adam": 'tf.keras.optimizers.Adam(0.25, name="adam")',
        }[self.kind]
        pairs = ", ".join([f"(tf.ones_like(n{index}), n{index})" for index in self.variables])
        return f"stepped({made}, [{pairs}])"


KEYS = st.one_of(
    st.sampled_from(["a", "b", "0", "a/b", "a.b", ".S", "größe", "with space", "_x"]),
    st.text("ab./_-", min_size=1, max_size=3),
)
WORDS = st.lists(
    st.text("abc ", min_size=1, max_size=3).map(str.strip).filter(bool),
    unique=True,
    min_size=1,
    max_size=4,
).map(tuple)


@st.composite
def variables(draw: st.DrawFn) -> Variable:
    special = draw(st.integers(0, 3)) == 0
    dtypes = (*values.COUNTABLE, *values.QUANTISED) if special else ("float32", *values.COUNTABLE)
    value = draw(values.values(dtypes, special=special))
    shape = draw(st.none() | values.relaxed(value.shape))
    name = draw(st.sampled_from(["Variable", "w", "b", "scope/w"]))
    return Variable(value, None if shape == value.shape else shape, draw(st.booleans()), name)


@st.composite
def containers(draw: st.DrawFn, made: int, allowed: list[int]) -> Container:
    kind = draw(st.sampled_from(["list", "dict", "tuple", "pair"]))
    one = st.sampled_from(allowed)
    if kind == "pair":
        return Container(kind, (draw(one), draw(one)))
    children = tuple(draw(st.lists(one, max_size=3)))
    keys = st.lists(KEYS, unique=True, min_size=len(children), max_size=len(children)).map(tuple)
    return Container(kind, children, draw(keys) if kind == "dict" else ())


@st.composite
def tables(draw: st.DrawFn) -> Table:
    kind = draw(st.sampled_from(["static", "mutable", "dense", "file", "vocabulary"]))
    integers = st.lists(st.integers(-9, 9), unique=True, min_size=1, max_size=4).map(tuple)
    return Table(kind, draw(WORDS if kind in ("file", "vocabulary") else integers | WORDS))


assets = st.builds(
    Asset, st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=8)
)
generators = st.builds(Generator, st.integers(0, 99))
