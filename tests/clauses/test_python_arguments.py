"""Clauses PY-*: Python values and nests among the arguments and results of functions."""

from __future__ import annotations

import collections

import clause_errors
import numpy as np
import pytest

import reference_impl
from reference_impl import errors

pytestmark = pytest.mark.tensorflow

Pair = collections.namedtuple("Pair", ["left", "right"])
NO_MATCH = "Could not find matching concrete function"


def module(tf, **functions):
    root = tf.Module()
    for name, function in functions.items():
        setattr(root, name, function)
    return root


@pytest.fixture(scope="module")
def saved(tf, tmp_path_factory):
    """One function for each matter, called with what the tests below ask for."""

    def kind(x):
        """Says as what `x` was traced."""
        return tf.constant("none" if x is None else "nan" if x != x else f"{type(x).__name__} {x}")

    def bound(a, b=2.0, *rest, c, d=4.0, **more):
        return [a, b, list(rest), c, d, dict(more)]

    root = module(
        tf,
        flag=tf.function(lambda x, training: x if training else 2.0),
        nest=tf.function(lambda x: [x[0] + 0.1, x[1]["a"] + 0.2]),
        pair=tf.function(lambda p: Pair(left=p.right, right=(p.left, [p.left]))),
        results=tf.function(
            lambda x: (
                x,
                [x],
                {"b": x, "a": (x, None)},
                Pair(x, x),
                collections.OrderedDict([("z", x), ("y", 2.0 * x)]),
            )
        ),
        ragged=tf.function(
            lambda x: (tf.RaggedTensor.from_row_lengths(x, [1, 1]), tf.sparse.from_dense(x))
        ),
        kind=tf.function(kind, autograph=False),
        dtype=tf.function(lambda x, dtype: tf.cast(x, dtype)),
        bound=tf.function(bound),
    )
    for training in (True, False):
        root.flag(tf.constant(-1.0), training=training)
    root.nest((tf.constant(1.0), {"a": tf.constant(2.0)}))
    root.pair(Pair(tf.constant(1.0), tf.constant(2.0)))
    root.results(tf.constant(1.0))
    root.ragged(tf.constant([1.0, 2.0]))
    for value in (True, 2, 2.5, float("nan"), "2", None, -(2**63), 2**63 - 1):
        root.kind(value)
    for dtype in (tf.int32, tf.float64):
        root.dtype(tf.constant(1.5), dtype)
    one = tf.constant(1.0)
    for args, kwargs in CALLS:
        root.bound(*(one for _ in args), **dict.fromkeys(kwargs, one))
    directory = tmp_path_factory.mktemp("python") / "model"
    reference_impl.save(root, directory)
    return directory


CALLS = [
    ((1.0,), {"c": 3.0}),
    ((1.0, 5.0, 6.0, 7.0), {"c": 3.0}),
    ((), {"c": 3.0, "a": 1.0, "d": 5.0, "extra": 8.0}),
]


def test_PY_01_python_values_choose_the_trace(tf, saved, both):
    ten = tf.constant(10.0)
    for loaded in both(saved):
        assert loaded.flag(ten, training=True).numpy() == loaded.flag(ten, True).numpy() == 10.0
        assert (
            loaded.flag(ten, training=False).numpy()
            == loaded.flag(x=ten, training=False).numpy()
            == 2.0
        )
        with pytest.raises(ValueError, match=NO_MATCH):
            loaded.flag(ten, training=tf.constant(True))
    loaded = reference_impl.load(saved)
    assert (
        loaded.flag(ten, np.bool_(True)).numpy() == 10.0
    )  # NumPy's scalars are the numbers they hold
    assert (
        loaded.kind(np.int64(2)).numpy() == b"int 2"
        and loaded.kind(np.float32(2.5)).numpy() == b"float 2.5"
    )
    assert loaded.kind(np.float32("nan")).numpy() == b"nan"


def test_PY_02_other_numbers_are_refused_unless_there_is_a_trace_for_tensors(tf, both, tmp_path):
    """The example of the RFC.

    The trace for -1. holds the constant -1., so it could not answer 10.
    """

    @tf.function
    def f(x, training):
        return x if training else 2.0

    f(-1.0, training=True)
    f(-1.0, training=False)
    root = tf.train.Checkpoint(f=f)
    reference_impl.save(root, tmp_path / "as_traced")
    for loaded in both(tmp_path / "as_traced"):
        assert loaded.f(-1.0, training=True).numpy() == -1.0
        with pytest.raises(ValueError, match=NO_MATCH):
            loaded.f(10.0, training=True)
    reference_impl.save(
        root, tmp_path / "general", options=reference_impl.SaveOptions(numbers_as_tensors=True)
    )
    for loaded in both(tmp_path / "general"):
        assert loaded.f(10.0, training=True).numpy() == loaded.f(10, training=True).numpy() == 10.0
        assert loaded.f(10.0, training=False).numpy() == 2.0


