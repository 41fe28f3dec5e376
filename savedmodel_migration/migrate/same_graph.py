"""The content of MetaGraphs and models without their tags, and gradients by that content.

A loader finds a MetaGraph by its tags. The results of the graph do not depend on them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from reference_impl.errors import LimitError
from reference_impl.format import schema
from reference_impl.format.container import layout
from savedmodel_common.provenance import file_sha256
from savedmodel_common.tensors import Tensor
from savedmodel_tools.record_files import files_of

Gradients = dict[str, Tensor]
_DERIVED = {"saved_model.pb", "fingerprint.pb"}  # the first is compared without its tags


def content_of(graph: schema.MetaGraphDef) -> bytes:
    """Return a digest of a MetaGraph without its tags; nothing if it is too large for a message."""
    copy = schema.copy_of(graph)
    copy.meta_info_def.ClearField("tags")
    try:
        return hashlib.sha256(schema.serialize(copy)).digest()
    except LimitError:
        return b""


def model_content(directory: Path) -> bytes:
    """Return a digest of a SavedModel without its tags; nothing if a MetaGraph has none."""
    graphs = [content_of(graph) for graph in layout.read(directory).saved_model.meta_graphs]
    if not all(graphs):
        return b""
    found = hashlib.sha256(b"".join(graphs))
    for file in sorted(files_of(directory)):
        name = file.relative_to(directory).as_posix()
        if name not in _DERIVED:
            found.update(f"{name}\0{file_sha256(file)}\n".encode("utf-8", "surrogateescape"))
    return found.digest()


class KnownGradients:
    """The gradients of the new models of one old model, made once for equal models and equal
    requests.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, tuple[object, ...]], Gradients] = {}

    def of(
        self, content: bytes, request: tuple[object, ...], make: Callable[[], Gradients]
    ) -> Gradients:
        """Return the gradients of a model with a `model_content`. Raises what ``make`` raises."""
        if (content, request) in self._known:
            return self._known[content, request]
        made = make()
        if content:
            self._known[content, request] = made
        return made
