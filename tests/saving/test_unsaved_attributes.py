"""PRIM-06, FN-14: an array may be left out only if an exported function has its numbers because it
reads this very array.
"""

from __future__ import annotations

import dataclasses
import functools
import types

import fresh_tensorflow
import numpy as np
import pytest

import reference_impl
from reference_impl import errors

pytestmark = [pytest.mark.tensorflow, pytest.mark.clause("PRIM-06", "FN-14")]
TABLE = [5, 3, 8]


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def number(tf):
    return [tf.TensorSpec([], tf.int32)]


def _module(tf, **attributes):
    root = tf.Module()
    for name, value in attributes.items():
        setattr(root, name, value)
    return root


# Arrays that functions read. Each maker returns the root.


def _method(tf, number):
    class Model(tf.Module):
        def __init__(self):
            self.table = np.array(TABLE, np.int32)

        @tf.function(input_signature=number)
        def f(self, x):
            return self._look(x)

        def _look(self, x):
            return tf.gather(self.table, x)

    return Model()


def _bound_method(tf, number):
    class Model(tf.Module):
        def __init__(self):
            self.table = np.array(TABLE, np.int32)
            self.f = tf.function(self.look, input_signature=number)

        def look(self, x):
            return tf.gather(self.table, x)

    return Model()


def _inherited(tf, number):
    class Base(tf.Module):
        def look(self, x):
            return tf.gather(self.table, x)

    class Model(Base):
        def __init__(self):
            self.table = np.array(TABLE, np.int32)

        @tf.function(input_signature=number)
        def f(self, x):
            return super().look(x)

    return Model()


def _property(tf, number):
    class Model(tf.Module):
        def __init__(self):
            self.table = np.array(TABLE, np.int32)
            self.f = tf.function(lambda x: tf.gather(self.shifted, x), input_signature=number)

        @property
        def shifted(self):
            return tf.constant(self.table, tf.int32) + 1

    return Model()


def _class_attribute(tf, number):
    cls = type("Model", (tf.Module,), {"table": np.array(TABLE, np.int32)})
    root = cls()
    root.f = tf.function(lambda x: tf.gather(root.table, x), input_signature=number)
    return root


def _dict(tf, number):
    root = _module(tf, cfg={"table": np.array(TABLE, np.int32), "name": "a"})
    root.f = tf.function(lambda x: tf.gather(root.cfg["table"], x), input_signature=number)
    return root


def _all_of_a_dict(tf, number):
    root = _module(tf, tables={"a": np.array(TABLE, np.int32), "b": np.array([1, 2, 4], np.int32)})
    root.f = tf.function(
        lambda x: [tf.gather(table, x) for table in root.tables.values()], input_signature=number
    )
    return root


def _list(tf, number):
    root = _module(tf, tables=[np.array(TABLE, np.int32), np.array([1, 2, 4], np.int32)])

    @tf.function(input_signature=number)
    def f(x):
        total = 0
        for table in root.tables:
            total += tf.gather(tf.constant(table), x)
        return total

    root.f = f
    return root


@dataclasses.dataclass
class Config:
    table: np.ndarray


def _dataclass(tf, number):
    root = _module(tf, config=Config(np.array(TABLE, np.int32)))
    root.f = tf.function(lambda x: tf.gather(root.config.table, x), input_signature=number)
    return root


def _namespace(tf, number):
    root = _module(tf, config=types.SimpleNamespace(table=np.array(TABLE, np.int32)))
    root.f = tf.function(lambda x: tf.gather(root.config.table, x), input_signature=number)
    return root


def _by_text(tf, number):
    root = _module(tf, table=np.array(TABLE, np.int32))
    root.f = tf.function(lambda x: tf.gather(getattr(root, "table"), x), input_signature=number)  # noqa: B009
    return root


def _local_variable(tf, number):
    table = np.array(TABLE, np.int32)
    root = _module(tf, table=table)
    root.f = tf.function(lambda x: tf.gather(table, x), input_signature=number)
    return root


def _default_value(tf, number):
    table = np.array(TABLE, np.int32)
    root = _module(tf, table=table)
    look = tf.function(lambda x, y=table: tf.gather(y, x), autograph=False)
    root.f = tf.function(lambda x: look.python_function(x), input_signature=number)
    return root


def _partial(tf, number):
    table = np.array(TABLE, np.int32)
    root = _module(tf, table=table)
    root.f = tf.function(
        functools.partial(lambda table, x: tf.gather(table, x), table), input_signature=number
    )
    return root


