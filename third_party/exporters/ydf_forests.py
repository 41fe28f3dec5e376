"""ydf: decision forests, exported by `to_tensorflow_saved_model`.

The answers are those of ydf's own engine, not of TensorFlow.

The exports hold ops of the package ydf_tf, which a reader has to load first.
"""

import numpy as np
import tensorflow as tf
import ydf
from artifacts import KEY, Built, Exporter

SUMS = (1e-5, 1e-6, "Two engines of ydf add the leaves of the trees in another order.")
COLOURS = np.array(["red", "green", "blue"])
exporter = Exporter(["ydf", "ydf_tf"], lambda: ydf.verbose(0))


def rows(count, *names, seed=7):
    """``count`` examples with the features ``names``, and the labels that depend on all
    features.
    """
    rng = np.random.default_rng(seed)
    x, y = (
        rng.standard_normal(count).astype(np.float32),
        rng.standard_normal(count).astype(np.float32),
    )
    colour, flag = rng.integers(0, 3, count), rng.integers(0, 2, count).astype(bool)
    number = rng.integers(-5, 6, count)
    score = x + 0.5 * y * flag + (colour == 1) + 0.1 * number
    features = {"x": x, "y": y, "colour": COLOURS[colour], "flag": flag, "number": number}
    labels = {
        "value": score,
        "good": np.where(score > 0, "yes", "no"),
        "kind": COLOURS[(score > -0.5).astype(int) + (score > 0.5)],
    }
    return {name: features[name] for name in names}, labels


def trained(learner, label, *names, count=200, more=None, **options):
    """A small forest over the features ``names``, the same every time; ``more``: further columns of
    the training set.
    """
    features, labels = rows(count, *names)
    size = {} if learner is ydf.CartLearner else {"num_trees": 7}
    made = learner(label=label, random_seed=7, num_threads=1, **size, **options)
    return made.train({**features, label: labels[label], **(more or {})}, verbose=0)


def plain(value):
    """A feature as ydf takes it."""
    if isinstance(value, tf.RaggedTensor):
        return [list(map(bytes.decode, row)) for row in value.to_list()]
    array = value.numpy()
    return np.array([word.decode() for word in array]) if array.dtype == object else array


def forest(
    model,
    *requests,
    outputs=lambda found: {"output": found},
    features=lambda inputs: inputs,
    **options,
):
    """``model`` with the options of its export; ``features``: what the inputs of the signature mean
    to ydf itself.
    """

    def answer(**inputs):
        return outputs(
            model.predict({name: plain(value) for name, value in features(inputs).items()})
        )

    def save(root, path):
        model.to_tensorflow_saved_model(path, mode="tf", **options)

    def with_objects(inputs):
        return {
            name: value.astype(object) if value.dtype.kind == "U" else value
            for name, value in inputs.items()
        }

    asked = [(KEY, with_objects(inputs)) for inputs in requests]
    return Built(model, asked, answers={KEY: answer}, save=save, tolerance=SUMS)


def asked(*names):
    """Requests of four examples and of one."""
    features, _ = rows(4, *names, seed=8)
    return features, {name: value[:1] for name, value in features.items()}


@exporter.export
def random_forest_binary(work):
    return forest(trained(ydf.RandomForestLearner, "good", "x", "y"), *asked("x", "y"))


@exporter.export
def random_forest_classes(work):
    return forest(
        trained(ydf.RandomForestLearner, "kind", "x", "y", "colour"), *asked("x", "y", "colour")
    )


@exporter.export
def random_forest_regression(work):
    task = ydf.Task.REGRESSION
    return forest(trained(ydf.RandomForestLearner, "value", "x", "y", task=task), *asked("x", "y"))


@exporter.export
def boosted_binary(work):
    return forest(trained(ydf.GradientBoostedTreesLearner, "good", "x", "y"), *asked("x", "y"))


@exporter.export
def boosted_classes(work):
    return forest(trained(ydf.GradientBoostedTreesLearner, "kind", "x", "y"), *asked("x", "y"))


@exporter.export
def boosted_regression(work):
    task = ydf.Task.REGRESSION
    return forest(
        trained(ydf.GradientBoostedTreesLearner, "value", "x", "number", task=task),
        *asked("x", "number"),
    )


