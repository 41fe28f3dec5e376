"""TensorFlow Transform: preprocessing analysed by Beam, as a graph and in serving signatures; and
tf.data in functions.
"""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from artifacts import FLOATS, KEY, Built, Exporter

exporter = Exporter(["tensorflow_transform", "apache_beam"])
SPEC = {
    "x": tf.io.FixedLenFeature([], tf.float32, 0.0),
    "n": tf.io.FixedLenFeature([], tf.int64, 0),
    "word": tf.io.FixedLenFeature([], tf.string, ""),
    "text": tf.io.FixedLenFeature([], tf.string, ""),
}
TEXTS = [b"a tree has a root", b"a leaf, a tree", b"the root"]
ROWS = [
    {
        "x": np.float32(i * i / 3),
        "n": np.int64(i % 5),
        "word": [b"tree", b"leaf", b"tree", b"root"][i % 4],
        "text": TEXTS[i % 3],
    }
    for i in range(12)
]


ANALYSES = tempfile.TemporaryDirectory()


def analysed(preprocess, work):
    """Return the output of TensorFlow Transform for a preprocessing function that saw ``ROWS``.

    Computed once, since Beam is slow.
    """
    made = Path(ANALYSES.name, preprocess.__qualname__)
    if not made.exists():
        known = {
            name: tf.io.FixedLenFeature([], part.dtype) for name, part in SPEC.items()
        }  # no defaults at the analysis
        with tft_beam.Context(temp_dir=str(work / "temporary")):
            function = (
                ROWS,
                tft.DatasetMetadata.from_feature_spec(known),
            ) | tft_beam.AnalyzeDataset(preprocess)
            function | tft_beam.WriteTransformFn(str(made))
    shutil.copytree(made, work / "analysed")
    return tft.TFTransformOutput(str(work / "analysed"))


