"""The options of `load`, and code that both kinds of options share."""

from __future__ import annotations

import enum
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Optional, Protocol, Union

from reference_impl.errors import OptionError
from reference_impl.format.names import OWN_NAME, PACKAGES_OF_TENSORFLOW
from reference_impl.safety.machine_ops import CHOICES
from reference_impl.tracing import Sink

_THEIRS = {
    "allow_partial_checkpoint": "allow_partial_checkpoint",
    "experimental_io_device": "io_device",
    "experimental_load_function_aliases": "load_function_aliases",
    "experimental_skip_checkpoint": "skip_checkpoint",
    "experimental_variable_policy": "keep_variable_devices",
}


class TensorFlowLoadOptions(Protocol):
    """The attribute that distinguishes a `tf.saved_model.LoadOptions`, in every release of
    TensorFlow.
    """

    allow_partial_checkpoint: Any


class UserKind(Protocol):
    """A kind of object that a program adds: a `reference_impl.ObjectKind`."""

    identifier: str


def is_fast() -> bool:
    """Return whether faster twins are used by default; the commands read the same variable."""
    return os.environ.get("SAVEDMODEL_COMPAT_PLAIN", "0") in ("", "0")


@dataclass(frozen=True)
class LoadOptions:
    """Options of `reference_impl.load`.

    Attributes:
      allow_partial_checkpoint: leave a variable without a value, with a warning that names it, if
        the checkpoint has none for it, or one of another shape or dtype. Functions that do not read
        the variable can be called.
      skip_checkpoint: leave all variables without values; no checkpoint is needed.
      load_function_aliases: give the root ``function_aliases``, a mapping from the aliases given
        when saving to functions.
      keep_variable_devices: place variables on the devices that the file names.
      only: load a part: ``"signatures"``, or paths of objects like ``"encoder.call"``,
        ``"layers.0"``, ``"signatures.predict"``. Only these objects and everything they need are
        read, made and initialised. `reference_impl.loading.selection` describes the paths.
      io_device: the device whose file system is read; it must be one of this process, which reads
        the files.
      machine_ops: what to do with a model whose initialisers do more to the machine than read the
        model's own files: read or write other files, print, run Python, use the network
        (`reference_impl.safety.op_effects`). ``"warn"`` loads the model with a
        MachineOpWarning, unless it may write on its own files; ``"refuse"`` raises MachineOpError
        before anything has run, also for ops that no TensorFlow has; ``"allow"`` is silent.
      weights: ``"copied"`` reads the values of variables into memory and compares their checksums.
        ``"mapped"`` maps the checkpoint instead, privately: a value is read from the file when it
        is first used, processes that load the same model share its memory, and assigning to a
        variable does not change the file. Values that do not begin at a multiple of 64 bytes in the
        file, strings, slices of partitioned variables and small values are copied. A file that is
        overwritten in place later changes weights that have not been used yet, and one that is
        shortened ends the process when they are used (SIGBUS); replacing or deleting the file is
        harmless.
      verify_mapped: compare the checksums of mapped values too, which reads them once.
      modules: make loaded objects `tf.Module`s, so that a module or a layer of Keras 2 which holds
        one counts and trains its variables as its own. By default they are as frozen there as
        objects of `tf.saved_model.load`.
      trace: called with each step of the load, a `reference_impl.tracing.Step`: ``print`` prints
        one line for each. It is called later too, when a function is called for the first time.
      kinds: kinds of objects that the program adds, each a `reference_impl.ObjectKind`: nodes with
        their identifiers become objects of its classes. A model without such nodes loads as usual.
      fast: use the faster twins of plain code in `reference_impl.fast` (the default, unless the
        environment variable SAVEDMODEL_COMPAT_PLAIN is 1). If false, only the plain code runs; the
        loaded model is the same.

    Raises:
      OptionError: an option has an invalid value.

    RFC: DR-03
    """

    allow_partial_checkpoint: bool = False
    skip_checkpoint: bool = False
    load_function_aliases: bool = False
    keep_variable_devices: bool = False
    only: Union[str, Collection[str], None] = None
    io_device: Optional[str] = None
    machine_ops: Literal["warn", "refuse", "allow"] = "warn"
    weights: Literal["copied", "mapped"] = "copied"
    verify_mapped: bool = False
    modules: bool = False
    trace: Optional[Sink] = None
    kinds: Sequence[UserKind] = ()
    fast: bool = field(default_factory=is_fast)

    def __post_init__(self) -> None:
        if refused := refuse_kinds(self.kinds):
            raise OptionError(refused, node="options.kinds")
        if self.io_device is not None and not is_local_device(self.io_device):
            reason = f"{self.io_device!r} is not a device of this process, which reads the files"
            raise OptionError(reason, node="options.io_device")
        if self.machine_ops not in CHOICES:
            reason = f"machine_ops is one of {', '.join(CHOICES)}, not {self.machine_ops!r}"
            raise OptionError(reason, node="options.machine_ops")
        if self.weights not in ("copied", "mapped"):
            reason = f"weights is 'copied' or 'mapped', not {self.weights!r}"
            raise OptionError(reason, node="options.weights")

    @staticmethod
    def of(options: Union[LoadOptions, TensorFlowLoadOptions, None]) -> LoadOptions:
        """Return our options, given ours, those of `tf.saved_model.LoadOptions`, or None.

        Raises:
          TypeError: the argument has another type.
          OptionError: an option is unknown or has an invalid value.
        """
        if options is None:
            return LoadOptions()
        if isinstance(options, LoadOptions):
            return options
        if not hasattr(
            options, "allow_partial_checkpoint"
        ):  # all versions of TensorFlow's class have it
            raise TypeError(f"options are LoadOptions, not {type(options).__name__}: {options!r}")
        given = translated(options, _THEIRS)
        return LoadOptions(**{**given, "keep_variable_devices": "keep_variable_devices" in given})


