"""Write the directory of an export: the SavedModel, the checkpoint, the asset files.

RFC: FMT-09, FMT-10
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Union

import numpy as np
import tensorflow as tf

from reference_impl.errors import LimitError
from reference_impl.format import limits, schema
from reference_impl.format.container.farmhash import fingerprints64
from reference_impl.format.container.fingerprint import fingerprint
from reference_impl.format.container.writer import LayoutWriter
from reference_impl.format.schema.ordered import ordered_bytes
from reference_impl.saving import checkpoint
from reference_impl.saving.checks import functions as checks
from reference_impl.saving.debug_info import debug_info
from reference_impl.saving.options import SaveOptions
from reference_impl.saving.plan import SavePlan

_FEW = 256  # bytes


def write_files(
    message: schema.SavedModel,
    plan: SavePlan,
    export_dir: Union[str, os.PathLike[str]],
    options: SaveOptions,
) -> None:
    """Write the directory of an export.

    An error leaves the old directory unchanged.

    Raises SaveError: the message is too large, or a variable has no value.
    """
    contents, functions = plan.contents, plan.contents.functions
    try:
        data = ordered_bytes(message)
    except LimitError as error:
        raise checks.too_large(limits.SAVED_MODEL_BYTES + 1, contents.tree, functions) from error
    writer = LayoutWriter(
        export_dir, replace=True, keep_others=True, stage=options.stage, sync=options.sync
    )
    with writer as out:
        prefix = out.checkpoint_prefix
        checkpoint.write(prefix, contents, options)
        for name, source in plan.assets.files.items():
            out.asset(name, source)
        for name, source in plan.assets.extra.items():
            out.extra_asset(name, source)
        if options.debug_info:
            out.debug_info(debug_info(functions.library, functions.traced))
        out.fingerprint(fingerprint(message, data, prefix, plan.assets.all_files, farm_hashes))
        out.saved_model(message, data=data)


def farm_hashes(items: Sequence[bytes]) -> list[int]:
    """Return the 64-bit FarmHash of each of several byte strings.

    For more than a few bytes, TensorFlow's public op is faster than our Python code.

    An op takes a third of the time if its method is a tensor already (growth of "save, functions"
    in docs/evidence/benchmarks.md).
    """
    few = iter(fingerprints64([data for data in items if len(data) <= _FEW]))
    return [next(few) if len(data) <= _FEW else _hash_of_op(data) for data in items]


def _hash_of_op(data: bytes) -> int:
    row = np.frombuffer(data, np.uint8).reshape(1, -1)
    found = tf.raw_ops.Fingerprint(data=row, method=_farm_hash_method()).numpy()
    return int.from_bytes(found.tobytes(), "little")


@functools.cache
def _farm_hash_method() -> tf.Tensor:
    with tf.init_scope():
        return tf.constant("farmhash64")
