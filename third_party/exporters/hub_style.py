"""TF Hub: modules as its reusable SavedModels have them, hub.KerasLayer, and the TF1 format of
hub.Module.
"""

import itertools

import numpy as np
import tensorflow as tf
import tensorflow_hub as hub
from artifacts import FLOATS, KEY, Built, Exporter, floats, strings

v1 = tf.compat.v1


def seed():
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(7)


exporter = Exporter(["tensorflow_hub"], seed)
WORDS = [b"tree", b"leaf", b"root"]


def words_in(path):
    """Write the words into a file, one a line; returns its path."""
    path.write_bytes(b"\n".join(WORDS) + b"\n")
    return str(path)


def numbered(path):
    """The lines of a file as keys, their numbers as values."""
    index = tf.lookup.TextFileIndex
    return tf.lookup.TextFileInitializer(
        path, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )


class Head(tf.Module):
    """The reusable interface: `__call__` with a training flag, variables, trainable_variables,
    regularization_losses.
    """

    def __init__(self, inputs, outputs):
        super().__init__()
        self.w = tf.Variable(floats(inputs, outputs), name="w")
        self.mean = tf.Variable(tf.zeros(inputs), trainable=False, name="mean")
        self.variables_ = [self.w, self.mean]
        self.regularization_losses = [self.regularize]

    @tf.function(input_signature=[])
    def regularize(self):
        return 0.01 * tf.reduce_sum(self.w**2)

    @tf.function
    def __call__(self, x, training=False):
        if training:
            self.mean.assign(0.5 * self.mean + 0.5 * tf.reduce_mean(x, axis=0))
        return tf.nn.relu((x - self.mean) @ self.w)

    def trace(self, *shape):
        """The module with both values of the flag traced."""
        for training in (False, True):
            self.__call__.get_concrete_function(tf.TensorSpec([None, *shape], tf.float32), training)
        return self


def calls(*inputs, path="__call__"):
    pairs = itertools.product((False, True), inputs)
    return [(path, (x,), {"training": training}) for training, x in pairs]


@exporter.export
def reusable(work):
    root = Head(3, 2).trace(3)
    requests = [*calls(floats(4, 3), floats(1, 3)), ("regularization_losses.0", (), {})]
    return Built(root, requests, tolerance=FLOATS, stateful=True)


@exporter.export
def text_embedding(work):
    """As nnlm: sentences to vectors, with a vocabulary file (an asset), and hashed buckets for
    other words.
    """

    class Embedding(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = tf.lookup.StaticVocabularyTable(
                numbered(words_in(work / "tokens.txt")), num_oov_buckets=2
            )
            self.vectors = tf.Variable(floats(5, 4), name="embeddings")

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "sentences")])
        def __call__(self, sentences):
            words = tf.strings.split(sentences)
            ids = self.table.lookup(words.flat_values)
            rows = tf.gather(self.vectors, ids)
            total = tf.math.unsorted_segment_sum(rows, words.value_rowids(), words.nrows())
            return (
                total / tf.sqrt(tf.maximum(tf.cast(words.row_lengths(), tf.float32), 1.0))[:, None]
            )

    root = Embedding()
    given = [strings(b"tree leaf", b"", b"an unheard word", b"root"), strings(b"leaf"), strings()]
    requests = [(KEY, {"sentences": x}) for x in given] + [("__call__", (given[0],), {})]
    return Built(root, requests, root.__call__, tolerance=FLOATS)


