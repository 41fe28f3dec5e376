"""TF 1 graphs: a program of `tf.compat.v1` that exports a session, and says what it answered and
how it differentiated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from hypothesis import strategies as st

from property_tests.strategies import values
from property_tests.strategies.prelude import END, PRELUDE

HEAD = (
    PRELUDE
    + '''

v1 = tf.compat.v1


if not hasattr(shared, "gradient"):
    shared.gradient = "PropertyTestsTripled"
    tf.RegisterGradient(shared.gradient)(lambda operation, upstream: upstream * 3.0)


def registered(value):
    """The identity, with a gradient that the process knows by name. A TF 1 file has only the name."""
    with v1.get_default_graph().gradient_override_map({"Identity": shared.gradient}):
        return tf.identity(value)


def export(folder):
    """Writes folder/model; gives {signature: [(feeds, answers, gradients)]}, each gradient by the name of its variable."""
    with tf.Graph().as_default(), v1.Session() as session:
        return program(folder, session)


def exported(folder, session, x, more, outputs, main_op, extra_tags):
    variables = [v for v in v1.trainable_variables() if v.dtype.base_dtype == tf.float32]
    total = tf.add_n([tf.reduce_sum(y) for y in outputs.values()])
    gradients = {v.op.name: g for v, g in zip(variables, tf.gradients(total, variables)) if g is not None}
    gradients = {name: tf.convert_to_tensor(g) for name, g in gradients.items()}
    info = v1.saved_model.utils.build_tensor_info
    inputs = {"x": info(x), **({"more": info(more)} if more is not None else {})}
    signature = v1.saved_model.build_signature_def(
        inputs, {key: info(y) for key, y in outputs.items()}, "tensorflow/serving/predict"
    )
    session.run([v1.global_variables_initializer(), v1.local_variables_initializer(), v1.tables_initializer()])
    builder = v1.saved_model.Builder(str(folder / "model"))
    files = v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS)
    keys = {"serving_default": signature}
    builder.add_meta_graph_and_variables(session, ["serve"], keys, files, main_op=main_op, strip_default_attrs=True)
    for tag in extra_tags:
        builder.add_meta_graph([tag, "serve"], {tag: signature})  # the graph has the assets and the main op by now
    builder.save()
    asked = []
    for feed in FEEDS:
        fed = {t: v for t, v in zip((x, more), feed) if t is not None}
        # The gradients first: answering may assign.
        differentiated = session.run(gradients, fed) if not ASSIGNS else {}
        asked.append((dict(zip(inputs, feed)), session.run(outputs, fed), differentiated))
    return asked


def program(folder, session):
'''  # noqa: E501
)


@dataclass(frozen=True)
class V1Variable:
    """``parts``: partitions along the first axis; ``resource``: else a reference variable."""

    items: tuple[float, ...]
    resource: bool
    trainable: bool
    parts: int
    local: bool

    def source(self, name: str) -> str:
        more = f", partitioner=v1.fixed_size_partitioner({self.parts})" if self.parts > 1 else ""
        more += ", collections=[v1.GraphKeys.LOCAL_VARIABLES]" if self.local else ""
        items = (
            list(self.items) if self.parts == 1 else self.items[0]
        )  # an initializer of partitions gives a part at a time
        return (
            f"{name} = v1.get_variable({name!r}, [{len(self.items)}], tf.float32, "
            f"initializer=v1.constant_initializer({items}), use_resource={self.resource}, "
            f"trainable={self.trainable and not self.local}{more})"
        )


@dataclass(frozen=True)
class Graph:
    """``steps``: statements that make another ``h``; ``new_flow``: While and If instead of the
    frames of TF 1.
    """

    variables: tuple[V1Variable, ...]
    steps: tuple[str, ...]
    table: Optional[str]
    new_flow: bool
    feeds: tuple[tuple[values.Value, ...], ...]
    extra_tags: tuple[str, ...]
    assigns: bool

    def script(self) -> str:
        flow = "enable" if self.new_flow else "disable"
        body = [f"v1.{flow}_control_flow_v2()", 'x = v1.placeholder(tf.float32, [None, 2], "x")']
        body += [
            'more = v1.placeholder(tf.string, [None], "more")' if self.table else "more = None"
        ]
        body += [item.source(f"w{index}") for index, item in enumerate(self.variables)]
        if self.table == "file":
            body += ['path = tf.constant(written(folder, "words.txt", "a\\nb\\n"))']
            body += [
                "v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, path)",
                "table = tf.lookup.StaticHashTable(lines(path), -1)",
            ]
        elif self.table == "memory":
            body += [
                'pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([3, 4],'
                " tf.int64))"
            ]
            body += ["table = tf.lookup.StaticHashTable(pairs, -1)"]
        body += ["h = x", *self.steps]
        if self.table:
            body.append("h = h + tf.cast(tf.reduce_sum(table.lookup(more)), tf.float32)")
        body += [
            'outputs = {"h": tf.identity(h), "sum": tf.reduce_sum(h)}',
            "main_op = tf.group(v1.local_variables_initializer(), v1.tables_initializer())",
        ]
        body.append(
            f"return exported(folder, session, x, more, outputs, main_op, {list(self.extra_tags)})"
        )
        lines = "".join([f"    {line}\n" for line in body])
        feeds = "".join(
            [f"    ({', '.join([_array(item) for item in feed])},),\n" for feed in self.feeds]
        )
        tags = list(self.extra_tags)
        return (
            f"{HEAD}{lines}\n\nASSIGNS = {self.assigns}\nTAGS = {tags}\nFEEDS ="
            f" [\n{feeds}]\n{END}\n"
        )


def _array(value: values.Value) -> str:
    cast = "object" if value.dtype == "string" else f'"{value.dtype}"'
    return f"np.array({list(value.items)}, {cast}).reshape({list(value.shape)})"


# {w}: one of the variables, as a number; {k}: a small number.
STEPS = (
    "h = h * {k}.0 + {w}",
    "h = h * {w}",
    "h = v1.while_loop(lambda i, y: i < {k}, lambda i, y: (i + 1, y * 2.0 + {w}), (0, h))[1]",
    (
        "h = v1.while_loop(lambda i, y: tf.logical_and(i < 3, tf.reduce_sum(y) < 50.0), lambda i,"
        " y: (i + 1, y + {w}), (0, h))[1]"
    ),
    "h = v1.cond(tf.reduce_sum(h) > {k}.0, lambda: h + {w}, lambda: h * 2.0)",
    "h = v1.cond(tf.reduce_sum(h) > {k}.0, lambda: tf.identity(h), lambda: h * {w})",
    (
        "h = v1.cond(tf.size(h) > {k}, lambda: v1.while_loop(lambda y: tf.size(y) < 0, lambda y: y,"
        " (h,)), lambda: h * {w})"
    ),
    (
        "h = v1.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, v1.cond(i > 0, lambda: y * 2.0,"
        " lambda: y + {w})), (0, h))[1]"
    ),
    (
        "h = h + v1.case([(tf.size(h) > 4, lambda: {w}), (tf.size(h) > {k}, lambda: 1.0)],"
        " default=lambda: 0.0)"
    ),
    "h = tf.map_fn(lambda row: row * {w}, h)",
    "h = registered(h) * {w}",
    "h = h + tf.reduce_sum(tf.TensorArray(tf.float32, 2).write(0, {w}).write(1, 1.0).stack())",
    "h = h + tf.reduce_sum(tf.gather({v}, [0, 0]))",
    "h = tf.scan(lambda total, row: total + tf.reduce_sum(row) * {w}, h, initializer=0.0)",
)
ASSIGNING = (
    (
        "with tf.control_dependencies([v1.assign_add({v}, tf.ones_like({v}))]):\n            h = h"
        " + tf.identity({w})"
    ),
    (
        "h = h + v1.cond(tf.size(h) > {k}, lambda: tf.reduce_sum(v1.assign_add({v},"
        " tf.ones_like({v}))), lambda: 0.0)"
    ),
)


@st.composite
def v1_variables(draw: st.DrawFn) -> V1Variable:
    items = tuple(
        draw(st.lists(st.integers(-3, 3).map(lambda number: number / 2), min_size=1, max_size=4))
    )
    local = draw(st.integers(0, 5)) == 0
    parts = 1 if local else draw(st.integers(1, min(2, len(items))))
    return V1Variable(
        items, draw(st.booleans()), draw(st.booleans()) or draw(st.booleans()), parts, local
    )


@st.composite
def graphs(draw: st.DrawFn, assigns: bool = False) -> Graph:
    """A graph of TF 1; with ``assigns`` its steps may change variables."""
    made = tuple(draw(st.lists(v1_variables(), min_size=1, max_size=3)))
    whole = [index for index, item in enumerate(made) if item.parts == 1]
    steps, new_flow = [], draw(st.booleans())
    for _ in range(draw(st.integers(1, 4))):
        changes = assigns and draw(st.booleans())
        text = draw(st.sampled_from(ASSIGNING if changes else STEPS))
        # An If of TF 2 cannot assign to a reference variable.
        able = (
            [index for index in whole if made[index].resource or not new_flow] if changes else whole
        )
        if "{v}" in text and not able:
            continue
        one = f"w{draw(st.sampled_from(able if '{v}' in text else range(len(made))))}"
        text = text.format(w=f"tf.reduce_sum({one})", v=one, k=draw(st.integers(0, 3)))
        # Where something is assigned, every step waits for the one before: else it is a race.
        steps.append(f"with tf.control_dependencies([h]):\n        {text}" if assigns else text)
    table = draw(st.sampled_from([None, None, "memory", "file"]))
    feeds = []
    for _ in range(draw(st.integers(1, 2))):
        feed = [draw(values.values(("float32",), shape=(None, 2)))]
        if table:
            words = tuple(draw(st.lists(st.sampled_from([b"a", b"b", b"q"]), max_size=2)))
            feed.append(values.Value("string", (len(words),), words))
        feeds.append(tuple(feed))
    tags = tuple(draw(st.lists(st.sampled_from(["gpu", "tpu"]), unique=True, max_size=2)))
    return Graph(made, tuple(steps), table, new_flow, tuple(feeds), tags, assigns)
