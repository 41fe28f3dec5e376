"""A side that is a worker process: TensorFlow, or the runtime of a converted file."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

from compat_matrix.runtimes import programs
from compat_matrix.runtimes.programs import Program
from compat_matrix.runtimes.runtime import local_runtime
from compat_matrix.runtimes.worker import NotStarted, ReplyError, Worker, WorkerDied
from savedmodel_common import tensors
from savedmodel_common.gist import gist
from savedmodel_common.tensors import Tensor
from savedmodel_prove.sides.side import SideError

WORKER = Path(__file__).parents[1] / "workers" / "tensorflow_worker.py"
THREADS = "TF_NUM_INTRAOP_THREADS"
LIMIT = 300.0  # seconds for one request


def tensorflow(threads: int = 1) -> Program:
    """Return the program that loads a SavedModel with TensorFlow and calls its signatures."""
    program = programs.of_script(WORKER)
    added = (*program.environment, (THREADS, str(threads)))
    return replace(program, environment=added)


def has_tensorflow() -> bool:
    """Return whether the Python that runs this program has a TensorFlow."""
    return local_runtime().tensorflow_version is not None


class Asked:
    """A signature of a model, answered by a worker.

    Args:
      name: of the program, for people.
      program: speaks the worker protocol.
      model: the file or folder that it loads.
      tags: of the MetaGraph, for a SavedModel.
      key: the signature.
      folder: for the files of the conversation; no other side may use it.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        model: Path,
        tags: Sequence[str],
        key: str,
        folder: Path,
    ) -> None:
        self.name, self._key, self._tags, self._model = name, key, list(tags), model
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._numbers = folder, itertools.count()
        self._worker = Worker(local_runtime(), program, folder / "cwd", folder / "log")
        self._handle: Optional[int] = None
        self._generation = 0

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions that the process said it uses."""
        return dict(self._worker.last_hello.get("versions", {}))

    def answer(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the outputs. Raises SideError: the program is absent, refuses or died."""
        request = {"id": "0", "kind": "signature", "tags": self._tags, "signature": self._key}
        return self._outputs("call", inputs, request={**request, "inputs": "inputs.npz"})

    def values(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the intermediate values that the program names. Raises SideError."""
        return self._outputs("values", inputs, signature=self._key)

    def described(self) -> dict[str, Any]:
        """Return the signatures of the model as ``{key: {"inputs", "outputs"}}``.

        Raises SideError.
        """
        found: dict[str, Any] = self._ask("signatures", handle=self._loaded())["signatures"]
        return found

    def _outputs(
        self, op: str, inputs: Mapping[str, Tensor], **fields: object
    ) -> dict[str, Tensor]:
        place = self._folder / str(next(self._numbers))
        place.mkdir()
        tensors.save(place / "inputs.npz", inputs)
        out = place / "outputs.npz"
        more = {"handle": self._loaded(), "io_dir": str(place), "outputs": str(out)}
        self._ask(op, **fields, **more)
        try:
            return dict(tensors.load(out))
        except (OSError, ValueError) as error:
            raise SideError(f"{self.name}: {error}") from error

    def _loaded(self) -> int:
        """Return the handle of the model; load it where the process does not have it."""
        if self._handle is None or self._generation != self._worker.generation:
            reply = self._ask("load", dir=str(self._model), tags=self._tags, timeout=LIMIT)
            self._handle, self._generation = int(reply["handle"]), self._worker.generation
        return self._handle

    def _ask(self, op: str, **fields: Any) -> dict[str, Any]:
        try:
            return self._worker.request(op, LIMIT, **fields)
        except ReplyError as error:
            raise SideError(f"{self.name}: {gist(str(error)) or error.error_class}") from error
        except (NotStarted, WorkerDied) as error:
            raise SideError(f"{self.name}: {gist(str(error))}") from error

    def use_signature(self, key: str) -> None:
        """Ask another signature of the same model from now on."""
        self._key = key

    def close(self) -> None:
        """End the process."""
        self._worker.close()


class TensorFlow(Asked):
    """A signature of a SavedModel in TensorFlow, which can be asked for one value alone."""

    def names(self) -> list[str]:
        """Return the names of the values inside the signature. Raises SideError."""
        found: list[str] = self._ask("names", handle=self._loaded(), signature=self._key)["names"]
        return found

    def value(self, inputs: Mapping[str, Tensor], name: str) -> Tensor:
        """Return one value, from a graph that computes nothing else. Raises SideError."""
        return self._outputs("value", inputs, signature=self._key, value=name)[name]
