"""The checkpoint as files: index, shards, checksums."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from reference_impl import errors
from reference_impl.format.bundle.entry import shard_file
from reference_impl.format.container import layout
from savedmodel_tools.verify.findings import (
    Fault,
    Severity,
    few,
    graph_rule,
    model_rule,
)

if TYPE_CHECKING:
    from savedmodel_tools.verify.model import Graph, Model

_SHARD = re.compile(r"variables\.data-\d+-of-\d+\Z")
_INDEX = f"{layout.CHECKPOINT}.index"


@graph_rule(
    "SMC201",
    "checkpoint-missing",
    Severity.ERROR,
    summary="The graph restores values, or has an object graph, and there is no checkpoint.",
    why=(
        "C++ loaders and servers report success and fail at the first request that needs a value;"
        " `tf.saved_model.load` refuses, also an export of TF 2.x without variables, which always"
        " has a checkpoint."
    ),
    fix="Copy variables/ from the source, or export again.",
)
def checkpoint_missing(model: Model, graph: Graph) -> Iterator[Fault]:
    try:
        there = model.layout.has_checkpoint or model.layout.root.exists(layout.CHECKPOINT)
    except errors.SavedModelError as error:
        if not errors.about_the_model(error):
            raise
        return  # SMC202 says so
    if not there and not graph.plan and graph.has_objects:
        yield Fault(
            f"{_INDEX} does not exist, which every export with an object graph has", file=_INDEX
        )
    if not there and graph.plan:
        shards = [name for name in model.layout.root.names(layout.VARIABLES) if _SHARD.match(name)]
        held = f" ({layout.VARIABLES}/ has {', '.join(few(shards))})" if shards else ""
        yield Fault(
            f"{len(graph.plan)} values are restored, and {_INDEX} does not exist{held}", file=_INDEX
        )


@model_rule(
    "SMC202",
    "checkpoint-damaged",
    Severity.ERROR,
    summary=(
        "The checkpoint's index cannot be read, a shard is missing or too short, or one of them is"
        " a link out of the model."
    ),
    why="Loading fails, or the first request that needs a value of the damaged part does.",
    fix=(
        "Copy variables/ again from the source and compare sizes and checksums; the"
        " remaining files cannot repair it."
    ),
)
def checkpoint_damaged(model: Model) -> Iterator[Fault]:
    try:
        if model.reader is not None:
            model.reader.entries()
            model.reader.check_places()
    except errors.V1CheckpointError:
        return  # another rule
    except errors.SavedModelError as error:
        if not errors.about_the_model(error):
            raise  # nothing is known about the model then
        reason = f"{error.node}: {error.reason}" if error.node else error.reason
        yield Fault(f"{type(error).__name__}: {reason}", file=_inside(model, error, _INDEX))


def _inside(model: Model, error: errors.SavedModelError, default: str) -> str:
    """The file that an error is about, relative to the model."""
    base = str(model.layout.directory) + os.sep
    return (
        error.file[len(base) :].replace(os.sep, "/")
        if error.file and error.file.startswith(base)
        else default
    )


@model_rule(
    "SMC203",
    "value-damaged",
    Severity.ERROR,
    summary="A stored value does not have its checksum, or is not what its type says.",
    why="Loaders that check refuse the model; those that do not compute with wrong weights.",
    fix="Copy variables/ again from the source; the other values are intact.",
)
def value_damaged(model: Model) -> Iterator[Fault]:
    for key in model.entries or ():
        try:
            assert model.reader is not None
            model.reader.verify(key)
        except (errors.MissingFileError, errors.TruncatedError, errors.MissingKeyError):
            continue  # SMC202 has said so
        except errors.SavedModelError as error:
            if not errors.about_the_model(error):
                raise
            if isinstance(error, errors.FileAccessError):
                continue  # SMC202 and SMC108 have said so
            yield Fault(
                f"{type(error).__name__}: {error.reason}",
                node=key,
                file=_inside(model, error, _INDEX),
            )


@model_rule(
    "SMC204",
    "checkpoint-old-format",
    Severity.WARNING,
    summary="The checkpoint is in the format of TensorFlow before 0.12 (V1).",
    why=(
        "Only loaders that run the graph's own restore op read it; most converters and this program"
        " do not."
    ),
    fix=(
        "Restore it with a tf.compat.v1.train.Saver and save it again with write_version=V2, then"
        " export."
    ),
)
def checkpoint_old_format(model: Model) -> Iterator[Fault]:
    try:
        _ = model.reader
    except errors.V1CheckpointError as error:
        yield Fault(error.reason, file=layout.CHECKPOINT)
    except errors.SavedModelError as error:
        if not errors.about_the_model(error):
            raise
        return  # SMC202 says so


@model_rule(
    "SMC205",
    "stray-shard",
    Severity.WARNING,
    summary="variables/ holds shards that the index does not know.",
    why=(
        "Left over from another export into the same directory: it was not clean, and may be a"
        " mixture of two models."
    ),
    fix="Export into a fresh directory; once the model is proved, delete the shards.",
)
def stray_shard(model: Model) -> Iterator[Fault]:
    if model.entries is None or model.reader is None:
        return
    known = {
        shard_file("variables", number, model.reader.num_shards)
        for number in range(min(model.reader.num_shards, 10**5))
    }
    stray = [
        name
        for name in model.layout.root.names(layout.VARIABLES)
        if _SHARD.match(name) and name not in known
    ]
    if stray:
        yield Fault(
            f"not of this checkpoint: {', '.join(few(stray))}",
            file=f"{layout.VARIABLES}/{stray[0]}",
        )
