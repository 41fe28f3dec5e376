"""SavedModels on file systems that TensorFlow addresses by a URL, such as ``gs://``, ``hdfs://`` or
``ram://``.

The rest of this package reads and writes local files. A model at a URL is copied to a local
directory before a load, and from a local directory after a save.
"""

from __future__ import annotations

import atexit
import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Optional
from urllib.parse import unquote, urlparse

import tensorflow as tf

from reference_impl.errors import FileAccessError, MissingFileError, PathEscapeError
from reference_impl.format.container import files, layout

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # a single letter is a drive of Windows
_FILES = re.compile(r"saved_model\.\w+|fingerprint\.pb|keras_metadata\.pb")
_FOLDERS = ("variables", layout.ASSETS, layout.ASSETS_EXTRA, "debug")
_HERE = ("", "localhost")


def local_copy(path: str) -> str:
    """Return a directory with the SavedModel: `path` itself, or a copy of the directory at a URL.

    The copy stays until the process ends, since functions of the model may read its assets at any
    time.

    Raises:
      MissingFileError: there is no directory at the URL.
      FileAccessError: the file system of the URL cannot be read.

    RFC: API-01
    """
    if not _URL.match(path):
        return path
    if (local := _file_url(path)) is not None:
        return local
    with _reported(path):
        names = [name.rstrip("/") for name in tf.io.gfile.listdir(path)]
        target = Path(tempfile.mkdtemp(prefix="reference_impl_"))
        atexit.register(shutil.rmtree, target, ignore_errors=True)
        for name in names:
            if name in _FOLDERS:
                _copy(f"{path.rstrip('/')}/{name}", target / name)
            elif _FILES.fullmatch(name):
                tf.io.gfile.copy(f"{path.rstrip('/')}/{name}", str(target / name))
    return str(target)


def _copy(source: str, target: Path) -> None:
    """Copy a folder out of a remote file system."""
    target.mkdir(exist_ok=True)
    for name in tf.io.gfile.listdir(source):
        name = name.rstrip("/")
        reason = files.refuse_name(name)
        if reason:
            raise PathEscapeError(f"{name!r} {reason}", file=source)
        if tf.io.gfile.isdir(f"{source}/{name}"):
            _copy(f"{source}/{name}", target / name)
        else:
            tf.io.gfile.copy(f"{source}/{name}", str(target / name))


@contextlib.contextmanager
def written_locally(path: str) -> Iterator[str]:
    """Yield the directory to save to: `path` or, for a URL, a local directory that is copied to the
    URL at the end.

    `saved_model.pb` is copied last, since readers begin with it.

    Raises:
      FileAccessError: the file system of the URL cannot be written.

    RFC: API-04
    """
    local = _file_url(path) if _URL.match(path) else path
    if local is not None:
        yield local
        return
    with tempfile.TemporaryDirectory(prefix="reference_impl_") as folder:
        made = Path(folder) / "model"
        yield str(made)
        with _reported(path):
            found = [file for file in made.rglob("*") if file.is_file()]
            for file in sorted(found, key=lambda file: (file.name == layout.PB, file)):
                target = f"{path.rstrip('/')}/{file.relative_to(made).as_posix()}"
                tf.io.gfile.makedirs(target.rpartition("/")[0])
                if tf.io.gfile.exists(target):
                    tf.io.gfile.remove(target)  # `ram://` would append to it
                tf.io.gfile.copy(str(file), target, overwrite=True)


def _file_url(path: str) -> Optional[str]:
    """Return the path in a ``file://`` URL of this machine, or None for other URLs."""
    parts = urlparse(path)
    return unquote(parts.path) if parts.scheme.lower() == "file" and parts.netloc in _HERE else None


@contextlib.contextmanager
def _reported(path: str) -> Iterator[None]:
    try:
        yield
    except tf.errors.NotFoundError as error:
        reason = f"SavedModel file does not exist at this URL: {error.message}"
        raise MissingFileError(reason, file=path) from error
    except tf.errors.OpError as error:
        raise FileAccessError(
            f"TensorFlow cannot use this URL: {error.message}", file=path
        ) from error