def _model_in_a_partial(tf, number):
    root = _module(tf, table=np.array(TABLE, np.int32))
    root.f = tf.function(
        functools.partial(lambda model, x: tf.gather(model.table, x), root), input_signature=number
    )
    return root


def _look(model, x):
    return model.gather(model.part.table, x)


def _function_of_the_module(tf, number):
    root = _module(tf, part=_module(tf, table=np.array(TABLE, np.int32)), gather=tf.gather)
    root.f = tf.function(lambda x: _look(root, x), input_signature=number)
    return root


def _doubled(function):
    @functools.wraps(function)
    def inner(*args):
        return 2 * function(*args)

    return inner


def _decorated(tf, number):
    class Model(tf.Module):
        def __init__(self):
            self.table = np.array(TABLE, np.int32)

        @tf.function(input_signature=number)
        @_doubled
        def f(self, x):
            return tf.gather(self.table, x)

    return Model()


def _parts_in_a_list(tf, number):
    class Part(tf.Module):
        def __init__(self):
            self.table, self.v = np.array(TABLE, np.int32), tf.Variable(1)

        def __call__(self, x):
            return tf.gather(self.table, x) * self.v

    root = _module(tf, parts=[Part(), Part()])
    root.f = tf.function(lambda x: sum(part(x) for part in root.parts), input_signature=number)
    return root


def _branches(tf, number):
    root = _module(tf, table=np.array(TABLE, np.int32))

    @tf.function(input_signature=number)
    def f(x):
        if x > 1:
            return tf.gather(root.table, x)
        return x

    root.f = f
    return root


def _inner_function(tf, number):
    root = _module(tf, table=np.array(TABLE, np.int32))
    look = tf.function(lambda x: tf.gather(root.table, x))
    root.f = tf.function(lambda x: look(x), input_signature=number)
    return root


def _concrete(tf, number):
    root = _module(tf, table=np.array(TABLE, np.int32))
    root.f = tf.function(
        lambda x: tf.cond(x > 1, lambda: tf.gather(root.table, x), lambda: x)
    ).get_concrete_function(*number)
    return root


def _eager_tensors(tf, number):
    root = _module(
        tf, small=tf.constant(TABLE), large=tf.range(1000), ragged=tf.ragged.constant([[1], [2, 3]])
    )
    root.f = tf.function(
        lambda x: (
            tf.gather(root.small, x)
            + tf.gather(root.large, x)
            + tf.reduce_sum(root.ragged, axis=1)[0]
        ),
        input_signature=number,
    )
    return root


def _keys_of_a_table(tf, number):
    root = _module(tf, keys=tf.constant(["a", "b"]), values=tf.constant([1, 2]))
    root.table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(root.keys, root.values), -1
    )
    return root


