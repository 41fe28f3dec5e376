"""Each op gives the results of TensorFlow's kernel, within the stated number of ulp. It holds for
TensorFlow 2.21 and for older releases: ``tox -e tests-tf2.12 -- tests/reference_eval``.

Hypothesis draws shapes that broadcast and values with edges: NaN, infinities, -0.0, the largest and
the smallest numbers, empty tensors.
"""

from inspect import signature
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as shapes

from reference_eval import registry
from reference_eval.errors import NotEvaluatedError
from reference_eval.state import Variable

pytestmark = pytest.mark.tensorflow

# The same examples in each run: a bound that is too narrow by one must not turn a run red by chance.
FEW = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
FLOATS, INTEGERS = ("float32", "float64"), ("int32", "int64")
NUMBERS = FLOATS + INTEGERS

# op -> (dtypes, ulp). Of an op that is not exact: twice the largest distance from the kernels of
# TensorFlow 2.21 over 240,000 numbers in [-100, 100], whose vector kernels are the coarser ones.
UNARY = {
    "Acos": (FLOATS, 10),
    "Acosh": (FLOATS, 4),
    "Asin": (FLOATS, 8),
    "Asinh": (FLOATS, 4),
    "Atanh": (FLOATS, 4),
    "Erfc": (("float32",), 130),
    "Invert": (INTEGERS, 0),
    "Lgamma": (("float32",), 12),
    "Abs": (NUMBERS, 0),
    "Ceil": (FLOATS, 0),
    "Erf": (("float32",), 12),
    "Exp": (FLOATS, 8),
    "Expm1": (FLOATS, 12),
    "Floor": (FLOATS, 0),
    "IsFinite": (FLOATS, 0),
    "IsInf": (FLOATS, 0),
    "IsNan": (FLOATS, 0),
    "Log": (FLOATS, 10),
    "Log1p": (FLOATS, 8),
    "Neg": (NUMBERS, 0),
    "OnesLike": (NUMBERS, 0),
    "Relu": (NUMBERS, 0),
    "Relu6": (NUMBERS, 0),
    "Rint": (FLOATS, 0),
    "Round": (FLOATS, 0),
    "Rsqrt": (FLOATS, 6),
    "Sigmoid": (FLOATS, 14),
    "Sign": (NUMBERS, 0),
    "Softsign": (FLOATS, 1),
    "Sqrt": (FLOATS, 0),
    "Square": (NUMBERS, 0),
    "Tanh": (FLOATS, 14),
    "ZerosLike": (NUMBERS, 0),
}
BINARY = {
    "BitwiseAnd": (INTEGERS, 0),
    "BitwiseOr": (INTEGERS, 0),
    "BitwiseXor": (INTEGERS, 0),
    "Xdivy": (FLOATS, 0),
    "Xlogy": (FLOATS, 10),
    "AddV2": (NUMBERS, 0),
    "DivNoNan": (FLOATS, 0),
    "Equal": (NUMBERS, 0),
    "FloorDiv": (INTEGERS, 0),
    "FloorMod": (INTEGERS, 0),
    "Greater": (NUMBERS, 0),
    "GreaterEqual": (NUMBERS, 0),
    "Less": (NUMBERS, 0),
    "LessEqual": (NUMBERS, 0),
    "Maximum": (NUMBERS, 0),
    "Minimum": (NUMBERS, 0),
    "Mul": (NUMBERS, 0),
    "MulNoNan": (FLOATS, 0),
    "NotEqual": (NUMBERS, 0),
    "RealDiv": (FLOATS, 0),
    "SquaredDifference": (NUMBERS, 0),
    "Sub": (NUMBERS, 0),
    "TruncateDiv": (INTEGERS, 0),
    "TruncateMod": (INTEGERS, 0),
}
REDUCTIONS = ("Max", "Min", "Sum", "Prod", "Mean")


def cases(table):
    for name, (dtypes, ulp) in table.items():
        yield from [pytest.param(name, dtype, ulp, id=f"{name}-{dtype}") for dtype in dtypes]


def elements(dtype):
    kind = np.dtype(dtype)
    if kind.kind == "i":
        edges = [0, 1, -1, 7, np.iinfo(kind).max, np.iinfo(kind).min]
        return st.sampled_from(edges) | st.integers(-100, 100)
    width = 8 * kind.itemsize
    edges = [0.0, -0.0, 0.5, 1.5, 2.5, np.nan, np.inf, -np.inf, float(np.finfo(kind).max)]
    return st.sampled_from(edges) | st.floats(-100, 100, width=width, allow_subnormal=False)


