"""The SavedModel behind a layer: a folder of the user, or a copy from a `.keras` file."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import weakref
from pathlib import Path
from typing import Any, Optional, Union

_KNOWN: weakref.WeakValueDictionary[str, Source] = weakref.WeakValueDictionary()


class Source:
    """A folder with a SavedModel. Copies of a layer in this process share it and find it by its `key`.

    Args:
      path: the folder.
      key: its key; by default a new one.
    """

    def __init__(self, path: Union[str, os.PathLike[str]], key: Optional[str] = None) -> None:
        self.path = Path(path)
        self.key = key or uuid.uuid4().hex
        _KNOWN[self.key] = self

    def copy_to(self, folder: Union[str, os.PathLike[str]]) -> None:
        """Copy the SavedModel into an existing folder.

        Raises:
          FileNotFoundError: the SavedModel no longer exists.
        """
        if not self.path.is_dir():
            raise FileNotFoundError(f"the SavedModel of this layer is gone: {self.path}. Restore it, then save the model again.")
        shutil.copytree(self.path, folder, dirs_exist_ok=True)


def known(key: Any) -> Optional[Source]:
    """Return the source with this key in this process."""
    return _KNOWN.get(key) if isinstance(key, str) else None


def copied_from(folder: Union[str, os.PathLike[str]], key: Any) -> Source:
    """Return a source with a copy of a folder. The copy is removed when the source is no longer used."""
    scratch = tempfile.mkdtemp(prefix="savedmodel-compat-")
    shutil.copytree(folder, scratch, dirs_exist_ok=True)
    source = Source(scratch, key if isinstance(key, str) else None)
    weakref.finalize(source, shutil.rmtree, scratch, ignore_errors=True)
    return source


def resolve(handle: Union[str, os.PathLike[str]]) -> Path:
    """Return the folder of a handle: a path, or an address that the installed `tensorflow_hub` resolves.

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
                f"{handle}: install tensorflow_hub to download it, or give the folder of a SavedModel"
            ) from None
        return Path(tensorflow_hub.resolve(str(handle)))
    raise FileNotFoundError(f"no folder {handle}")
