"""Captured constants that are damaged: `inspect`, `verify` and the decoder agree which they are."""

import itertools

import pytest

from property_tests.attacks import forge, objects
from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.values import dtypes, tensor_proto
from reference_impl.views.model import inspect
from savedmodel_tools.verify.run import verify

SHAPES = [[], [6], [2, 3], [7], [-9], [-1], [2, -1], [0], [2**40], [1] * 300, [2**62, 4]]


def tensors():
    """Tensors of every dtype: with the bytes of six elements, with six listed, with one, and with
    none.
    """
    kinds = [
        dtypes.by_number(number) for number in range(1, 35) if number in schema.DataType.values()
    ]
    for dtype, shape, stored in itertools.product(kinds, SHAPES, ("bytes", 6, 1, 0)):
        proto = schema.TensorProto(dtype=dtype.number)
        proto.tensor_shape.SetInParent()
        for size in shape:
            proto.tensor_shape.dim.add(size=size)
        field = tensor_proto._LIST_OF.get(dtype.name, "int_val")
        if stored == "bytes":
            proto.tensor_content = b"\x01" * (6 * (dtype.itemsize or 2))
        elif dtype.name == "string":
            proto.string_val.extend([b"x"] * stored)
        elif field != "float8_val":
            getattr(proto, field).extend([1] * stored)
        yield proto


def refusal(read, proto):
    try:
        read(proto)
    except SavedModelError as error:
        return type(error), error.reason
    return None


def test_a_check_refuses_what_decoding_refuses():
    seen = set()
    for proto in tensors():
        found = refusal(tensor_proto.check, proto)
        assert found == refusal(tensor_proto.decode, proto), proto
        seen.add(found and found[0].__name__)
    assert seen == {None, "ShapeError", "DtypeError", "LimitError"}


@pytest.mark.parametrize(
    "attack", [objects.constant_of_a_negative_size, objects.constant_of_other_bytes]
)
def test_damaged_constants_are_found(attack, tmp_path):
    attack(tmp_path / "model")
    assert [
        finding.rule
        for finding in verify(tmp_path / "model").findings
        if finding.severity.word == "error"
    ] == ["SMC315"]
    assert any(
        "constant of object 21" in problem for problem in inspect(tmp_path / "model").problems
    )


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "attack", [objects.constant_of_a_negative_size, objects.constant_of_other_bytes]
)
def test_they_are_not_loaded(attack, tmp_path):
    import reference_impl

    attack(tmp_path / "model")
    with pytest.raises(SavedModelError):
        reference_impl.load(tmp_path / "model")


def test_many_constants_that_grow_are_found(tmp_path):
    from property_tests.attacks import bombs

    bombs.many_huge_constants(tmp_path / "model")
    assert "SMC315" in {finding.rule for finding in verify(tmp_path / "model").findings}


def test_sound_constants(tmp_path):
    forge.write(tmp_path / "model", forge.seed("rfc_training_flag"))
    assert not any("constant" in problem for problem in inspect(tmp_path / "model").problems)
