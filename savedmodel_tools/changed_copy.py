"""Write a changed SavedModel to a new directory, with everything else that lies in the directory of
the original.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Optional

from reference_impl.format import schema
from reference_impl.format.container import files, layout
from reference_impl.format.container.fingerprint import fingerprint
from reference_impl.format.container.writer import LayoutWriter
from reference_impl.format.schema.ordered import ordered_bytes

_ASSETS, _CHECKPOINT = f"{layout.ASSETS}/", f"{layout.CHECKPOINT}."


def write_copy(
    model: layout.Layout,
    message: schema.SavedModel,
    out: files.AnyPath,
    prove: Optional[Callable[[Path], object]] = None,
    *,
    checkpoint: Optional[Callable[[Path], object]] = None,
    parts: Mapping[str, bytes] = {},
) -> None:
    """Write ``message`` and the other files of ``model``; the files of an unchanged checkpoint are
    linked where the system can.

    Args:
      out: a new directory, put in place by one rename.
      prove: called with the directory before that; what it raises keeps the copy from being
        written.
      checkpoint: writes another checkpoint under the prefix that it is given.
      parts: the content of files that change, by name.

    Raises FileAccessError: the directory is not empty, or cannot be written; SavedModelError: a
      file of the model cannot be read.
    """
    with LayoutWriter(out) as writer:
        if checkpoint is not None:
            checkpoint(writer.checkpoint_prefix)
        written = (*layout.FORMATS, layout.FINGERPRINT)  # below, and from the message
        for name in model.names:
            if name in parts:
                writer.part(name, parts[name])
            elif name not in written and not (
                checkpoint is not None and name.startswith(_CHECKPOINT)
            ):
                writer.part(name, model.root.path(name), link=name.startswith(_CHECKPOINT))
        data = ordered_bytes(message)
        writer.saved_model(message, text=model.file.suffix == ".pbtxt", data=data)
        if model.fingerprint is not None:
            names = [
                name
                for name in model.names
                if name.startswith((_ASSETS, f"{layout.ASSETS_EXTRA}/"))
            ]
            assets = {name.removeprefix(_ASSETS): model.root.path(name) for name in names}
            writer.fingerprint(fingerprint(message, data, writer.checkpoint_prefix, assets))
        if prove is not None:
            prove(writer.stage)