@exporter.export
def image_features(work):
    """As a feature vector: hyperparameters that are defaults of the call, batch normalisation by
    the flag.
    """

    class Features(tf.Module):
        def __init__(self):
            super().__init__()
            self.kernel = tf.Variable(floats(3, 3, 3, 4) * 0.1)
            self.scale = tf.Variable(tf.ones(4))
            self.moment = tf.Variable(tf.zeros(4), trainable=False)

        @tf.function
        def __call__(self, images, training=False, batch_norm_momentum=0.5):
            y = tf.nn.conv2d(images, self.kernel, 2, "SAME")
            if training:
                self.moment.assign(
                    batch_norm_momentum * self.moment
                    + (1 - batch_norm_momentum) * tf.reduce_mean(y, [0, 1, 2])
                )
            return tf.reduce_mean(tf.nn.relu((y - self.moment) * self.scale), [1, 2])

    root = Features()
    spec = tf.TensorSpec([None, 8, 8, 3], tf.float32)
    momentum = tf.TensorSpec([], tf.float32, "momentum")
    for training in (False, True):
        root.__call__.get_concrete_function(spec, training)
        root.__call__.get_concrete_function(spec, training=training, batch_norm_momentum=momentum)
    x = floats(2, 8, 8, 3)
    more = ("__call__", (x,), {"training": True, "batch_norm_momentum": np.float32(0.9)})
    return Built(root, [*calls(x, x[:1]), more], tolerance=FLOATS, stateful=True)


@exporter.export
def several_outputs(work):
    """`__call__` with a dict of results and a list of intermediate ones, as encoders have it."""

    class Encoder(tf.Module):
        def __init__(self):
            super().__init__()
            self.layers = [Head(4, 4), Head(4, 4)]

        @tf.function
        def __call__(self, inputs, training=False):
            outputs = [inputs["x"] * tf.cast(inputs["mask"], tf.float32)[:, None]]
            for layer in self.layers:
                outputs.append(layer(outputs[-1], training))
            return {"pooled": outputs[-1], "encoder_outputs": outputs[1:]}

    root = Encoder()
    spec = {
        "x": tf.TensorSpec([None, 4], tf.float32, "x"),
        "mask": tf.TensorSpec([None], tf.int32, "mask"),
    }
    for training in (False, True):
        root.__call__.get_concrete_function(spec, training)
    inputs = [{"x": floats(size, 4), "mask": np.int32([1, 0, 1][:size])} for size in (3, 1)]
    return Built(root, calls(*inputs), tolerance=FLOATS, stateful=True)


@exporter.export
def fine_tuned(work):
    """Loaded by hub.KerasLayer, trained together with a new head, and exported again by
    tf.saved_model.save.
    """
    tf.saved_model.save(Head(3, 4).trace(3), str(work / "module"))
    layer = hub.KerasLayer(str(work / "module"), trainable=True)
    model = tf.keras.Sequential(
        [tf.keras.Input([3], name="x"), layer, tf.keras.layers.Dense(2, name="head")]
    )
    model.compile("sgd", "mse")
    model.fit(floats(8, 3), floats(8, 2), batch_size=4, epochs=2, shuffle=False, verbose=0)
    requests = [(KEY, {"x": floats(size, 3)}) for size in (3, 1, 0)]
    return Built(
        model,
        requests,
        answers={KEY: lambda x: {"head": model(x, training=False)}},
        tolerance=FLOATS,
    )


@exporter.export
def reexported(work):
    """hub.load, an assignment, and the same object saved again: a module of the second
    generation.
    """
    tf.saved_model.save(Head(3, 2).trace(3), str(work / "module"))
    root = hub.load(str(work / "module"))
    root.w.assign(root.w * 2)
    return Built(
        root,
        [*calls(floats(4, 3), floats(1, 3)), ("regularization_losses.0", (), {})],
        tolerance=FLOATS,
        stateful=True,
    )


@exporter.export
def layer_of_signature(work):
    """A hub.KerasLayer of one signature of a module, inside another module with a function of its
    own.
    """

    class Two(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(floats(3, 2))

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, "x")])
        def project(self, x):
            return {"y": x @ self.w, "norm": tf.norm(x, axis=1)}

    inner = Two()
    tf.saved_model.save(inner, str(work / "module"), signatures={"project": inner.project})
    root = tf.Module()
    root.layer = hub.KerasLayer(
        str(work / "module"), signature="project", signature_outputs_as_dict=True
    )

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, "x")])
    def serve(x):
        found = root.layer(x)
        return {"direction": found["y"] / found["norm"][:, None], "norm": found["norm"]}

    root.serve = serve
    return Built(root, [(KEY, {"x": floats(size, 3)}) for size in (3, 1)], serve, tolerance=FLOATS)


