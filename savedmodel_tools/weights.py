"""The weights of a SavedModel, read from its checkpoint: nothing of the model runs, and no
TensorFlow is needed.

A weight has up to three names: its key in the checkpoint (always), the name of its variable, and
the path of its object from the root (TF 2.x). Partitioned variables are put together, and every
checksum is compared.
"""

from __future__ import annotations

import fnmatch
import itertools
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from reference_impl.format import extension
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from reference_impl.format.names import OBJECT_GRAPH_KEY
from reference_impl.graph.graph_view import GraphView
from reference_impl.graph.object_graph import Paths, checkpoint_keys
from reference_impl.graph.restore_plan import restore_plan
from reference_impl.views.types import Variable
from reference_impl.views.variables import graph_variables, object_variables, stored_size
from savedmodel_common import extras, writing
from savedmodel_tools.canonical.files import is_object_graph, variable_fields

if TYPE_CHECKING:
    from reference_impl.format import schema

NAMES = ("path", "name", "key")

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_NUMPY = ("float16", "float32", "float64", "bool", *_INTEGERS)
# NumPy would read a type of ml_dtypes back as raw bytes.
_CARRIED = {
    ".npz": frozenset([*_NUMPY, "complex64", "complex128"]),
    ".safetensors": frozenset([*_NUMPY, "bfloat16", "float8_e4m3fn", "float8_e5m2"]),
}
SUFFIXES = tuple(_CARRIED)


class Unwritable(Exception):
    """Raised when weights cannot be written as they are; the message has a line for each, and what
    to do.
    """


@dataclass(frozen=True)
class Weight:
    """A tensor of the checkpoint.

    ``path`` and ``name`` are those of its variable; None if it belongs to no variable, such as the
    rows of a table. ``size`` is the number of bytes of its elements, None for partitioned strings.
    ``trainable`` is None where the model does not say. ``digest`` is the SHA-256 of its elements in
    row-major order, little-endian; strings with their lengths before them.
    """

    key: str
    name: Optional[str]
    path: Optional[str]
    dtype: str
    shape: tuple[int, ...]
    size: Optional[int]
    trainable: Optional[bool]
    digest: str

    def called(self, by: str) -> str:
        """Return its name by ``path``, ``name`` or ``key``; its key where it has no such name."""
        return {"path": self.path, "name": self.name}.get(by) or self.key

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "shape": list(self.shape)}


class Weights:
    """The weights of one model, which stays open for reading. Use it as a context manager."""

    def __init__(self, model: layout.Layout, tags: Optional[Sequence[str]] = None) -> None:
        """Open the checkpoint of a model.

        ``tags``: name the variables of this MetaGraph; by default, those of all. Raises
        SavedModelError: the checkpoint is damaged, or no MetaGraph has these tags. A model without
        one has no weights.
        """
        self.model = model
        # A checkpoint of format V1 has no index; the reader refuses it by name.
        has_weights = model.has_checkpoint or model.root.exists(layout.CHECKPOINT)
        self.reader = BundleReader(model.checkpoint_prefix) if has_weights else None
        try:
            self._variables = self._named(tags) if self.reader is not None else {}
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Weights:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.reader is not None:
            self.reader.close()

    def keys(self, patterns: Sequence[str] = ()) -> list[str]:
        """Return the keys of the weights with a name that matches one of the patterns (``dense*``),
        or all keys.
        """
        if self.reader is None:
            return []
        stored = [
            key for key, entry in self.reader.entries().items() if not is_object_graph(key, entry)
        ]
        return [key for key in stored if not patterns or self._matches(key, patterns)]

    def weight(self, key: str) -> Weight:
        """Read and verify one weight. Raises SavedModelError: its data is damaged."""
        reader = self._open()
        entry, variable = reader.entry(key), self._variables.get(key)
        content = variable_fields(reader, key, {})[
            "content"
        ]  # without tables: the rows as they are stored
        return Weight(
            key=key,
            name=variable.name or None if variable else None,
            path=variable.path if variable else None,
            dtype=entry.dtype.name,
            shape=tuple(entry.shape),
            size=stored_size(entry),
            trainable=variable.trainable if variable else None,
            digest=content,
        )

    def array(self, key: str) -> Any:
        """Return the elements as a NumPy array. Raises SavedModelError."""
        return self._open().read(key)

    def _open(self) -> BundleReader:
        assert self.reader is not None, "a key of a model without a checkpoint"
        return self.reader

    def _matches(self, key: str, patterns: Sequence[str]) -> bool:
        variable = self._variables.get(key)
        names = [key] + ([variable.name, variable.path or ""] if variable else [])
        pairs = itertools.product(names, patterns)
        return any(fnmatch.fnmatchcase(name, pattern) for name, pattern in pairs)

    def _named(self, tags: Optional[Sequence[str]]) -> dict[str, Variable]:
        """Return the variable of each key that has one.

        Of two variables with one key, the first names it.
        """
        reader = self._open()
        entries = reader.entries()
        tracked = reader.object_graph() if OBJECT_GRAPH_KEY in entries else None
        graphs = (
            list(self.model.saved_model.meta_graphs)
            if tags is None
            else [self.model.meta_graph(list(tags))]
        )
        found: dict[str, Variable] = {}
        for graph in graphs:
            for variable in _variables(graph, str(self.model.file), entries, tracked):
                if variable.key in entries:
                    found.setdefault(str(variable.key), variable)
        return found


