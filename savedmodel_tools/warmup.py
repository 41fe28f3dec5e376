"""The warm-up requests of a model: a model server answers them while it loads the model, before
anyone calls it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, Optional

from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.format.bundle.checksum import masked_crc32c
from reference_impl.format.container import layout
from reference_impl.format.container.files import map_file
from savedmodel_common import tensors
from savedmodel_common.limits import MAX_ELEMENTS
from savedmodel_common.serving import messages
from savedmodel_common.serving.tensors import from_protos
from savedmodel_common.serving.warmup_records import (
    MAX_RECORDS,
    Damaged,
    TooLong,
    records,
)
from savedmodel_common.tensors import Tensor

_UNSUPPORTED = "session_run_log"
_TRIED = 8  # of the requests of one signature


class Warmup(NamedTuple):
    """The warm-up requests of a model."""

    signatures: tuple[str, ...]  # those asked, in order, up to where a server stops reading
    refused: Optional[str] = (
        None  # why a server refuses the model; None if it may answer all requests
    )


def read(model: layout.Layout) -> Warmup:
    """Return what the warm-up requests of a model ask; nothing for a model without the file.

    Raises PathEscapeError, FileAccessError: the file is not a plain file of the model; LimitError:
    a record is too large.
    """
    asked: dict[str, None] = {}
    try:
        for log in _logs(model):
            asked.update(dict.fromkeys(name for name, _ in _requests(log)))
    except _Refused as refused:
        return Warmup(tuple(asked), str(refused))
    return Warmup(tuple(asked))


def requests_of(model: layout.Layout) -> dict[str, list[Any]]:
    """Return the first warm-up requests of each signature, as far as a server reads them.

    Raises what :func:`read` raises.
    """
    found: dict[str, list[Any]] = {}
    with suppress(_Refused):
        for log in _logs(model):
            for name, request in _requests(log):
                listed = found.setdefault(name, [])
                listed += [request] if len(listed) < _TRIED else []
    return found


def inputs_of(request: Any, names: Collection[str]) -> dict[str, Tensor] | None:
    """Return what a warm-up request asks a signature with these inputs; None for one that does not
    fit, or is larger than ours.

    Classify and Regress requests carry `tf.Example`s: they are the one input of their signature.
    Raises SavedModelError.
    """
    if isinstance(request, messages.PredictRequest):
        sizes = map(_elements, request.inputs.values())
        return from_protos(request.inputs) if all(size <= MAX_ELEMENTS for size in sizes) else None
    kind = request.input.WhichOneof("kind")
    if len(names) != 1 or kind is None:
        return None
    listed = getattr(request.input, kind)
    examples = list(listed.examples)
    for example in examples if kind == "example_list_with_context" else ():
        example.MergeFrom(listed.context)
    return {
        next(iter(names)): tensors.from_numpy(
            [one.SerializeToString(deterministic=True) for one in examples]
        )
    }


class _Refused(Exception):
    """Raised for warm-up requests that make a server refuse the model."""


def _logs(model: layout.Layout) -> Iterator[Any]:
    """Yield the PredictionLogs of a model. Raises _Refused, and what :func:`read` raises."""
    if not model.root.exists(layout.WARMUP_REQUESTS):
        return
    file = model.root.path(layout.WARMUP_REQUESTS)
    try:
        for number, record in enumerate(
            records(map_file(file), masked_crc32c, limits.WARMUP_RECORD_BYTES)
        ):
            if number >= MAX_RECORDS:
                raise _Refused(f"it has more than {MAX_RECORDS} records")
            log = schema.parse(messages.PredictionLog, record, file, f"record {number}")
            if log.WhichOneof("log_type") == _UNSUPPORTED:
                raise _Refused(f"record {number} is a {_UNSUPPORTED}, which servers do not support")
            yield log
    except TooLong as error:
        raise errors.LimitError(str(error), file=file, limit="WARMUP_RECORD_BYTES") from None
    except Damaged as error:
        raise _Refused(str(error)) from None
    except (errors.MalformedError, errors.TruncatedError) as error:
        raise _Refused(f"{error.node}: {error.reason}") from None


def _requests(log: Any) -> Iterator[tuple[str, Any]]:
    """Yield each signature that a PredictionLog asks, with its request."""
    kind = log.WhichOneof("log_type")
    if kind is None:
        return
    request = getattr(log, kind).request
    for asked in request.tasks if kind == "multi_inference_log" else (request,):
        yield asked.model_spec.signature_name or messages.DEFAULT_SIGNATURE, request


def _elements(proto: schema.TensorProto) -> int:
    """Return the number of elements that a tensor declares; 0 where a size is not known."""
    return math.prod(max(dim.size, 0) for dim in proto.tensor_shape.dim)
