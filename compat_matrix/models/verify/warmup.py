"""What the warm-up requests of a model ask: a model server answers them while it loads the model, before anyone calls it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

from compat_matrix.serving import messages
from compat_matrix.serving.warmup_records import MAX_RECORDS, Damaged, TooLong, records
from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.format.bundle.checksum import masked_crc32c
from reference_impl.format.container import layout
from reference_impl.format.container.files import map_file

_UNSUPPORTED = "session_run_log"


class Warmup(NamedTuple):
    """The warm-up requests of a model.

    Attributes:
      signatures: those asked, in order, up to where a server stops reading.
      refused: why a server refuses the model; None if it may answer all requests.
    """

    signatures: tuple[str, ...]
    refused: Optional[str] = None


def read(model: layout.Layout) -> Warmup:
    """Return what the warm-up requests of a model ask.

    Raises:
      PathEscapeError, FileAccessError: the file is not a plain file of the model.
      LimitError: a record has more than `limits.WARMUP_RECORD_BYTES`.
    """
    file = model.root.path(layout.WARMUP_REQUESTS)
    asked: dict[str, None] = {}
    try:
        for number, record in enumerate(records(map_file(file), masked_crc32c, limits.WARMUP_RECORD_BYTES)):
            if number >= MAX_RECORDS:
                return Warmup(tuple(asked), f"it has more than {MAX_RECORDS} records")
            log = schema.parse(messages.PredictionLog, record, file, f"record {number}")
            if log.WhichOneof("log_type") == _UNSUPPORTED:
                return Warmup(tuple(asked), f"record {number} is a {_UNSUPPORTED}, which servers do not support")
            asked.update(dict.fromkeys(_signatures(log)))
    except TooLong as error:
        raise errors.LimitError(str(error), file=file, limit="WARMUP_RECORD_BYTES") from None
    except Damaged as error:
        return Warmup(tuple(asked), str(error))
    except (errors.MalformedError, errors.TruncatedError) as error:
        return Warmup(tuple(asked), f"{error.node}: {error.reason}")
    return Warmup(tuple(asked))


def _signatures(log: Any) -> Iterator[str]:
    """Yield the signatures that a PredictionLog asks."""
    kind = log.WhichOneof("log_type")
    if kind is None:
        return
    request = getattr(log, kind).request
    for asked in request.tasks if kind == "multi_inference_log" else (request,):
        yield asked.model_spec.signature_name or messages.DEFAULT_SIGNATURE
