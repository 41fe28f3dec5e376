"""The effects of ops on the machine they run on, by op name: the one table that `inspect`, `load`
and checks of models use.

An op has an effect if it does more than compute on tensors and the program's own state: it uses
files, the terminal, the network, code outside the model, or the process itself. Computing on
accelerators, clocks, and values exchanged inside a cluster that the process has set up do not
count. ``op_names.txt`` has the ops of all releases. An op that is neither in that file nor a
function of the model comes from another library, and its effects are unknown.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple, Optional, Union

READS, WRITES, PRINTS, CODE, NETWORK, PROCESS, MEMORY, UNMEASURED, UNKNOWN = (
    "reads files",
    "writes files",
    "prints",
    "runs other code",
    "uses the network",
    "changes the process",
    "takes memory",
    "takes memory that is not measured",
    "is not known",
)


class OpEffect(NamedTuple):
    """The effect of an op. Its kind is one of the constants above."""

    kind: str
    does: str  # the exact effect, as a verb with its object
    # The input (number), inputs or attribute (name) with the path, pattern or address.
    place: Union[int, tuple[int, ...], str, None] = None
    without: tuple[str, ...] = ()  # the op has no such effect where its path is one of these texts
    content: tuple[
        str, ...
    ] = ()  # nor where it begins with one of these: the text holds the content itself
    checkpoint: bool = (
        False  # whether the op saves or restores, so that the loading program names the file
    )


_OPTIONAL = ("",)  # the op may be given no path
# The streams of PrintV2 that are not files; "" stands for an absent attribute, which means stderr.
_TERMINAL = ("", "stderr", "stdout", "log(info)", "log(warning)", "log(error)")
# They name a Python function by a token that is valid only in the process that made it.
PYTHON_OPS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})

_ROWS: tuple[tuple[OpEffect, str], ...] = (
    (OpEffect(READS, "reads a file", 0), "ReadFile"),
    (
        OpEffect(READS, "lists files", 0),
        "MatchingFiles MatchingFilesDataset ExperimentalMatchingFilesDataset",
    ),
    (
        OpEffect(READS, "fills a table from a text file", 1),
        "InitializeTableFromTextFile InitializeTableFromTextFileV2",
    ),
    (
        OpEffect(READS, "reads records of files", 0),
        (
            "TFRecordDataset TFRecordDatasetV2 TextLineDataset FixedLengthRecordDataset"
            " FixedLengthRecordDatasetV2 CSVDataset CSVDatasetV2 ExperimentalCSVDataset LMDBDataset"
            " ExperimentalLMDBDataset SequenceFileDataset"
        ),
    ),
    (OpEffect(READS, "reads records of files", "file_pattern"), "RecordInput"),
    (
        OpEffect(READS, "reads the files that a queue names"),
        (
            "WholeFileReader WholeFileReaderV2 TextLineReader TextLineReaderV2 TFRecordReader"
            " TFRecordReaderV2 FixedLengthRecordReader FixedLengthRecordReaderV2 LMDBReader"
        ),
    ),
    (OpEffect(READS, "asks a database", 1), "SqlDataset ExperimentalSqlDataset"),
    (OpEffect(READS, "reads a vocabulary", (0, 1)), "GenerateVocabRemapping"),
    (
        OpEffect(READS, "reads a vocabulary", "vocab_file", _OPTIONAL),
        "FixedUnigramCandidateSampler",
    ),
    (OpEffect(READS, "maps a file into memory", "memory_region_name"), "ImmutableConst"),
    (OpEffect(READS, "reads a text", "filename"), "Skipgram"),
    (OpEffect(READS, "reads the state of an iterator", 1), "RestoreIterator"),
    (OpEffect(WRITES, "writes the state of an iterator", 1), "SaveIterator"),
    (
        OpEffect(
            READS,
            "reads message types from a file",
            "descriptor_source",
            _OPTIONAL,
            ("local://", "bytes://"),
        ),
        "DecodeProtoV2 EncodeProto",
    ),
    (
        OpEffect(READS, "reads a stored dataset", 0),
        "LoadDataset SnapshotDatasetReader SnapshotChunkDataset ListSnapshotChunksDataset",
    ),
    (OpEffect(READS, "reads a stored dataset"), "SnapshotNestedDatasetReader"),
    (OpEffect(READS, "reads a checkpoint", 0), "LoadAndRemapMatrix DTensorRestoreV2"),
    (OpEffect(READS, "reads a checkpoint", 0, checkpoint=True), "RestoreV2 Restore RestoreSlice"),
    (OpEffect(WRITES, "writes a checkpoint", 0, checkpoint=True), "SaveV2 Save SaveSlices"),
    (
        OpEffect(
            WRITES,
            "moves the parts of a checkpoint and deletes their directories",
            (0, 1),
            checkpoint=True,
        ),
        "MergeV2Checkpoints",
    ),
    (OpEffect(WRITES, "writes a file", 0), "WriteFile"),
    (OpEffect(WRITES, "writes a tensor to a file", "log_dir_path"), "DumpTensor"),
    (
        OpEffect(WRITES, "writes statistics to a file", "output_file_path"),
        "CalibrationStatisticsSaver",
    ),
    (
        OpEffect(WRITES, "writes a dataset", 1),
        (
            "DatasetToTFRecord ExperimentalDatasetToTFRecord SaveDataset SaveDatasetV2"
            " SnapshotDataset SnapshotDatasetV2"
        ),
    ),
    (OpEffect(WRITES, "has a service write a dataset", (1, 2)), "DistributedSave"),
    (OpEffect(WRITES, "keeps a dataset in files", 1, _OPTIONAL), "CacheDataset CacheDatasetV2"),
    (OpEffect(WRITES, "opens a log of summaries", (1, 4)), "CreateSummaryFileWriter"),
    (OpEffect(WRITES, "opens a log of summaries", 1), "CreateSummaryDbWriter"),
    (
        OpEffect(WRITES, "writes to a log of summaries"),
        (
            "WriteSummary WriteScalarSummary WriteHistogramSummary WriteImageSummary"
            " WriteAudioSummary WriteGraphSummary WriteRawProtoSummary ImportEvent"
            " StatsAggregatorSetSummaryWriter"
        ),
    ),
    (
        OpEffect(WRITES, "sends tensors to files or addresses", "debug_urls", _OPTIONAL),
        "DebugIdentity DebugIdentityV2 DebugIdentityV3 DebugNanCount DebugNumericSummary",
    ),
    (OpEffect(PRINTS, "prints"), "Print"),
    (OpEffect(WRITES, "prints to the file that it names", "output_stream", _TERMINAL), "PrintV2"),
    (OpEffect(CODE, "calls Python that the process has registered"), " ".join(sorted(PYTHON_OPS))),
    (OpEffect(CODE, "runs a graph that is in a string"), "DatasetFromGraph"),
    (OpEffect(CODE, "runs an MLIR module that is in a string"), "MlirPassthroughOp"),
    (
        OpEffect(
            CODE, "calls machine code that the process has registered under a name", "target_name"
        ),
        "XlaCustomCall",
    ),
    (
        OpEffect(
            CODE,
            "calls machine code that the process has registered under a name",
            "call_target_name",
        ),
        "XlaCustomCallV2",
    ),
    (
        OpEffect(CODE, "runs a TFLite graph that the process has registered"),
        "TfLiteSubgraphExecute",
    ),
    (
        OpEffect(CODE, "runs the program ffmpeg"),
        "DecodeAudio DecodeAudioV2 EncodeAudio EncodeAudioV2 DecodeVideo",
    ),
    (OpEffect(CODE, "runs a program on another processor"), "RemoteFusedGraphExecute"),
    (
        OpEffect(NETWORK, "runs a function on another device, which may be another machine"),
        "RemoteCall",
    ),
    (OpEffect(NETWORK, "calls a server", 0), "Rpc TryRpc RpcClient"),
    (OpEffect(NETWORK, "calls a server"), "RpcCall"),
    (OpEffect(NETWORK, "answers calls of others", 0), "RpcServer"),
    (OpEffect(NETWORK, "answers calls of others"), "RpcServerStart RpcServerRegister"),
    (
        OpEffect(NETWORK, "asks a service for data", 2),
        "DataServiceDataset DataServiceDatasetV2 DataServiceDatasetV3 DataServiceDatasetV4",
    ),
    (OpEffect(NETWORK, "hands a dataset to a service", 1), "RegisterDataset RegisterDatasetV2"),
    (
        OpEffect(NETWORK, "asks a database or a stream on the network"),
        (
            "BigQueryReader GenerateBigQueryReaderPartitions BigtableClient DatasetToBigtable"
            " IgniteDataset KafkaDataset KinesisDataset"
        ),
    ),
    (OpEffect(PROCESS, "ends the process"), "Abort"),
    (OpEffect(PROCESS, "sets when the process ends or is taken for dead"), "WorkerHeartbeat"),
    (
        OpEffect(PROCESS, "sets how the process reaches files"),
        "FileSystemSetConfiguration GcsConfigureBlockCache GcsConfigureCredentials",
    ),
    (
        OpEffect(PROCESS, "starts or stops accelerators"),
        (
            "ConfigureDistributedTPU ConfigureAndInitializeGlobalTPU ShutdownDistributedTPU"
            " ShutdownTPUSystem"
        ),
    ),
)

OP_EFFECTS: dict[str, OpEffect] = {}
for _effect, _ops in _ROWS:
    OP_EFFECTS.update(dict.fromkeys(_ops.split(), _effect))
# The effects of ops where their path has none.
WITHOUT_PATH = {"PrintV2": OpEffect(PRINTS, "prints")}
_NOT_KNOWN = OpEffect(
    UNKNOWN, "comes from a library that is not TensorFlow's; what it does is not known"
)


@functools.cache
def known_ops() -> frozenset[str]:
    """Return the ops of all examined releases of TensorFlow, 1.4 to the newest, including
    contrib.
    """
    return frozenset((Path(__file__).parent / "op_names.txt").read_text(encoding="ascii").split())


def op_effect(op: str, functions: Collection[str] = ()) -> Optional[OpEffect]:
    """Return the effect of an op on the machine, or None.

    Args:
      op: its name. An unknown one has the kind UNKNOWN.
      functions: the names of a model's functions, whose nodes are examined instead. A function
        cannot hide an op of the table under the op's name: TensorFlow refuses such a library, or
        runs the op.
    """
    effect = OP_EFFECTS.get(op)
    if effect is None and op not in functions and op not in known_ops():
        return _NOT_KNOWN
    return effect
