"""The RFC *SavedModel Save/Load in 2.x*, implemented independently of TensorFlow's own code for it.

    import reference_impl

    model = reference_impl.load("path")                  # TF 2.x and TF 1.x SavedModels
    reference_impl.save(model, "other path")
    reference_impl.inspect("path")                       # needs no TensorFlow

Importing this package imports no TensorFlow; `load` and `save` do when they are first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reference_impl.api import load, save
    from reference_impl.format.inspect import inspect
    from reference_impl.loading.initial_values import initializer
    from reference_impl.loading.options import LoadOptions
    from reference_impl.registration import register, unregister
    from reference_impl.saving.options import SaveOptions
    from reference_impl.strict_mode import strictness

__all__ = ["LoadOptions", "SaveOptions", "initializer", "inspect", "load", "register", "save", "strictness", "unregister"]

_HOMES = {
    "LoadOptions": "reference_impl.loading.options",
    "SaveOptions": "reference_impl.saving.options",
    "initializer": "reference_impl.loading.initial_values",
    "inspect": "reference_impl.format.inspect",
    "load": "reference_impl.api",
    "register": "reference_impl.registration",
    "save": "reference_impl.api",
    "strictness": "reference_impl.strict_mode",
    "unregister": "reference_impl.registration",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    try:
        return getattr(importlib.import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":
            raise
        said = f'reference_impl.{name} needs TensorFlow, which is not installed: pip install "savedmodel-compat[tf]"'
        raise ModuleNotFoundError(said, name=error.name) from None


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
