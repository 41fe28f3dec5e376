"""The models of every release, made once and kept in the user's cache folder.

    python -m savedmodel_migration.keras_models [--release 2.4]... [NAME]...

A name is ``layer/variant``, a layer (all its variants) or a whole model; ``fnmatch`` patterns are
taken. A model is made anew when what describes it changes. Nothing is downloaded: a release whose
runtime is not installed is skipped and named.
"""

from __future__ import annotations

import fnmatch
import hashlib
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compat_matrix.runtimes.places import RuntimeTrouble, home
from compat_matrix.runtimes.resolve import resolve
from savedmodel_migration.keras_models import recorder, whole

RELEASES = ("2.0", "2.3", "2.4", "2.6", "2.9", "2.12", "2.15", "tf_keras")
FORMAT = "1"  # goes up when recorder.py records something else
SMALL = (  # what CI makes: seconds for each release
    "Dense/plain", "BatchNormalization/plain", "Conv2D/plain", "LSTM/plain", "StringLookup/given", "operations/arithmetic",
    "mlp_trained", "shared_layer", "custom_layer",
)  # fmt: skip


@dataclass(frozen=True)
class Made:
    """A model of the cache and what the release that made it says of it."""

    release: str
    folder: Path
    facts: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.facts["name"])

    @property
    def model(self) -> Path:
        """The SavedModel. It exists only where ``usable``."""
        return self.folder / "model"

    @property
    def usable(self) -> bool:
        """Whether the release could make it."""
        return "absent" not in self.facts and "failed" not in self.facts

    def arrays(self, file: str, letter: str) -> list[Any]:
        """The arrays of ``io.npz``, ``weights.npz`` or ``step.npz``, in their order."""
        with np.load(
            self.folder / file, allow_pickle=True
        ) as stored:  # strings are objects; we have written them
            keys = [key for key in stored if key[0] == letter]
            return [stored[key] for key in sorted(keys, key=lambda key: int(key[1:]))]


def key(name: str) -> str:
    """Of what describes a model: another key, another model."""
    row = recorder.row_of(name)
    if row is None:
        function = whole.WHOLE[name][1]
        row = (
            whole.WHOLE[name][0],
            getattr(function, "source", None) or inspect.getsource(function),
        )
    return hashlib.sha256(repr((FORMAT, name, row)).encode()).hexdigest()[:16]


def select(patterns: Sequence[str] = ()) -> list[str]:
    """The names that a pattern or a layer's name stands for; all without patterns.

    Raises LookupError.
    """
    names = recorder.names()
    for pattern in patterns:
        if not any(_fits(name, pattern) for name in names):
            raise LookupError(f"no model fits {pattern!r}")
    if not patterns:
        return names
    return [name for name in names if _fits_any(name, patterns)]


def _fits_any(name: str, patterns: Sequence[str]) -> bool:
    return any(_fits(name, pattern) for pattern in patterns)


def _fits(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern) or name.partition("/")[0] == pattern


def place(release: str) -> Path:
    """The folder of a release's models."""
    return home() / "keras-models" / release


def interpreter(release: str) -> tuple[Path, str]:
    """``(python, package of Keras 2)``.

    Raises RuntimeTrouble where the release is not installed.
    """
    if release == "tf_keras":
        return Path(sys.executable), "tf_keras"
    return Path(resolve(release).python), "tensorflow.keras"


def stored(release: str, name: str) -> Made | None:
    """A model of the cache; None where it is missing or out of date."""
    folder = place(release) / recorder.folder(name)
    try:
        facts = json.loads((folder / "facts.json").read_text())
    except (OSError, ValueError):
        return None
    return Made(release, folder, facts) if facts.get("key") == key(name) else None


def make(release: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Make what the cache lacks; yields ``(name, state)`` as each is done.

    Raises RuntimeTrouble.

    One process makes many. If it dies, the model it was at counts as failed and another process
    makes the rest.
    """
    missing = [name for name in names if stored(release, name) is None]
    while missing:
        done = 0
        for line in _run(release, missing):
            name, _, state = line.rpartition(" ")
            if name == missing[done]:
                done += 1
                yield name, state
        if done < len(missing):
            yield missing[done], "died"
        missing = missing[done + 1 :]


def _run(release: str, names: Sequence[str]) -> Iterator[str]:
    python, package = interpreter(release)
    out = place(release)
    out.mkdir(parents=True, exist_ok=True)
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "TF_", "TF2_", "KERAS_"))
    }
    environment = {
        **clean,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PYTHONHASHSEED": "0",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    arguments: list[str] = []
    for name in names:
        arguments += [name, key(name)]
    with (out / "log").open("ab") as log:
        command = [
            str(python),
            "-m",
            "savedmodel_migration.keras_models.recorder",
            str(out),
            package,
            *arguments,
        ]
        process = subprocess.Popen(
            command, env=environment, cwd=out, stdout=subprocess.PIPE, stderr=log, text=True
        )
        with process:
            assert process.stdout is not None
            yield from (line.rstrip("\n") for line in process.stdout)


def material(releases: Sequence[str] = RELEASES, patterns: Sequence[str] = ()) -> Iterator[Made]:
    """The usable models of the cache, without making any."""
    for release in releases:
        for name in select(patterns):
            found = stored(release, name)
            if found is not None and found.usable:
                yield found


__all__ = [
    "RELEASES",
    "SMALL",
    "Made",
    "RuntimeTrouble",
    "interpreter",
    "key",
    "make",
    "material",
    "place",
    "select",
    "stored",
]