@exporter.export
def boosted_ranking(work):
    groups = {"query": np.repeat(np.arange(20), 10).astype(np.bytes_)}
    options = {"task": ydf.Task.RANKING, "ranking_group": "query", "loss": "LAMBDA_MART_NDCG"}
    features, labels = rows(200, "x", "y")
    learner = ydf.GradientBoostedTreesLearner(
        label="value", num_trees=7, random_seed=7, num_threads=1, **options
    )
    model = learner.train(
        {**features, **groups, "value": np.clip(labels["value"], 0, 4)}, verbose=0
    )
    return forest(model, *asked("x", "y"))


@exporter.export
def one_tree(work):
    return forest(
        trained(ydf.CartLearner, "good", "x", "flag", "colour"), *asked("x", "flag", "colour")
    )


@exporter.export
def unknown_strings(work):
    """Strings that were not in the training set, and an empty one, which means that it is
    missing.
    """
    model = trained(ydf.RandomForestLearner, "good", "x", "colour", min_examples=2)
    strange = {"x": np.float32([0, 0, 0]), "colour": np.array(["green", "ultraviolet", ""])}
    return forest(model, strange, {name: value[1:2] for name, value in strange.items()})


@exporter.export
def missing_numbers(work):
    model = trained(ydf.GradientBoostedTreesLearner, "good", "x", "y")
    nothing = {"x": np.float32([np.nan, 0.5, np.nan]), "y": np.float32([1, np.nan, np.nan])}
    return forest(model, nothing, {name: value[2:] for name, value in nothing.items()})


@exporter.export
def oblique(work):
    options = {"split_axis": "SPARSE_OBLIQUE", "sparse_oblique_normalization": "MIN_MAX"}
    return forest(
        trained(ydf.RandomForestLearner, "good", "x", "y", "number", **options),
        *asked("x", "y", "number"),
    )


@exporter.export
def multi_dimensional(work):
    rng = np.random.default_rng(7)
    vectors = rng.standard_normal((200, 3)).astype(np.float32)
    learner = ydf.RandomForestLearner(label="good", num_trees=7, random_seed=7, num_threads=1)
    model = learner.train(
        {"v": vectors, "good": np.where(vectors.sum(axis=1) > 0, "yes", "no")}, verbose=0
    )
    return forest(model, {"v": vectors[:4]}, {"v": vectors[:1]})


@exporter.export
def classify_signature(work):
    """The output of TensorFlow Serving's classify API: every class with its score."""
    model = trained(ydf.RandomForestLearner, "kind", "x", "y")
    classes = np.array(model.label_classes(), dtype=object)
    return forest(
        model,
        *asked("x", "y"),
        outputs=lambda found: {"classes": np.broadcast_to(classes, found.shape), "scores": found},
        servo_api=True,
    )


@exporter.export
def example_protos(work):
    """The signature takes serialised tf.train.Examples."""
    model = trained(ydf.GradientBoostedTreesLearner, "good", "x", "colour")
    spec = {
        "x": tf.io.FixedLenFeature([], tf.float32, np.nan),
        "colour": tf.io.FixedLenFeature([], tf.string, ""),
    }

    def example(x, colour):
        value = tf.train.FloatList(value=[x]), tf.train.BytesList(value=[colour.encode()])
        features = {
            "x": tf.train.Feature(float_list=value[0]),
            "colour": tf.train.Feature(bytes_list=value[1]),
        }
        return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()

    given, _ = asked("x", "colour")
    serialized = np.array(
        [*map(example, given["x"], given["colour"]), tf.train.Example().SerializeToString()],
        dtype=object,
    )
    return forest(
        model,
        {"inputs": serialized},
        {"inputs": serialized[:1]},
        features=lambda inputs: tf.io.parse_example(inputs["inputs"], spec),
        feed_example_proto=True,
    )


@exporter.export
def pre_and_post_processing(work):
    model = trained(ydf.GradientBoostedTreesLearner, "good", "x", "y")
    return forest(
        model,
        *asked("x", "y"),
        outputs=lambda found: {"output": found * 100},
        features=lambda inputs: {"x": inputs["x"] * 2, "y": inputs["y"] - 1},
        pre_processing=lambda inputs: {"x": inputs["x"] * 2, "y": inputs["y"] - 1},
        post_processing=lambda found: found * 100,
    )


if __name__ == "__main__":
    exporter.main()