def ulp_between(found, wanted):
    """Return the largest distance in units of the last place; infinity for another kind of value."""
    if found.dtype.kind != "f":
        return 0 if np.array_equal(found, wanted) else np.inf
    plain = np.isfinite(found) & np.isfinite(wanted)
    if not np.array_equal(found[~plain], wanted[~plain], equal_nan=True):
        return np.inf
    if not plain.any():
        return 0
    near, least = np.abs(wanted[plain]), np.finfo(wanted.dtype).tiny
    unit = np.spacing(np.clip(near, least, np.finfo(wanted.dtype).max / 2))
    apart = np.abs(found[plain] - wanted[plain])
    apart[(apart < least) & (near < least)] = 0  # kernels may flush subnormal numbers to 0
    with np.errstate(over="ignore"):
        return float(np.max(apart / unit))


def ask(tensorflow, name, names, values):
    """Return the results of the evaluator and of the kernel, or the word "refused"."""
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(registry.known()[name].evaluate(*values))
    except (ArithmeticError, ValueError):
        found = "refused"
    try:
        wanted = getattr(tensorflow.raw_ops, name)(**dict(zip(names, values))).numpy()
    except (tensorflow.errors.InvalidArgumentError, tensorflow.errors.InternalError):
        wanted = "refused"
    return found, wanted


def agrees(pair, ulp):
    found, wanted = pair
    if isinstance(found, str) or isinstance(wanted, str):
        return isinstance(found, str) and isinstance(wanted, str)
    same = found.dtype == wanted.dtype and found.shape == wanted.shape
    return same and ulp_between(found, wanted) <= ulp


@pytest.fixture(scope="module")
def tensorflow():
    return pytest.importorskip("tensorflow")


ARGUMENT = {"Relu": "features", "Relu6": "features", "Softsign": "features"}


@pytest.mark.parametrize("name, dtype, ulp", list(cases(UNARY)))
@FEW
@given(data=st.data())
def test_ops_of_one_tensor(tensorflow, name, dtype, ulp, data):
    shape = data.draw(shapes.array_shapes(min_dims=0, min_side=0))
    value = data.draw(shapes.arrays(dtype, shape, elements=elements(dtype)))
    assert agrees(ask(tensorflow, name, [ARGUMENT.get(name, "x")], [value]), ulp)


@pytest.mark.parametrize("name, dtype, ulp", list(cases(BINARY)))
@FEW
@given(data=st.data(), drawn=shapes.mutually_broadcastable_shapes(num_shapes=2, min_side=0))
def test_ops_of_two_tensors(tensorflow, name, dtype, ulp, data, drawn):
    first, second = drawn.input_shapes
    x = data.draw(shapes.arrays(dtype, first, elements=elements(dtype)))
    y = data.draw(shapes.arrays(dtype, second, elements=elements(dtype)))
    assert agrees(ask(tensorflow, name, ["x", "y"], [x, y]), ulp)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("name", REDUCTIONS)
