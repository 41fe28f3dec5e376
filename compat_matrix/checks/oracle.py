"""The reference of the checks: facts about a model, read from its files without TensorFlow.

Everything raises ``reference_impl.errors.SavedModelError`` for a model that cannot be read.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compat_matrix.hosts.host import stamp
from compat_matrix.requests.artifact import Artifact
from compat_matrix.requests.digest import digest_of
from reference_impl.errors import MissingFileError
from reference_impl.format import schema
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from reference_impl.graph.object_graph import Paths
from reference_impl.graph.restore_plan import restore_plan
from reference_impl.graph.variable_defs import TRAINABLE, variable_defs
from reference_impl.views.objects import objects
from reference_impl.views.signatures import signature_spec
from reference_impl.views.signatures import signatures as _signatures
from savedmodel_common.provenance import file_sha256
from savedmodel_common.tensors import Tensor, from_numpy
from savedmodel_tools.canonical.form import Canonical, canonical
from savedmodel_tools.comparison import form_changes

_ASSIGNS = frozenset({"Assign", "AssignVariableOp"})  # a restore also feeds tables and iterators
_ATTRIBUTES = ("_XlaMustCompile", "_XlaCompile", "_implements", "api_implements", "_noinline")
_KEPT = 4  # models
_KEPT_HASHES = 20_000  # of functions, by their text
_hashed: dict[bytes, bytes] = {}
_SHOWN = 20  # differences


@dataclass(frozen=True)
class Stored:
    """A variable and its value in the checkpoint.

    ``fetch`` is a tensor of the main graph that reads it, if there is one.
    """

    key: str
    node: str
    fetch: str | None
    value: Tensor


def tag_sets(artifact: Artifact) -> list[tuple[str, ...]]:
    """Return the tag sets of the requests; those of all MetaGraphs if there are no requests."""
    return artifact.tag_sets or [tuple(sorted(tags)) for tags in layout_of(artifact.model).tag_sets]


def signatures(model: Path, tags: Sequence[str]) -> dict[str, Any]:
    """Return ``{key: {"inputs": {name: {dtype, shape}}, "outputs": ...}}`` of the SignatureDefs."""
    return signature_spec(meta_graph(model, tags))


def promised_outputs(model: Path, tags: Sequence[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return ``{key: {output: {dtype, shape}}}`` of the SignatureDefs, which callers must not
    change.
    """
    return _promised(model, tuple(tags), stamp(model))


@functools.lru_cache(maxsize=_KEPT)
def _promised(
    model: Path, tags: tuple[str, ...], _stamp: object
) -> dict[str, dict[str, dict[str, Any]]]:
    return {key: sides["outputs"] for key, sides in signatures(model, tags).items()}


def writer(model: Path, tags: Sequence[str]) -> str:
    """Return the version of the TensorFlow that a MetaGraph says it was written by; "" where it
    names none.
    """
    return str(meta_graph(model, tags).meta_info_def.tensorflow_version)


def method_names(model: Path, tags: Sequence[str]) -> dict[str, str]:
    """Return the method of each signature, as `tensorflow/serving/predict`."""
    return {item.key: item.method_name for item in _signatures(meta_graph(model, tags))}


def stored_variables(model: Path, tags: Sequence[str]) -> list[Stored]:
    """Return every variable that the MetaGraph restores, with its value in the checkpoint.

    Raises MissingKeyError.
    """
    return list(_stored(model, tags))


def _stored(model: Path, tags: Sequence[str]) -> Iterator[Stored]:
    plan = [item for item in restore_plan(meta_graph(model, tags)) if item.by in _ASSIGNS]
    if not plan:
        return
    with BundleReader(layout_of(model).checkpoint_prefix) as bundle:
        for item in plan:
            yield Stored(item.key, item.node, item.fetch, _part(bundle, item.key, item.slice))


def _part(bundle: BundleReader, key: str, part: str) -> Tensor:
    array = np.array(bundle.read(key))  # a copy: the bundle is closed before it is used
    # "10 3 0,5:-": the whole shape, then start and length in each dimension
    box = part.split(" ")[-1] if part else ""
    if box:
        array = array[tuple(_range(text) for text in box.split(":"))]
    return from_numpy(array, bundle.entry(key).dtype.name)


def _range(text: str) -> slice:
    match = re.fullmatch(r"(\d+),(\d+)", text)
    return slice(int(match[1]), int(match[1]) + int(match[2])) if match else slice(None)


def inventory(model: Path, tags: Sequence[str]) -> Counter[str]:
    """Return the variables of a MetaGraph without names: ``"float32[2, 3] sha256"``.

    A value stored once counts once.
    """
    return Counter(
        {(item.key, item.node): described(item.value) for item in _stored(model, tags)}.values()
    )