def test_PY_02_the_traces_for_tensors_are_those_of_the_export_alone(tf, both, tmp_path):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable(2.0)

        @tf.function
        def times(self, x):
            return x * self.v

    @tf.function
    def f(x):
        return x + 1.0

    root = module(tf, f=f, part=Model())
    for number in (1.0, 2.0):
        f(number), root.part.times(number)
    options = reference_impl.SaveOptions(numbers_as_tensors=True, function_aliases={"f": f})
    for generation in range(2):
        reference_impl.save(root, tmp_path / str(generation), options=options)
    assert [len(each._list_all_concrete_functions()) for each in (f, root.part.times)] == [2, 2]
    for loaded in both(tmp_path / "1"):
        assert loaded.f(10.0).numpy() == 11.0 and loaded.part.times(10.0).numpy() == 20.0
    asked = reference_impl.LoadOptions(load_function_aliases=True)
    loaded = reference_impl.load(tmp_path / "1", options=asked)
    assert loaded.function_aliases["f"] is loaded.f and len(loaded.f.concrete_functions) == 3


def test_PY_02_code_that_needs_the_number_is_named(tf, both, tmp_path):
    class Model(tf.Module):
        @tf.function(autograph=False)
        def repeat(self, x, times, more):
            return x * more[0] + (1.0 if times > 2 else 0.0)

        @tf.function
        def scale(self, x, factors):
            return x * factors["by"][0]

    root = module(tf, part=Model())
    root.part.repeat(tf.constant(1.0), 3, (2.0,))
    root.part.scale(tf.constant(1.0), factors={"by": [2.0], "other": "text"})
    with pytest.warns(UserWarning, match=r"root\.part\.repeat: cannot be traced with tensors"):
        reference_impl.save(
            root, tmp_path / "m", options=reference_impl.SaveOptions(numbers_as_tensors=True)
        )
    for loaded in both(tmp_path / "m"):
        assert loaded.part.repeat(tf.constant(5.0), 3, (2.0,)).numpy() == 11.0
        assert loaded.part.scale(tf.constant(5.0), {"by": [3.0], "other": "text"}).numpy() == 15.0


def test_PY_03_nests_of_arguments_and_results(tf, saved, both):
    for loaded in both(saved):
        for x in ((tf.constant(-1.0), {"a": tf.constant(-2.0)}), (-1.0, {"a": -2.0})):
            result = loaded.nest(x)
            assert isinstance(result, list)
            np.testing.assert_allclose(
                result, [-0.9, -1.8], rtol=1e-6
            )  # decimal fractions in float32
        with pytest.raises(ValueError, match=NO_MATCH):
            loaded.nest([-1.0, {"a": -2.0}])


def test_PY_04_namedtuples_go_by_name_and_fields(tf, saved, both):
    same = collections.namedtuple("Pair", ["left", "right"])
    other = collections.namedtuple("Other", ["left", "right"])
    for loaded in both(saved):
        for kind in (Pair, same):
            result = loaded.pair(kind(tf.constant(1.0), tf.constant(2.0)))
            assert type(result).__name__ == "Pair" and result._fields == ("left", "right")
            assert (
                result.left.numpy() == 2.0
                and result.right[0].numpy() == 1.0
                and isinstance(result.right[1], list)
            )
        for refused in (other(1.0, 2.0), (1.0, 2.0)):
            with pytest.raises(ValueError, match=NO_MATCH):
                loaded.pair(refused)


def test_PY_05_containers_of_results_are_kept_but_dicts_are_plain_and_sorted(tf, saved, both):
    for loaded in both(saved):
        plain, listed, mapped, pair, ordered = loaded.results(tf.constant(1.0))
        assert (
            plain.numpy() == 1.0
            and isinstance(listed, list)
            and isinstance(mapped["a"], tuple)
            and mapped["a"][1] is None
        )
        assert pair._fields == ("left", "right")
        assert (
            ordered.keys() == {"y", "z"}
            and ordered["y"].numpy() == 2.0
            and ordered["z"].numpy() == 1.0
        )
        ragged, sparse = loaded.ragged(tf.constant([1.0, 2.0]))
        assert ragged.to_list() == [[1.0], [2.0]] and tf.sparse.to_dense(
            sparse
        ).numpy().tolist() == [1.0, 2.0]
    ordered = reference_impl.load(saved).results(tf.constant(1.0))[4]
    assert type(ordered) is dict and list(ordered) == ["y", "z"]  # the file does not keep the order


@pytest.mark.parametrize("key", [1, (2, 3)], ids=str)
def test_PY_05_keys_that_are_no_text_are_refused(tf, tmp_path, key):
    root = module(tf, f=tf.function(lambda x: x[key]))
    root.f({key: tf.constant(1.0)})
    with pytest.raises(errors.SaveError, match=r"root\.f: .*'x'.*strings"):
        reference_impl.save(root, tmp_path / "m")