@FEW
@given(data=st.data())
def test_reductions_of_small_integers(tensorflow, name, dtype, data):
    """Sums of small integers are exact in any order."""
    shape = data.draw(shapes.array_shapes(min_dims=1, max_dims=3, max_side=3, min_side=0))
    small = st.integers(-3, 3).map(np.dtype(dtype).type)
    value = data.draw(shapes.arrays(dtype, shape, elements=small))
    axes = np.int32(data.draw(st.sets(st.integers(0, value.ndim - 1)).map(sorted)))
    # The mean of no integers is not defined.
    assume(value.size or name != "Mean" or dtype in FLOATS)
    assert agrees(ask(tensorflow, name, ["input", "axis"], [value, axes]), 1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_matrix_products(tensorflow, dtype):
    random = np.random.default_rng(0)
    a, b = random.normal(size=[7, 64]).astype(dtype), random.normal(size=[64, 5]).astype(dtype)
    found, wanted = ask(tensorflow, "MatMul", ["a", "b"], [a, b])
    terms = np.abs(a) @ np.abs(b)
    assert np.all(np.abs(found - wanted) <= 8 * np.spacing(terms))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("size, stride, dilation", [(1, 1, 1), (3, 2, 1), (2, 1, 2), (4, 3, 1)])
def test_convolutions(tensorflow, padding, size, stride, dilation):
    random = np.random.default_rng(0)
    images = random.normal(size=[2, 9, 8, 3]).astype(np.float32)
    kernel = random.normal(size=[size, size, 3, 4]).astype(np.float32)
    steps, gaps = [1, stride, stride, 1], [1, dilation, dilation, 1]
    conv = tensorflow.raw_ops.Conv2D
    wanted = conv(input=images, filter=kernel, strides=steps, padding=padding, dilations=gaps)
    evaluate = registry.known()["Conv2D"].evaluate
    found = evaluate(images, kernel, strides=steps, padding=padding.encode(), dilations=gaps)
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("name, argument", [("MaxPool", "input"), ("AvgPool", "value")])
@pytest.mark.parametrize("size, stride", [(2, 2), (3, 1), (3, 2)])
def test_pools(tensorflow, name, argument, padding, size, stride):
    images = np.random.default_rng(0).normal(size=[2, 7, 8, 3]).astype(np.float32)
    steps, window = [1, stride, stride, 1], [1, size, size, 1]
    pool = getattr(tensorflow.raw_ops, name)
    wanted = pool(**{argument: images}, ksize=window, strides=steps, padding=padding)
    evaluate = registry.known()[name].evaluate
    found = evaluate(images, ksize=window, strides=steps, padding=padding.encode())
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("seed", [[0, 0], [1, 2], [-5, 2**40]])
def test_stateless_random_numbers_are_equal_bit_for_bit(tensorflow, dtype, seed):
    shape, seed = np.int32([3, 7]), np.int64(seed)
    op = tensorflow.raw_ops.StatelessRandomUniform
    wanted = op(shape=shape, seed=seed, dtype=dtype).numpy()
    found = registry.known()["StatelessRandomUniform"].evaluate(shape, seed, dtype=np.dtype(dtype))
    assert found.tobytes() == wanted.tobytes()


def test_elu_near_zero(tensorflow):
    """The kernel computes e^x - 1, whose error near 0 is that of numbers near 1."""
    value = np.linspace(-2, 2, 41, dtype=np.float32)
    found, wanted = ask(tensorflow, "Elu", ["features"], [value])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2 * np.spacing(np.float32(1)))


def results(value):
    """Return the outputs of an op as a list of arrays."""
    if isinstance(value, tuple):
        return [np.asarray(part) for part in value]
    return [np.asarray(value)]


IDS = np.int32([0, 0, 2, 2])
ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
COMPLEX = np.complex64([[1 + 2j, -0.5j], [3 - 4j, 0]])
WORDS = np.array([b"ab", b"", b"a", b"ab"], object)
TOWARDS = np.float32([0, 1, -0.0, np.inf, np.nan, 2, -1, 1])
PLACES = np.int64([3, 0, 2, 3])

