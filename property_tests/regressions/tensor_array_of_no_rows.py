"""The shape that a TensorArray is gathered with was dropped: a map over no rows had no answer."""

import collections

import numpy as np
import tensorflow as tf

Pair = collections.namedtuple("Pair", ["first", "second"])


def weight(value):
    """One float32 of any value: the sum of a tensor, the length of strings, something of a Python value."""
    total = tf.constant(0.0)
    for part in tf.nest.flatten(value, expand_composites=True):
        if not tf.is_tensor(part) and not isinstance(part, tf.Variable):
            total += float(sum(map(ord, repr(part))) % 5)
            continue
        part = tf.convert_to_tensor(part)
        part = (
            tf.strings.length(part)
            if part.dtype == tf.string
            else tf.math.real(part)
            if part.dtype.is_complex
            else part
        )
        total += tf.reduce_sum(tf.cast(part, tf.float32))
    return total


@tf.custom_gradient
def tripled(value):
    """The identity, with a gradient of its own."""
    return tf.identity(value), lambda upstream: upstream * 3.0


def written(folder, name, text):
    """The path of a file with a text."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(text.encode())
    return str(folder / name)


def lines(path):
    index = tf.lookup.TextFileIndex
    return tf.lookup.TextFileInitializer(
        path, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )


def filled(table, keys, numbers):
    table.insert(keys, numbers)
    return table


def stepped(optimizer, pairs):
    if pairs:
        optimizer.apply_gradients(pairs)
    return optimizer


v1 = tf.compat.v1


def export(folder):
    """Writes folder/model; gives {signature: [(feeds, answers, gradients)]}, each gradient by the name of its variable."""
    with tf.Graph().as_default(), v1.Session() as session:
        return program(folder, session)


def exported(folder, session, x, more, outputs, main_op, extra_tags):
    variables = [v for v in v1.trainable_variables() if v.dtype.base_dtype == tf.float32]
    total = tf.add_n([tf.reduce_sum(y) for y in outputs.values()])
    gradients = {
        v.op.name: g for v, g in zip(variables, tf.gradients(total, variables)) if g is not None
    }
    gradients = {name: tf.convert_to_tensor(g) for name, g in gradients.items()}
    info = v1.saved_model.utils.build_tensor_info
    inputs = {"x": info(x), **({"more": info(more)} if more is not None else {})}
    signature = v1.saved_model.build_signature_def(
        inputs, {key: info(y) for key, y in outputs.items()}, "tensorflow/serving/predict"
    )
    session.run(
        [
            v1.global_variables_initializer(),
            v1.local_variables_initializer(),
            v1.tables_initializer(),
        ]
    )
    builder = v1.saved_model.Builder(str(folder / "model"))
    files = v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS)
    keys = {"serving_default": signature}
    builder.add_meta_graph_and_variables(
        session, ["serve"], keys, files, main_op=main_op, strip_default_attrs=True
    )
    for tag in extra_tags:
        builder.add_meta_graph(
            [tag, "serve"], {tag: signature}
        )  # the graph has the assets and the main op by now
    builder.save()
    asked = []
    for feed in FEEDS:
        fed = {t: v for t, v in zip((x, more), feed) if t is not None}
        # The gradients first: answering may assign.
        differentiated = session.run(gradients, fed) if not ASSIGNS else {}
        asked.append((dict(zip(inputs, feed)), session.run(outputs, fed), differentiated))
    return asked


def program(folder, session):
    v1.disable_control_flow_v2()
    x = v1.placeholder(tf.float32, [None, 2], "x")
    more = None
    w0 = v1.get_variable(
        "w0",
        [2],
        tf.float32,
        initializer=v1.constant_initializer([0.5, 1.0]),
        use_resource=False,
        trainable=True,
    )
    h = x
    h = tf.map_fn(lambda row: row * tf.reduce_sum(w0), h)
    outputs = {"h": tf.identity(h), "sum": tf.reduce_sum(h)}
    main_op = tf.group(v1.local_variables_initializer(), v1.tables_initializer())
    return exported(folder, session, x, more, outputs, main_op, [])


ASSIGNS = False
TAGS = []
FEEDS = [
    (np.array([], "float32").reshape([0, 2]),),
    (np.array([1.0, 2.0, 3.0, 4.0], "float32").reshape([2, 2]),),
]
# The end of the script.

PROPERTY = "test_a_model_of_tf_1_answers_as_its_session_with_gradients_where_it_had_them"
ARGUMENTS = {}
