"""Signatures: renamed, dropped, copied, made the default (SIG-01, SIG-02, ATTR-01).

A model of TF 2 has each signature three times: as a SignatureDef, for sessions and servers; as a child of the object graph's map
`signatures`, for `tf.saved_model.load`; and there once more in the checkpoint's object graph. All three get the same name.
"""

from __future__ import annotations

from typing import Optional

from compat_matrix.models.edits.draft import Draft
from compat_matrix.models.edits.refused import RefusedError
from reference_impl.format import schema
from reference_impl.format.names import DEFAULT_SIGNATURE, RESERVED_SIGNATURES


def rename(draft: Draft, old: str, new: str, tags: Optional[str] = None) -> None:
    """Give a signature another key.

    Args:
      tags: of the MetaGraph, separated by commas; needed when there are several.

    Raises:
      RefusedError: there is no such signature, the new key is taken or cannot be one, either is reserved.
      NoMetaGraphError: `tags` choose none.
    """
    index, graph = draft.graph(tags)
    existing(draft, graph, old)
    _free(draft, graph, new)
    graph.signature_def[new].CopyFrom(graph.signature_def[old])
    del graph.signature_def[old]
    draft.signatures[index][new] = draft.signatures[index].pop(old)
    objects, holder = signature_map(draft, index, old)
    if objects is not None and holder is not None:
        objects.rename(holder, old, new)
    draft.changes.append(f"signature {old} is called {new}{where(objects, holder)}")


def copy(draft: Draft, old: str, new: str, tags: Optional[str] = None) -> None:
    """Another key for the same signature. Arguments and errors as `rename`."""
    index, graph = draft.graph(tags)
    existing(draft, graph, old)
    _free(draft, graph, new)
    graph.signature_def[new].CopyFrom(graph.signature_def[old])
    draft.signatures[index][new] = draft.signatures[index][old]
    objects, holder = signature_map(draft, index, old)
    if objects is not None and holder is not None:
        objects.add(holder, new, old)
    draft.changes.append(f"signature {new} is the same as {old}{where(objects, holder)}")


def drop(draft: Draft, keys: tuple[str, ...], tags: Optional[str] = None) -> None:
    """Remove signatures, with the objects that only they need. Nodes of the graph that only they need stay until `slim`.

    Raises: as `rename`.
    """
    index, graph = draft.graph(tags)
    for key in dict.fromkeys(keys):
        existing(draft, graph, key)
        del graph.signature_def[key]
        del draft.signatures[index][key]
        objects, holder = signature_map(draft, index, key)
        if objects is not None and holder is not None:
            objects.cut(holder, key)
        draft.changes.append(f"signature {key} is dropped{where(objects, holder)}")
    draft.collect(index)


def make_default(draft: Draft, key: str, old: Optional[str] = None, tags: Optional[str] = None) -> None:
    """Make `serving_default` the same as another signature, which keeps its key too.

    Args:
      old: new key of the signature that is the default now; without it there must be none.
    """
    _, graph = draft.graph(tags)
    existing(draft, graph, key)
    if key == DEFAULT_SIGNATURE:
        raise RefusedError("it is the default already", file=draft.file, node=key)
    if DEFAULT_SIGNATURE in graph.signature_def:
        if old is None:
            reason = "another signature is the default; say what it is to be called (--old KEY), or drop it first"
            raise RefusedError(reason, file=draft.file, node=DEFAULT_SIGNATURE)
        rename(draft, DEFAULT_SIGNATURE, old, tags)
    copy(draft, key, DEFAULT_SIGNATURE, tags)


def existing(draft: Draft, graph: schema.MetaGraphDef, key: str) -> None:
    if key in RESERVED_SIGNATURES:
        raise RefusedError("this is not a signature for callers: it names what a loader runs first", file=draft.file, node=key)
    if key not in graph.signature_def:
        found = ", ".join(sorted(key for key in graph.signature_def if key not in RESERVED_SIGNATURES)) or "none"
        raise RefusedError(f"there is no such signature; there are: {found}", file=draft.file, node=key)


def _free(draft: Draft, graph: schema.MetaGraphDef, key: str) -> None:
    if key in RESERVED_SIGNATURES:
        raise RefusedError("the key is reserved for what a loader runs first", file=draft.file, node=key, clause="API-03")
    if not key or not key.isprintable():
        raise RefusedError(f"{key!r} cannot be a key: empty, or with characters that cannot be shown", file=draft.file)
    if key in graph.signature_def:
        raise RefusedError("there is a signature of this key already", file=draft.file, node=key)


def signature_map(draft: Draft, index: int, key: str):  # type: ignore[no-untyped-def]
    """The object graph and its map of signatures, as far as the model has them and the map has the key."""
    objects = draft.objects(index)
    holder = None if objects is None else objects.signature_map()
    if objects is not None and holder is not None and objects.child(holder, key) is None:
        holder = None
    return objects, holder


def where(objects: object, holder: Optional[int]) -> str:
    return " (the object graph does not have it)" if objects is not None and holder is None else ""
