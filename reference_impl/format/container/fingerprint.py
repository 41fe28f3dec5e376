"""fingerprint.pb: hashes of the parts of an export, which identify a model without loading it.

The hashes equal those of TensorFlow 2.21 for the same files; the algorithm was found by changing
files and comparing hashes. Only `uuid` differs: TensorFlow draws a random one for each save; ours
is a hash of everything that is saved.

RFC: A7
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable, Union

from reference_impl.format import schema
from reference_impl.format.bundle.entry import index_file
from reference_impl.format.container.farmhash import fingerprint64, mixed
from reference_impl.format.container.files import open_regular
from reference_impl.format.names import CALLS
from reference_impl.format.schema.ordered import ordered_bytes

PRODUCER = 4  # how TensorFlow since 2.18 computes the hashes
_MASK = (1 << 64) - 1
_MULTIPLIER = 0xC6A4A7935BD1E995


def fingerprint(
    message: Any,
    data: bytes,
    prefix: Union[str, os.PathLike[str]],
    assets: Mapping[str, Union[str, os.PathLike[str]]],
    hashed: Callable[[bytes], int] = fingerprint64,
) -> Any:
    """Return the FingerprintDef of an export: of a SavedModel and its serialised form with ordered
    maps.

    Args:
      prefix: of its checkpoint, whose index holds a checksum of every value.
      assets: names of the asset files -> path.
      hashed: function that computes the 64-bit FarmHash; TensorFlow, where available, has a faster
        one.
    """
    meta_graph = message.meta_graphs[0]
    out = schema.FingerprintDef()
    out.saved_model_checksum = hashed(data)
    out.graph_def_program_hash = program_hash(meta_graph.graph_def, hashed)
    for key, signature in sorted(meta_graph.signature_def.items()):
        joined = _joined(out.signature_def_hash, hashed(key.encode()))
        out.signature_def_hash = _joined(joined, hashed(ordered_bytes(signature)))
    out.saved_object_graph_hash = object_graph_hash(meta_graph.object_graph_def, hashed)
    index = Path(index_file(os.fspath(prefix)))
    if index.exists():
        with open_regular(index) as stream:
            out.checkpoint_hash = hashed(stream.read())
    out.version.producer = PRODUCER
    out.uuid = _uuid(schema.serialize(out), assets)
    return out


def object_graph_hash(
    object_graph: schema.SavedObjectGraph, hashed: Callable[[bytes], int] = fingerprint64
) -> int:
    """Return the hash of the concrete functions, which is the same in all releases since 2.11."""
    result, functions = 0, object_graph.concrete_functions
    for name in sorted(functions, key=_number):
        joined = _joined(result, hashed(_unnumbered(name).encode()))
        result = _joined(joined, hashed(ordered_bytes(functions[name])))
    return result


def program_hash(graph_def: schema.GraphDef, hashed: Callable[[bytes], int] = fingerprint64) -> int:
    """Return the hash of the main graph, which is the same in all releases since 2.11.

    Everything that differs between processes is left out: strings, and numbers at the end of
    function names.
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
    return hashed(ordered_bytes(graph))


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
