"""Signatures renamed, dropped, copied, made the default (SIG-01, SIG-02, ATTR-01); the tags of a
MetaGraph set (V1-04, V1-05).

A model of TF 2 has each signature three times: as a SignatureDef, for sessions and servers; as a
child of the object graph's map `signatures`, for `tf.saved_model.load`; and there once more in the
checkpoint's object graph. All three get the same name.
"""

from __future__ import annotations

from typing import Optional

from reference_impl.format import schema
from reference_impl.format.container import layout
from reference_impl.format.names import DEFAULT_SIGNATURE, RESERVED_SIGNATURES
from savedmodel_common.printable import like
from savedmodel_tools.edits.draft import Draft
from savedmodel_tools.edits.proof import RefusedError


def rename(draft: Draft, old: str, new: str, tags: Optional[str] = None) -> None:
    """Give a signature another key.

    Raises RefusedError: there is no such signature, the new key is taken or cannot be one, either
    is reserved; NoMetaGraphError: `tags`, separated by commas, choose no MetaGraph, or are needed
    since there are several.
    """
    _copy(draft, old, new, tags, keep=False)


def copy(draft: Draft, old: str, new: str, tags: Optional[str] = None) -> None:
    """Another key for the same signature. Arguments and errors as `rename`."""
    _copy(draft, old, new, tags, keep=True)


def _copy(draft: Draft, old: str, new: str, tags: Optional[str], keep: bool) -> None:
    index, graph = draft.graph(tags)
    existing(draft, graph, old)
    _free(draft, graph, new)
    graph.signature_def[new].CopyFrom(graph.signature_def[old])
    draft.signatures[index][new] = draft.signatures[index][old]
    objects, holder = signature_map(draft, index, old)
    if objects is not None and holder is not None:
        objects.add(holder, new, old) if keep else objects.rename(holder, old, new)
    if not keep:
        del graph.signature_def[old], draft.signatures[index][old]
    said = f"{new} is the same as {old}" if keep else f"{old} is called {new}"
    draft.changes.append(f"signature {said}{where(objects, holder)}")


def drop(draft: Draft, keys: tuple[str, ...], tags: Optional[str] = None) -> None:
    """Remove signatures, with the objects that only they need.

    Nodes of the graph stay until `slim`. Raises as `rename`.
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


def make_default(
    draft: Draft, key: str, old: Optional[str] = None, tags: Optional[str] = None
) -> None:
    """Make `serving_default` the same as another signature; ``old``: the new key of the one that is
    the default now, if any.
    """
    _, graph = draft.graph(tags)
    existing(draft, graph, key)
    if key == DEFAULT_SIGNATURE:
        raise RefusedError("it is the default already", file=draft.file, node=key)
    if DEFAULT_SIGNATURE in graph.signature_def:
        if old is None:
            reason = (
                "another signature is the default: rename it (--rename serving_default=KEY) or drop"
                " it first"
            )
            raise RefusedError(reason, file=draft.file, node=DEFAULT_SIGNATURE)
        rename(draft, DEFAULT_SIGNATURE, old, tags)
    copy(draft, key, DEFAULT_SIGNATURE, tags)


def existing(draft: Draft, graph: schema.MetaGraphDef, key: str) -> None:
    if key in RESERVED_SIGNATURES:
        raise RefusedError(
            "this is not a signature for callers: it names the ops that a loader runs first",
            file=draft.file,
            node=key,
        )
    if key not in graph.signature_def:
        found = sorted(name for name in graph.signature_def if name not in RESERVED_SIGNATURES)
        reason = (
            "there is no such signature; there are:"
            f" {', '.join(found) or 'none'}.{like(key, found)}"
        )
        raise RefusedError(reason, file=draft.file, node=key)


def _free(draft: Draft, graph: schema.MetaGraphDef, key: str) -> None:
    if key in RESERVED_SIGNATURES:
        raise RefusedError(
            "the key is reserved for the ops that a loader runs first",
            file=draft.file,
            node=key,
            clause="API-03",
        )
    if not key or not key.isprintable():
        raise RefusedError(
            f"{key!r} cannot be a key: empty, or with characters that cannot be shown",
            file=draft.file,
        )
    if key in graph.signature_def:
        raise RefusedError("there is a signature of this key already", file=draft.file, node=key)


def signature_map(draft: Draft, index: int, key: str):  # type: ignore[no-untyped-def]
    """The object graph and its map of signatures, as far as the model has them and the map has the
    key.
    """
    objects = draft.objects(index)
    holder = None if objects is None else objects.signature_map()
    if objects is not None and holder is not None and objects.child(holder, key) is None:
        holder = None
    return objects, holder


def where(objects: object, holder: Optional[int]) -> str:
    return " (the object graph does not have it)" if objects is not None and holder is None else ""


def set_tags(draft: Draft, new: str, tags: Optional[str] = None) -> None:
    """Give a MetaGraph other tags, separated by commas; ``tags`` are those it has, needed when
    there are several MetaGraphs.

    Raises RefusedError: another MetaGraph has these tags, or one of them cannot be a tag;
    NoMetaGraphError: `tags` choose none.
    """
    index, graph = draft.graph(tags)
    wanted = list(dict.fromkeys(tag.strip() for tag in new.split(",") if tag.strip()))
    if not all(tag.isprintable() for tag in wanted):
        raise RefusedError("a tag with characters that cannot be shown", file=draft.file)
    for other, item in enumerate(draft.message.meta_graphs):
        if other != index and set(item.meta_info_def.tags) == set(wanted):
            reason = "another MetaGraph has these tags; no reader could choose between them"
            raise RefusedError(
                reason, file=draft.file, node=layout.tags_text(wanted), clause="V1-05"
            )
    old = layout.tags_text(layout.tags_of(graph))
    graph.meta_info_def.tags[:] = wanted
    draft.changes.append(f"the MetaGraph with the tags {old} has {', '.join(wanted) or 'no tags'}")
