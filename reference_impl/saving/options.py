"""Options of a save: our own, or those of TensorFlow. Every option has an effect; unknown options raise an error."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Optional, Protocol, Union

from reference_impl.errors import SaveError
from reference_impl.format.container import files
from reference_impl.load_options import is_local_device, translated
from reference_impl.strict_mode import is_strict

SERVE = "serve"
DEVICES, EXPAND = "save_variable_devices", "expand_distributed_variables"


class TensorFlowSaveOptions(Protocol):
    """What tells a `tf.saved_model.SaveOptions` from other objects, in every release of TensorFlow."""

    save_debug_info: Any


@dataclass(frozen=True)
class SaveOptions:
    """How to save.

    Attributes:
      strict: what would be lost is an error (the default, see `reference_impl.strictness`); otherwise a warning.
      numbers_as_tensors: functions that were called with Python numbers are traced once more with tensors in their place, so that
        they can be called with other numbers after loading (PY-02). This runs their Python code.
      extra_tags: tags of the MetaGraph beside "serve".
      functional_optimizers: store the update rules of optimizers, so that they can be applied after loading (OPT-04..OPT-07).
        This traces each optimizer once per dtype, and tries the result on a few numbers.
      function_aliases: alias -> function, list of functions; their traces are listed under the alias.
      custom_gradients: store the custom gradients that functions name (the default).
      namespaces: the namespaces of custom ops ("Ns" of an op "Ns>Op") that may be used; None allows all.
      debug_info: write debug/saved_model_debug_info.pb: where in the source the nodes of functions were made.
      variable_policy: None, "save_variable_devices" to write where variables are, or "expand_distributed_variables" to write
        that, and every replica of variables of a strategy, too.
      strip_debug_ops: turn Assert and PrintV2 into NoOp, Print and CheckNumerics into Identity.
      skip_saver: write no functions that save and restore in a session; only Python can load the values then.
      io_device: the device whose file system is written to; it must be one of this process, which writes the files.
      max_shard_bytes: start another data file of the checkpoint before one gets larger; a larger tensor has one of its own.
      sharding: a `tf.train.experimental.ShardingCallback` that says which tensors, or slices of them, share a data file.
      extra_assets: name -> path of the files to put into assets.extra/, such as requests for a server to warm up with; by default
        those of the model that the saved object was loaded as (its ``extra_assets``).
      stage: directory in which the export is put together, on the file system of its destination; by default the directory
        that is going to hold it. Nobody should look for models there, as a killed save leaves its unfinished one behind.
      sync: wait until the disk has the files (the default). Without it a killed process still leaves the old export or the new
        one, but a power failure soon after may leave empty files: for exports that are copied elsewhere or thrown away.
    """

    strict: bool = field(default_factory=is_strict)
    numbers_as_tensors: bool = False
    extra_tags: tuple[str, ...] = ()
    custom_gradients: bool = True
    functional_optimizers: bool = False
    function_aliases: Mapping[str, Any] = field(default_factory=dict)
    namespaces: Optional[Collection[str]] = None
    debug_info: bool = False
    variable_policy: Optional[Literal["save_variable_devices", "expand_distributed_variables"]] = None
    strip_debug_ops: bool = False
    skip_saver: bool = False
    io_device: Optional[str] = None
    max_shard_bytes: Optional[int] = None
    sharding: Optional[Callable[[Any], Any]] = None
    extra_assets: Optional[Mapping[str, Union[str, os.PathLike[str]]]] = None
    stage: Optional[Union[str, os.PathLike[str]]] = None
    sync: bool = True

    @property
    def tags(self) -> list[str]:
        return sorted({SERVE, *self.extra_tags})

    @property
    def devices(self) -> bool:
        """Whether the devices of variables are written."""
        return self.variable_policy is not None

    @property
    def expand(self) -> bool:
        return self.variable_policy == EXPAND


# Their name -> ours.
_THEIRS = {
    "extra_tags": "extra_tags",
    "function_aliases": "function_aliases",
    "experimental_custom_gradients": "custom_gradients",
    "namespace_whitelist": "namespaces",
    "save_debug_info": "debug_info",
    "experimental_variable_policy": "variable_policy",
    "experimental_debug_stripper": "strip_debug_ops",
    "experimental_skip_saver": "skip_saver",
    "experimental_io_device": "io_device",
    "experimental_sharding_callback": "sharding",
}


def resolve(options: Union[SaveOptions, TensorFlowSaveOptions, None]) -> SaveOptions:
    """Return our options for those the caller gave: None, SaveOptions, or `tf.saved_model.SaveOptions`.

    Raises:
      SaveError: an option is set that saving does not know, or to a value it cannot have.
      TypeError: it is something else.
    """
    if options is not None and not isinstance(options, SaveOptions) and not hasattr(options, "save_debug_info"):
        raise TypeError(f"options are SaveOptions, not {type(options).__name__}: {options!r}")  # all of TensorFlow's have that
    chosen = options if isinstance(options, SaveOptions) else SaveOptions() if options is None else _translate(options)
    _check(chosen)
    return chosen


def _translate(options: Any) -> SaveOptions:
    try:
        given = translated(options, _THEIRS)
    except ValueError as error:
        raise SaveError(str(error), node="options") from None
    given["extra_tags"] = tuple(given.get("extra_tags", ()))
    given["function_aliases"] = dict(given.get("function_aliases", ()))
    return SaveOptions(**given)


def _check(options: SaveOptions) -> None:
    def refuse(name: str, reason: str) -> None:
        raise SaveError(f"{name} = {getattr(options, name)!r}: {reason}", node=f"options.{name}")

    for name in ("extra_tags", "namespaces"):
        value = getattr(options, name)
        if value is not None and (isinstance(value, str) or not all(isinstance(item, str) for item in value)):
            refuse(name, "give a list of strings")
    for name in options.extra_assets or ():
        reason = files.refuse_name(name)
        if reason:
            refuse("extra_assets", f"the name {name!r} {reason}")
    if options.variable_policy not in (None, DEVICES, EXPAND):
        refuse("variable_policy", f"there are None, {DEVICES!r} and {EXPAND!r}")
    if options.io_device is not None and not is_local_device(options.io_device):
        refuse("io_device", "this process writes the files; give a device of its own, such as /job:localhost, or nothing")
    if options.max_shard_bytes is not None and options.max_shard_bytes < 1:
        refuse("max_shard_bytes", "give a positive number of bytes")
    if options.sharding is not None and options.max_shard_bytes is not None:
        refuse("max_shard_bytes", "the callback of `sharding` decides about the files already")
