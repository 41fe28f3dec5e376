"""Compares two artifacts by meaning: what a reader could notice, not how the bytes happen to lie.

Needs no TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from fixtures_v1 import read_json
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.names import OBJECT_GRAPH_KEY
from savedmodel_common import tensors
from savedmodel_common.provenance import hash_files
from savedmodel_tools.canonical.form import MODEL_SECTIONS, Canonical, canonical
from savedmodel_tools.comparison import form_changes

# Members of provenance.json that say what was made, not from which bytes.
_MEANING = (
    "schema",
    "case",
    "title",
    "clauses",
    "features",
    "producer",
    "command",
    "licence",
    "unasked",
)
_PROTOS = ("model/saved_model.pb", "model/saved_model.pbtxt")
_CHECKPOINT = "model/variables/variables"
# Compared above as what they say; a fingerprint is a digest of other files' bytes, beside a random
# number.
_ELSEWHERE = ("io/io.json", "model/fingerprint.pb")


def differences(old: Path, new: Path) -> list[str]:
    """What differs between two artifacts, one line each; empty when they mean the same.

    Trained weights and recorded answers may differ within the artifact's own tolerance; everything
    else must be equal.
    """
    return list(_differences(old, new))


def _differences(old: Path, new: Path) -> Iterator[str]:
    old_files, new_files = set(hash_files(old)), set(hash_files(new))
    yield from (f"{name}: only in the committed artifact" for name in sorted(old_files - new_files))
    yield from (f"{name}: only in the fresh artifact" for name in sorted(new_files - old_files))
    yield from _json(old / "provenance.json", new / "provenance.json", _MEANING)
    if {"io/io.json"} <= old_files & new_files:
        yield from _json(old / "io" / "io.json", new / "io" / "io.json", None)
    tolerance = read_json(str(new / "io" / "io.json"))["tolerance"]
    rtol, atol = tolerance["rtol"], tolerance["atol"]
    for name in sorted(old_files & new_files):
        if name.endswith(".npz"):
            exact = name.endswith(".in.npz")
            found = _tensors(old / name, new / name, *((0.0, 0.0) if exact else (rtol, atol)))
        elif name in _PROTOS:
            found = _saved_models(old / "model", new / "model")
        elif name == _CHECKPOINT + ".index":
            found = _checkpoints(old / _CHECKPOINT, new / _CHECKPOINT, rtol, atol)
        elif name in _ELSEWHERE or name.startswith(_CHECKPOINT + ".data-"):
            found = []
        else:
            found = (
                [] if (old / name).read_bytes() == (new / name).read_bytes() else ["bytes differ"]
            )
        yield from (f"{name}: {line}" for line in found)


def _json(old: Path, new: Path, members: tuple[str, ...] | None) -> Iterator[str]:
    a, b = read_json(str(old)), read_json(str(new))
    for key in members or sorted(set(a) | set(b)):
        if a.get(key) != b.get(key):
            yield f"{old.name}: {key} was {a.get(key)!r}, now {b.get(key)!r}"


def _tensors(old: Path, new: Path, rtol: float, atol: float) -> Iterator[str]:
    a, b = tensors.load(str(old)), tensors.load(str(new))
    if list(a) != list(b):
        yield f"holds {list(b)}, not {list(a)}"
        return
    for name in a:
        line = _values((a[name].dtype, a[name].array), (b[name].dtype, b[name].array), rtol, atol)
        if line:
            yield f"{name}: {line}"


def _values(
    old: tuple[str, np.ndarray], new: tuple[str, np.ndarray], rtol: float, atol: float
) -> str:
    (old_dtype, a), (new_dtype, b) = old, new
    if old_dtype != new_dtype or a.shape != b.shape:
        return f"{new_dtype}{list(b.shape)}, not {old_dtype}{list(a.shape)}"
    if a.dtype == object or b.dtype == object:
        return "" if a.tolist() == b.tolist() else "strings differ"
    # np.array: a view into a checkpoint need not be aligned.
    a, b = np.array(a), np.array(b)
    if a.tobytes() == b.tobytes():
        return ""
    if (
        a.dtype.kind in "fc"
        and (rtol or atol)
        and np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    ):
        return ""
    return f"{int((a != b).sum())} of {a.size} values differ"


def _checkpoints(old: Path, new: Path, rtol: float, atol: float) -> Iterator[str]:
    with BundleReader(old) as a, BundleReader(new) as b:
        if a.num_shards != b.num_shards:
            yield f"{b.num_shards} shards, not {a.num_shards}"
        if a.keys() != b.keys():
            yield f"keys {sorted(set(a.keys()) ^ set(b.keys()))} on one side only"
            return
        for key in a.keys():  # noqa: SIM118  (a reader is no mapping)
            dtypes = [reader.entry(key).dtype.name for reader in (a, b)]
            line = (
                ""
                if key == OBJECT_GRAPH_KEY
                else _values((dtypes[0], a.read(key)), (dtypes[1], b.read(key)), rtol, atol)
            )
            if line:
                yield f"{key}: {line}"


def _saved_models(old: Path, new: Path) -> Iterator[str]:
    a, b = (canonical(path, ignore_defaults=False) for path in (old, new))
    if a.variables.get(OBJECT_GRAPH_KEY) != b.variables.get(OBJECT_GRAPH_KEY):
        yield "the checkpoint's object graph differs"
    reordered = _reordered_traces(a, b)
    for change in form_changes(a, b):
        # The model's own sections, variables and assets, are compared as files: variables with a
        # tolerance.
        if (
            change.counts
            and change.section not in MODEL_SECTIONS
            and (change.section, change.where[-1:]) not in reordered
        ):
            yield str(change)


def _reordered_traces(a: Canonical, b: Canonical) -> set[tuple[str, tuple[str, ...]]]:
    """Functions with the same traces in another order: TensorFlow 1.15 keeps them in a set, ordered
    by address.
    """
    found = set()
    for one, other in zip(a.meta_graphs, b.meta_graphs):
        ours, theirs = one.entries["objects"], other.entries["objects"]
        for label in ours.keys() & theirs.keys():
            if _sorted_traces(ours[label]) == _sorted_traces(theirs[label]):
                found.add(("objects", (label,)))
    return found


def _sorted_traces(fields: Mapping[str, str]) -> dict[str, str]:
    return {**fields, "traces": ", ".join(sorted(fields.get("traces", "").split(", ")))}
