"""The RFC *SavedModel Save/Load in 2.x*, implemented independently of TensorFlow's own code for it.

    import reference_impl

    model = reference_impl.load("path")                  # TF 2.x and TF 1.x SavedModels
    reference_impl.save(model, "other path")
    reference_impl.inspect("path")                       # needs no TensorFlow

Every error class of `reference_impl.errors` can be imported from here. Importing this package does
not import TensorFlow; the first use of `load` or `save` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reference_impl import errors
from reference_impl.errors import *  # noqa: F403

if TYPE_CHECKING:
    from reference_impl.api import load, save
    from reference_impl.drop_in.strict_mode import strictness
    from reference_impl.extension.initial_values import initializer
    from reference_impl.extension.registration import register, unregister
    from reference_impl.kinds.object_kind import ObjectKind
    from reference_impl.load_options import LoadOptions
    from reference_impl.loaded_model import LoadedModel
    from reference_impl.saving.options import SaveOptions
    from reference_impl.views.model import inspect

__all__ = [
    "LoadOptions",
    "LoadedModel",
    "ObjectKind",
    "SaveOptions",
    "initializer",
    "inspect",
    "load",
    "register",
    "save",
    "strictness",
    "unregister",
]
__all__ += errors.__all__

_HOMES = {
    "LoadOptions": "reference_impl.load_options",
    "LoadedModel": "reference_impl.loaded_model",
    "ObjectKind": "reference_impl.kinds.object_kind",
    "SaveOptions": "reference_impl.saving.options",
    "initializer": "reference_impl.extension.initial_values",
    "inspect": "reference_impl.views.model",
    "load": "reference_impl.api",
    "register": "reference_impl.extension.registration",
    "save": "reference_impl.api",
    "strictness": "reference_impl.drop_in.strict_mode",
    "unregister": "reference_impl.extension.registration",
}


if (
    not TYPE_CHECKING
):  # type checkers take the names from the imports above, and report unknown ones

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        try:
            return getattr(importlib.import_module(_HOMES[name]), name)
        except ModuleNotFoundError as error:
            if error.name != "tensorflow":
                raise
            said = (
                f"reference_impl.{name} needs TensorFlow, which is not installed: pip install"
                ' "savedmodel-compat[tf]"'
            )
            raise ModuleNotFoundError(said, name=error.name) from None


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