def _variables(
    graph: schema.MetaGraphDef,
    file: str,
    entries: Mapping[str, Any],
    tracked: Optional[schema.TrackableObjectGraph],
) -> tuple[Variable, ...]:
    view = GraphView(graph)
    plan = restore_plan(graph, file, view)
    if not graph.HasField("object_graph_def"):
        return graph_variables(view, plan, entries)
    saved = extension.object_graph(graph, extension.read(graph, file))
    keys = checkpoint_keys(saved, tracked) if tracked is not None else {}
    return object_variables(saved, Paths(saved.nodes), keys, plan, entries)


# Writing
# --------------------------------------------------------------------------------------------------


def write(weights: Weights, keys: Sequence[str], by: str, out: Path) -> list[Weight]:
    """Write weights to a file, which appears when it is complete, and return them.

    Args:
      weights: an open model.
      keys: which of its weights.
      by: the name that each gets in the file: ``path``, ``name`` or ``key``.
      out: a file whose suffix is one of ``SUFFIXES``.

    Raises:
      Unwritable: the format cannot carry one of them, or two would have one name. Nothing is
        written.
      SavedModelError: the checkpoint is damaged.
      OSError: the file cannot be written.
      ModuleNotFoundError: safetensors is not installed.
    """
    if out.suffix == ".safetensors":
        extras.need("safetensors")
    found = [weights.weight(key) for key in keys]
    named = {weight.called(by): weight for weight in found}
    _check(found, by, out.suffix)
    with writing.new_file(out) as staged:
        (_write_npz if out.suffix == ".npz" else _write_safetensors)(staged, weights, named)
    return found


def _check(found: Sequence[Weight], by: str, suffix: str) -> None:
    reasons, first = [], dict[str, str]()
    for weight in found:
        name = weight.called(by)
        if weight.dtype not in _CARRIED[suffix]:
            reasons.append(f"{name}: {suffix} has no type for {weight.dtype}")
        elif suffix == ".npz" and (name.startswith("/") or ".." in name.split("/")):
            reasons.append(
                f"{name}: as the name of a file in an archive it would lead out of a folder; name"
                " it by another kind"
            )
        elif name in first:
            reasons.append(
                f"{name}: is the {by} of {first[name]} and of {weight.key}; name them by another"
                " kind"
            )
        first.setdefault(name, weight.key)
    if reasons:
        raise Unwritable("\n".join(reasons))


def _write_npz(file: Path, weights: Weights, named: Mapping[str, Weight]) -> None:
    import numpy as np

    with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        for name, weight in named.items():
            # Without a time of its own, so that the same weights give the same bytes.
            member = zipfile.ZipInfo(name + ".npy")
            with archive.open(member, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, weights.array(weight.key), allow_pickle=False)


def _write_safetensors(file: Path, weights: Weights, named: Mapping[str, Weight]) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    arrays = {
        name: np.ascontiguousarray(weights.array(weight.key)) for name, weight in named.items()
    }
    # A scalar would become a vector of one element.
    save_file({name: array.reshape(named[name].shape) for name, array in arrays.items()}, str(file))