# An id, the op, its inputs by name, its attributes.
EXACT = [
    ("axes", "Roll", {"input": CUBE, "shift": [1, -2], "axis": [0, 2]}, {}),
    ("one_axis_twice", "Roll", {"input": ROWS, "shift": [1, 1], "axis": [1, 1]}, {}),
    ("scalars", "Roll", {"input": ROWS, "shift": np.int32(-1), "axis": np.int32(-1)}, {}),
    ("plain", "Cumprod", {"x": ROWS, "axis": np.int32(0)}, {}),
    ("exclusive", "Cumprod", {"x": ROWS, "axis": np.int32(1)}, {"exclusive": True}),
    ("reverse", "Cumprod", {"x": ROWS, "axis": np.int32(-1)}, {"reverse": True, "exclusive": True}),
    ("both", "Cumsum", {"x": ROWS, "axis": np.int32(-1)}, {"reverse": True, "exclusive": True}),
    ("complex", "Conj", {"input": COMPLEX}, {}),
    ("complex", "Real", {"input": COMPLEX}, {}),
    ("complex", "Imag", {"input": COMPLEX}, {}),
    ("complex", "Sign", {"x": np.complex64([3 + 4j, -5j, 0, -2])}, {}),
    ("floats", "NextAfter", {"x1": TOWARDS, "x2": TOWARDS[::-1].copy()}, {}),
    ("rows", "SegmentSum", {"data": ROWS, "segment_ids": IDS}, {}),
    ("empty", "SegmentSum", {"data": ROWS[:0], "segment_ids": IDS[:0]}, {}),
    ("backwards", "SegmentSum", {"data": ROWS, "segment_ids": IDS[::-1].copy()}, {}),
    ("largest", "TopKV2", {"input": CUBE % 5, "k": np.int32(3)}, {}),
    ("int64", "TopKV2", {"input": CUBE, "k": np.int32(2)}, {"index_type": np.dtype(np.int64)}),
    ("extremes", "TopKV2", {"input": np.int32([1, -(2**31), 2**31 - 1, 1]), "k": 4}, {}),
    ("words", "UniqueWithCounts", {"x": WORDS}, {}),
    ("numbers", "UniqueWithCounts", {"x": PLACES}, {"out_idx": np.dtype(np.int64)}),
    ("empty", "UniqueWithCounts", {"x": PLACES[:0]}, {}),
    ("words", "RegexFullMatch", {"input": WORDS, "pattern": np.array(b"a.?", object)}, {}),
    ("one", "LinSpace", {"start": np.float32(3), "stop": np.float32(9), "num": np.int32(1)}, {}),
    ("four", "LinSpace", {"start": np.float32(3), "stop": np.float32(9), "num": np.int32(4)}, {}),
    ("none", "LinSpace", {"start": np.float32(3), "stop": np.float32(9), "num": np.int32(0)}, {}),
]


RAGGED = [np.int64([0, 2, 2, 5]), np.int64([0, 1, 4, 4, 5, 9])]
TEXTS = np.array(["größe 42".encode(), b"a\x00b", b"\xff\xfea1\n", "日本٣".encode(), b""], object)
PATTERNS = [
    (rb"\d+", rb"<\0>"),
    (rb"\w", rb"."),
    (rb"$", rb"!"),
    (rb"([a-z])([^a-z])", rb"\2\1\\"),
    (rb"[$\]]|\.", rb"x"),
    (rb"(", rb"x"),
    (rb"a", rb"\3"),
]


@pytest.mark.parametrize("pattern, rewrite", PATTERNS)
@pytest.mark.parametrize("every", [True, False])
def test_patterns_mean_what_they_mean_in_re2(tensorflow, pattern, rewrite, every):
    inputs = {"input": TEXTS, "pattern": np.array(pattern, object), "rewrite": rewrite}
    options = {"replace_global": every}
    pair = both(tensorflow, "RegexReplace", inputs, options)
    if rewrite == rb"\3":  # the kernel logs this error and leaves the text
        assert pair[0][0] == "refused"
    else:
        assert all_equal(pair)
    del inputs["rewrite"]
    assert all_equal(both(tensorflow, "RegexFullMatch", inputs, {}))


@pytest.mark.parametrize("name", ["StringLower", "StringUpper"])
@pytest.mark.parametrize("encoding", ["", "utf-8"])
def test_letters_change_their_case(tensorflow, name, encoding):
    wanted = getattr(tensorflow.raw_ops, name)(input=TEXTS, encoding=encoding).numpy()
    found = registry.known()[name].evaluate(TEXTS, encoding=encoding.encode())
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16-BE", "UTF-32-BE"])
@pytest.mark.parametrize("errors", ["replace", "ignore", "strict"])
@pytest.mark.parametrize("control", [True, False])
def test_code_points_of_strings(tensorflow, encoding, errors, control):
    texts = TEXTS if encoding == "UTF-8" else np.array(["a日\t".encode(encoding)], object)
    options = {"replacement_char": 63, "replace_control_characters": control}
    words = {"input_encoding": encoding, "errors": errors}
    try:
        wanted = results(tensorflow.raw_ops.UnicodeDecode(input=texts, **options, **words))
    except tensorflow.errors.InvalidArgumentError:
        wanted = None
    evaluate = registry.known()["UnicodeDecode"].evaluate
    encoded = {key: word.encode() for key, word in words.items()}
    if wanted is None:
        with pytest.raises(ValueError, match="Invalid formatting"):
            evaluate(texts, **options, **encoded, Tsplits=np.dtype(np.int64))
    else:
        assert all_equal(
            (evaluate(texts, **options, **encoded, Tsplits=np.dtype(np.int64)), wanted)
        )


