"""Looks for versions under the base paths repeatedly, and tells the manager which are aspired."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from savedmodel_standin import log
from savedmodel_standin.errors import ServingError, invalid

Aspire = Callable[[str, Mapping[int, str]], None]
_INT64 = 1 << 63


class Source:
    """Args: whom to tell, and how often to look: seconds, 0 for once, negative for never."""

    def __init__(self, aspire: Aspire, seconds: int) -> None:
        self._aspire, self._seconds = aspire, seconds
        self._models: list[Any] = []
        self._lock = threading.Lock()
        self._now = threading.Event()
        self._started = False

    def update(self, models: Sequence[Any]) -> None:
        """Watch only these ModelConfigs; models that are gone are unloaded at once.

        A change is looked at at once, where the real server waits for its next look; with 0 seconds
        neither looks again.
        """
        with self._lock:
            gone = {model.name for model in self._models} - {model.name for model in models}
            for name in sorted(gone):
                self._aspire(name, {})
            self._models = list(models)
        if not self._started:
            self._started = True
            if self._seconds >= 0:
                threading.Thread(target=self._watch, name="source", daemon=True).start()
        elif self._seconds > 0:
            self._now.set()

    def _watch(self) -> None:
        while True:
            self._now.clear()
            with self._lock:
                try:
                    for name, versions in [
                        (model.name, find_versions(model)) for model in self._models
                    ]:
                        self._aspire(name, versions)
                except (
                    ServingError
                ) as error:  # one bad path, and this look finds nothing for any model
                    text = (
                        "FileSystemStoragePathSource encountered a filesystem access error:"
                        f" {error.message}"
                    )
                    log.error("source", text)
            if self._seconds == 0:
                return
            self._now.wait(self._seconds)


def find_versions(model: Any) -> dict[int, str]:
    """``{version: folder}`` that a ModelConfig's version policy asks for.

    Raises :class:`ServingError`: no such base path.
    """
    base = model.base_path
    try:
        children = sorted(os.listdir(base))  # noqa: PTH208
    except OSError as error:
        raise invalid(
            f"Could not find base path {base} for servable {model.name} with error NOT_FOUND:"
            f" {base} {error.strerror}"
        ) from None
    found: dict[int, str] = {}
    for child in children:
        if re.fullmatch(r"[+-]?\d+", child) and -_INT64 <= int(child) < _INT64:
            if int(child) in found:
                log.warning(
                    "source",
                    f"Duplicate version directories detected. Version {int(child)} will be loaded"
                    f" from {child}",
                )
            found[int(child)] = f"{base.rstrip('/')}/{child}"
    wanted = _chosen(model, found)
    if not wanted:
        log.warning(
            "source",
            f"No versions of servable {model.name} found under base path {base}. "
            "Did you forget to name your leaf directory as a number (eg. '/1/')?",
        )
    return {version: found[version] for version in wanted}


def _chosen(model: Any, found: Mapping[int, str]) -> list[int]:
    policy = model.model_version_policy
    choice = policy.WhichOneof("policy_choice")
    if choice == "all":
        return sorted(found)
    if choice == "specific":
        for version in policy.specific.versions:
            if version not in found:
                log.warning(
                    "source",
                    f"Version {version} of servable {model.name}, which was requested to be served"
                    " as a 'specific' version in the servable's version policy, was not found in"
                    " the file system",
                )
        return sorted(set(policy.specific.versions) & set(found))
    return sorted(found)[-max(policy.latest.num_versions, 1) :]
