"""Which ops make tensors of a size that a number gives them: an input, an attribute, or the content
of a file.

`known_tensors` has rules for most of them. ``UNMEASURED`` has the others, each with the operand
that decides its size. ``BOUNDED`` has ops that take such a number too, but make no more than a
small multiple of their inputs. A test holds the three against the registry of TensorFlow, so that a
new op is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

# Op with a rule -> the positions of the inputs whose numbers decide the size of its output.
_OPERANDS: tuple[tuple[tuple[int, ...], str], ...] = (
    (
        (0,),
        (
            "Empty Fill RandomUniform RandomStandardNormal TruncatedNormal NonDeterministicInts"
            " RandomUniformInt"
        ),
    ),
    (
        (0,),
        "ParameterizedTruncatedNormal RiscRandomUniform RandomGamma RandomPoisson RandomPoissonV2",
    ),
    (
        (0,),
        (
            "StatelessRandomUniform StatelessRandomUniformV2 StatelessRandomUniformInt"
            " StatelessRandomUniformIntV2"
        ),
    ),
    (
        (0,),
        (
            "StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2 StatelessRandomNormal"
            " StatelessRandomNormalV2"
        ),
    ),
    (
        (0,),
        "StatelessTruncatedNormal StatelessTruncatedNormalV2 StatelessParameterizedTruncatedNormal",
    ),
    (
        (0,),
        (
            "StatelessRandomBinomial StatelessRandomPoisson StatelessRandomGammaV2"
            " StatelessRandomGammaV3"
        ),
    ),
    (
        (0,),
        (
            "Conv2DBackpropInput Conv3DBackpropInputV2 DepthwiseConv2dNativeBackpropInput"
            " StridedSliceGrad"
        ),
    ),
    (
        (1,),
        (
            "Conv2DBackpropFilter Conv3DBackpropFilterV2 DepthwiseConv2dNativeBackpropFilter"
            " SparseToDense"
        ),
    ),
    ((0,), "TensorArray TensorArrayV2 TensorArrayV3"),
    (
        (1,),
        "StatefulStandardNormal BroadcastTo Tile Pad PadV2 MirrorPad OneHot Bincount DenseBincount",
    ),
    ((1,), "Multinomial StatelessMultinomial ScaleAndTranslate TensorListReserve TensorListResize"),
    ((1,), "ResizeNearestNeighbor ResizeBilinear ResizeBicubic ResizeArea"),
    ((1,), "RFFT RFFT2D RFFT3D IRFFT IRFFT2D IRFFT3D"),
    (
        (2,),
        (
            "StatefulUniform StatefulUniformInt StatefulUniformFullInt StatefulRandomBinomial"
            " ScatterNd LinSpace"
        ),
    ),
    (
        (2,),
        (
            "StatefulStandardNormalV2 StatefulTruncatedNormal ImageProjectiveTransformV2"
            " ImageProjectiveTransformV3"
        ),
    ),
    ((2,), "UnsortedSegmentSum UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd"),
    ((3,), "SparseSegmentSumGrad SparseSegmentMeanGrad SparseSegmentSqrtNGrad CropAndResize"),
    (
        (3,),
        (
            "SparseSegmentSumWithNumSegments SparseSegmentMeanWithNumSegments"
            " SparseSegmentSqrtNWithNumSegments"
        ),
    ),
    ((0, 1), "SobolSample"),
    ((0, 1, 2), "Range"),
    ((1, 2), "SpaceToBatchND"),
)
OPERANDS: dict[str, tuple[int, ...]] = {}
for _positions, _names in _OPERANDS:
    OPERANDS.update(dict.fromkeys(_names.split(), _positions))
_STITCHES = ("DynamicStitch", "ParallelDynamicStitch")  # their first half of inputs are the indices


def size_operands(op: str, inputs: int) -> Sequence[int]:
    """Return the positions of the inputs whose numbers decide the size of the output of an op with
    a rule.
    """
    return range(inputs // 2) if op in _STITCHES else OPERANDS.get(op, ())


_UNMEASURED: Mapping[str, str] = {
    "a shape": (
        "AvgPoolGrad AvgPool3DGrad FractionalAvgPoolGrad RaggedTensorToTensor"
        " RaggedTensorToVariantGradient SparseFillEmptyRows SparseReduceMax SparseReduceSum"
        " SparseTensorDenseMatMul SparseTensorToCSRSparseMatrix TensorArrayPack TensorArrayGather"
        " TensorArrayGatherV2 TensorArrayGatherV3 TensorArrayConcat TensorArrayConcatV2"
        " TensorArrayConcatV3 TensorListGather TensorListConcat TensorListConcatV2"
        " TensorListPopBack MapDefun ParseExample ParseExampleV2 ParseSequenceExample"
        " ParseSequenceExampleV2 ParseSingleExample ParseSingleSequenceExample"
    ),
    "a size": (
        "CropAndResizeGradImage DecodePaddedRaw DecodeWav ExtractGlimpse ExtractGlimpseV2"
        " FusedPadConv2D FusedResizeAndPadConv2D QuantizedResizeBilinear ResizeNearestNeighborGrad"
        " SpaceToBatch StringNGrams AudioSpectrogram AudioMicrofrontend Mfcc"
        " UniformQuantizedConvolution UniformQuantizedConvolutionHybrid QuantizedConv2DAndRelu"
        " QuantizedConv2DAndReluAndRequantize QuantizedConv2DAndRequantize QuantizedConv2DWithBias"
        " QuantizedConv2DWithBiasAndRelu QuantizedConv2DWithBiasAndReluAndRequantize"
        " QuantizedConv2DWithBiasAndRequantize QuantizedConv2DWithBiasSignedSumAndReluAndRequantize"
        " QuantizedConv2DWithBiasSumAndRelu QuantizedConv2DWithBiasSumAndReluAndRequantize"
        " QuantizedDepthwiseConv2DWithBiasAndRelu"
        " QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize"
    ),
    "a number": (
        "TensorListScatter TensorListScatterV2 HistogramFixedWidth RaggedBincount SparseBincount"
        " UnsortedSegmentJoin KmeansPlusPlusInitialization GenerateVocabRemapping"
        " AllCandidateSampler FixedUnigramCandidateSampler LearnedUnigramCandidateSampler"
        " LogUniformCandidateSampler ThreadUnsafeUnigramCandidateSampler UniformCandidateSampler"
        " NonMaxSuppressionV4 NonMaxSuppressionV5 CombinedNonMaxSuppression CTCBeamSearchDecoder"
        " CustomAggregator NegTrain QueueDequeueMany QueueDequeueManyV2 RecordInput Skipgram Batch"
        " BatchFunction ThreadPoolHandle ExperimentalThreadPoolHandle DebugIdentityV2 RaggedRange"
    ),
    "a product of its inputs": "RaggedCross SparseCross SparseCrossHashed SparseCrossV2",
    "what its input unpacks to": (
        "DecodeAndCropJpeg DecodeBmp DecodeCompressed DecodeGif DecodeImage DecodeJpeg DecodePng "
        "DecodeWebP"
    ),
    "a dataset": (
        "DatasetToSingleElement ExperimentalDatasetToTFRecord DatasetToTFRecord GetElementAtIndex"
        " IteratorGetNext IteratorGetNextAsOptional IteratorGetNextSync ReduceDataset"
    ),
}
# Op without a rule -> what decides the size of its output.
UNMEASURED: dict[str, str] = {}
for _by, _names in _UNMEASURED.items():
    UNMEASURED.update(dict.fromkeys(_names.split(), _by))


def _ops(*rows: str) -> frozenset[str]:
    return frozenset(" ".join(rows).split())


def _prefixed(prefix: str, ops: Iterable[str]) -> frozenset[str]:
    return frozenset(prefix + op for op in ops)


BOUNDED = _ops(
    # The number limits, selects or checks. The output is part of an input, of the checkpoint or of
    # a file.
    "ApproxTopK BatchMatrixBandPart BatchToSpace BatchToSpaceND ComputeAccidentalHits ConcatOffset"
    " CountUpTo EncodeProto",
    "DepthToSpace InTopK InTopKV2 InitializeTableFromTextFile InitializeTableFromTextFileV2"
    " ImmutableConst LRN LRNGrad",
    "MatrixBandPart MatrixDiagPartV2 MatrixDiagPartV3 MatrixSetDiagV2 MatrixSetDiagV3 MirrorPadGrad"
    " NearestNeighbors NthElement",
    "NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionWithOverlaps Print"
    " QuantizedConcat",
    "QuantizedReshape RandomCrop ReaderReadUpTo ReaderReadUpToV2 ResourceCountUpTo ResourceGather"
    " RestoreSlice RestoreV2",
    "Reverse ReverseSequence SaveSlices SaveV2 SetSize ShardedFilename ShardedFilespec SpaceToDepth"
    " TileGrad TopK TopKV2",
    "UnicodeEncode UnravelIndex DecodeCSV Conv",
    # The entries of sparse tensors; a dense shape is only a number there.
    "AddManySparseToTensorsMap AddSparseToTensorsMap DenseCountSparseOutput"
    " DenseToSparseSetOperation EditDistance",
    "RaggedCountSparseOutput SerializeManySparse SerializeSparse SparseAdd SparseConcat"
    " SparseCountSparseOutput",
    "SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul SparseReduceMaxSparse"
    " SparseReduceSumSparse SparseReorder",
    "SparseReshape SparseSlice SparseSoftmax SparseSparseMaximum SparseSparseMinimum SparseSplit"
    " SparseTensorDenseAdd",
    "SparseToSparseSetOperation",
    # Containers that are empty when they are made, and the elements taken out of them.
    "AccumulatorTakeGradient AnonymousMutableHashTableOfTensors Barrier BarrierTakeMany"
    " ConditionalAccumulator EmptyTensorList",
    "FIFOQueue FIFOQueueV2 MutableHashTableOfTensors MutableHashTableOfTensorsV2 PaddingFIFOQueue"
    " PaddingFIFOQueueV2",
    "PriorityQueue PriorityQueueV2 QueueDequeueUpTo QueueDequeueUpToV2 RandomShuffleQueue"
    " RandomShuffleQueueV2",
    "ResourceAccumulatorTakeGradient ResourceConditionalAccumulator SparseAccumulatorApplyGradient",
    "SparseAccumulatorTakeGradient SparseConditionalAccumulator StackV2 TensorArrayGradWithShape",
    "TensorArraySplit TensorArraySplitV2 TensorArraySplitV3 TensorListSplit",
    "Stage StageClear StagePeek StageSize Unstage OptionalGetValue UncompressElement WindowOp",
    # Control flow, whose bodies are followed, and nodes that get their value from outside.
    "Case For If Placeholder PlaceholderV2 StatelessCase StatelessIf StatelessWhile While",
    # The number is one of bits, of tries, of rounds.
    "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVars"
    " FakeQuantWithMinMaxVarsGradient",
    "FakeQuantWithMinMaxVarsPerChannel FakeQuantWithMinMaxVarsPerChannelGradient"
    " QuantizeAndDequantize",
    "QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4"
    " SampleDistortedBoundingBox",
    "SampleDistortedBoundingBoxV2 SdcaOptimizer SdcaOptimizerV2 StatelessSampleDistortedBoundingBox"
    " StringToHashBucket",
    "StringToHashBucketFast StringToHashBucketStrong",
).union(
    *[
        _prefixed(
            prefix, ("Clear", "IncompleteSize", "Peek", "Size", "Stage", "Unstage", "UnstageNoKey")
        )
        for prefix in ("Map", "OrderedMap")
    ]
)
