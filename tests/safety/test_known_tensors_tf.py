"""What `known_tensors` says of a tensor, against the tensor that TensorFlow makes: shape, dtype and
numbers.
"""

import numpy as np
import pytest

from reference_impl.format import schema
from reference_impl.graph.graph_view import GraphView
from reference_impl.safety.known_tensors import OPS, PARTS
from reference_impl.safety.load_sizes import LoadSizes

tf = pytest.importorskip("tensorflow")
raw = tf.raw_ops
ONES = np.ones([2, 3], np.float32)
IMAGE = np.ones([1, 4, 4, 2], np.float32)
ROW = np.arange(1, 7, dtype=np.int32)
SEED = np.int32([1, 2])


CASES = {
    "Add": lambda: raw.Add(x=ROW, y=3),
    "AddN": lambda: raw.AddN(inputs=[ROW, ROW]),
    "AddV2_broadcast": lambda: raw.AddV2(x=np.ones([3, 1], np.int32), y=np.ones([1, 4], np.int32)),
    "AddV2_overflow": lambda: raw.AddV2(x=np.int32(2**31 - 1), y=np.int32(1)),
    "Mul_overflow": lambda: raw.Mul(x=np.int32(65536), y=np.int32(65537)),
    "Sub": lambda: raw.Sub(x=ROW, y=ROW[::-1]),
    "Pow": lambda: raw.Pow(x=ROW, y=3),
    "FloorDiv": lambda: raw.FloorDiv(x=-ROW, y=2),
    "FloorMod": lambda: raw.FloorMod(x=-ROW, y=4),
    "RealDiv": lambda: raw.RealDiv(x=np.float32([1, 2]), y=np.float32([4, 5])),
    "LeftShift": lambda: raw.LeftShift(x=ROW, y=ROW),
    "Maximum": lambda: raw.Maximum(x=ROW, y=3),
    "Neg": lambda: raw.Neg(x=ROW),
    "Cast": lambda: raw.Cast(x=np.float32([1.75, -2.25]), DstT=tf.int64),
    "Cast_narrow": lambda: raw.Cast(x=np.int32([300, -300]), DstT=tf.int8),
    "Round": lambda: raw.Round(x=np.float32([1.5, 2.5])),
    "Less": lambda: raw.Less(x=ROW, y=3),
    "LogicalAnd": lambda: raw.LogicalAnd(x=np.array([True, False]), y=np.array([True, True])),
    "SelectV2": lambda: raw.SelectV2(condition=np.array([True, False, True]), t=ROW[:3], e=ROW[3:]),
    "ZerosLike": lambda: raw.ZerosLike(x=ROW),
    "OnesLike": lambda: raw.OnesLike(x=ONES),
    "BitwiseXor": lambda: raw.BitwiseXor(x=ROW, y=ROW[::-1]),
    "Sum": lambda: raw.Sum(input=ROW, axis=0),
    "Sum_axis": lambda: raw.Sum(input=ONES, axis=[1], keep_dims=True),
    "Prod": lambda: raw.Prod(input=ROW, axis=[0]),
    "Max": lambda: raw.Max(input=ONES, axis=[-1]),
    "Min": lambda: raw.Min(input=ROW, axis=0),
    "Mean": lambda: raw.Mean(input=np.float32([1, 2, 4]), axis=0),
    "Mean_integers": lambda: raw.Mean(input=np.int32([1, 2, 5]), axis=0),
    "All": lambda: raw.All(input=np.array([True, False]), axis=0),
    "Fill": lambda: raw.Fill(dims=[2, 3], value=7),
    "Range": lambda: raw.Range(start=1, limit=9, delta=3),
    "Range_down": lambda: raw.Range(start=9, limit=1, delta=-3),
    "Range_float": lambda: raw.Range(
        start=np.float32(0), limit=np.float32(1), delta=np.float32(0.25)
    ),
    "LinSpace": lambda: raw.LinSpace(start=0.0, stop=1.0, num=5),
    "Tile": lambda: raw.Tile(input=ONES, multiples=[2, 3]),
    "Pad": lambda: raw.Pad(input=ONES, paddings=[[1, 2], [3, 4]]),
    "PadV2": lambda: raw.PadV2(input=ONES, paddings=[[1, 2], [0, 4]], constant_values=1.0),
    "MirrorPad": lambda: raw.MirrorPad(input=ONES, paddings=[[1, 1], [1, 2]], mode="REFLECT"),
    "OneHot": lambda: raw.OneHot(indices=ROW, depth=9, on_value=1.0, off_value=0.0),
    "Pack": lambda: raw.Pack(values=[np.int32(1), np.int32(5)]),
    "Pack_axis": lambda: raw.Pack(values=[ONES, ONES], axis=2),
    "Concat": lambda: raw.Concat(concat_dim=1, values=[ONES, ONES]),
    "ConcatV2": lambda: raw.ConcatV2(values=[ROW, ROW], axis=-1),
    "Reshape": lambda: raw.Reshape(tensor=ROW, shape=[2, -1]),
    "ExpandDims": lambda: raw.ExpandDims(input=ONES, axis=-1),
    "Squeeze": lambda: raw.Squeeze(input=np.ones([1, 2, 1], np.int32), axis=[0]),
    "Squeeze_all": lambda: raw.Squeeze(input=np.ones([1, 2, 1], np.int32)),
    "Transpose": lambda: raw.Transpose(x=IMAGE, perm=[3, 0, 2, 1]),
    "Shape": lambda: raw.Shape(input=IMAGE),
    "Size": lambda: raw.Size(input=IMAGE, out_type=tf.int64),
    "Rank": lambda: raw.Rank(input=IMAGE),
    "ShapeN": lambda: raw.ShapeN(input=[IMAGE, ONES]),
    "StridedSlice": lambda: tf.constant(ROW)[1:5:2],
    "StridedSlice_one": lambda: tf.constant(ROW)[-2],
    "StridedSlice_end": lambda: tf.constant(ROW)[:-1],
    "Slice": lambda: raw.Slice(input=ROW, begin=[1], size=[-1]),
    "Slice_matrix": lambda: raw.Slice(input=ONES, begin=[1, 0], size=[1, 2]),
    "MatMul": lambda: raw.MatMul(a=ONES, b=ONES, transpose_a=True),
    "MatMul_right": lambda: raw.MatMul(a=ONES, b=ONES, transpose_b=True),
    "BatchMatMulV2": lambda: raw.BatchMatMulV2(
        x=np.ones([5, 2, 3], np.float32), y=ONES, adj_y=True
    ),
    "Gather": lambda: raw.Gather(params=ONES, indices=[0, 1, 1]),
    "GatherV2": lambda: raw.GatherV2(params=ONES, indices=[[0], [1]], axis=1),
    "Diag": lambda: raw.Diag(diagonal=ROW),
    "MatrixDiag": lambda: raw.MatrixDiag(diagonal=ONES),
    "MatrixDiagV3": lambda: raw.MatrixDiagV3(
        diagonal=ROW, k=0, num_rows=-1, num_cols=-1, padding_value=0
    ),
    "MatrixDiagV3_asked": lambda: raw.MatrixDiagV3(
        diagonal=ROW, k=0, num_rows=8, num_cols=6, padding_value=0
    ),
    "MatrixDiagV3_above": lambda: raw.MatrixDiagV3(
        diagonal=ROW, k=2, num_rows=-1, num_cols=-1, padding_value=0
    ),
    "UnsortedSegmentSum": lambda: raw.UnsortedSegmentSum(
        data=ONES, segment_ids=[0, 1], num_segments=5
    ),
    "ResizeBilinear": lambda: raw.ResizeBilinear(images=IMAGE, size=[3, 5]),
    "ResizeNearestNeighbor": lambda: raw.ResizeNearestNeighbor(
        images=IMAGE.astype(np.uint8), size=[3, 5]
    ),
    "ScaleAndTranslate": lambda: raw.ScaleAndTranslate(
        images=IMAGE, size=[3, 5], scale=[1.0, 1.0], translation=[0.0, 0.0]
    ),
    "CropAndResize": lambda: raw.CropAndResize(
        image=IMAGE, boxes=np.zeros([3, 4], np.float32), box_ind=[0, 0, 0], crop_size=[5, 6]
    ),
    "SpaceToBatchND": lambda: raw.SpaceToBatchND(
        input=IMAGE, block_shape=[2, 2], paddings=[[0, 2], [1, 1]]
    ),
    "RFFT": lambda: raw.RFFT(input=ONES, fft_length=[2]),
    "IRFFT": lambda: raw.IRFFT(input=ONES.astype(np.complex64), fft_length=[4]),
    "RFFT2D": lambda: raw.RFFT2D(input=IMAGE, fft_length=[3, 2]),
    "Bincount": lambda: raw.Bincount(arr=ROW, size=9, weights=np.float32([])),
    "DenseBincount": lambda: raw.DenseBincount(
        input=np.ones([2, 3], np.int32), size=9, weights=np.float32([])
    ),
    "DynamicStitch": lambda: raw.DynamicStitch(indices=[[0, 4], [2]], data=[ONES, ONES[:1]]),
    "ScatterNd": lambda: raw.ScatterNd(indices=[[1]], updates=[2.0], shape=[7]),
    "SparseToDense": lambda: raw.SparseToDense(
        sparse_indices=[[1]], output_shape=np.int32([7]), sparse_values=[2.0], default_value=0.0
    ),
    "BroadcastTo": lambda: raw.BroadcastTo(input=ONES, shape=[4, 2, 3]),
    "SegmentSum": lambda: raw.SparseSegmentSumWithNumSegments(
        data=ONES, indices=[0, 1], segment_ids=[0, 1], num_segments=6
    ),
    "SparseSegmentSumGrad": lambda: raw.SparseSegmentSumGrad(
        grad=ONES, indices=[0, 1], segment_ids=[0, 1], output_dim0=6
    ),
    "Multinomial": lambda: raw.Multinomial(logits=ONES, num_samples=6),
    "RandomUniform": lambda: raw.RandomUniform(shape=[3, 4], dtype=tf.float64),
    "RandomUniformInt": lambda: raw.RandomUniformInt(shape=[3, 4], minval=0, maxval=9),
    "RandomGamma": lambda: raw.RandomGamma(shape=[3], alpha=ONES),
    "RandomPoissonV2": lambda: raw.RandomPoissonV2(shape=[3], rate=ONES),
    "TruncatedNormal": lambda: raw.TruncatedNormal(shape=[3], dtype=tf.float32),
    "StatelessRandomUniform": lambda: raw.StatelessRandomUniform(shape=[3, 2], seed=SEED),
    "StatelessRandomUniformInt": lambda: raw.StatelessRandomUniformInt(
        shape=[3, 2], seed=SEED, minval=0, maxval=3
    ),
    "StatelessRandomNormalV2": lambda: raw.StatelessRandomNormalV2(
        shape=[3, 2], key=np.uint64([1]), counter=np.uint64([1, 2]), alg=1
    ),
    "StatelessRandomGammaV3": lambda: raw.StatelessRandomGammaV3(
        shape=[4, 2, 3], key=np.uint64([1]), counter=np.uint64([1, 2]), alg=1, alpha=ONES
    ),
    "StatelessMultinomial": lambda: raw.StatelessMultinomial(logits=ONES, num_samples=6, seed=SEED),
    "SobolSample": lambda: raw.SobolSample(dim=2, num_results=5, skip=0),
    "Empty": lambda: raw.Empty(shape=[3], dtype=tf.float64),
    "Split": lambda: raw.Split(axis=1, value=ONES, num_split=3),
    "SplitV": lambda: raw.SplitV(value=ROW, size_splits=[2, -1, 1], axis=0, num_split=3),
    "Unpack": lambda: raw.Unpack(value=ROW, num=6),
    "Unpack_axis": lambda: raw.Unpack(value=ONES, num=3, axis=1),
    "IdentityN": lambda: raw.IdentityN(input=[ONES, ROW]),
    "ReverseV2": lambda: raw.ReverseV2(tensor=ROW, axis=[0]),
    "StringJoin": lambda: raw.StringJoin(inputs=[["a", "bc"], "def"]),
    "AsString": lambda: raw.AsString(input=ROW, width=40),
    "TensorListStack": lambda: raw.TensorListStack(
        input_handle=raw.TensorListReserve(
            element_shape=[3], num_elements=4, element_dtype=tf.float32
        ),
        element_shape=[3],
        element_dtype=tf.float32,
    ),
    "TensorListGetItem": lambda: raw.TensorListGetItem(
        input_handle=raw.TensorListFromTensor(tensor=ONES, element_shape=[3]),
        index=1,
        element_shape=[3],
        element_dtype=tf.float32,
    ),
    "TensorListResize": lambda: raw.TensorListStack(
        input_handle=raw.TensorListResize(
            input_handle=raw.TensorListReserve(
                element_shape=[3], num_elements=1, element_dtype=tf.int32
            ),
            size=6,
        ),
        element_shape=[3],
        element_dtype=tf.int32,
    ),
    "VariableV2": lambda: raw.VariableV2(shape=[2, 3], dtype=tf.float32),
}
# Rules of ops that these cases meet as inputs.
UNASKED = [
    "_array",
    "_dense_table",
    "_first",
    "_handle",
    "_list",
    "_read",
    "_unstacked_list",
    "constant",
]
# Their tensors exist only when something has been assigned.
UNSET = ("VariableV2",)
UNKNOWN_SHAPE = ("MatrixDiagV3_above",)


