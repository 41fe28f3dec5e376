"""A zoo of small SavedModels of TF 1.x style: ``python -m benchmarks.models.zoo FOLDER [--count
1000]``.

Twelve kinds in turns, made by compat.v1 of the installed TensorFlow in one process:
FOLDER/NUMBER-KIND. Sizes and weights are drawn from a model's number: no two are alike, and every
run makes the same ones. None is of TF 2 already, so that a zoo's rate is that of models which are
converted, not of such as are copied.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable

WORDS = (
    "amber basil cedar delta ember fjord grove hazel inlet jetty knoll larch maple north otter"
    " plaza quill river stone thyme"
)

# By key: inputs, outputs, method. A kind returns it for each set of tags.
Signatures = Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], str]]


def _signature(
    inputs: Mapping[str, Any], outputs: Mapping[str, Any], method: str = "predict"
) -> Signatures:
    return {"serving_default": (inputs, outputs, f"tensorflow/serving/{method}")}


def _features(v1: Any, draw: random.Random) -> Any:
    return v1.placeholder("float32", [None, draw.randint(4, 24)], name="features")


def _dense(v1: Any, x: Any, units: int, name: str, **of_kernel: Any) -> Any:
    with v1.variable_scope(name):
        kernel = v1.get_variable("kernel", [x.shape[-1], units], **of_kernel)
        return v1.nn.xw_plus_b(
            x, kernel, v1.get_variable("bias", [units], initializer=v1.initializers.random_normal())
        )


def linear(v1: Any, draw: random.Random) -> Signatures:
    """Reference variables."""
    x = _features(v1, draw)
    return _signature({"x": x}, {"y": _dense(v1, x, draw.randint(1, 12), "linear")})


def resources(v1: Any, draw: random.Random) -> Signatures:
    """Resource variables."""
    x = _features(v1, draw)
    with v1.variable_scope("resources", use_resource=True):
        return _signature({"x": x}, {"y": v1.sigmoid(_dense(v1, x, draw.randint(1, 12), "linear"))})


def mlp(v1: Any, draw: random.Random) -> Signatures:
    """Some layers, and the optimizer that was left in the graph."""
    y = x = _features(v1, draw)
    for number in range(draw.randint(2, 4)):
        y = v1.nn.relu(_dense(v1, y, draw.randint(8, 32), f"layer_{number}"))
    scores = v1.nn.softmax(_dense(v1, y, draw.randint(2, 10), "scores"))
    v1.train.MomentumOptimizer(0.1, 0.9).minimize(v1.reduce_mean(v1.square(scores)))
    return _signature({"x": x}, {"scores": scores})


def cond(v1: Any, draw: random.Random) -> Signatures:
    """Switch and Merge."""
    x, factor = _features(v1, draw), draw.uniform(0.1, 2.0)
    y = _dense(v1, x, draw.randint(2, 8), "linear")
    return _signature(
        {"x": x},
        {"y": v1.cond(v1.reduce_sum(y) > 0.0, lambda: v1.tanh(y) * factor, lambda: y - factor)},
    )


def loop(v1: Any, draw: random.Random) -> Signatures:
    """Enter, NextIteration and Exit."""
    x, count = _features(v1, draw), draw.randint(3, 9)
    step = v1.get_variable("step", [x.shape[-1], x.shape[-1]])
    body = lambda number, y: (number + 1, v1.tanh(v1.matmul(y, step)))  # noqa: E731
    return _signature(
        {"x": x},
        {"y": v1.while_loop(lambda number, _: number < count, body, [v1.constant(0), x])[1]},
    )


def table(v1: Any, draw: random.Random) -> Signatures:
    """A vocabulary in an asset, the table of it, an embedding."""
    every = ["_".join(pair) for pair in itertools.product(WORDS.split(), repeat=2)]
    vocabulary = draw.sample(every, draw.randint(20, 200))
    Path("vocabulary.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    words = v1.placeholder("string", [None], name="words")
    last, line = v1.lookup.TextFileIndex.WHOLE_LINE, v1.lookup.TextFileIndex.LINE_NUMBER
    rows = v1.lookup.TextFileInitializer("vocabulary.txt", "string", last, "int64", line)
    ids = v1.lookup.StaticHashTable(rows, -1).lookup(words)
    embedding = v1.get_variable("embedding", [len(vocabulary) + 1, draw.randint(4, 16)])
    return _signature(
        {"words": words}, {"embedded": v1.nn.embedding_lookup(embedding, ids + 1), "ids": ids}
    )


def examples(v1: Any, draw: random.Random) -> Signatures:
    """tf.Examples for Classify."""
    serialized, size = v1.placeholder("string", [None], name="examples"), draw.randint(2, 12)
    features = {
        "age": v1.FixedLenFeature([1], "float32", default_value=[draw.uniform(20.0, 60.0)]),
        "values": v1.FixedLenFeature([size], "float32", default_value=[0.0] * size),
        "words": v1.VarLenFeature("string"),
    }
    parsed = v1.parse_example(serialized, features)
    words = v1.sparse.to_dense(parsed["words"], default_value="")
    length = v1.reduce_sum(v1.cast(v1.strings.length(words), "float32"), 1, keepdims=True)
    scores = v1.nn.softmax(
        _dense(v1, v1.concat([parsed["age"], parsed["values"], length], 1), 3, "scores")
    )
    return _signature({"inputs": serialized}, {"scores": scores}, "classify")


def several(v1: Any, draw: random.Random) -> Signatures:
    """Signatures that share a part of the graph."""
    x = _features(v1, draw)
    hidden = v1.nn.relu(_dense(v1, x, draw.randint(4, 16), "hidden"))
    scores, value = v1.nn.softmax(_dense(v1, hidden, 4, "scores")), _dense(v1, hidden, 1, "value")
    return {
        **_signature({"x": x}, {"scores": scores, "value": value}),
        "hidden": ({"x": x}, {"hidden": hidden}, "tensorflow/serving/predict"),
        "best": ({"hidden": hidden}, {"index": v1.argmax(scores, 1)}, "tensorflow/serving/predict"),
    }


def two_graphs(v1: Any, draw: random.Random) -> Signatures:
    """One MetaGraph that serves and, in `_save`, one that trains the same variables."""
    signatures = linear(v1, draw)
    v1.add_to_collection(
        v1.GraphKeys.LOSSES, v1.reduce_mean(v1.square(signatures["serving_default"][1]["y"]))
    )
    return signatures


def partitioned(v1: Any, draw: random.Random) -> Signatures:
    """A variable in slices."""
    ids, rows = v1.placeholder("int64", [None], name="ids"), draw.randint(12, 60)
    table = v1.get_variable(
        "rows",
        [rows, draw.randint(3, 9)],
        partitioner=v1.fixed_size_partitioner(draw.randint(2, 4)),
    )
    return _signature(
        {"ids": ids},
        {"embedded": v1.nn.embedding_lookup(table, ids % rows, partition_strategy="div")},
    )


def batch_norm(v1: Any, draw: random.Random) -> Signatures:
    """Moving averages and the ops that update them."""
    images, filters = v1.placeholder("float32", [None, 8, 8, 3], name="images"), draw.randint(2, 8)
    x = v1.nn.conv2d(
        images, v1.get_variable("kernel", [3, 3, 3, filters]), strides=[1, 1, 1, 1], padding="SAME"
    )
    one, zero = v1.initializers.random_uniform(0.5, 1.5), v1.initializers.random_normal()
    scale, offset = (
        v1.get_variable("gamma", [filters], initializer=one),
        v1.get_variable("beta", [filters], initializer=zero),
    )
    mean = v1.get_variable("moving_mean", [filters], initializer=zero, trainable=False)
    variance = v1.get_variable("moving_variance", [filters], initializer=one, trainable=False)
    _, batch_mean, batch_variance = v1.nn.fused_batch_norm(x, scale, offset, is_training=True)
    for average, value in ((mean, batch_mean), (variance, batch_variance)):
        v1.add_to_collection(
            v1.GraphKeys.UPDATE_OPS, v1.assign_sub(average, (average - value) * 0.1)
        )
    y, _, _ = v1.nn.fused_batch_norm(x, scale, offset, mean, variance, is_training=False)
    return _signature({"images": images}, {"pooled": v1.reduce_mean(v1.nn.relu(y), [1, 2])})


def _three(draw: random.Random) -> list[float]:
    """Return three numbers around 0."""
    return [draw.gauss(0.0, 1.0) for _ in range(3)]


def constants(v1: Any, draw: random.Random) -> Signatures:
    """No variables: a frozen graph, with strings."""
    x, text = _features(v1, draw), v1.placeholder("string", [None], name="text")
    kernel = v1.constant([_three(draw) for _ in range(int(x.shape[-1]))])
    said = v1.strings.join([v1.strings.upper(text), draw.choice(WORDS.split())], "-")
    return {
        **_signature({"x": x}, {"y": v1.tanh(v1.matmul(x, kernel))}),
        "said": ({"text": text}, {"said": said}, "tensorflow/serving/predict"),
    }


KINDS: tuple[Callable[[Any, random.Random], Signatures], ...] = (
    linear, resources, mlp, cond, loop, table, examples, several, two_graphs, partitioned,
    batch_norm, constants,
)  # fmt: skip


def write(folder: Path, count: int, first: int = 0) -> None:
    """Write the models ``first`` to ``first + count - 1``.

    Leaves behind a process whose TensorFlow behaves as TF 1 did, and stands in a directory of its
    own meanwhile: the names of vocabulary files get into graphs.
    """
    import tensorflow as tf

    v1 = tf.compat.v1
    v1.disable_v2_behavior()
    folder, before = folder.absolute(), Path.cwd()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        try:
            for number in range(first, first + count):
                kind = KINDS[number % len(KINDS)]
                _save(v1, kind, random.Random(number), folder / f"{number:04d}-{kind.__name__}")
        finally:
            os.chdir(before)


def _save(
    v1: Any, kind: Callable[[Any, random.Random], Signatures], draw: random.Random, directory: Path
) -> None:
    builder = v1.saved_model.Builder(str(directory))
    with v1.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(draw.randint(0, 2**31))
        signatures = _defs(v1, kind(v1, draw))
        session.run(v1.global_variables_initializer())
        init = v1.group(v1.tables_initializer(), name="init_tables")
        assets = v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS)
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            signatures,
            main_op=init,
            assets_collection=assets,
            strip_default_attrs=True,
        )
        if kind is two_graphs:
            v1.train.GradientDescentOptimizer(0.1).minimize(
                v1.add_n(v1.get_collection(v1.GraphKeys.LOSSES)), name="train"
            )
            builder.add_meta_graph(["train"], signatures, strip_default_attrs=True)
    builder.save()


def _defs(v1: Any, signatures: Signatures) -> dict[str, Any]:
    saved = v1.saved_model

    def infos(tensors: Mapping[str, Any]) -> dict[str, Any]:
        return {name: saved.build_tensor_info(tensor) for name, tensor in tensors.items()}

    return {
        key: saved.build_signature_def(infos(inputs), infos(outputs), method)
        for key, (inputs, outputs, method) in signatures.items()
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.models.zoo", description=__doc__.partition("\n\n")[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first model")
    options = parser.parse_args()
    write(options.folder, options.count, options.first)
