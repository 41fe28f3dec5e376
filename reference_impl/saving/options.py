"""Options of a save: our own, or those of TensorFlow as far as they have a meaning here (A9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from reference_impl.errors import SaveError

SERVE = "serve"


@dataclass(frozen=True)
class SaveOptions:
    """How to save.

    Attributes:
      strict: what would be lost is an error (the default); otherwise a warning.
      numbers_as_tensors: functions that were called with Python numbers are traced once more with tensors in their place, so that
        they can be called with other numbers after loading (PY-02). This runs their Python code.
      extra_tags: tags of the MetaGraph beside "serve".
      function_aliases: alias -> function, list of functions; their traces are listed under the alias.
      custom_gradients: store the custom gradients that functions name (the default).
    """

    strict: bool = True
    numbers_as_tensors: bool = False
    extra_tags: tuple[str, ...] = ()
    custom_gradients: bool = True
    function_aliases: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tags(self) -> list[str]:
        return sorted({SERVE, *self.extra_tags})


# Options of tf.saved_model.SaveOptions that are read below, or change nothing about what the model does (no debug info is
# written).
_IGNORED = {"experimental_io_device", "experimental_sharding_callback", "experimental_custom_gradients", "save_debug_info"}
_DEFAULTS = (None, False, "", (), [], {}, set())


def resolve(options: Optional[Any]) -> SaveOptions:
    """Our options from what the caller gave: None, SaveOptions, or `tf.saved_model.SaveOptions`.

    Raises:
      SaveError: an option is set that saving does not know.
    """
    if options is None:
        return SaveOptions()
    if isinstance(options, SaveOptions):
        return options
    unknown = []
    for name in getattr(type(options), "__slots__", None) or vars(options):
        value = getattr(options, name, None)
        if name in ("extra_tags", "function_aliases") or name in _IGNORED or getattr(value, "name", "") == "NONE":
            continue
        if not any(value is default or value == default for default in _DEFAULTS):
            unknown.append(f"{name}={value!r}")
    if unknown:
        raise SaveError(f"options that saving does not know: {', '.join(sorted(unknown))}", node="options")
    tags = tuple(getattr(options, "extra_tags", None) or ())
    gradients = bool(getattr(options, "experimental_custom_gradients", True))
    return SaveOptions(
        extra_tags=tags, custom_gradients=gradients, function_aliases=dict(getattr(options, "function_aliases", None) or {})
    )
