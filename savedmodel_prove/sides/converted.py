"""The side of a converted model: a file in its runtime, or another SavedModel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from reference_impl.format.container.layout import FORMATS as MODEL_FILES
from savedmodel_common.tensors import Tensor
from savedmodel_prove.sides import naming, runtimes
from savedmodel_prove.sides.program import Asked
from savedmodel_prove.sides.side import SideError


def is_saved_model(path: Path) -> bool:
    """Return whether a path is the folder of a SavedModel."""
    return path.is_dir() and any((path / name).is_file() for name in MODEL_FILES)


class File:
    """One signature of a converted file, under the names of the original.

    Args:
      path: the file.
      key: the signature of the original.
      inputs: the names of its inputs.
      outputs: the names of its outputs.
      folder: for the files of the conversation.
      python: of an environment that has the runtime.
      given: names of the original paired with names of the file.

    Raises SideError: the file cannot be read, or its names do not fit.
    """

    def __init__(
        self,
        path: Path,
        key: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        folder: Path,
        python: Optional[Path] = None,
        given: Optional[Mapping[str, str]] = None,
    ) -> None:
        self.name, program = runtimes.program_of(path, python)
        self._worker = Asked(self.name, program, path.absolute(), [], "", folder)
        try:
            chosen, spec = _chosen(self._worker.described(), key)
            self._inputs = naming.pair("input", inputs, spec["inputs"], given or {})
            self._outputs = naming.pair("output", outputs, spec["outputs"], given or {})
        except SideError:
            self._worker.close()
            raise
        self._worker.use_signature(chosen)
        self._dtypes = {name: info["dtype"] for name, info in spec["inputs"].items()}
        # Input of the original -> shape in the file, -1 where it is open; where the runtime tells.
        self.shapes: Mapping[str, Sequence[int]] = {
            name: spec["inputs"][theirs]["shape"]
            for name, theirs in self._inputs.items()
            if "shape" in spec["inputs"][theirs]
        }

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of the runtime's packages."""
        return self._worker.versions

    def answer(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the outputs by the original's names. Raises SideError."""
        found = self._worker.answer(self._given(inputs))
        return {name: found[theirs] for name, theirs in self._outputs.items() if theirs in found}

    def values(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the intermediate values by the names in the file, and the outputs by the
        original's. Raises SideError.
        """
        found = self._worker.values(self._given(inputs))
        for name, theirs in self._outputs.items():
            if theirs in found:
                found[name] = found[theirs]
        return found

    def _given(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        # An input on which no output depends may be absent from the file.
        found = {}
        for name, tensor in inputs.items():
            theirs = self._inputs.get(name)
            if theirs is None:
                continue
            wanted = self._dtypes[theirs]
            if wanted != tensor.dtype:
                raise SideError(f"the input {theirs!r} of the file is {wanted}, not {tensor.dtype}")
            found[theirs] = tensor
        return found

    def close(self) -> None:
        """End the process."""
        self._worker.close()


def _chosen(described: Mapping[str, Any], key: str) -> tuple[str, Any]:
    """Return the signature of the file for one of the original: of its name, or the only one."""
    if key in described:
        return key, described[key]
    if len(described) == 1:
        return next(iter(described.items()))
    raise SideError(f"the file has no signature {key!r}; it has {', '.join(described) or 'none'}")
