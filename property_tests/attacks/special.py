"""Attacks by what stands in place of each file of a model: a pipe, a socket, a device, a circle of
links or a directory.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

SOUND = Path(__file__).parents[2] / "fixtures_v1" / "module_functions" / "model"

PLACES = {
    "model": "saved_model.pb",
    "text": "saved_model.pbtxt",
    "split": "saved_model.cpb",
    "variables": "variables",
    "index": "variables/variables.index",
    "shard": "variables/variables.data-00000-of-00001",
    "asset": "assets/vocabulary.txt",
    "extra": "assets.extra/readme.txt",
    "warmup": "assets.extra/tf_serving_warmup_requests",
    "fingerprint": "fingerprint.pb",
    "keras": "keras_metadata.pb",
    "debug": "debug/saved_model_debug_info.pb",
}


def _bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        before = Path.cwd()
        os.chdir(path.parent)  # the name of a socket must be short
        try:
            server.bind(path.name)
        finally:
            os.chdir(before)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")  # a device of its own takes root


def _circle(path: Path) -> None:
    path.symlink_to(path.name)


KINDS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "pipe": ("A named pipe nobody writes to", os.mkfifo),
    "socket": ("A socket", _bind),
    "circle": ("A symbolic link to itself", _circle),
    "device": ("A link to a device without end", _device),
    "directory": ("A directory", Path.mkdir),
}
ALIKE = ("pipe", "socket", "circle")  # one verdict for these


def _attack(file: str, what: str, make: Callable[[Path], None]) -> Callable[[Path], None]:
    def attack(folder: Path) -> None:
        shutil.copytree(SOUND, folder)
        path = folder / file
        if file.startswith("saved_model."):
            (folder / "saved_model.pb").unlink()
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        make(path)

    attack.__doc__ = f"{what} in place of {file}."
    return attack


NOTHING_ODD = ("variables_is_a_directory", "extra_is_a_directory")
MADE = {
    name: _attack(file, *KINDS[kind])
    for place, file in PLACES.items()
    for kind in KINDS
    if (name := f"{place}_is_a_{kind}") not in NOTHING_ODD
}


def verdict_of(attack: str) -> str:
    """Return the name under which the verdict on an attack stands: an attack of this module shares
    it with others.
    """
    place, _, kind = attack.partition("_is_a_")
    return f"{place}_is_odd" if attack in MADE and kind in ALIKE else attack


def described(verdict: str) -> str:
    """Return what the attacks of a verdict are; empty for one of another module."""
    names = [name for name in MADE if verdict_of(name) == verdict]
    if len(names) < 2:
        return (MADE[names[0]].__doc__ or "") if names else ""
    return (
        "A named pipe, a socket, or a symbolic link to itself in place of"
        f" {PLACES[verdict.partition('_is_odd')[0]]}."
    )
