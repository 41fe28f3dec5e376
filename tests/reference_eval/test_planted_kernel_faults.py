"""A fault in a copy of an op turns the op's own tests red; the copy without it keeps them green.

The faults are those that a person makes: swapped operands, a wrong axis, another rounding, a missing
edge.
"""

import inspect
import sys
import types
from functools import partial

import pytest
import test_kernels as kernels

from reference_eval import registry

pytestmark = pytest.mark.tensorflow

KNOWN = registry.known  # not replaced by a test


def of_two(op, dtype="float32", ulp=0):
    return partial(kernels.test_ops_of_two_tensors, name=op, dtype=dtype, ulp=ulp)


def of_one(op, dtype="float32"):
    return partial(kernels.test_ops_of_one_tensor, name=op, dtype=dtype, ulp=kernels.UNARY[op][1])


def reduced(op):
    return partial(kernels.test_reductions_of_small_integers, name=op, dtype="float32")


def pooled(op, argument):
    return partial(kernels.test_pools, name=op, argument=argument, padding="SAME", size=2, stride=2)


def exact(op):
    """The tests of `test_exact_ops` that are about an op."""

    def test(tensorflow):
        for _, name, inputs, attributes in kernels.EXACT:
            if name == op:
                kernels.test_exact_ops(tensorflow, name, inputs, attributes)

    return test


multiplied = partial(kernels.test_matrix_products, dtype="float32")
convolved = partial(kernels.test_convolutions, padding="SAME", size=3, stride=2, dilation=1)
nearest = partial(kernels.test_nearest_pixels, size=[2, 9], align=False, half=False)
random_numbers = partial(
    kernels.test_stateless_random_numbers_are_equal_bit_for_bit, dtype="float32", seed=[1, 2]
)

# An id, the op, its text, the text with the fault, its test.
FAULTS = [
    ("swapped_operands", "Sub", "x - y", "y - x", of_two("Sub")),
    ("sign", "TruncateMod", "np.fmod(", "np.mod(", of_two("TruncateMod", "int32")),
    ("equal_counts", "Less", "return x < y", "return x <= y", of_two("Less")),
    ("smaller", "Maximum", "np.maximum", "np.minimum", of_two("Maximum")),
    ("sign", "FloorMod", "rest + y, rest", "rest, rest", of_two("FloorMod", "int32")),
    ("zero", "DivNoNan", "np.where(y == 0", "np.where(y == 1", of_two("DivNoNan")),
    ("half_up", "Round", "np.rint(x)", "np.floor(x + x.dtype.type(0.5))", of_one("Round")),
    ("no_bound", "Relu6", "np.asarray(6, x.dtype)", "np.asarray(9, x.dtype)", of_one("Relu6")),
    ("wrong_axis", "Sum", "axes_of(axes, value)", "axes_of(axes[:1] * 0, value)", reduced("Sum")),
    ("wrong_count", "Mean", "for axis in over", "for axis in over[:1]", reduced("Mean")),
    ("half", "MatMul", "else a,", "else a.astype(np.float16).astype(a.dtype),", multiplied),
    ("wrong_axis", "Conv2D", "[3, 4, 5]", "[4, 3, 5]", convolved),
    ("padding", "MaxPool", "lowest(value.dtype)", "0", pooled("MaxPool", "input")),
    ("padding", "AvgPool", "sums / counts", "sums / counts.max()", pooled("AvgPool", "value")),
    ("inclusive", "Cumsum", "if exclusive and", "if not exclusive and", exact("Cumsum")),
    ("smallest", "TopKV2", "order[..., :k]", "order[..., ::-1][..., :k]", exact("TopKV2")),
    ("wrong_axis", "Roll", "tuple(axis.ravel().tolist())", "-1", exact("Roll")),
    ("rounding", "ResizeNearestNeighbor", "else np.floor(places)", "else np.rint(places)", nearest),
    ("bits", "StatelessRandomUniform", "0x7FFFFF", "0x3FFFFF", random_numbers),
]


@pytest.fixture(scope="module")
def tensorflow():
    return pytest.importorskip("tensorflow")


def copy_of(name, old, new):
    """Return a copy of an op, with a part of its module's text replaced."""
    module = sys.modules[KNOWN()[name].evaluate.__module__]
    text = inspect.getsource(module)
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {module.__name__}"
    made = types.ModuleType(f"copy_of_{name}")
    exec(compile(text.replace(old, new), made.__name__, "exec", dont_inherit=True), vars(made))
    return next(
        one for one in vars(made).values() if isinstance(one, registry.Op) and name in one.names
    )


@pytest.mark.parametrize(
    "name, old, new, test", [pytest.param(*row[1:], id=f"{row[1]}-{row[0]}") for row in FAULTS]
)
def test_a_fault_in_a_copy_of_an_op_turns_its_tests_red(
    tensorflow, monkeypatch, name, old, new, test
):
    sound, broken = copy_of(name, old, old), copy_of(name, old, new)
    monkeypatch.setattr(registry, "known", lambda: KNOWN([sound]))
    test(tensorflow=tensorflow)
    monkeypatch.setattr(registry, "known", lambda: KNOWN([broken]))
    with pytest.raises(AssertionError):
        test(tensorflow=tensorflow)
