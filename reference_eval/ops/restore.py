"""RestoreV2: tensors or slices of the model's checkpoint; another file is refused.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.registry import op


@op("RestoreV2")
def restore(prefix: Array, names: Array, slices: Array, *, call: Call) -> list[Array]:
    with call.checkpoint(prefix.item()) as reader:
        return [
            call.convert(part_of(reader.read(name.decode()), text.decode()))
            for name, text in zip(names.tolist(), slices.tolist())
        ]


def part_of(value: Array, text: str) -> Array:
    """Return a slice of a partitioned variable: ``"10 4 0,5:-"`` has rows 0 to 4 of 10 by 4."""
    if not text:
        return value
    key = []
    for extent in text.split(" ")[-1].split(":"):
        if extent == "-":
            key.append(slice(None))
        else:
            start, length = map(int, extent.split(","))
            key.append(slice(start, start + length))
    return value[tuple(key)]
