"""Save an object as a SavedModel directory: run the stages of `reference_impl.saving.stages`.

RFC: API-01, API-02, API-03, API-04, API-05, FMT-09, FMT-10
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Optional, Union

import tensorflow as tf

from reference_impl import collector
from reference_impl import tensorflow_api as api
from reference_impl.errors import InsideFunctionError
from reference_impl.kinds.registry import Registry
from reference_impl.saving.contents import collect_contents
from reference_impl.saving.files import write_files
from reference_impl.saving.meta_graph import saved_model
from reference_impl.saving.options import SaveOptions, resolve
from reference_impl.saving.plan import plan_save
from reference_impl.saving.signatures import choose_signatures
from reference_impl.saving.stages import StageRunner
from reference_impl.saving.tree import number_objects
from reference_impl.saving.walk import walk
from reference_impl.tracing import Watch


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
    watch = None if chosen.trace is None else Watch(chosen.trace, export_dir)
    try:
        _save(obj, export_dir, given, chosen, StageRunner(watch))
    except Exception as error:
        if watch is not None:
            watch.tell_error(error)
        raise


def _save(
    obj: object,
    export_dir: Union[str, os.PathLike[str]],
    given: Optional[Any],
    options: SaveOptions,
    stages: StageRunner,
) -> None:
    with contextlib.nullcontext() if options.expand else api.as_first_replica():
        found = stages.run(walk, obj, options)
        signatures = stages.run(choose_signatures, found, given)
        tree = stages.run(number_objects, found, signatures, Registry(options.kinds))
    with collector.paused():  # not before: tracing makes garbage
        contents = stages.run(collect_contents, tree, signatures, options)
        with api.eager_mode():
            plan = stages.run(plan_save, contents, options)
            message = stages.run(saved_model, plan, options)
            stages.run(write_files, message, plan, export_dir, options)
