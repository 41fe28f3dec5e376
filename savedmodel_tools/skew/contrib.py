"""Replacements for the ops of ``tensorflow.contrib`` and for removed core ops.

The table lists the ops that contrib had (its libraries were mapped in 1.4 to 1.15). Their
replacements cannot be read from a registry and are listed here by hand. Names and interfaces are
those of TensorFlow Addons 0.16.1 and TensorFlow IO 0.24.0. ``same`` means that inputs, outputs and
attrs were compared and are equal, so renaming the node is enough.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Optional

ADDONS, IO, TEXT = "tensorflow-addons", "tensorflow-io", "tensorflow-text"


class Replacement(NamedTuple):
    """The replacement of an op.

    Attributes:
      op: the op to use; "" when no op replaces it.
      package: the package to import before the model is loaded; "" for core TensorFlow.
      same: the op takes the same inputs and attrs.
      advice: what else to know, or what to do without an op.
    """

    op: str = ""
    package: str = ""
    same: bool = False
    advice: str = ""

    @property
    def text(self) -> str:
        """Return the replacement as one sentence."""
        if not self.op:
            return self.advice
        where = f"{self.package}'s op '{self.op}'" if self.package else f"the core op '{self.op}'"
        how = "takes the same inputs and attrs: rename the node" if self.same else "does the same"
        load = (
            f", and import {self.package.replace('-', '_')} before loading" if self.package else ""
        )
        return f"{where} {how}{load}" + (f"; {self.advice}" if self.advice else "")


_EXPORT = "rewrite that part of the model with core ops and export it again"
# Which releases have such an op is for the op history to say: the core had those of boosted trees
# until 2.8.
_RETRAIN = (
    "no newer op takes its place; TensorFlow Decision Forests trains and exports such trees again"
)
_READER = (
    "no replacement of its interface; TensorFlow IO has a reader of its own for this source, feed"
    " the model from outside"
)
_DATASET = "an input pipeline does not belong into a served graph; export without it"

_LISTED: dict[str, Replacement] = {
    "Resampler": Replacement("Addons>Resampler", ADDONS, True, "without bfloat16"),
    "ResamplerGrad": Replacement("Addons>ResamplerGrad", ADDONS, True, "without bfloat16"),
    "GatherTree": Replacement(
        "Addons>GatherTree", ADDONS, True, "TensorFlow 1.4's form had other inputs"
    ),
    "AdjustHsvInYiq": Replacement("Addons>AdjustHsvInYiq", ADDONS, True),
    "ImageConnectedComponents": Replacement(
        "Addons>ImageConnectedComponents", ADDONS, True, "without strings"
    ),
    "SkipGramGenerateCandidates": Replacement("Addons>SkipGramGenerateCandidates", ADDONS, True),
    "DecodeLibsvm": Replacement("IO>DecodeLibsvm", IO, True),
    "ImageProjectiveTransform": Replacement(
        "ImageProjectiveTransformV2",
        advice="with the output's shape as a third input; in core from 2.2 on",
    ),
    "ImageProjectiveTransformV2": Replacement(
        "ImageProjectiveTransformV2", same=True, advice="in core from 2.2 on"
    ),
    "BucketizeWithInputBoundaries": Replacement(
        "UpperBound",
        advice="of the boundaries and the values as rows, as `savedmodel-compat migrate` does",
    ),
    "SparseFeatureCross": Replacement(
        "SparseCross", advice="with other inputs and other hashes: weights behind it do not fit"
    ),
    "SparseFeatureCrossV2": Replacement(
        "SparseCross", advice="with N, dense_types, ... in the same roles; compare the answers"
    ),
    "FusedConv2DBiasActivation": Replacement(
        advice="Conv2D, BiasAdd and Relu give the same; the op had only GPU kernels"
    ),
    "BipartiteMatch": Replacement(advice=f"no library has it; {_EXPORT}"),
    "ZeroInitializer": Replacement("Assign", advice="of a Fill or Const of zeros"),
    "ZeroVarInitializer": Replacement("AssignVariableOp", advice="of a Fill or Const of zeros"),
    "KafkaDataset": Replacement("IO>KafkaDataset", IO, advice="with four more inputs"),
    "BytesInUse": Replacement(
        advice="tf.config.experimental.get_memory_info tells it outside the graph"
    ),
    "BytesLimit": Replacement(
        advice="tf.config.experimental.get_memory_info tells it outside the graph"
    ),
    "MaxBytesInUse": Replacement(
        advice="tf.config.experimental.get_memory_info tells it outside the graph"
    ),
    "TPUReplicate": Replacement(advice="a TPU program; export the model again for serving on CPU"),
    "CompareAndBitpack": Replacement(
        advice="removed after 2.5; Greater, Cast and a reduction give the same bits"
    ),
    "Rpc": Replacement(advice="removed after 2.4; call the service outside the graph"),
    "TryRpc": Replacement(advice="removed after 2.4; call the service outside the graph"),
    "BigQueryReader": Replacement(advice=_READER),
    "GenerateBigQueryReaderPartitions": Replacement(advice=_READER),
}

# Ops that are still there, and whose kernels are gone. The kernel of this one was std::lower_bound
# with the last bucket as limit.
_WITHOUT_KERNELS: dict[str, Replacement] = {
    "BoostedTreesBucketize": Replacement(
        "LowerBound",
        advice=(
            "for each of its inputs, with Minimum by the last index of the boundaries and Maximum"
            " by 0: exactly the same buckets, as `savedmodel-compat migrate` does; core Bucketize"
            " counts a value that equals a boundary to the next one"
        ),
    ),
}

# By the folder of the contrib library, for ops that are not listed by name.
_BY_FOLDER = {
    "batching": "the core has it since 1.8",
    "bigtable": _READER,
    "boosted_trees": _RETRAIN,
    "coder": "TensorFlow Compression (package tensorflow-compression) continues these ops",
    "factorization": f"no library has it; {_EXPORT}",
    "ffmpeg": "decode outside the model, or with tf.audio.decode_wav or tensorflow-io's tfio.audio",
    "hadoop": _READER,
    "ignite": _READER,
    "input_pipeline": _DATASET,
    "kafka": _READER,
    "kinesis": _READER,
    "nearest_neighbor": f"no library has it; {_EXPORT}",
    "periodic_resample": f"no library has it; {_EXPORT}",
    "reduce_slice_ops": (
        "no drop-in: the segment ops (SegmentSum, UnsortedSegmentMax, ...) over a ragged range do"
        " the same"
    ),
    "tensor_forest": _RETRAIN,
}


def replacement(op: str, library: str = "") -> Optional[Replacement]:
    """Return the replacement of an op that a release lacks; None when none is known.

    ``library``: the contrib library that had it, as the table says.
    """
    found = _LISTED.get(op) or _WITHOUT_KERNELS.get(op)
    if found is None and library.startswith("contrib/"):
        found = Replacement(
            advice=_BY_FOLDER.get(library.split("/")[1], f"no library has it; {_EXPORT}")
        )
    if found is None and op.startswith(("TensorForest", "BoostedTrees")):
        found = Replacement(advice=_RETRAIN)
    return found


# Ops that never belonged to TensorFlow: the package whose import registers them. Packages give
# their ops such a prefix, or are in the list, which their own registries wrote.
PACKAGES = {
    "Addons>": ADDONS,
    "IO>": IO,
    "TFText>": TEXT,
    "SimpleML": "tensorflow-decision-forests",
}
_TEXT = ("Sentencepiece", "Wordpiece")  # further ones of older releases
_LIST = Path(__file__).parent / "package_ops.txt"


@functools.cache
def _packages() -> Mapping[str, str]:
    """Return op -> package, from the list: blocks that begin with the name and the version of a
    package.
    """
    found: dict[str, str] = {}
    package = ""
    lines = _LIST.read_text(encoding="ascii").splitlines()
    for word in " ".join(line for line in lines if not line.startswith("#")).split():
        if word.startswith("tensorflow-"):
            package = word
        elif not word[0].isdigit():
            found[word] = package
    return found


def package(op: str) -> Optional[str]:
    """Return the package that registers an op unknown to every TensorFlow, by the op's name; None
    when no package is known.
    """
    found = _packages().get(op)
    if found is None and op.startswith(_TEXT):
        return TEXT
    return found or next((name for prefix, name in PACKAGES.items() if op.startswith(prefix)), None)