@pytest.mark.parametrize("values", [np.arange(9), np.arange(18.0).reshape(9, 2)])
def test_a_ragged_tensor_becomes_sparse(tensorflow, values):
    op = tensorflow.raw_ops.RaggedTensorToSparse
    wanted = results(op(rt_nested_splits=RAGGED, rt_dense_values=values))
    found = registry.known()["RaggedTensorToSparse"].evaluate(RAGGED, values)
    assert all_equal((found, wanted))
    wrong = [RAGGED[0], RAGGED[1] + 1]
    with pytest.raises(ValueError):
        registry.known()["RaggedTensorToSparse"].evaluate(wrong, values)


@pytest.mark.parametrize("shape", [[-1, -1, -1], [3, 2, 2], [4, 4, 5]])
@pytest.mark.parametrize("kinds", [["ROW_SPLITS"] * 2, ["FIRST_DIM_SIZE"] + ["VALUE_ROWIDS"] * 2])
def test_a_ragged_tensor_becomes_dense(tensorflow, shape, kinds):
    rows = [np.repeat(np.arange(len(splits) - 1), np.diff(splits)) for splits in RAGGED]
    parts = RAGGED if len(kinds) == 2 else [np.int64(3), *rows]
    values, default = np.arange(9), np.int64(-1)
    wanted = tensorflow.raw_ops.RaggedTensorToTensor(
        shape=np.int64(shape),
        values=values,
        default_value=default,
        row_partition_tensors=parts,
        row_partition_types=kinds,
    ).numpy()
    found = registry.known()["RaggedTensorToTensor"].evaluate(
        np.int64(shape), values, default, parts, row_partition_types=[k.encode() for k in kinds]
    )
    assert equal((found, wanted))


