"""Each op gives the results of TensorFlow's kernel, within the stated number of ulp.

Hypothesis draws shapes that broadcast and values with edges: NaN, infinities, -0.0, the largest and
the smallest numbers, empty tensors.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as shapes

from reference_eval import registry

pytestmark = pytest.mark.tensorflow

FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
FLOATS, INTEGERS = ("float32", "float64"), ("int32", "int64")
NUMBERS = FLOATS + INTEGERS

# op -> (dtypes, ulp)
UNARY = {
    "Abs": (NUMBERS, 0),
    "Ceil": (FLOATS, 0),
    "Erf": (("float32",), 4),
    "Exp": (FLOATS, 2),
    "Expm1": (FLOATS, 4),
    "Floor": (FLOATS, 0),
    "IsFinite": (FLOATS, 0),
    "IsInf": (FLOATS, 0),
    "IsNan": (FLOATS, 0),
    "Log": (FLOATS, 2),
    "Log1p": (FLOATS, 4),
    "Neg": (NUMBERS, 0),
    "OnesLike": (NUMBERS, 0),
    "Relu": (NUMBERS, 0),
    "Relu6": (NUMBERS, 0),
    "Rint": (FLOATS, 0),
    "Round": (FLOATS, 0),
    "Rsqrt": (FLOATS, 2),
    "Sigmoid": (FLOATS, 4),
    "Sign": (NUMBERS, 0),
    "Softsign": (FLOATS, 1),
    "Sqrt": (FLOATS, 0),
    "Square": (NUMBERS, 0),
    "Tanh": (FLOATS, 4),
    "ZerosLike": (NUMBERS, 0),
}
BINARY = {
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