@pytest.mark.parametrize(
    ("given", "traced_as"),
    [(True, "bool True"), (2, "int 2"), (2.5, "float 2.5"), (float("nan"), "nan"), ("2", "str 2"), (None, "none"),
     (-(2**63), f"int {-2**63}"), (2**63 - 1, f"int {2**63 - 1}")],
)  # fmt: skip
def test_PY_06_values_choose_the_trace_of_their_own_type(tf, saved, given, traced_as):
    assert reference_impl.load(saved).kind(given).numpy().decode() == traced_as
    if given == given:  # a NaN never matches in shipped TensorFlow
        assert tf.saved_model.load(str(saved)).kind(given).numpy().decode() == traced_as


def test_PY_06_an_integer_beyond_64_bits_is_refused_by_name(tf, tmp_path):
    root = module(tf, f=tf.function(lambda x, number: x))
    root.f(tf.constant(1.0), 2**63)
    with pytest.raises(
        errors.SaveError, match=r"root\.f: .*'number'.*9223372036854775808 does not fit 64 bits"
    ):
        reference_impl.save(root, tmp_path / "m")


@pytest.fixture(scope="module")
def shapes(tf):
    return [
        tf.TensorShape([2, 3]),
        tf.TensorShape([None, 3]),
        tf.TensorShape(None),
        tf.TensorShape([]),
    ]


def test_PY_07_shapes_are_arguments(tf, both, tmp_path, shapes):
    root = module(
        tf,
        f=tf.function(lambda x, shape: tf.constant(str(shape))),
        nest=tf.function(lambda s: tf.constant(s[0].left[1]["k"].rank)),
    )
    x = tf.zeros([])
    for shape in shapes:
        root.f(x, shape)
    root.nest((Pair([1, {"k": shapes[0]}], None),))
    if tuple(map(int, tf.__version__.split(".")[:2])) < (
        2,
        15,
    ):  # there, no trace tells what it was called with
        with clause_errors.raises(errors.SaveError, "FN-09"):
            reference_impl.save(root, tmp_path / "m")
        return
    reference_impl.save(root, tmp_path / "m")
    reference_impl.save(reference_impl.load(tmp_path / "m"), tmp_path / "again")
    for directory in (tmp_path / "m", tmp_path / "again"):
        assert tf.saved_model.load(str(directory)).f(x, tf.TensorShape([2, 3])).numpy() == b"(2, 3)"
        loaded = reference_impl.load(directory)
        assert len(loaded.f.concrete_functions) == len(shapes)
        for shape in shapes:
            assert loaded.f(x, tf.TensorShape(shape)).numpy().decode() == str(shape)
        assert loaded.nest((Pair([1, {"k": tf.TensorShape([2, 3])}], None),)).numpy() == 2
        with pytest.raises(errors.FunctionMatchError, match="argument shape is"):
            loaded.f(x, tf.TensorShape([3, 3]))


def test_PY_07_a_shape_that_nobody_holds_any_more_is_refused_with_the_reason(tf, tmp_path):
    root = module(tf, f=tf.function(lambda x, shape: tf.reshape(x, shape)))
    root.f(tf.zeros([6]), tf.TensorShape([2, 3]))
    with pytest.raises(
        errors.SaveError,
        match=r"root\.f: .*'shape'.*tf\.TensorShape .*2\.15",
    ):
        reference_impl.save(root, tmp_path / "m")


def test_PY_08_dtypes_are_arguments(tf, saved, both):
    for loaded in both(saved):
        assert loaded.dtype(tf.constant(2.5), tf.int32).numpy() == 2
        assert loaded.dtype(tf.constant(2.5), dtype=tf.float64).dtype == tf.float64
        with pytest.raises(ValueError, match=NO_MATCH):
            loaded.dtype(tf.constant(2.5), tf.float16)


def test_PY_09_arguments_bind_as_in_the_original(tf, saved, both):
    wanted = [
        [1.0, 2.0, [], 3.0, 4.0, {}],
        [1.0, 5.0, [6.0, 7.0], 3.0, 4.0, {}],
        [1.0, 2.0, [], 3.0, 5.0, {"extra": 8.0}],
    ]
    for loaded in both(saved):
        for (args, kwargs), result in zip(CALLS, wanted):
            assert tf.nest.map_structure(float, loaded.bound(*args, **kwargs)) == result
        for kwargs, name in (({"a": 1.0}, "'c'"), ({"c": 1.0}, "'a'")):
            with pytest.raises(TypeError, match=name):
                loaded.bound(**kwargs)
        with pytest.raises(TypeError, match="'trainig'"):
            loaded.flag(tf.constant(1.0), trainig=True)


def test_PY_10_only_signatures_are_restricted(tf, both, tmp_path):
    root = module(
        tf,
        f=tf.function(
            lambda x: {"a": [x["b"], (x["b"],)]},
            input_signature=[{"b": tf.TensorSpec([], tf.float32)}],
        ),
    )
    reference_impl.save(root, tmp_path / "m", signatures={})
    for loaded in both(tmp_path / "m"):
        assert loaded.f({"b": tf.constant(1.0)})["a"][1][0].numpy() == 1.0
    with pytest.raises(errors.SignatureError) as caught:
        reference_impl.save(root, tmp_path / "n", root.f)
    assert caught.value.clause in ("SIG-12", "SIG-13")