@pytest.mark.parametrize("channels", [0, 1, 3, 4])
@pytest.mark.parametrize("stored", [1, 2, 3, 4])
@pytest.mark.parametrize("bits", ["uint8", "uint16"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_png_images(tensorflow, stored, bits, dtype, channels):
    random = np.random.default_rng(0)
    image = random.integers(0, np.iinfo(bits).max, [7, 9, stored]).astype(bits)
    image[2:5] = image[2:5] // 16 + np.arange(9, dtype=bits)[:, None]  # rows with other filters
    data = tensorflow.raw_ops.EncodePng(image=image).numpy()
    wanted = tensorflow.raw_ops.DecodePng(contents=data, channels=channels, dtype=dtype).numpy()
    evaluate = registry.known()["DecodePng"].evaluate
    given = np.array(data, object)
    if stored >= 3 and channels == 1:
        with pytest.raises(NotEvaluatedError):
            evaluate(given, channels=channels, dtype=np.dtype(dtype))
    else:
        assert equal((evaluate(given, channels=channels, dtype=np.dtype(dtype)), wanted))
    broken = np.array(data[:50] + b"x" + data[51:], object)
    with pytest.raises(ValueError, match="Invalid PNG data"):
        evaluate(broken, dtype=np.dtype(dtype))


@pytest.mark.parametrize("stored", [1, 2, 3, 4])
@pytest.mark.parametrize("bits", ["uint8", "uint16"])
def test_the_kernel_reads_our_png_images(tensorflow, stored, bits):
    image = np.random.default_rng(0).integers(0, 255, [2, 3, 5, stored]).astype(bits)
    data = registry.known()["EncodePng"].evaluate(image, compression=-1)
    read = [tensorflow.raw_ops.DecodePng(contents=one, dtype=bits).numpy() for one in data]
    assert np.array_equal(read, image)


@pytest.mark.parametrize("size", [[6, 4], [2, 9], [5, 1], [1, 1]])
@pytest.mark.parametrize("align, half", [(False, False), (True, False), (False, True)])
def test_nearest_pixels(tensorflow, size, align, half):
    inputs = {"images": np.arange(5 * 7 * 2).reshape(1, 5, 7, 2), "size": np.int32(size)}
    options = {"align_corners": align, "half_pixel_centers": half}
    assert all_equal(both(tensorflow, "ResizeNearestNeighbor", inputs, options))


@pytest.mark.parametrize("adjoint", [True, False])
def test_inverses_of_matrices(tensorflow, adjoint):
    matrices = np.random.default_rng(0).normal(size=[3, 4, 4]).astype(np.float32)
    options = {"adjoint": adjoint}
    assert all_equal(both(tensorflow, "MatrixInverse", {"input": matrices}, options), rtol=1e-4)
    zeros = {"input": np.zeros([2, 2], np.float32)}
    assert all_equal(both(tensorflow, "MatrixInverse", zeros, options))


@pytest.mark.parametrize("seed", [[0, 0], [1, 2], [-5, 2**40]])
def test_random_numbers_of_a_key_and_a_counter(tensorflow, seed):
    raw, known = tensorflow.raw_ops, registry.known()
    wanted = raw.StatelessRandomGetKeyCounter(seed=np.int64(seed))
    place = known["StatelessRandomGetKeyCounter"].evaluate(np.int64(seed))
    assert all_equal((place, results(tuple(part.numpy() for part in wanted))))
    end = np.uint64([2**64 - 1, 2**32])  # the counter carries over
    for key, counter in (place, (place[0], end)):
        shape, alg = np.int32([3, 5]), np.int32(1)
        given = {"key": key, "counter": counter, "alg": alg}
        for dtype in ("int32", "int64", "uint32", "uint64"):
            full = raw.StatelessRandomUniformFullIntV2(shape=shape, **given, dtype=dtype).numpy()
            evaluate = known["StatelessRandomUniformFullIntV2"].evaluate
            assert equal((evaluate(shape, key, counter, alg, dtype=np.dtype(dtype)), full))
        for dtype in FLOATS:
            floats = raw.StatelessRandomUniformV2(shape=shape, **given, dtype=dtype).numpy()
            evaluate = known["StatelessRandomUniformV2"].evaluate
            assert equal((evaluate(shape, key, counter, alg, dtype=np.dtype(dtype)), floats))
        for low, high in ((np.int32(-7), np.int32(2**31 - 1)), (np.int64(-(2**62)), np.int64(5))):
            ends = {"minval": low, "maxval": high}
            numbers = raw.StatelessRandomUniformIntV2(shape=shape, **given, **ends).numpy()
            evaluate = known["StatelessRandomUniformIntV2"].evaluate
            assert equal((evaluate(shape, key, counter, alg, low, high), numbers))
        shuffled = raw.StatelessShuffle(value=np.arange(9), **given).numpy()
        assert equal(
            (known["StatelessShuffle"].evaluate(np.arange(9), key, counter, alg), shuffled)
        )


@pytest.mark.parametrize("seed", [[1, 2], [-(2**62), 2**63 - 1]])
def test_integers_of_a_seed_are_equal_bit_for_bit(tensorflow, seed):
    raw, known = tensorflow.raw_ops, registry.known()
    shape, numbers = np.int32([3, 5]), np.int64(seed)
    assert known["StatelessRandomGetAlg"].evaluate() == raw.StatelessRandomGetAlg().numpy()
    parts = raw.StatelessRandomGetKeyCounterAlg(seed=numbers)
    got = known["StatelessRandomGetKeyCounterAlg"].evaluate(numbers)
    assert all_equal((got, results(tuple(part.numpy() for part in parts))))
    evaluate = known["StatelessRandomUniformInt"].evaluate
    for low, high in ((np.int32(-7), np.int32(2**31 - 1)), (np.int64(-(2**62)), np.int64(5))):
        ends = {"minval": low, "maxval": high}
        wanted = raw.StatelessRandomUniformInt(shape=shape, seed=numbers, **ends).numpy()
        assert equal((evaluate(shape, numbers, low, high), wanted))
    for dtype in ("int32", "int64", "uint32", "uint64"):
        wanted = raw.StatelessRandomUniformFullInt(shape=shape, seed=numbers, dtype=dtype).numpy()
        got = known["StatelessRandomUniformFullInt"].evaluate(shape, numbers, dtype=np.dtype(dtype))
        assert equal((got, wanted))


@pytest.mark.parametrize("delta", [1, 7, 2**62])
@pytest.mark.parametrize("start", [[5, 0, 9], [-1, 3, -4]])
def test_a_generator_moves_on(tensorflow, start, delta):
    made = tensorflow.Variable(np.int64(start))
    alg, step = np.int32(1), np.uint64(delta)
    wanted = tensorflow.raw_ops.RngReadAndSkip(resource=made.handle, alg=alg, delta=step).numpy()
    variable = Variable("state", np.dtype(np.int64), np.int64(start))
    assert equal((registry.known()["RngReadAndSkip"].evaluate(variable, alg, step), wanted))
    assert equal((variable.value, made.numpy()))


def attributes_of(name, given):
    """Return attributes with the defaults of the op's definition, which an executor would add."""
    found = registry.known()[name].attributes
    return {**({"out_idx": np.dtype(np.int32)} if "out_idx" in found else {}), **given}


def both(tensorflow, name, inputs, attributes):
    """Return the results of the evaluator and of the kernel, or "refused" instead of results."""
    values = [np.asarray(value) for value in inputs.values()]
    try:
        found = results(registry.known()[name].evaluate(*values, **attributes_of(name, attributes)))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        found = [np.asarray("refused")]
    try:
        kernel = getattr(tensorflow.raw_ops, name)
        wanted = results(kernel(**dict(zip(inputs, values)), **attributes))
    except tensorflow.errors.InvalidArgumentError:
        wanted = [np.asarray("refused")]
    return found, wanted


def equal(pair, rtol=0.0):
    found, wanted = pair
    same = (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if found.dtype.kind not in "fc":
        return same and np.array_equal(found, wanted)
    return same and np.allclose(found, wanted, rtol=rtol, atol=0, equal_nan=True)


def all_equal(lists, rtol=0.0):
    found, wanted = lists
    return len(found) == len(wanted) and all(equal(pair, rtol) for pair in zip(found, wanted))


@pytest.mark.parametrize(
    "name, inputs, attributes",
    [pytest.param(*case[1:], id=f"{case[1]}-{case[0]}") for case in EXACT],
)
def test_exact_ops(tensorflow, name, inputs, attributes):
    known = signature(getattr(tensorflow.raw_ops, name)).parameters
    for attribute in attributes:
        if attribute not in known:
            pytest.skip(f"{name} has no attribute {attribute} in {tensorflow.__version__}")
    assert all_equal(both(tensorflow, name, inputs, attributes))


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("kind", ["Sum", "Mean", "SqrtN"])
def test_sparse_segments(tensorflow, kind, counted):
    inputs = {"data": ROWS, "indices": np.int32([3, 0, 1, 1]), "segment_ids": IDS}
    count = {"num_segments": np.int32(5)} if counted else {}
    name = f"SparseSegment{kind}{'WithNumSegments' if counted else ''}"
    assert all_equal(both(tensorflow, name, {**inputs, **count}, {}), rtol=3e-7)


@pytest.mark.parametrize("operation", ["a-b", "b-a", "intersection", "union", "A-B", "sum"])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "string"])
@pytest.mark.parametrize("shape", [[3, 4], [2, 2, 5], [2, 0], [4]])
def test_operations_on_sets(tensorflow, operation, dtype, shape):
    random, (*groups, length) = np.random.default_rng(0), shape
    inputs = {
        name: as_type(random.integers(0, 6, [*groups, size]), dtype)
        for name, size in (("set1", length), ("set2", 3))
    }
    attributes = {"set_operation": operation.encode()}
    assert all_equal(both(tensorflow, "DenseToDenseSetOperation", inputs, attributes))


def as_type(numbers, dtype):
    """Return integers as numbers or as strings."""
    return numbers.astype("S").astype(object) if dtype == "string" else numbers.astype(dtype)


@pytest.mark.parametrize("axes", [[0], [0, 1], []])
def test_euclidean_norms(tensorflow, axes):
    inputs = {"input": ROWS, "axis": np.int32(axes)}
    assert all_equal(both(tensorflow, "EuclideanNorm", inputs, {}), rtol=3e-7)


def test_losses_of_dense_labels(tensorflow):
    inputs = {"features": ROWS / 3, "labels": np.float32([[0.5, 0, 0.5]])}
    name = "SoftmaxCrossEntropyWithLogits"
    assert all_equal(both(tensorflow, name, inputs, {}), rtol=1e-6)


@pytest.mark.parametrize("to", [np.int32, np.float32, np.uint8, np.float64])
def test_bits_are_cast(tensorflow, to):
    value = np.float32([[1, -2], [np.inf, 3]])
    wanted = tensorflow.raw_ops.Bitcast(input=value, type=to).numpy()
    call = SimpleNamespace(precision=None)
    found = registry.known()["Bitcast"].evaluate(value, type=np.dtype(to), call=call)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    "begin, end, strides, masks",
    [
        ([1, 0], [2, 3], [1, 2], {"begin_mask": 2}),
        ([0, 0], [0, 2], [1, 1], {"ellipsis_mask": 1}),
        ([0, 1, 3], [0, 2, 0], [1, 1, -1], {"new_axis_mask": 1, "shrink_axis_mask": 2}),
    ],
)
def test_gradients_of_strided_slices(tensorflow, begin, end, strides, masks):
    parts = [np.int32(part) for part in (begin, end, strides)]
    named = dict(zip(("begin", "end", "strides"), parts))
    dy = tensorflow.raw_ops.StridedSlice(input=CUBE, **named, **masks).numpy()
    shape = np.int32(CUBE.shape)
    wanted = tensorflow.raw_ops.StridedSliceGrad(shape=shape, **named, dy=dy, **masks).numpy()
    found = registry.known()["StridedSliceGrad"].evaluate(shape, *parts, dy, **masks)
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == wanted.dtype


