"""The stand-in as a container image: the root file system streamed into the engine's import, under
a tag of its own.

The contract is the official image's: gRPC on 8500, REST on 8501, MODEL_NAME below MODEL_BASE_PATH,
arguments appended to those of the entry point. The name and the labels say what it is; no report
may call it ``tensorflow-serving``.
"""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compat_matrix.runtimes import resolve
from compat_matrix.runtimes.runtime import LOCAL
from savedmodel_standin import LABEL, REPOSITORY, rootfs

DIGEST_LABEL = "savedmodel-compat.standin.digest"
PORTS = (8500, 8501)
_BLOCK = 1 << 20


def build(client: Any, tag: str | None = None, runtime: str = LOCAL) -> str:
    """Make the image with a docker SDK client and return its id; an image of the same content is
    reused.

    ``tag`` is ``savedmodel-compat-standin:<version of TensorFlow>`` when absent, ``runtime`` the
    one whose TensorFlow is inside. Raises RuntimeTrouble: the runtime is missing, or no image can
    be made from it.
    """
    with tempfile.TemporaryDirectory() as scratch:
        tree = rootfs.gather(resolve.resolve(runtime).python, Path(scratch))
        name, _, version = (tag or f"{REPOSITORY}:{tree.tensorflow}").rpartition(":")
        digest = tree.digest()
        for image in client.images.list(filters={"label": f"{DIGEST_LABEL}={digest}"}):
            image.tag(name, version)
            return str(image.id)
        client.api.import_image(
            src=_stream(tree),
            repository=name,
            tag=version,
            changes=_changes(tree.tensorflow, digest),
            stream_src=True,
        )
        _forget_old(client)
        return str(client.images.get(f"{name}:{version}").id)


def _forget_old(client: Any) -> None:
    """Remove the images that lost their tag to a newer one, except images of existing
    containers.
    """
    for image in client.images.list(filters={"label": LABEL, "dangling": True}):
        with contextlib.suppress(OSError):  # exceptions of the SDK are OSErrors
            client.images.remove(image.id)


def _changes(tensorflow: str, digest: str) -> list[str]:
    return [
        f"LABEL {LABEL}={tensorflow}",
        f"LABEL {DIGEST_LABEL}={digest}",
        "ENV MODEL_NAME=model",
        "ENV MODEL_BASE_PATH=/models",
        "ENV PATH=/usr/local/bin:/usr/bin:/bin",
        f"ENV LD_LIBRARY_PATH={rootfs.LIBRARIES}",
        *(f"EXPOSE {port}" for port in PORTS),
        f'ENTRYPOINT ["{rootfs.ENTRYPOINT}"]',
    ]


def _stream(tree: rootfs.Tree) -> Iterator[bytes]:
    """Stream the tree as a tar file, which is never whole in memory or on disk."""
    reader, writer = os.pipe()
    failed: list[BaseException] = []

    def write() -> None:
        try:
            with os.fdopen(writer, "wb") as out:
                pack(tree, out)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    with os.fdopen(reader, "rb") as source:
        while block := source.read(_BLOCK):
            yield block
    thread.join()
    if failed:  # an engine that has read to a premature end must not keep half an image
        raise failed[0]


def pack(tree: rootfs.Tree, out: Any) -> None:
    """Write the tree as a tar file; owners and times are the same on every machine."""
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        for folder in sorted(_folders(tree)):
            archive.addfile(_info(folder, 0o755, tarfile.DIRTYPE))
        for path, entry in tree.entries.items():
            if entry.source is not None:
                with entry.source.open("rb") as file:
                    info = _info(path, entry.mode, tarfile.REGTYPE, os.fstat(file.fileno()).st_size)
                    archive.addfile(info, file)
            elif entry.text is not None:
                data = entry.text.encode("utf-8")
                archive.addfile(
                    _info(path, entry.mode, tarfile.REGTYPE, len(data)), io.BytesIO(data)
                )
            else:
                archive.addfile(_info(path, entry.mode, tarfile.DIRTYPE))


def _folders(tree: rootfs.Tree) -> set[str]:
    folders: set[str] = set()
    for path in tree.entries:
        folders.update(map(str, Path(path).parents))
    return folders - {"/", *tree.entries}


def _info(path: str, mode: int, kind: bytes, size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path.lstrip("/"))
    info.mode, info.type, info.size = mode, kind, size
    return info
