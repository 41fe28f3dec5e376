"""Reading weights into tensors: into TensorFlow's memory at once, or by way of an array.

The first writes into memory behind a tensor, which has to be worth it:
`reference_impl.functions.tensors`.
"""

from __future__ import annotations

from typing import Any

from benchmarks import Comparison, alternate, models

GOAL = 0.8


def run(repeats: int) -> list[Comparison]:
    """All tensors of the model whose weights are 1 GiB."""
    import tensorflow as tf

    from reference_impl.format.bundle.reader import BundleReader
    from reference_impl.functions import tensors

    model = next(model for model in models.MODELS if model.name == "gibibyte")
    prefix = models.provide(model) / "variables" / "variables"

    def read(how: Any) -> list[Any]:
        with BundleReader(prefix) as reader:
            numbers = [
                (key, entry)
                for key, entry in reader.entries().items()
                if entry.dtype.name == "float32"
            ]
            return [how(reader, key, entry, tf.float32) for key, entry in numbers]

    with tf.device("cpu"):
        times = alternate(
            lambda: read(tensors.copied_once), lambda: read(tensors.copied_twice), repeats
        )
    names = "into the tensor", "by way of an array"
    return [
        Comparison(
            "read the weights: 1 GiB", *names, *times, GOAL, f"written by {models.writer(model)}"
        )
    ]
