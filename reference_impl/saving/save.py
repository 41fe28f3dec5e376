"""Save an object as a SavedModel directory, in the stages that `reference_impl.saving` lists.

RFC: API-01, API-02, API-03, API-04, API-05, FMT-09, FMT-10
"""

from __future__ import annotations

import contextlib
import functools
import os
from typing import Any, Optional, Union

import numpy as np
import tensorflow as tf

from reference_impl import collector
from reference_impl import tensorflow_api as api
from reference_impl.errors import InsideFunctionError, LimitError
from reference_impl.format import limits, schema
from reference_impl.format.container.farmhash import fingerprint64
from reference_impl.format.container.fingerprint import fingerprint
from reference_impl.format.container.writer import LayoutWriter
from reference_impl.format.schema.ordered import ordered_bytes
from reference_impl.kinds.registry import Registry
from reference_impl.saving import checkpoint
from reference_impl.saving.checks import functions as checks
from reference_impl.saving.collect import collect
from reference_impl.saving.debug_info import debug_info
from reference_impl.saving.freeze import Frozen, freeze
from reference_impl.saving.meta_graph import saved_model
from reference_impl.saving.options import SaveOptions, resolve
from reference_impl.saving.reach import reach
from reference_impl.saving.signatures import choose
from reference_impl.saving.tree import GrowingTree

_FEW = 256  # bytes


def save(
    obj: object,
    export_dir: Union[str, os.PathLike[str]],
    given: Optional[Any],
    options: Optional[Any],
) -> None:
    """Save an object; see `reference_impl.api.save`.

    Files are written only after all checks have passed.
    """
    if tf.inside_function():
        raise InsideFunctionError(
            "saving inside of a tf.function is not possible: take the call out of it", node="save"
        )
    chosen = resolve(options)
    with contextlib.nullcontext() if chosen.expand else api.as_first_replica():
        reached = reach(obj, chosen)
        signatures = choose(reached, given)
        tree = GrowingTree(reached, signatures, Registry(chosen.kinds))
    with collector.paused():  # not before: tracing makes garbage
        collected = collect(tree, signatures, chosen)
        with api.eager_mode():
            frozen = freeze(collected, chosen)
            _write(export_dir, frozen, saved_model(frozen, chosen), chosen)


def _write(
    export_dir: Union[str, os.PathLike[str]],
    frozen: Frozen,
    message: schema.SavedModel,
    options: SaveOptions,
) -> None:
    """Write the directory: the SavedModel, the checkpoint, the asset files.

    An error leaves the old directory unchanged.
    """
    functions, assets = frozen.collected.functions, frozen.assets
    try:
        data = ordered_bytes(message)
    except LimitError as error:
        raise checks.too_large(limits.SAVED_MODEL_BYTES + 1, frozen.tree, functions) from error
    writer = LayoutWriter(
        export_dir, replace=True, keep_others=True, stage=options.stage, sync=options.sync
    )
    with writer as out:
        checkpoint.write(out.checkpoint_prefix, frozen, options)
        for name, source in assets.files.items():
            out.asset(name, source)
        for name, source in assets.extra.items():
            out.extra_asset(name, source)
        if options.debug_info:
            out.debug_info(debug_info(functions.library, functions.traced))
        out.fingerprint(
            fingerprint(message, data, out.checkpoint_prefix, assets.all_files, farm_hash)
        )
        out.saved_model(message, data=data)


def farm_hash(data: bytes) -> int:
    """Return the 64-bit FarmHash.

    For more than a few bytes, TensorFlow's public op is faster than our Python code.

    An op takes a third of the time if its method is a tensor already (growth of "save, functions"
    in docs/benchmarks.md).
    """
    if len(data) <= _FEW:
        return fingerprint64(data)
    row = np.frombuffer(data, np.uint8).reshape(1, -1)
    return int.from_bytes(
        tf.raw_ops.Fingerprint(data=row, method=_farm_hash_method()).numpy().tobytes(), "little"
    )


@functools.cache
def _farm_hash_method() -> tf.Tensor:
    with tf.init_scope():
        return tf.constant("farmhash64")
