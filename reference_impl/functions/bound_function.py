"""A FunctionDef with its captures and its calling convention: what a call and a rebuild share.

A function holds its captures: variables, tables and assets live as long as the function, even after
its root is deleted.

RFC: FN-05, FN-07
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl.errors import UnsupportedModelError
from reference_impl.format import schema
from reference_impl.format.names import plain_name
from reference_impl.functions import captures
from reference_impl.functions.binding import Binder
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import FileName

# ``((args, kwargs), results)``: nested structures of TypeSpecs and literals.
Structure = tuple[Any, Any]


class BoundFunction:
    """One trace of a loaded function.

    Its captures are bound later by :meth:`capture`, since they need not exist yet.

    Attributes:
      library, saved_name: where its FunctionDef is.
      label: the name in messages.
      signature: returns its Structure. It is called on first use, so an unknown type affects only
        this function.
      binder: its Python signature, or None for a function that takes only flat arguments.
      owners: the captured objects, or weak references to them.
      saved: the SavedConcreteFunction that was read, for a re-export.
      defaults: of a signature: values of optional inputs.
      signature_def: of a signature: its SignatureDef.
      of_graph: whether it is a part of a TF 1.x graph: its type has no kinds of arguments and no
        names of results.
      placeholders: what the arguments are called in `graph`, if not as in the FunctionDef.
    """

    def __init__(
        self,
        library: FunctionLibrary,
        name: FileName,
        signature: Callable[[], Structure],
        binder: Optional[Binder] = None,
    ):
        self.library, self.saved_name = library, name
        self.label = plain_name(name)
        self.signature, self.binder = signature, binder
        self.owners: tuple[Any, ...] = ()
        self.saved: Optional[schema.SavedConcreteFunction] = None
        self.defaults: dict[str, tf.Tensor] = {}
        self.signature_def: Optional[schema.SignatureDef] = None
        self.of_graph = False
        self.placeholders: Sequence[str] = ()

    def capture(self, owners: Sequence[Any]) -> None:
        """Bind the captured objects, the last arguments of the FunctionDef.

        Weak references are resolved at each call.
        """
        self.owners = tuple(owners)

    def refer_weakly_to(self, resource: object) -> None:
        """Refer weakly to the resource that this function creates, fills or saves, so that it does
        not keep its owner alive.
        """
        self.capture(
            [weakref.ref(resource) if owner is resource else owner for owner in self.owners]
        )

    @property
    def definition(self) -> schema.FunctionDef:
        """The FunctionDef as it was read."""
        return self.library.get(self.saved_name)

    @functools.cached_property
    def structured(self) -> Structure:
        """``((args, kwargs), results)`` as returned by `signature`."""
        return self.signature()

    @property
    def is_distributed(self) -> bool:
        """Whether the function captures a variable of a strategy, which has one handle in each
        replica.
        """
        return any(isinstance(owner, captures.DISTRIBUTED) for owner in self.owners)

    def living_owners(self) -> list[Any]:
        """Return the captured objects.

        Raises UnsupportedModelError if the resource that the function belongs to was deleted.
        """
        found = [owner() if isinstance(owner, weakref.ref) else owner for owner in self.owners]
        if any(owner is None for owner in found):
            raise UnsupportedModelError(
                "a resource that the function belongs to is gone", node=self.saved_name
            )
        return found

    def captured(self, building: bool = False) -> list[tf.Tensor]:
        """Return the tensors of the captured objects; see `captures.handles`."""
        return captures.handles(self.library, self.saved_name, self.living_owners(), building)

    @property
    def variables(self) -> tuple[tf.Variable, ...]:
        return tuple(owner for owner in self.living_owners() if isinstance(owner, tf.Variable))

    @property
    def trainable_variables(self) -> tuple[tf.Variable, ...]:
        return tuple(variable for variable in self.variables if variable.trainable)