@pytest.mark.parametrize("name", CASES)
def test_what_is_known_is_what_tensorflow_makes(name):
    graph = tf.Graph()
    with graph.as_default():
        made = CASES[name]()
        outputs = list(made) if isinstance(made, (list, tuple)) else [made]
    proto = schema.MetaGraphDef(
        graph_def=schema.parse(schema.GraphDef, graph.as_graph_def().SerializeToString())
    )
    known = LoadSizes(GraphView(proto), schema.SavedObjectGraph()).known(
        [node.name for node in proto.graph_def.node]
    )
    told = known[outputs[0].op.name]
    with tf.compat.v1.Session(graph=graph) as session:
        values = (
            [np.zeros(item.shape) for item in outputs] if name in UNSET else session.run(outputs)
        )
    assert len(told) == len(outputs)
    for item, tensor, value in zip(told, outputs, values):
        if name in UNKNOWN_SHAPE:
            assert item.shape is None
            continue
        assert item.shape == np.shape(value)
        assert item.dtype % 100 == tensor.dtype.base_dtype.as_datatype_enum
        if item.values is not None:
            np.testing.assert_allclose(
                np.reshape(np.asarray(item.values, np.asarray(value).dtype), item.shape), value
            )
        if tensor.dtype == tf.string:
            assert item.text >= sum(map(len, np.ravel(value)))


def test_the_rules_are_those_of_ops_that_are_asked():
    """A rule that no case asks is one that nobody has seen to be right, but for ops with the same
    rule.
    """
    asked = {name.partition("_")[0] for name in CASES}
    rules = {rule for op, rule in OPS.items() if op in asked}
    assert asked <= {*OPS, *PARTS, "SegmentSum"}
    assert {op for op in PARTS if op not in asked} == set()
    assert (
        sorted({rule.__qualname__ for rule in OPS.values()} - {rule.__qualname__ for rule in rules})
        == UNASKED
    )
