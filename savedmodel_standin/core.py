"""The models to serve: the config, its checks and changes, the labels, and access to a servable."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterable
from typing import Any

from savedmodel_common.serving import messages
from savedmodel_standin import log
from savedmodel_standin.errors import ServingError, invalid
from savedmodel_standin.manager import Load, Manager
from savedmodel_standin.servable import Servable
from savedmodel_standin.source import Source
from savedmodel_standin.states import (
    AVAILABLE,
    Bus,
    Entry,
    Monitor,
    servable_id,
)

PLATFORM = "tensorflow"
_LIST = "model_config_list"


class Core:
    """Args: the values of the flags, and how a version is loaded."""

    def __init__(self, flags: dict[str, Any], load: Load) -> None:
        self._flags = flags
        self._bus = Bus()
        self.monitor: Monitor = self._bus.monitor()
        self._manager = Manager(
            load,
            self._bus,
            flags["max_num_load_retries"],
            flags["load_retry_interval_micros"],
            flags["num_load_threads"],
        )
        self._source = Source(self._manager.aspire, flags["file_system_poll_wait_seconds"])
        self._config: Any = messages.ModelServerConfig()
        self._watched: set[str] | None = (
            None  # the models of the source; None before the first list
        )
        self._labels: dict[str, dict[str, int]] = {}
        self._config_lock = threading.Lock()

    def held(self, spec: Any) -> contextlib.AbstractContextManager[tuple[Servable, int]]:
        """Return the servable that a ModelSpec means, and its version; it is not unloaded
        meanwhile.

        Raises :class:`ServingError`.
        """
        if not spec.name:
            raise invalid("ModelSpec has no name specified.")
        choice = spec.WhichOneof("version_choice")
        if choice == "version_label":
            version = self._labels.get(spec.name, {}).get(spec.version_label)
            if version is None:
                raise invalid(f"Unrecognized servable version label: {spec.version_label}")
            return self._manager.held(spec.name, version)
        return self._manager.held(spec.name, spec.version.value if choice == "version" else None)

    def reload(self, config: Any) -> None:
        """Serve what this ModelServerConfig lists and nothing else; returns when all new models are
        available.

        Raises :class:`ServingError`: the config is refused, or a new model did not load (the others
        are served then). As in the real server it waits without limit for a model whose base path
        is not there, and later calls wait behind it.
        """
        with self._config_lock:
            old, new = self._config.WhichOneof("config"), config.WhichOneof("config")
            if old is not None and (old, new) != (_LIST, _LIST):
                raise ServingError(
                    "FAILED_PRECONDITION",
                    "Cannot transition to requested config. It is only legal to transition from one"
                    " ModelConfigList to another.",
                )
            if new is None:
                log.info("core", "Taking no action for empty config.")
                return
            if new != _LIST:
                raise invalid("the stand-in does not support custom model config.")
            models = config.model_config_list.config
            _validate(models, self._config.model_config_list.config)
            self._config = config
            self._labels = self._new_labels(models)
            log.info("core", "Adding/updating models.")
            self._serve(models)
            log.info("core", "Finished adding/updating models")

    def _serve(self, models: Iterable[Any]) -> None:
        names = {model.name for model in models}
        for model in models:
            log.info("core", f" (Re-)adding model: {model.name}")
            if platform(model) != PLATFORM:
                raise invalid(f"Model {model.name} requests unsupported platform {platform(model)}")
        first, added = self._watched is None, names - (self._watched or set())
        self._watched = names
        monitor = self._bus.monitor()
        try:
            if first:
                self._manager.set_threads(self._flags["num_initial_load_threads"])
            self._source.update(list(models))
            _check_available(monitor.wait(added), "servable(s)" if first else "model(s)")
        finally:
            self._bus.forget(monitor)
            self._manager.set_threads(self._flags["num_load_threads"])

    def _new_labels(self, models: Iterable[Any]) -> dict[str, dict[str, int]]:
        labels: dict[str, dict[str, int]] = {}
        for model in models:
            known = self.monitor.versions(model.name)
            for label, version in sorted(model.version_labels.items()):
                current = self._labels.get(model.name, {}).get(label, version)
                allowed = self._flags["force_allow_any_version_labels_for_unavailable_models"] or (
                    self._flags["allow_version_labels_for_unavailable_models"]
                    and current == version
                )
                if not allowed and (version not in known or known[version].state != AVAILABLE):
                    raise ServingError(
                        "FAILED_PRECONDITION",
                        f"Request to assign label to version {version} of model {model.name}, "
                        "which is not currently available for inference",
                    )
                labels.setdefault(model.name, {})[label] = version
        return labels


def platform(model: Any) -> str:
    """Raise :class:`ServingError` when no platform or two are given.

    A server of 2.15 names the model at the end.

    2.10 did not.
    """
    whose = f", model name is {model.name}"
    if model.model_type:
        if model.model_platform:
            text = (
                "Illegal setting both ModelServerConfig::model_type (deprecated) and"
                " ModelServerConfig::model_platform"
            )
            raise invalid(text + whose)
        if model.model_type != 1:
            raise invalid(
                f"ModelServerConfig::model_type choice {model.model_type} not supported" + whose
            )
        return PLATFORM
    if not model.model_platform:
        text = (
            "Illegal setting neither ModelServerConfig::model_type (deprecated) nor"
            " ModelServerConfig::model_platform"
        )
        raise invalid(text + whose)
    return str(model.model_platform)


def _validate(models: Iterable[Any], before: Iterable[Any]) -> None:
    names: set[str] = set()
    for model in models:
        if model.name in names:
            raise invalid(f"Illegal to list model {model.name} multiple times in config list")
        names.add(model.name)
    for model in models:
        if not re.match(r"/|\w+://", model.base_path):
            raise invalid(
                f"Expected model {model.name} to have an absolute path or URI; got"
                f" base_path()={model.base_path}"
            )
    platforms = {model.name: platform(model) for model in before}
    for model in models:
        if platforms.get(model.name, platform(model)) != platform(model):
            raise invalid(
                f"Illegal to change a model's platform. For model {model.name} platform was"
                f" {platforms[model.name]} and new platform requested is {platform(model)}"
            )


def _check_available(reached: dict[tuple[str, int], Entry], what: str) -> None:
    missing = {key: entry for key, entry in sorted(reached.items()) if entry.state != AVAILABLE}
    if missing:
        told = "".join(
            f"{{{servable_id(*key)}{f' due to error: {entry.error}' if entry.error else ''}}}, "
            for key, entry in missing.items()
        )
        raise ServingError("UNKNOWN", f"{len(missing)} {what} did not become available: {{{told}}}")