def _keras_layer(tf, number):
    keras = pytest.importorskip("keras", "3")

    class Anchored(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.anchors = np.array(TABLE, np.int32)

        def call(self, x):
            return x + tf.cast(tf.constant(self.anchors), x.dtype)

    root = _module(tf, model=keras.Sequential([keras.Input([3]), Anchored()]))
    root.f = tf.function(lambda x: root.model(x), input_signature=[tf.TensorSpec([None, 3])])
    return root


READ = {
    name[1:]: made
    for name, made in list(globals().items())
    if name.startswith("_") and hasattr(made, "__code__")
}
for _helper in ("module", "look", "doubled"):
    del READ[_helper]


@pytest.mark.parametrize("name", READ)
def test_FN_14_an_array_that_a_function_reads_is_in_the_file(tf, number, tmp_path, recwarn, name):
    reference_impl.save(READ[name](tf, number), tmp_path / "m", signatures={})
    assert not [warning for warning in recwarn if "not trackable" in str(warning.message)]


def test_FN_14_an_array_that_only_a_signature_reads_is_in_the_file(tf, number, tmp_path):
    root = _module(tf, table=np.array(TABLE, np.int32))
    f = tf.function(lambda x: {"y": tf.gather(root.table, x)}, input_signature=number)
    reference_impl.save(root, tmp_path / "m", signatures=f)
    answer = reference_impl.load(tmp_path / "m").signatures["serving_default"](tf.constant(1))
    assert answer["y"].numpy() == TABLE[1]


CONCRETE = """
import sys, numpy as np, tensorflow as tf, reference_impl
class Model(tf.Module):
    def __init__(self):
        self.table = np.array([5, 3, 8])
    def look(self, x):
        return tf.gather(self.table, x)
root = Model()
root.f = tf.function(root.look).get_concrete_function(tf.TensorSpec([], tf.int32))
reference_impl.save(root, sys.argv[1])
"""


def test_FN_14_code_without_a_source_file_is_read_too(tmp_path):
    fresh_tensorflow.printed(CONCRETE, tmp_path / "m")


# Arrays that no function reads, beside functions with the same numbers.


def _rows(tf, **attributes):
    root = _module(tf, **attributes)
    root.f = tf.function(
        lambda x: tf.reduce_sum(x, axis=[1]), input_signature=[tf.TensorSpec([None, 1])]
    )
    return root


def _read_elsewhere(tf, number):
    class Model(tf.Module):
        def __init__(self):
            self.calibration = np.array([1])

        @tf.function(input_signature=[tf.TensorSpec([None, 1])])
        def f(self, x):
            return tf.reduce_sum(x, axis=[1])

        def report(self):
            return self.calibration

    return Model()


def _two_parts(tf, number):
    root = _module(
        tf,
        used=_module(tf, table=np.array(TABLE, np.int32)),
        other=_module(tf, table=np.array(TABLE, np.int32)),
    )
    root.f = tf.function(lambda x: tf.gather(root.used.table, x), input_signature=number)
    return root


def _another_function(tf, number):
    """`g` reads the array, of which only the sum is in its graph; `f` has the constant."""
    root = _rows(tf, calibration=np.array([1]))
    root.g = tf.function(lambda x: x + int(root.calibration.sum()), input_signature=number)
    return root


def _sibling(tf, number):
    root = _rows(tf, cfg={"table": np.array(TABLE, np.int32), "rows": np.array([1])})
    root.f = tf.function(
        lambda x: tf.gather(root.cfg["table"], tf.reduce_sum(x, axis=[1])),
        input_signature=[tf.TensorSpec([None, 1], tf.int32)],
    )
    return root


def _name_of_a_tensors_attribute(tf, number):
    root = _module(tf, shape=np.array([1]))
    root.f = tf.function(
        lambda x: tf.reduce_sum(x, axis=[1]) * x.shape[1],
        input_signature=[tf.TensorSpec([None, 1])],
    )
    return root


def _other_numbers(tf, number):
    root = _module(tf, table=np.array([5.5, 3.5, 8.5]))
    root.f = tf.function(lambda x: tf.gather(root.table.astype(int), x), input_signature=number)
    return root


def _concrete_beside(tf, number):
    root = _module(tf, calibration=np.array([1]))
    root.f = tf.function(lambda x: tf.reduce_sum(x, axis=[1])).get_concrete_function(
        tf.TensorSpec([None, 1])
    )
    assert root.calibration[0] == 1  # code that runs, but is not traced
    return root


UNREAD = {
    "in the way": (lambda tf, number: _rows(tf, calibration=np.array([1])), "root.calibration"),
    "a tensor": (lambda tf, number: _rows(tf, calibration=tf.constant([1])), "root.calibration"),
    "read elsewhere": (_read_elsewhere, "root.calibration"),
    "two parts": (_two_parts, "root.other.table"),
    "another function": (_another_function, "root.calibration"),
    "a sibling in a dict": (_sibling, "root.cfg['rows']"),
    "the name of a tensor's attribute": (_name_of_a_tensors_attribute, "root.shape"),
    "other numbers": (_other_numbers, "root.table"),
    "beside a concrete function": (_concrete_beside, "root.calibration"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_PRIM_06_equal_numbers_do_not_hide_a_lost_array(tf, number, tmp_path, name):
    make, place = UNREAD[name]
    with pytest.raises(errors.SaveError) as raised:
        reference_impl.save(make(tf, number), tmp_path / "m", signatures={})
    assert f"loading: {place} (" in str(raised.value) and raised.value.clause == "PRIM-06"


def test_PRIM_06_an_array_beside_a_loaded_function_is_reported(tf, tmp_path):
    reference_impl.save(_rows(tf), tmp_path / "m", signatures={})
    for load in (reference_impl.load, lambda path: tf.saved_model.load(str(path))):
        root = _module(tf, model=load(tmp_path / "m"), calibration=np.array([1]))
        with pytest.raises(errors.SaveError, match=r"root\.calibration"):
            reference_impl.save(root, tmp_path / "n", signatures={})
