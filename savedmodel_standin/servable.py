"""A loaded SavedModel: a session of the C API, the signatures, and runs with a time limit."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from compat_matrix.workers import tensor_wire
from reference_impl.format.names import FORMATS
from savedmodel_common.serving import messages
from savedmodel_common.tensors import Tensor
from savedmodel_standin import deep, log
from savedmodel_standin.errors import ServingError, invalid

# Programs of the workers' folder are Python 3.6 without annotations: nothing for a type checker.
_c_library: Any = importlib.import_module("compat_matrix.workers.c_library")
_c_api: Any = importlib.import_module("compat_matrix.workers.c_api_worker")
_NO_XLA = "_ZN10tensorflow21DisableXlaCompilationEv"  # tensorflow::DisableXlaCompilation()


def open_library(xla: bool) -> Any:
    """Open the C API of the wheel.

    As in the real server, compiling with XLA is switched off unless ``xla``.
    """
    library = _c_library.Library()
    if not xla:
        disable = next(
            (getattr(handle, _NO_XLA) for handle in library._handles if hasattr(handle, _NO_XLA)),
            None,
        )
        if disable is None:
            log.warning("servable", "this wheel exports no DisableXlaCompilation: XLA stays on")
        else:
            disable.restype, disable.argtypes = None, []
            disable()
    return library


class Servable:
    """One version of a model, closed by :meth:`close` when no request uses it any more.

    Raises :class:`ServingError` with the code and the text of the loader.
    """

    def __init__(
        self,
        library: Any,
        path: str,
        tags: Sequence[str],
        *,
        largest_batch: int | None,
        prefer_tflite: bool,
    ) -> None:
        if prefer_tflite and Path(path, "model.tflite").is_file():
            if not any(Path(path, name).is_file() for name in FORMATS):
                raise ServingError(
                    "UNIMPLEMENTED",
                    f"the stand-in has no TensorFlow Lite: {path} holds only model.tflite",
                )
            log.warning(
                "servable",
                f"--prefer_tflite_model: the stand-in serves the SavedModel of {path}, not"
                " model.tflite",
            )
        if Path(path, "export.meta").is_file():  # whatever lies beside it
            raise ServingError(
                "UNIMPLEMENTED", f"Session bundles are not supported any more: {path}"
            )
        if not any(Path(path, name).is_file() for name in FORMATS):
            raise ServingError(
                "NOT_FOUND",
                "Specified file path does not appear to contain a SavedModel bundle "
                f"(should have a file called `saved_model.pb`)\nSpecified file path: {path}",
            )
        with _as_serving_errors():
            self._model = _c_api.Model(library, path, list(tags))
        self.signatures: dict[str, Any] = {
            name: messages.SignatureDef.FromString(data)
            for name, data in self._model.signature_defs.items()
        }
        self._largest_batch = largest_batch  # None: without batching
        self._users = 0
        self._idle = threading.Condition()

    def take(self) -> None:
        """Begin to use the servable: it is not closed before the same number of :meth:`give_back`
        calls.
        """
        with self._idle:
            self._users += 1

    def give_back(self) -> None:
        with self._idle:
            self._users -= 1
            self._idle.notify_all()

    def close(self) -> None:
        with self._idle:
            self._idle.wait_for(lambda: self._users == 0)
        self._model.close()

    def run(
        self, feed: Sequence[tuple[str, Tensor]], fetch: Sequence[str], timeout_ms: int = 0
    ) -> list[Tensor]:
        """``Session::Run``. Raises :class:`ServingError`."""
        if not fetch:
            raise invalid("Must specify at least one target to fetch or execute.")
        rows = None if self._largest_batch is None else _batch_size(feed, self._largest_batch)
        # A session takes names. The C API takes operations, so the name of a missing operation
        # never reaches it.
        for name in (name for name, _ in feed):
            if not self._model.has_tensor(name):
                raise ServingError("NOT_FOUND", f"FeedInputs: unable to find feed output {name}")
        for name in fetch:
            if not self._model.has_tensor(name):
                where = name if ":" in name else f"{name}:0"
                raise invalid(
                    f"Tensor {where}, specified in either feed_devices or fetch_devices was not"
                    " found in the Graph"
                )
        options = (
            tensor_wire.field(2, timeout_ms) if timeout_ms > 0 else b""
        )  # RunOptions.timeout_in_ms
        with _as_serving_errors():
            results: list[Tensor] = self._model.run(list(feed), list(fetch), options, deep.shaped)
        if rows is not None:
            _check_batched(results, rows)
        return results


@contextlib.contextmanager
def _as_serving_errors() -> Iterator[None]:
    try:
        yield
    except _c_library.CError as error:
        raise ServingError(error.error_class[len("TF_") :], str(error)) from None
    except (TypeError, ValueError) as error:  # a resource, a variant; a message that is none
        raise ServingError("UNIMPLEMENTED", f"stand-in: {error}") from None


def _batch_size(feed: Sequence[tuple[str, Tensor]], largest: int) -> int:
    """Return the batch size that a batching session requires of its inputs.

    Requests follow its rules but are not merged here.
    """
    if not feed:
        raise invalid("Batching Run() must have at least one input tensor")
    sizes = set()
    for _, tensor in feed:
        if tensor.array.ndim == 0:
            raise invalid("Batching Run() input tensors must have at least one dimension")
        sizes.add(int(tensor.array.shape[0]))
    if len(sizes) > 1:
        raise invalid("Batching Run() input tensors must have equal 0th-dimension size")
    size = sizes.pop()
    if size > largest:
        raise invalid(f"Task size {size} is larger than maximum input batch size {largest}")
    return size


def _check_batched(results: Sequence[Tensor], rows: int) -> None:
    for tensor in results:
        if tensor.array.ndim == 0:
            raise ServingError("FAILED_PRECONDITION", "Batched output tensor has 0 dimensions")
        if tensor.array.shape[0] != rows:
            raise ServingError(
                "FAILED_PRECONDITION",
                "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension"
                " sizes of the input tensors",
            )
