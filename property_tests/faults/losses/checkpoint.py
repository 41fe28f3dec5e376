"""What the checkpoint holds."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from property_tests.faults.losses.registry import loss
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.bundle.writer import BundleWriter
from reference_impl.format.container import layout

Entries = dict[str, tuple[np.ndarray[Any, Any], str]]  # key -> array, name of the dtype
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def _rewrite(model: Path, change: Callable[[Entries], bool]) -> bool:
    """Write the checkpoint again, with good checksums, as ``change`` left it."""
    prefix = layout.read(model).checkpoint_prefix
    if not Path(f"{prefix}.index").exists():
        return False
    with BundleReader(prefix) as reader:
        entries = {
            key: (np.array(reader.read(key)), entry.dtype.name)
            for key, entry in reader.entries().items()
        }
    changed = change({key: entry for key, entry in entries.items() if key != OBJECT_GRAPH})
    shutil.rmtree(prefix.parent)
    with BundleWriter(prefix, 1) as writer:
        for key, (array, dtype) in entries.items():
            writer.add(key, array, dtype, shard=0)
    return changed


@loss
def values(graph: Any, model: Path) -> bool:
    """One bit of each value of the checkpoint is another: variables, tables, random states."""

    def change(entries: Entries) -> bool:
        found = [array for key, (array, _) in entries.items() if array.size and "-keys" not in key]
        for array in found:
            if array.dtype == object:
                array.ravel()[0] = b"lost " + bytes(array.ravel()[0])
            else:
                array.reshape(-1).view(np.uint8)[array.itemsize - 1] ^= (
                    1 if array.dtype == bool else 4
                )
        return bool(found)

    return _rewrite(model, change)


@loss
def swapped_values(graph: Any, model: Path) -> bool:
    """Two variables of one dtype and shape have each other's value."""

    def change(entries: Entries) -> bool:
        kinds: dict[tuple[str, tuple[int, ...]], np.ndarray[Any, Any]] = {}
        for array, dtype in entries.values():
            other = kinds.setdefault((dtype, array.shape), array)
            if other is not array and not np.array_equal(other, array):
                other[...], array[...] = array.copy(), other.copy()
                return True
        return False

    return _rewrite(model, change)


def _change_number(model: Path, fits: Callable[[Any], bool], other: Callable[[Any], Any]) -> bool:
    """Change the first float of the checkpoint that fits."""

    def change(entries: Entries) -> bool:
        for array, dtype in entries.values():
            numbers = array.reshape(-1)
            for place in range(array.size if dtype == "float32" else 0):
                if fits(numbers[place]):
                    numbers[place] = other(numbers[place])
                    return True
        return False

    return _rewrite(model, change)


@loss
def not_a_number(graph: Any, model: Path) -> bool:
    """A number of a variable is NaN."""
    return _change_number(model, lambda number: True, lambda number: np.float32(np.nan))


@loss
def negative_zero(graph: Any, model: Path) -> bool:
    """A zero of a variable is negative."""
    return _change_number(model, lambda number: bool(number == 0), lambda number: -number)


@loss
def last_bit(graph: Any, model: Path) -> bool:
    """A number of a variable is the next larger one."""
    return _change_number(
        model,
        lambda number: bool(number != 0),
        lambda number: np.nextafter(number, np.float32(np.inf)),
    )
