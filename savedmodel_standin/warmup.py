"""Warm-up: the requests recorded in ``assets.extra/tf_serving_warmup_requests`` are run before a
version is available.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from reference_impl.errors import FileAccessError
from reference_impl.format.container.files import map_file
from reference_impl.format.container.layout import WARMUP_REQUESTS
from savedmodel_common.serving import messages
from savedmodel_common.serving.warmup_records import MAX_RECORDS, Damaged, TooLong, records
from savedmodel_standin import (
    inference,
    log,
    predict,
)
from savedmodel_standin.errors import ServingError, invalid
from savedmodel_standin.servable import Servable

_SHOWN = 1000  # bytes of a record in an error


def run(servable: Servable, folder: str, iterations: int = 1, check_method: bool = False) -> None:
    """Raises :class:`ServingError`: a record that is none or that the model does not answer makes
    the load fail.
    """
    path = f"{folder.rstrip('/')}/{WARMUP_REQUESTS}"
    if not Path(path).exists():
        log.info("warmup", f"No warmup data file found at {path}")
        return
    log.info("warmup", f"Starting to read warmup data for model at {path}")
    started, count = time.monotonic(), 0
    try:
        for record in records(map_file(path)):
            try:
                entry = messages.PredictionLog.FromString(record)
            except DecodeError:
                raise invalid(
                    f"Failed to parse warmup record: {record[:_SHOWN]!r} from {path}"
                ) from None
            for _ in range(max(iterations, 1)):
                _replay(servable, entry, check_method)
            count += 1
            if count > MAX_RECORDS:
                raise invalid(
                    f"Number of warmup records exceeds the maximum ({MAX_RECORDS}) at {path}"
                )
    except FileAccessError as error:  # a pipe, a device: nobody waits for what it may give
        raise ServingError("FAILED_PRECONDITION", str(error)) from None
    except TooLong as error:
        raise invalid(f"stand-in: {error}") from None
    except Damaged as error:
        raise ServingError(
            "DATA_LOSS", f"{error}. Please verify your warmup data is in TFRecord format."
        ) from None
    micros = int((time.monotonic() - started) * 1e6)
    log.info(
        "warmup",
        f"Finished reading warmup data for model at {path}. Number of warmup records read: {count}."
        f" Elapsed time (microseconds): {micros}.",
    )


def _replay(servable: Servable, entry: Any, check_method: bool) -> None:
    kind = entry.WhichOneof("log_type")
    if kind == "predict_log":
        predict.run(servable, entry.predict_log.request, check_method=check_method)
    elif kind == "classify_log":
        request = entry.classify_log.request
        inference.answer(
            servable,
            request,
            messages.CLASSIFY_METHOD,
            messages.ClassificationResult(),
            0,
            check_method,
        )
    elif kind == "regress_log":
        request = entry.regress_log.request
        inference.answer(
            servable, request, messages.REGRESS_METHOD, messages.RegressionResult(), 0, check_method
        )
    elif kind == "multi_inference_log":
        request, response = entry.multi_inference_log.request, messages.MultiInferenceResponse()
        inference.multi_inference(servable, request, response, check_method=check_method)
    elif kind is not None:
        number = entry.DESCRIPTOR.fields_by_name[kind].number
        raise ServingError("UNIMPLEMENTED", f"Unsupported log_type for warmup: {number}")