@exporter.export
def masked_language(work):
    """Named functions beside the call, and the vocabulary as an asset that the user is to read:
    `module.vocab_file`.
    """
    path = words_in(work / "vocab.txt")
    root = tf.Module()
    root.vocab_file, root.do_lower_case = (
        tf.saved_model.Asset(path),
        tf.Variable(True, trainable=False),
    )
    root.core, root.mlm = Head(4, 4).trace(4), tf.Module()
    spec = tf.TensorSpec([None, 4], tf.float32, "x")
    root.mlm.predict = tf.function(lambda x: tf.nn.softmax(root.core(x)), input_signature=[spec])
    root.tokens = tf.function(
        lambda: tf.strings.split(tf.io.read_file(root.vocab_file), "\n"), input_signature=[]
    )
    requests = [
        ("mlm.predict", (floats(2, 4),), {}),
        ("mlm.predict", (floats(1, 4),), {}),
        ("tokens", (), {}),
    ]
    return Built(root, requests, tolerance=FLOATS)


def hub_module(make, requests, tags_and_args=None):
    """``make`` as the function of a TF1 hub.Module; the answers are those of the module in a
    session, before the export.
    """
    spec = hub.create_module_spec(make, tags_and_args=tags_and_args)

    def fresh(graph, session):
        """The module in a session of its own; its variables are the same every time."""
        with graph.as_default():
            v1.set_random_seed(7)
            module = hub.Module(spec, trainable=True)
            session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        return module

    def answer(key):
        def run(**inputs):
            with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
                module = fresh(graph, session)
                given = {name: value.numpy() for name, value in inputs.items()}
                return session.run(
                    module(given, signature=None if key == "default" else key, as_dict=True)
                )

        return run

    def save(root, path):
        with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
            fresh(graph, session).export(path, session)

    keys = {key for key, _ in requests}
    return Built(
        spec,
        requests,
        answers={key: answer(key) for key in keys},
        save=save,
        tolerance=FLOATS,
        tags=(),
    )


@exporter.export
def v1_module(work):
    """The TF1 format of TF Hub; its MetaGraph has no tags."""

    def make():
        x = v1.placeholder(tf.float32, [None, 3], "x")
        w = v1.get_variable("w", initializer=np.float32([[1, 2], [3, 4], [5, 6]]))
        v1.add_to_collection(v1.GraphKeys.REGULARIZATION_LOSSES, 0.01 * tf.reduce_sum(w**2))
        hub.add_signature(inputs={"x": x}, outputs={"default": x @ w})
        hub.add_signature("twice", inputs={"x": x}, outputs={"y": 2.0 * (x @ w), "x": x})

    pairs = itertools.product(("default", "twice"), (3, 1))
    return hub_module(make, [(key, {"x": floats(size, 3)}) for key, size in pairs])


@exporter.export
def v1_module_train(work):
    """The TF1 format with a second MetaGraph, of the tag `train`."""

    def make(training):
        x = v1.placeholder(tf.float32, [None, 3], "x")
        w = v1.get_variable("w", initializer=np.float32([[1, 2], [3, 4], [5, 6]]))
        y = x @ w
        hub.add_signature(
            inputs={"x": x}, outputs={"default": v1.nn.dropout(y, rate=0.5) if training else y}
        )

    return hub_module(
        make,
        [("default", {"x": floats(size, 3)}) for size in (3, 1)],
        [(set(), {"training": False}), ({"train"}, {"training": True})],
    )


@exporter.export
def v1_module_table(work):
    """The TF1 format with a vocabulary file and an embedding of what it finds."""
    path = words_in(work / "tokens.txt")

    def make():
        words = v1.placeholder(tf.string, [None], "words")
        table = tf.lookup.StaticHashTable(numbered(path), 3)
        vectors = v1.get_variable(
            "vectors", initializer=np.arange(8, dtype=np.float32).reshape(4, 2)
        )
        hub.add_signature(
            inputs={"words": words}, outputs={"default": tf.gather(vectors, table.lookup(words))}
        )

    return hub_module(
        make,
        [
            ("default", {"words": strings(*words)})
            for words in ((b"leaf", b"unheard", b""), (b"root",))
        ],
    )


if __name__ == "__main__":
    exporter.main()
