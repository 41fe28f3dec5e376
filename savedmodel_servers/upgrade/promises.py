"""The promises to clients of the old export: its SignatureDefs, and what its answers show."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from reference_impl.format.container.layout import tags_text
from reference_impl.format.schema import SignatureDef
from reference_impl.format.values.shapes import Shape, covers, shape_of, shape_text
from savedmodel_common.tensors import Tensor
from savedmodel_tools.contract.form import contract_of
from savedmodel_tools.contract.rules import Finding, compare

NEVER = frozenset({"INPUT_ORDER_CHANGED"})  # requests to a server name their inputs
# Releases infer shapes otherwise; the answers show what they are.
BY_ANSWERS = frozenset({"OUTPUT_SHAPE_WIDENED"})
# Predict is served for a signature of any method.
METHODS = ("tensorflow/serving/classify", "tensorflow/serving/regress")


class Due(NamedTuple):
    """What is promised of one output."""

    dtype: str
    shape: Shape


@dataclass(frozen=True)
class Promise:
    """The promise of an answer to one request, by the name of the output."""

    outputs: Mapping[str, Due] = field(default_factory=dict)

    def broken(self, got: Mapping[str, Tensor]) -> str:
        """Return how an answer breaks the promise, "" if it keeps it.

        More outputs break nothing.
        """
        for name, due in sorted(self.outputs.items()):
            if name not in got:
                return (
                    f"clients of the old export read the output {name!r}; the answer has"
                    f" {sorted(got)}"
                )
            tensor = got[name]
            if tensor.dtype != due.dtype:
                return (
                    f"clients of the old export read {name!r} as {due.dtype}; it is {tensor.dtype}"
                )
            if not covers(due.shape, tensor.array.shape):
                shape = shape_text(tuple(tensor.array.shape))
                return (
                    f"clients of the old export read {name!r} with the shape"
                    f" {shape_text(due.shape)}; it has {shape}"
                )
        return ""


NOTHING = Promise()


def promise_of(
    signature: SignatureDef, answer: Mapping[str, Tensor], batched: Mapping[str, int]
) -> Promise:
    """Return the promise for a request that the old export has answered.

    A client sees the rank of each output. Sizes are promised where the SignatureDef states them and
    the answer keeps them.

    Args:
      batched: outputs whose first dimension follows the size of the batch, and that size.
    """
    outputs = {}
    for name, tensor in answer.items():
        sizes: list[int | None] = [None] * tensor.array.ndim
        declared = (
            shape_of(signature.outputs[name].tensor_shape) if name in signature.outputs else None
        )
        if declared is not None and covers(declared, tensor.array.shape):
            sizes = list(declared)
        if name in batched:
            sizes[0] = batched[name]
        outputs[name] = Due(tensor.dtype, tuple(sizes))
    return Promise(outputs)


def broken_by_signatures(
    old: Path, new: Path, tags: tuple[str, ...], asked: Collection[str]
) -> list[str]:
    """Return the promises to clients that the SignatureDefs of the new export take back.

    A request need not show it: a session runs what is fed, also of a shape that its placeholder no
    longer has.

    Args:
      old: the SavedModel that clients were written for.
      new: the SavedModel that follows it.
      tags: of the MetaGraph that is served.
      asked: the signatures that requests call under load. Their answers tell more of the shapes of
        outputs than a SignatureDef does.

    Raises SavedModelError.
    """
    where = f"tags {tags_text(tags)}"
    return [
        f"{', '.join(finding.where[1:])}: {finding.message} ({finding.rule})"
        for finding in compare(contract_of(old), contract_of(new))
        if finding.breaks and finding.where[0] == where and _is_noticed(finding, asked)
    ]


def _is_noticed(finding: Finding, asked: Collection[str]) -> bool:
    """Return whether clients of a server notice a difference."""
    if len(finding.where) < 2 or finding.rule in NEVER:
        return False
    if finding.rule == "METHOD_CHANGED":
        return finding.message.startswith(METHODS)
    return (
        finding.rule not in BY_ANSWERS or finding.where[1].removeprefix("signature ") not in asked
    )
