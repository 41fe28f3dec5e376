"""Options of a save: our own, or those of TensorFlow.

Every option has an effect; unknown options raise an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Optional, Protocol, Union

from reference_impl.drop_in.strict_mode import is_strict
from reference_impl.errors import OptionError, SaveOptionError
from reference_impl.format.container import files
from reference_impl.load_options import UserKind, is_local_device, refuse_kinds, translated
from reference_impl.tracing import Sink

SERVE = "serve"
DEVICES, EXPAND = "save_variable_devices", "expand_distributed_variables"


class TensorFlowSaveOptions(Protocol):
    """The attributes by which a `tf.saved_model.SaveOptions` is recognised, in every release of
    TensorFlow.
    """

    save_debug_info: Any


@dataclass(frozen=True)
class SaveOptions:
    """How to save.

    Attributes:
      strict: a loss is an error (the default, see `reference_impl.strictness`); otherwise a
        warning.
      numbers_as_tensors: trace functions that were called with Python numbers once more with
        tensors instead, so that they accept other numbers after loading (PY-02). This runs their
        Python code.
      extra_tags: tags of the MetaGraph beside "serve".
      functional_optimizers: store the update rules of optimizers, so that they can be applied after
        loading (OPT-04..OPT-07). This traces each optimizer once per dtype and tests the result on
        a few numbers.
      function_aliases: alias -> function, list of functions; their traces are listed under the
        alias.
      custom_gradients: store the custom gradients that functions name (the default).
      namespaces: the namespaces of custom ops ("Ns" of an op "Ns>Op") that may be used; None allows
        all.
      debug_info: write debug/saved_model_debug_info.pb, with the source positions of the nodes of
        functions.
      variable_policy: None, "save_variable_devices" to save the devices of variables, or
        "expand_distributed_variables" to also save every replica of variables of a strategy.
      strip_debug_ops: turn Assert and PrintV2 into NoOp, Print and CheckNumerics into Identity.
      skip_saver: leave out the functions that save and restore in a session; then only Python can
        load the values.
      io_device: the device whose file system is written to. It must belong to this process, which
        writes the files.
      max_shard_bytes: the largest size of a data file of the checkpoint; a larger tensor gets its
        own file.
      sharding: a `tf.train.experimental.ShardingCallback` that chooses which tensors, or slices of
        them, share a data file.
      extra_assets: name -> path of the files to put into assets.extra/, such as warm-up requests
        for a server; by default the ``extra_assets`` of the saved object if it was loaded.
      stage: directory in which the export is staged, on the file system of its destination; by
        default the parent of the destination. Do not search it for models, since a killed save
        leaves an unfinished export behind.
      sync: wait until the files are on disk (the default). If false, a killed process still leaves
        the old export or the new one, but a power failure soon after may leave empty files. Turn it
        off for exports that are copied elsewhere or thrown away.
      trace: called with a `reference_impl.tracing.Step` after each stage of the save:
        ``print`` prints them.
      kinds: kinds of objects that the program adds, each a `reference_impl.ObjectKind`: objects
        that one of them matches are saved with its identifier, and with the state that it returns.

    Raises:
      SaveOptionError: an option has an invalid value.
    """

    strict: bool = field(default_factory=is_strict)
    numbers_as_tensors: bool = False
    extra_tags: tuple[str, ...] = ()
    custom_gradients: bool = True
    functional_optimizers: bool = False
    function_aliases: Mapping[str, Any] = field(default_factory=dict)
    namespaces: Optional[Collection[str]] = None
    debug_info: bool = False
    variable_policy: Optional[Literal["save_variable_devices", "expand_distributed_variables"]] = (
        None
    )
    strip_debug_ops: bool = False
    skip_saver: bool = False
    io_device: Optional[str] = None
    max_shard_bytes: Optional[int] = None
    sharding: Optional[Callable[[Any], Any]] = None
    extra_assets: Optional[Mapping[str, Union[str, os.PathLike[str]]]] = None
    stage: Optional[Union[str, os.PathLike[str]]] = None
    sync: bool = True
    trace: Optional[Sink] = None
    kinds: Sequence[UserKind] = ()

    def __post_init__(self) -> None:
        _check(self)

    @property
    def tags(self) -> list[str]:
        return sorted({SERVE, *self.extra_tags})

    @property
    def devices(self) -> bool:
        """Whether the devices of variables are saved."""
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
    """Return our options for the caller's: None, SaveOptions, or `tf.saved_model.SaveOptions`.

    Raises:
      SaveOptionError: an option is unknown or has an invalid value.
      TypeError: the argument has another type.
    """
    if (
        options is not None
        and not isinstance(options, SaveOptions)
        and not hasattr(options, "save_debug_info")
    ):
        raise TypeError(
            f"options are SaveOptions, not {type(options).__name__}: {options!r}"
        )  # all of TensorFlow's have that
    if options is None:
        return SaveOptions()
    return options if isinstance(options, SaveOptions) else _translate(options)


def _translate(options: object) -> SaveOptions:
    try:
        given = translated(options, _THEIRS)
    except OptionError as error:
        raise SaveOptionError(error.reason, node=error.node) from None
    given["extra_tags"] = tuple(given.get("extra_tags", ()))
    given["function_aliases"] = dict(given.get("function_aliases", ()))
    return SaveOptions(**given)


def _check(options: SaveOptions) -> None:
    def refuse(name: str, reason: str) -> None:
        text = f"{name} = {getattr(options, name)!r}: {reason}"
        raise SaveOptionError(text, node=f"options.{name}")

    for name in ("extra_tags", "namespaces"):
        value = getattr(options, name)
        if value is not None and (
            isinstance(value, str) or not all(isinstance(item, str) for item in value)
        ):
            refuse(name, "give a list of strings")
    for name in options.extra_assets or ():
        reason = files.refuse_name(name)
        if reason:
            refuse("extra_assets", f"the name {name!r} {reason}")
    if options.variable_policy not in (None, DEVICES, EXPAND):
        refuse("variable_policy", f"there are None, {DEVICES!r} and {EXPAND!r}")
    if options.io_device is not None and not is_local_device(options.io_device):
        refuse(
            "io_device",
            "this process writes the files; give a device of its own, such as /job:localhost, or"
            " nothing",
        )
    if refused := refuse_kinds(options.kinds):
        refuse("kinds", refused)
    if options.max_shard_bytes is not None and options.max_shard_bytes < 1:
        refuse("max_shard_bytes", "give a positive number of bytes")
    if options.sharding is not None and options.max_shard_bytes is not None:
        refuse("max_shard_bytes", "the callback of `sharding` decides about the files already")
