"""fingerprint.pb: hashes of the parts of an export, which identify a model without loading it.

The hashes equal those of TensorFlow 2.21 for the same files; the algorithm was found by changing
files and comparing hashes. Only `uuid` differs: TensorFlow draws a random one for each save; ours
is a hash of everything that is saved.

RFC: A7
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Union

from reference_impl.format import schema
from reference_impl.format.bundle.entry import index_file
from reference_impl.format.container.farmhash import fingerprint64, fingerprints64, mixed
from reference_impl.format.container.files import open_regular
from reference_impl.format.names import CALLS
from reference_impl.format.schema.ordered import ordered_bytes

PRODUCER = 4  # how TensorFlow 2.21 computes the hashes; 2.15 to 2.20 write 1
_MASK = (1 << 64) - 1
_MULTIPLIER = 0xC6A4A7935BD1E995


# Returns the 64-bit FarmHash of each of several byte strings. TensorFlow, where available, has a
# faster one than `fingerprints64`.
Hashes = Callable[[Sequence[bytes]], list[int]]


def fingerprint(
    message: schema.SavedModel,
    data: bytes,
    prefix: Union[str, os.PathLike[str]],
    assets: Mapping[str, Union[str, os.PathLike[str]]],
    hashes: Hashes = fingerprints64,
) -> schema.FingerprintDef:
    """Return the FingerprintDef of an export: of a SavedModel and its serialised form with ordered
    maps.

    Args:
      prefix: of its checkpoint, whose index holds a checksum of every value.
      assets: names of the asset files -> path.
      hashes: computes all hashes in one call.
    """
    meta_graph = message.meta_graphs[0]
    signatures = _signature_parts(meta_graph)
    functions = _object_graph_parts(meta_graph.object_graph_def)
    index = _index_of_checkpoint(prefix)
    parts = [data, _program(meta_graph.graph_def), *signatures, *functions, *index]
    found = iter(hashes(parts))
    out = schema.FingerprintDef()
    out.saved_model_checksum = next(found)
    out.graph_def_program_hash = next(found)
    out.signature_def_hash = _all_joined(itertools.islice(found, len(signatures)))
    out.saved_object_graph_hash = _all_joined(itertools.islice(found, len(functions)))
    if index:
        out.checkpoint_hash = next(found)
    out.version.producer = PRODUCER
    out.uuid = _uuid(schema.serialize(out), assets)
    return out


def object_graph_hash(object_graph: schema.SavedObjectGraph) -> int:
    """Return the hash of the concrete functions, which is the same in all releases since 2.11."""
    return _all_joined(fingerprints64(_object_graph_parts(object_graph)))


def program_hash(graph_def: schema.GraphDef) -> int:
    """Return the hash of the main graph, which is the same in all releases since 2.11."""
    return fingerprint64(_program(graph_def))


def _signature_parts(meta_graph: schema.MetaGraphDef) -> list[bytes]:
    """Return the bytes of each key and SignatureDef, in the order in which their hashes are
    joined.
    """
    parts = []
    for key, signature in sorted(meta_graph.signature_def.items()):
        parts += [key.encode(), ordered_bytes(signature)]
    return parts


def _object_graph_parts(object_graph: schema.SavedObjectGraph) -> list[bytes]:
    """Return the bytes of each name and concrete function, in the order in which their hashes are
    joined.
    """
    parts, functions = [], object_graph.concrete_functions
    for name in sorted(functions, key=_number):
        parts += [_unnumbered(name).encode(), ordered_bytes(functions[name])]
    return parts


def _index_of_checkpoint(prefix: Union[str, os.PathLike[str]]) -> list[bytes]:
    """Return the bytes of the index of a checkpoint, or nothing if there is no checkpoint."""
    index = Path(index_file(os.fspath(prefix)))
    if not index.exists():
        return []
    with open_regular(index) as stream:
        return [stream.read()]


def _program(graph_def: schema.GraphDef) -> bytes:
    """Return the bytes of the main graph without what differs between processes: strings, and
    numbers at the end of function names.
    """
    graph = schema.GraphDef()
    graph.node.extend(graph_def.node)
    graph.library.SetInParent()
    graph.versions.SetInParent()
    for node in graph.node:
        if node.op in CALLS:
            function = node.attr["f"].func
            function.name = _unnumbered(function.name)
            if "config_proto" in node.attr:
                node.attr["config_proto"].s = b""
        elif node.op == "Const" and node.attr["dtype"].type == schema.DT_STRING:
            node.attr["value"].Clear()
    return ordered_bytes(graph)


def _number(name: str) -> int:
    return int(name.rpartition("_")[2]) if re.search(r"_\d+\Z", name) else -1


def _unnumbered(name: str) -> str:
    return re.sub(r"(?<=_)\d+\Z", "", name)


def _uuid(hashes: bytes, assets: Mapping[str, Union[str, os.PathLike[str]]]) -> str:
    digest = hashlib.blake2b(hashes, digest_size=16)
    for name, path in sorted(assets.items()):
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
        with open_regular(path) as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return str(int.from_bytes(digest.digest(), "big"))


def _joined(first: int, second: int) -> int:
    """Return two hashes combined into one."""
    result = first ^ _MULTIPLIER
    result ^= mixed(second * _MULTIPLIER) * _MULTIPLIER & _MASK
    return mixed(mixed(result * _MULTIPLIER) * _MULTIPLIER)


def _all_joined(hashes: Iterable[int]) -> int:
    result = 0
    for item in hashes:
        result = _joined(result, item)
    return result
