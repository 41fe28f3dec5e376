"""Every op of TensorFlow that takes a size is in one of the tables about sizes at load."""

import re

import pytest

from reference_impl.safety.known_tensors import OPS, PARTS
from reference_impl.safety.size_operands import BOUNDED, UNMEASURED

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tensorflow

SIZE = (
    "num shapes? dims? sizes? limits? stop multiples repeats times depth counts? lengths? n k"
    " paddings? samples minlength maxlength width height crops rows cols splits"
)
WORD = re.compile(
    rf"(^|_)({'|'.join(SIZE.split())})(_|$)|capacity|elements|sampled|buckets|^nbins|_bins$"
)
# Not numbers of elements: numbers of positions in other tensors, bounds of values.
OTHER = re.compile(r"nested|row_splits|explicit|sequence_length|seq_len|^(max|min)_|_(max|min)$")
# No kernel of a CPU of ours; a dataset makes nothing until it is iterated.
ELSEWHERE = re.compile(r"^_|Dataset|^Xla|TPU|Mkl|Nccl|Collective|^Load|SparseCore|Iterator")
KINDS = ("int", "shape", "list(int)", "list(shape)")


def ops():
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session
    from tensorflow.python.framework import kernels

    made = op_def_pb2.OpList.FromString(
        pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList())
    )
    here = {
        kernel.op
        for kernel in kernels.get_all_registered_kernels().kernel
        if kernel.device_type in ("CPU", "DEFAULT")
    }
    return [op for op in made.op if op.name in here and not ELSEWHERE.search(op.name)]


def size_names(op):
    """The inputs and attributes of an op that are called like a size."""
    counts = {argument.number_attr for argument in (*op.input_arg, *op.output_arg)}
    names = [argument.name for argument in op.input_arg]
    names += [attr.name for attr in op.attr if attr.type in KINDS and attr.name not in counts]
    return [name for name in names if WORD.search(name) and not OTHER.search(name)]


def test_an_op_with_a_size_has_a_rule_or_is_listed():
    listed = {*OPS, *PARTS, *UNMEASURED, *BOUNDED}
    found = {op.name: names for op in ops() if (names := size_names(op)) and op.name not in listed}
    assert not found, "add them to reference_impl/safety/size_operands.py"


def test_an_op_that_is_not_listed_is_noticed(monkeypatch):
    monkeypatch.delitem(UNMEASURED, "TensorListScatterV2")
    with pytest.raises(AssertionError, match="TensorListScatterV2"):
        test_an_op_with_a_size_has_a_rule_or_is_listed()