@pytest.mark.parametrize("batch", [3, 0])
@pytest.mark.parametrize("buckets", [0, 7])
@pytest.mark.parametrize("hashed", [True, False])
def test_crosses_of_sparse_columns(tensorflow, hashed, buckets, batch):
    columns = {
        "indices": [np.int64([[0, 0], [0, 1], [2, 0]]), np.int64([[0, 0], [1, 0], [2, 0]])],
        "values": [np.array([b"a", b"", b"a" * 40], object), np.int64([-5, 6, 2**62])],
        "shapes": [np.int64([3, 2]), np.int64([3, 1])],
        "dense_inputs": [np.array([[b"x", b"y"]] * 3, object)],
    }
    if not hashed:
        columns["values"][1] = np.array([b"p", b"q", b"r"], object)
    if batch == 0:
        columns = {key: [part[:0] for part in parts] for key, parts in columns.items()}
        columns["shapes"] = [np.int64([0, 2]), np.int64([0, 1])]
    options = {"hashed_output": hashed, "num_buckets": buckets, "hash_key": 956888297470}
    kind = np.dtype(np.int64 if hashed else object)
    types = dict.fromkeys(("out_type", "internal_type"), np.int64 if hashed else tensorflow.string)
    wanted = tensorflow.raw_ops.SparseCross(**columns, **options, **types)
    found = registry.known()["SparseCross"].evaluate(
        *columns.values(), **options, internal_type=kind
    )
    assert all_equal((found, [part.numpy() for part in wanted]))


