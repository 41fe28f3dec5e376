"""The outputs that a SignatureDef promises, held against those of an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from savedmodel_common.compare import Mismatch
from savedmodel_common.tensors import Tensor

_UNSTATED = "invalid"  # the dtype of a TensorInfo that states none


class BrokenPromise(Mismatch):
    """A difference from what a signature promises, not from another answer."""


def broken_promises(
    promised: Mapping[str, Mapping[str, Any]], got: Mapping[str, Tensor], whole: bool = True
) -> list[BrokenPromise]:
    """Return in what the tensors of an answer are not those that the signature promises.

    Args:
      promised: output -> ``{"dtype", "shape"}``, as
        `reference_impl.views.signatures.signature_spec` gives it. A dtype, a rank or a size
        that the signature leaves open fits every tensor.
      got: the answer, by output.
      whole: whether the answer has all outputs of the signature, so that a missing one breaks the
        promise.
    """
    found = list[BrokenPromise]()
    missing = sorted(set(promised) - set(got)) if whole else []
    extra = sorted(set(got) - set(promised))
    if missing or extra:
        said = [f"promised and not answered: {', '.join(map(repr, missing))}"] if missing else []
        said += [f"answered and not promised: {', '.join(map(repr, extra))}"] if extra else []
        found.append(
            BrokenPromise("names", "", "; ".join(said), {"missing": missing, "unexpected": extra})
        )
    for name in sorted(set(promised) & set(got)):
        dtype = promised[name]["dtype"].removesuffix("_ref")
        shape, actual = promised[name]["shape"], list(got[name].array.shape)
        if dtype not in (_UNSTATED, got[name].dtype):
            details = {"expected": dtype, "got": got[name].dtype}
            found.append(
                BrokenPromise(
                    "dtype",
                    name,
                    f"is {got[name].dtype}, and the signature promises {dtype}",
                    details,
                )
            )
        if not _fits(shape, actual):
            details = {"expected": shape, "got": actual}
            found.append(
                BrokenPromise(
                    "shape",
                    name,
                    f"has the shape {actual}, and the signature promises {_words(shape)}",
                    details,
                )
            )
    return found


def _fits(promised: Sequence[int | None] | None, actual: Sequence[int]) -> bool:
    if promised is None:
        return True
    return len(promised) == len(actual) and all(
        size in (None, -1, found) for size, found in zip(promised, actual)
    )


def _words(shape: Sequence[int | None]) -> str:
    return "[" + ", ".join("?" if size in (None, -1) else str(size) for size in shape) + "]"