def examples(*rows):
    """Serialised tf.train.Examples; what a row lacks is missing in them."""

    def feature(value):
        if isinstance(value, bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
        if isinstance(value, np.integer):
            return tf.train.Feature(int64_list=tf.train.Int64List(value=[int(value)]))
        return tf.train.Feature(float_list=tf.train.FloatList(value=[float(value)]))

    def example(row):
        made = {name: feature(value) for name, value in row.items()}
        return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()

    return np.array(list(map(example, rows)), dtype=object)


STRANGE = {"x": np.float32(-50), "n": np.int64(99), "word": b"unheard", "text": b""}
EXAMPLES = [{"examples": examples(*ROWS[:4], STRANGE, {})}, {"examples": examples(ROWS[5])}]


def dense(value):
    return tf.sparse.to_dense(value) if isinstance(value, tf.SparseTensor) else value


def serving(preprocess, work):
    """A module that parses examples and transforms them; its signature gives all transformed
    features.
    """
    module = tf.Module()
    module.layer = analysed(preprocess, work).transform_features_layer()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
    def serve(examples):
        found = module.layer(tf.io.parse_example(examples, SPEC))
        return {name: dense(value) for name, value in found.items()}

    module.serve = serve
    return Built(module, [(KEY, request) for request in EXAMPLES], serve, tolerance=FLOATS)


@exporter.export
def scaled(work):
    return serving(
        lambda inputs: {
            "z": tft.scale_to_z_score(inputs["x"]),
            "unit": tft.scale_to_0_1(inputs["x"]),
            "by_word": tft.scale_to_z_score_per_key(inputs["x"], inputs["word"]),
            "mean": inputs["x"] - tft.mean(inputs["x"]),
        },
        work,
    )


@exporter.export
def vocabulary(work):
    """The vocabulary is a file that the analysis wrote, an asset; unknown words go to two buckets
    behind it.
    """
    return serving(
        lambda inputs: {"id": tft.compute_and_apply_vocabulary(inputs["word"], num_oov_buckets=2)},
        work,
    )


@exporter.export
def buckets(work):
    return serving(
        lambda inputs: {
            "bucket": tft.bucketize(inputs["x"], 4),
            "by_word": tft.bucketize_per_key(inputs["x"], inputs["word"], 2),
            "hashed": tft.hash_strings(inputs["word"], 7),
        },
        work,
    )


@exporter.export
def bag_of_words(work):
    """n-grams, their vocabulary, and tf-idf weights: sparse inside, dense in the signature."""

    def preprocess(inputs):
        grams = tft.ngrams(tf.compat.v1.string_split(inputs["text"]), (1, 2), " ")
        ids = tft.compute_and_apply_vocabulary(grams, num_oov_buckets=1)
        words, weights = tft.tfidf(ids, 20)
        return {"words": words, "weights": weights}

    return serving(preprocess, work)


@exporter.export
def principal_components(work):
    def preprocess(inputs):
        columns = tf.stack([inputs["x"], tf.cast(inputs["n"], tf.float32)], axis=1)
        return {
            "components": tf.abs(columns @ tft.pca(columns, 2, tf.float32)),
            "covariance": columns @ tft.covariance(columns, tf.float32),
        }

    return serving(preprocess, work)


@exporter.export
def graph_as_written(work):
    """The SavedModel that the analysis itself wrote, with its `serving_default`."""
    output = analysed(
        lambda inputs: {
            "z": tft.scale_to_z_score(inputs["x"]),
            "id": tft.compute_and_apply_vocabulary(inputs["word"]),
        },
        work,
    )
    layer = output.transform_features_layer()
    given = {
        "x": np.float32([1, -7]),
        "n": np.int64([0, 1]),
        "word": np.array([b"tree", b"?"], object),
        "text": np.array([b"", b"a"], object),
    }

    def save(root, path):
        shutil.copytree(output.transform_savedmodel_dir, path)

    numbered = dict(
        zip(("inputs", "inputs_1", "inputs_2", "inputs_3"), sorted(given))
    )  # so the signature calls its features

    def answer(**inputs):
        return layer({numbered[name]: value for name, value in inputs.items()})

    def request(size):
        return {name: given[feature][:size] for name, feature in numbered.items()}

    requests = [("serving_default", request(size)) for size in (2, 1)]
    return Built(layer, requests, answers={"serving_default": answer}, save=save, tolerance=FLOATS)


@exporter.export
def with_model(work):
    """The transform layer in front of a trained model, both in one export; raw features in a second
    signature.
    """
    import tf_keras as keras

    keras.utils.set_random_seed(7)
    output = analysed(
        lambda inputs: {
            "z": tft.scale_to_z_score(inputs["x"]),
            "id": tft.compute_and_apply_vocabulary(inputs["word"], num_oov_buckets=1),
        },
        work,
    )
    module = tf.Module()
    module.layer, module.table = output.transform_features_layer(), keras.layers.Embedding(4, 3)
    module.head = keras.layers.Dense(2, "softmax")

    def answer(features):
        found = module.layer(features)
        return {
            "p": module.head(tf.concat([module.table(found["id"]), found["z"][:, None]], axis=1))
        }

    specs = {name: tf.TensorSpec([None], part.dtype, name) for name, part in SPEC.items()}
    module.raw = tf.function(lambda **features: answer(features)).get_concrete_function(**specs)
    module.serve = tf.function(
        lambda examples: answer(tf.io.parse_example(examples, SPEC)),
        input_signature=[tf.TensorSpec([None], tf.string, "examples")],
    )
    raw = {}
    for name in SPEC:
        column = [row[name] for row in ROWS[:3]]
        raw[name] = np.array(column, dtype=object if name in ("word", "text") else None)
    requests = [
        *((KEY, request) for request in EXAMPLES),
        ("raw", raw),
        ("raw", {name: value[:1] for name, value in raw.items()}),
    ]
    return Built(module, requests, {KEY: module.serve, "raw": module.raw}, tolerance=FLOATS)


def module_of(function, *specs):
    """A module with one function, its signature."""
    module = tf.Module()
    module.serve = tf.function(function, input_signature=list(specs))
    return module


@exporter.export
def data_reduced(work):
    """A dataset of the input: filtered, in batches with a rest, reduced."""

    def serve(x):
        data = tf.data.Dataset.from_tensor_slices(x).filter(lambda v: v % 2 == 0).batch(2)
        return {
            "sum": data.reduce(
                tf.constant(0, tf.int64), lambda state, part: state * 10 + tf.reduce_sum(part)
            )
        }

    module = module_of(serve, tf.TensorSpec([None], tf.int64, "x"))
    requests = [(KEY, {"x": np.int64(values)}) for values in ([2, 3, 4, 8], [1], [])]
    return Built(module, requests, module.serve)


@exporter.export
def data_of_csv(work):
    """Lines of CSV, whose words are looked up in a table that the mapped function captures."""
    module = tf.Module()
    words = tf.lookup.KeyValueTensorInitializer(["tree", "leaf"], tf.constant([1, 2], tf.int64))
    module.table = tf.lookup.StaticHashTable(words, -1)

    def line(text):
        word, number = tf.io.decode_csv(text, [b"", 0])
        return module.table.lookup(word), number

    def serve(lines):
        count = tf.maximum(tf.size(lines, tf.int64), 1)
        ids, numbers = (
            tf.data.Dataset.from_tensor_slices(lines).map(line).batch(count).get_single_element()
        )
        return {"ids": ids, "numbers": numbers}

    module.serve = tf.function(serve, input_signature=[tf.TensorSpec([None], tf.string, "lines")])
    given = [[b"tree,3", b"unheard,-1", b",0"], [b"leaf,7"]]
    return Built(
        module, [(KEY, {"lines": np.array(lines, object)}) for lines in given], module.serve
    )


@exporter.export
def data_iterated(work):
    """AutoGraph's loop over a dataset of windows, with an early end."""

    def serve(x):
        best = tf.constant(-1, tf.int64)
        for pair in (
            tf.data.Dataset.from_tensor_slices(x)
            .window(2, shift=1)
            .flat_map(lambda part: part.batch(2))
        ):
            if tf.size(pair) < 2:
                break
            best = tf.maximum(best, tf.abs(pair[0] - pair[1]))
        return {"best": best}

    module = module_of(serve, tf.TensorSpec([None], tf.int64, "x"))
    return Built(
        module, [(KEY, {"x": np.int64(values)}) for values in ([1, 9, 4], [5])], module.serve
    )


@exporter.export
def data_interleaved(work):
    """Ranges interleaved, zipped with their position, and scanned."""

    def serve(n):
        data = tf.data.Dataset.range(n).interleave(
            lambda i: tf.data.Dataset.range(i + 1), cycle_length=2, block_length=1
        )
        sums = data.scan(
            tf.constant(0, tf.int64), lambda state, v: (state + v, state + v)
        ).enumerate()
        return {
            "code": sums.reduce(
                tf.constant(0, tf.int64), lambda code, pair: code * 7 % 1000003 + pair[0] * pair[1]
            )
        }

    module = module_of(serve, tf.TensorSpec([], tf.int64, "n"))
    return Built(module, [(KEY, {"n": np.int64(n)}) for n in (5, 1, 0)], module.serve)


if __name__ == "__main__":
    exporter.main()