@pytest.mark.parametrize("ends", [(-1, 1), (0, 1), (0.5, 3), (-3, -1), (0, 0), (-7.3, 100.1)])
def test_quantized_numbers(tensorflow, ends):
    """Quantizes two matrices, multiplies them, and returns to floats: equal at each step."""
    low, high = np.float32(ends)
    value = np.random.default_rng(0).normal(size=[30, 30]).astype(np.float32) * 5
    value[0, :4] = [np.inf, -np.inf, 0, -0.0]
    raw, known = tensorflow.raw_ops, registry.known()
    mode = {"mode": "MIN_COMBINED"}
    byte = {"T": np.dtype(np.uint8), "mode": b"MIN_COMBINED"}
    wanted = raw.QuantizeV2(input=value, min_range=low, max_range=high, T=tensorflow.quint8, **mode)
    found = known["QuantizeV2"].evaluate(value, low, high, **byte)
    numbers = tensorflow.bitcast(wanted[0], tensorflow.uint8)
    assert all_equal((found, [part.numpy() for part in (numbers, *wanted[1:])]))
    floats = raw.Dequantize(
        input=wanted[0], min_range=wanted[1], max_range=wanted[2], **mode
    ).numpy()
    assert equal((known["Dequantize"].evaluate(*found, **byte), floats))
    given = {"min_a": wanted[1], "max_a": wanted[2], "min_b": wanted[1], "max_b": wanted[2]}
    product = raw.QuantizedMatMul(
        a=wanted[0], b=wanted[0], **given, Toutput=tensorflow.qint32, transpose_b=True
    )
    integers = tensorflow.bitcast(product[0], tensorflow.int32)
    bytes_, *range_ = found
    results_ = known["QuantizedMatMul"].evaluate(
        bytes_, bytes_, *range_, *range_, Toutput=np.dtype(np.int32), transpose_b=True
    )
    assert all_equal((results_, [part.numpy() for part in (integers, *product[1:])]))
