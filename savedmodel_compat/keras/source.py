"""The SavedModel behind a layer: a folder of the user, or a copy from a `.keras` file."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import weakref
from pathlib import Path
from typing import Any, Optional, Union

from savedmodel_common import placing

_KNOWN: weakref.WeakValueDictionary[str, Source] = weakref.WeakValueDictionary()


class Source:
    """A folder with a SavedModel.

    Copies of a layer in this process share it and find it by its `key`.

    Args:
      path: the folder.
      key: its key; by default a new one.
    """

    def __init__(self, path: Union[str, os.PathLike[str]], key: Optional[str] = None) -> None:
        self.path = Path(path)
        self.key = key or uuid.uuid4().hex
        _KNOWN[self.key] = self

    @property
    def is_hub_module(self) -> bool:
        """Whether it is a module of TensorFlow Hub for TF 1.x, as `tensorflow_hub` tells them."""
        return (self.path / "tfhub_module.pb").is_file()

    def copy_to(self, folder: Union[str, os.PathLike[str]]) -> None:
        """Copy the SavedModel into an existing folder.

        Raises:
          FileNotFoundError: the SavedModel no longer exists.
          ValueError: a symbolic link leads out of the SavedModel, or a file is neither a file nor a
            folder.
        """
        if not self.path.is_dir():
            raise FileNotFoundError(
                f"the SavedModel of this layer is gone: {self.path}. Restore it, then save the"
                " model again."
            )
        _copy(self.path, Path(folder))


def _copy(model: Path, folder: Path) -> None:
    """Put what a SavedModel holds into an existing folder, and nothing from elsewhere."""
    try:
        placing.place(model, folder)
    except placing.Unstageable as error:
        raise ValueError(f"the SavedModel {model} cannot be copied: {error}") from None


def known(key: Any) -> Optional[Source]:
    """Return the source with this key in this process."""
    return _KNOWN.get(key) if isinstance(key, str) else None


def copied_from(folder: Union[str, os.PathLike[str]], key: Any) -> Source:
    """Return a source with a copy of a folder.

    The copy is removed when the source is no longer used.
    """
    scratch = tempfile.mkdtemp(prefix="savedmodel-compat-")
    _copy(Path(folder), Path(scratch))
    source = Source(scratch, key if isinstance(key, str) else None)
    weakref.finalize(source, shutil.rmtree, scratch, ignore_errors=True)
    return source


def resolve(handle: Union[str, os.PathLike[str]]) -> Path:
    """Return the folder of a handle: a path, or an address that the installed `tensorflow_hub`
    resolves.

    Raises:
      FileNotFoundError: there is no such folder.
    """
    path = Path(handle)
    if path.is_dir():
        return path
    if "://" in str(handle):
        try:
            import tensorflow_hub
        except ImportError:
            raise FileNotFoundError(
                f"{handle}: install tensorflow_hub to download it, or give the folder of a"
                " SavedModel"
            ) from None
        return Path(tensorflow_hub.resolve(str(handle)))
    raise FileNotFoundError(f"no folder {handle}")
