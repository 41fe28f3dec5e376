"""The options of `load`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Union

from reference_impl.inspection.machine_ops import CHOICES


class TensorFlowLoadOptions(Protocol):
    """What tells a `tf.saved_model.LoadOptions` from other objects, in every release of TensorFlow."""

    allow_partial_checkpoint: Any


@dataclass(frozen=True)
class LoadOptions:
    """Options of `reference_impl.load`.

    Attributes:
      allow_partial_checkpoint: leave a variable without a value if the checkpoint has none for it.
      skip_checkpoint: leave all variables without values; no checkpoint is needed.
      load_function_aliases: give the root ``function_aliases``, a mapping from the aliases given when saving to functions.
      keep_variable_devices: place variables on the devices that the file names.
      only: load a part: ``"signatures"``, or paths of objects like ``"encoder.call"``, ``"layers.0"``,
        ``"signatures.predict"``. These objects and everything they need are made and restored; nothing else is read, made or
        initialised. See `reference_impl.loading.selection` for the paths.
      machine_ops: what to do with a model whose initialisers do more to the machine than read the model's own files: read or
        write other files, print, run Python, use the network (`reference_impl.inspection.op_effects`). ``"warn"`` loads the model
        with a MachineOpWarning; ``"refuse"`` raises MachineOpError before anything has run, also for ops that no TensorFlow has;
        ``"allow"`` is silent.

    RFC: DR-03
    """

    allow_partial_checkpoint: bool = False
    skip_checkpoint: bool = False
    load_function_aliases: bool = False
    keep_variable_devices: bool = False
    only: Union[str, Collection[str], None] = None
    machine_ops: Literal["warn", "refuse", "allow"] = "warn"

    def __post_init__(self) -> None:
        if self.machine_ops not in CHOICES:
            raise ValueError(f"machine_ops is one of {', '.join(CHOICES)}, not {self.machine_ops!r}")

    @staticmethod
    def of(options: Union[LoadOptions, TensorFlowLoadOptions, None]) -> LoadOptions:
        """Return our options, given ours, those of `tf.saved_model.LoadOptions`, or None. The device for reading has no effect.

        Raises:
          TypeError: the argument is something else.
        """
        if options is None:
            return LoadOptions()
        if isinstance(options, LoadOptions):
            return options
        if not hasattr(options, "allow_partial_checkpoint"):  # all versions of TensorFlow's class have it
            raise TypeError(f"options are LoadOptions, not {type(options).__name__}: {options!r}")
        policy = getattr(options, "experimental_variable_policy", None)
        return LoadOptions(
            allow_partial_checkpoint=bool(getattr(options, "allow_partial_checkpoint", False)),
            skip_checkpoint=bool(getattr(options, "experimental_skip_checkpoint", False)),
            load_function_aliases=bool(getattr(options, "experimental_load_function_aliases", False)),
            keep_variable_devices=getattr(policy, "value", policy) is not None,
        )