def translated(options: object, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the options that an object of TensorFlow has, without those that are None.

    Args:
      options: an object of one of TensorFlow's classes of options.
      names: TensorFlow's name of an option -> our name.

    Raises:
      OptionError: an option has no name of ours.
    """
    given, unknown = {}, []
    for name in getattr(type(options), "__slots__", None) or vars(options):
        value = getattr(options, name, None)
        value = value.value if isinstance(value, enum.Enum) else value
        if name in names and value is not None:
            given[names[name]] = value
        elif name not in names and (value or (value == 0 and value is not False)):
            unknown.append(f"{name}={value!r}")
    if unknown:
        raise OptionError(f"unknown options: {', '.join(sorted(unknown))}", node="options")
    return given


def refuse_kinds(kinds: Sequence[UserKind]) -> str:
    """Return why kinds of a program cannot be used together, or "".

    Each needs an identifier of its own, which is a package and a name.
    """
    seen: set[str] = set()
    for kind in kinds:
        name = getattr(kind, "identifier", None)
        if isinstance(kind, type) or not isinstance(name, str):
            return f"{kind!r} is not an instance of a reference_impl.ObjectKind with an identifier"
        if not OWN_NAME.match(name) or name.partition(".")[0] in PACKAGES_OF_TENSORFLOW:
            return (
                f"the identifier {name!r} is not a package of your own and a name, as in"
                " 'my_package.name'"
            )
        if name in seen:
            return f"two kinds have the identifier {name!r}"
        seen.add(name)
    return ""


def is_local_device(device: str) -> bool:
    """Return whether a device belongs to this process."""
    import tensorflow as tf  # not above: the options can be made without TensorFlow

    try:
        spec = tf.DeviceSpec.from_string(device)
    except ValueError:
        return False
    return spec.job in (None, "localhost") and not spec.task and not spec.replica
