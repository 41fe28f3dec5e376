"""Pipelines of tf.data inside a signature give the answers of TensorFlow's kernels."""

import numpy as np
import pytest

import reference_eval
from reference_eval import sizes
from reference_eval.datasets import Dataset
from reference_eval.errors import EvaluationError, EvaluationLimitError
from reference_eval.ops import batch_dataset, range_dataset, tensor_slice_dataset

pytestmark = pytest.mark.tensorflow


def added(tf, dataset):
    """The sum of all elements, and a number that tells of their order and number."""
    start = (tf.constant(0, tf.int64), tf.constant(1, tf.int64))
    total = dataset.reduce(
        start, lambda old, new: (old[0] + new, old[1] * 31 % 1_000_003 + new + 7)
    )
    return {"sum": total[0], "order": total[1]}


def summed(tf, make):
    return lambda n: added(tf, make(n))


def pipelines(tf):
    """Name -> a function of n that makes a dataset of scalars and reduces it."""
    data = tf.data.Dataset

    def batches(n, drop):
        batched = data.range(n).batch(4, drop_remainder=drop)
        return batched.map(lambda batch: tf.reduce_sum(batch) * tf.shape(batch, tf.int64)[0])

    def strings(n):
        slices = data.from_tensor_slices(
            (tf.constant(["a", "bcd", ""]), tf.range(3, dtype="int64"))
        )
        return slices.map(
            lambda text, i: tf.strings.length(text, "BYTE") * 10 + tf.cast(i, "int32")
        )

    return {
        "range": lambda n: data.range(3, n * 5, 4),
        "backwards": lambda n: data.range(n, -3, -2),
        "map": lambda n: data.range(n).map(lambda i: i * i + n),
        "filter": lambda n: data.range(n).filter(lambda i: i % 3 != n % 3),
        "batch": lambda n: batches(n, False),
        "dropped": lambda n: batches(n, True),
        "take": lambda n: data.range(100).take(n),
        "scan": lambda n: data.range(n).scan(n, lambda state, i: (state + i, state * i)),
        "tensors": lambda n: data.from_tensors(n).map(lambda i: i + 1),
        "slices": lambda n: data.from_tensor_slices(tf.range(n) * 3),
        "strings": lambda n: strings(n).map(lambda i: tf.cast(i, tf.int64)),
    }


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The functions in TensorFlow, and the same model in the evaluator."""
    tf = pytest.importorskip("tensorflow")
    module, folder = tf.Module(), str(tmp_path_factory.mktemp("datasets") / "model")
    number = [tf.TensorSpec([], tf.int64)]
    for name, make in pipelines(tf).items():
        setattr(module, name, tf.function(summed(tf, make), input_signature=number))
    functions = {name: getattr(module, name) for name in pipelines(tf)}
    tf.saved_model.save(module, folder, signatures=functions)
    return functions, reference_eval.load(folder)


@pytest.mark.parametrize("n", [0, 1, 4, 9])
def test_pipelines(models, n):
    functions, evaluated = models
    for name, function in functions.items():
        wanted = {key: value.numpy() for key, value in function(np.int64(n)).items()}
        assert evaluated.signatures[name](n=np.int64(n)) == wanted, name


def test_a_dataset_that_never_ends_is_limited(models, monkeypatch):
    monkeypatch.setattr(sizes, "STEPS", 1000)
    with pytest.raises(EvaluationLimitError, match="more than 1000 nodes"):
        models[1].signatures["map"](n=np.int64(2**60))


def test_datasets_of_datasets_are_limited():
    dataset = Dataset(lambda: iter([]))
    with pytest.raises(EvaluationLimitError, match="each other"):
        for _ in range(sizes.DEPTH):
            dataset = dataset.then(dataset.elements)


class Counter:
    def count(self):
        pass


def test_what_kernels_refuse_is_refused():
    zero, one = np.int64(0), np.int64(1)
    with pytest.raises(ValueError, match="step must be"):
        range_dataset.range_dataset(zero, one, zero, output_types=[zero.dtype], call=Counter())
    for components in ([zero], [np.zeros(2), np.zeros(3)]):
        with pytest.raises(ValueError, match="common first axis"):
            tensor_slice_dataset.tensor_slice_dataset(components, call=Counter())
    mixed = Dataset(lambda: iter([[np.zeros(2)], [np.zeros(3)]]))
    with pytest.raises(ValueError, match="different shapes"):
        list(batch_dataset.batch_dataset(mixed, np.int64(2), np.asarray(False)))
    with pytest.raises(ValueError, match="greater than zero"):
        batch_dataset.batch_dataset(mixed, zero, np.asarray(False))
    assert issubclass(EvaluationLimitError, EvaluationError)
