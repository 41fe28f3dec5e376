"""What a caller of `load` can choose (A9)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

from reference_impl.errors import UnsupportedModelError
from reference_impl.loading.machine_ops import CHOICES, WARN


@dataclass(frozen=True)
class LoadOptions:
    """Options of `reference_impl.load`.

    Attributes:
      allow_partial_checkpoint: a variable that the checkpoint has no value of is left without one.
      skip_checkpoint: all variables are left without a value, and no checkpoint is needed.
      load_function_aliases: the root gets ``function_aliases``, a mapping from the aliases given when saving to functions.
      keep_variable_devices: variables are placed where the file says they were.
      only: load a part (DR-03): ``"signatures"``, or paths of objects like ``"encoder.call"``, ``"layers.0"``,
        ``"signatures.predict"``. These and what they need are made and restored; nothing else is read, made or initialised.
        See `reference_impl.loading.selection` for the paths.
      machine_ops: what becomes of a model whose initialisers do more to the machine than read its own files: they read or write
        others, print, run Python, use the network (`reference_impl.inspection.op_effects`). ``"warn"`` loads it with a
        MachineOpWarning; ``"refuse"`` raises MachineOpError before anything has run, also for ops that no TensorFlow has;
        ``"allow"`` is silent.
    """

    allow_partial_checkpoint: bool = False
    skip_checkpoint: bool = False
    load_function_aliases: bool = False
    keep_variable_devices: bool = False
    only: Union[str, Collection[str], None] = None
    machine_ops: str = WARN

    def __post_init__(self) -> None:
        if self.machine_ops not in CHOICES:
            raise ValueError(f"machine_ops is one of {', '.join(CHOICES)}, not {self.machine_ops!r}")

    @staticmethod
    def of(options: Any) -> LoadOptions:
        """From our options, `tf.saved_model.LoadOptions` or None; the device for reading is of no use here.

        Raises:
          TypeError: something else.
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


def add_function_aliases(
    root: Any, aliases: Mapping[str, str], find: Callable[[str], Optional[Any]], polymorphic: list[Any]
) -> None:
    """Give the root its ``function_aliases``: the function all of whose traces have the alias, else a list of traces.

    Args:
      aliases: name of a FunctionDef -> alias.
      find: gives the concrete function of a FunctionDef by its name, None where there is none.
      polymorphic: the functions of the object graph.

    Raises:
      UnsupportedModelError: the root has an attribute of that name already.
    """
    if hasattr(root, "function_aliases"):
        raise UnsupportedModelError(
            "Could not load with experimental_load_function_aliases: the root has an attribute function_aliases", node="root"
        )
    traces: dict[str, list[Any]] = {}
    for name, alias in aliases.items():
        function = find(name)
        if function is not None:
            traces.setdefault(alias, []).append(function)
    found: dict[str, Any] = {}
    for alias, concrete in sorted(traces.items()):
        whole = next((f for f in polymorphic if set(map(id, f.concrete_functions)) == set(map(id, concrete))), None)
        found[alias] = concrete if whole is None else whole
    object.__setattr__(root, "function_aliases", found)