def described(tensor: Tensor) -> str:
    """Return a value without its name: ``"float32[2, 3] digest"``."""
    return f"{tensor.dtype}{list(tensor.array.shape)} {digest_of(None, {'': tensor})}"


def placements(model: Path, tags: Sequence[str]) -> Counter[str]:
    """Return the devices, compilation and implementations that nodes and functions request of their
    runtime.
    """
    found: set[str] = set()
    for function in meta_graph(model, tags).graph_def.library.function:
        if (
            "_traced_save" in function.signature.name
            or "_traced_restore" in function.signature.name
        ):
            continue  # a device of the writer's saver
        found |= {f"the device {node.device}" for node in function.node_def if node.device}
        found |= {
            f"the attribute {name} of a function" for name in _ATTRIBUTES if name in function.attr
        }
    return Counter(found)


def signature_defaults(model: Path, tags: Sequence[str]) -> Counter[str]:
    """Return the inputs of signatures that have a default value."""
    signatures = meta_graph(model, tags).signature_def
    found: Counter[str] = Counter()
    for key in signatures:
        found.update(f"{name!r} of {key!r}" for name in signatures[key].defaults)
    return found


def variable_facts(model: Path, tags: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the facts about each variable in the file: :func:`node_label` -> dtype, shape,
    trainable, ...

    For a MetaGraph without an object graph, return those in its collections, by name.
    """
    graph = meta_graph(model, tags)
    if graph.object_graph_def.nodes:
        nodes = objects(graph.object_graph_def, Paths(graph.object_graph_def.nodes), {})
        variables = [node for node in nodes if node.kind == "variable" and node.path is not None]
        return {
            node_label(node.id, node.path): {"path": node.path, **node.details}
            for node in variables
        }
    definitions: dict[str, dict[str, Any]] = {}
    for collection, _, definition in variable_defs(graph, lenient=True):
        name = definition.variable_name.rpartition(":")[0]
        definitions.setdefault(name, {"trainable": False})["trainable"] |= collection == TRAINABLE
    return definitions


def node_label(node: int | None, name: str | None) -> str:
    """Return the name of a variable in :func:`variable_facts`: its node in the object graph, else
    its name in the main graph.
    """
    return name or "" if node is None else f"node {node}"


def assets(model: Path, tags: Sequence[str]) -> Counter[str]:
    """Return the contents of the MetaGraph's assets: ``"name sha256"``. Raises MissingFileError."""
    out: Counter[str] = Counter()
    found = layout_of(model)
    for asset in {item.path: item for item in found.assets(found.meta_graph(tags))}.values():
        if not asset.exists:
            raise MissingFileError("an asset is missing", file=str(asset.path), node=asset.tensor)
        out[file_sha256(asset.path)[:16]] += 1
    return out


def extra_assets(model: Path) -> Counter[str]:
    """Return the files of assets.extra/, to which no MetaGraph refers: ``"name sha256"``."""
    found = layout_of(model)
    folder = found.directory / layout.ASSETS_EXTRA
    return Counter(f"{name} {file_sha256(folder / name)[:16]}" for name in found.extra_assets)


def canonical_difference(one: Path, other: Path) -> tuple[list[str], list[str]]:
    """Return ``(sections, differences)`` of the canonical forms of two models; both are empty for
    equal models.
    """
    first, second = _form(one, stamp(one)), _form(other, stamp(other))
    if first.hash == second.hash:
        return [], []
    sections = sorted(
        name for name in first.sections if first.sections[name] != second.sections[name]
    )
    return sections, [str(change) for change in form_changes(first, second) if change.counts][
        :_SHOWN
    ]


@functools.lru_cache(maxsize=1)
def _form(model: Path, _stamp: object) -> Canonical:
    """Return the canonical form of a model, kept until the form of another is made.

    A re-export is compared with the one before and then with the next. Most functions of both have
    the same text and are hashed once.
    """
    if len(_hashed) > _KEPT_HASHES:
        _hashed.clear()
    return canonical(model, known=_hashed)


def meta_graph(model: Path, tags: Sequence[str]) -> schema.MetaGraphDef:
    """Return the MetaGraph with these tags, read once for all callers, which must not change it."""
    return layout_of(model).meta_graph(tags)


def layout_of(model: Path) -> layout.Layout:
    """Return a model as stored, read once for all callers as long as its files do not change."""
    return _read(model, stamp(model))


@functools.lru_cache(maxsize=_KEPT)
def _read(model: Path, _stamp: object) -> layout.Layout:
    return layout.read(model)
