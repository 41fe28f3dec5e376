"""Steps of a function's body: each makes another float32 tensor ``h`` of ``h``, mostly of a
captured object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from hypothesis import strategies as st

# {n} is the object; {k} a small number. `weight` makes one float32 of anything.
PLAIN = {
    "scale": ["h = h * {k}.0"],
    "cond": ["h = tf.cond(tf.reduce_sum(h) > {k}.0, lambda: h + 1.0, lambda: -h)"],
    "while": ["h = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + {k}.0), (0, h))[1]"],
    "switch": [
        "h = tf.switch_case(tf.size(h) % 3, [lambda: h, lambda: h + {k}.0, lambda: h * 2.0])"
    ],
    "map": ["h = tf.map_fn(lambda e: e * {k}.0, tf.reshape(h, [-1]))"],
    "einsum": ['h = h + tf.einsum("i,i->", tf.reshape(h, [-1]), tf.ones([tf.size(h)]))'],
    "custom": ["h = tripled(h)"],
    "inner": ["inner = tf.function(lambda y: y - {k}.0, autograph=False)", "h = inner(h)"],
    "tape": [
        "with tf.GradientTape() as tape:",
        "    tape.watch(h)",
        "    squares = tripled(h * h)",
        "h = tape.gradient(squares, h)",
    ],
    "array": [
        "array = tf.TensorArray(tf.float32, size=2).write(0, tf.reduce_sum(h)).write(1, {k}.0)",
        "h = h + array.stack()[0]",
    ],
}
# What can be done with an object of a kind.
CAPTURES = {
    "Variable": ["h = h + weight({n})"],
    "Constant": ["h = h + weight({n})"],
    "Table.int64": ["h = h + weight({n}.lookup(tf.constant([{k}, 77], tf.int64)))"],
    "Table.string": ['h = h + weight({n}.lookup(tf.constant(["a", "q"])))'],
    "Asset": ["h = h + weight(tf.io.read_file({n}.asset_path))"],
    "Generator": ["h = h + weight({n}.uniform_full_int([2], dtype=tf.int64) % 7)"],
}
DEEP = {  # the same inside of control flow
    "cond": ["h = tf.cond(tf.size(h) > {k}, lambda: h * weight({n}), lambda: h)"],
    "while": [
        "h = tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y + weight({n})), (0, h))[1]"
    ],
    "inner": [
        "inner = tf.function(lambda y: tripled(y) * weight({n}), autograph=False)",
        "h = inner(h)",
    ],
    "argument": [
        "inner = tf.function(lambda y, part: tripled(y) * weight(part), autograph=False)",
        "h = inner(h, {n})",
    ],
}
# Steps through which a float variable {n} has a gradient.
DIFFERENTIATED = (
    ("h = tripled(h * weight({n}))",),
    ("h = h * weight({n}) + weight({n})",),
    ("h = tf.cond(tf.size(h) > {k}, lambda: tripled(h * weight({n})), lambda: h + weight({n}))",),
    (
        (
            "h = tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, tripled(y) * weight({n})),"
            " (0, h))[1]"
        ),
    ),
    ("inner = tf.function(lambda y: tripled(y + weight({n})), autograph=False)", "h = inner(h)"),
)
ASSIGNED = ["{n}.assign({n} + tf.ones_like({n}))", "h = h + weight({n})"]


@dataclass(frozen=True)
class Step:
    """``kind`` is a key of the tables above; ``node`` the captured object, ``function`` the one
    that is called.
    """

    kind: str
    text: tuple[str, ...]
    number: int = 0
    node: Optional[int] = None
    function: Optional[int] = None

    def source(self, calls: dict[int, str]) -> list[str]:
        if self.function is not None:
            return [f"h = h + weight({calls[self.function]})"]
        return [line.format(n=f"n{self.node}", k=self.number) for line in self.text]


@dataclass(frozen=True)
class Material:
    """What functions may use: (index, key of CAPTURES) of objects; those of variables that can be
    assigned; earlier functions.
    """

    captures: tuple[tuple[int, str], ...]
    assignable: tuple[int, ...]
    functions: tuple[int, ...]


@st.composite
def steps(draw: st.DrawFn, material: Material) -> Step:
    kinds = ["plain"] + ["capture", "capture"] * bool(material.captures)
    kinds += ["assign"] * bool(material.assignable) + ["call"] * bool(material.functions)
    kind, number = draw(st.sampled_from(kinds)), draw(st.integers(0, 3))
    if kind == "call":
        return Step(kind, (), function=draw(st.sampled_from(material.functions)))
    if kind == "assign":
        return Step(kind, tuple(ASSIGNED), number, draw(st.sampled_from(material.assignable)))
    if kind == "plain":
        name = draw(st.sampled_from(sorted(PLAIN)))
        return Step(name, tuple(PLAIN[name]), number)
    node, name = draw(st.sampled_from(material.captures))
    if name in ("Variable", "Constant") and draw(st.booleans()):
        deep = draw(st.sampled_from(sorted(DEEP)))
        return Step(f"{name} in {deep}", tuple(DEEP[deep]), number, node)
    return Step(name, tuple(CAPTURES[name]), number, node)


@st.composite
def differentiated(draw: st.DrawFn, node: int) -> Step:
    """A step through which a variable has a gradient."""
    return Step(
        "differentiated", draw(st.sampled_from(DIFFERENTIATED)), draw(st.integers(0, 3)), node
    )
