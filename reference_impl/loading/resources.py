"""Tables and other resources: created, filled and destroyed by functions of the model (PRIM-04, PRIM-08, RES-01..04, RP-04, RP-09)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format.errors import MissingKeyError

CREATE, INITIALIZE, DESTROY = "_create_resource", "_initialize", "_destroy_resource"
TENSORS = ".TENSORS"  # the key in SavedObject.saveable_objects of the functions that exchange a dict of tensors


class LoadedResource(api.TrackableResource):  # type: ignore[misc,valid-type]
    """A resource whose life is in the hands of loaded functions. It may be captured and saved again (RP-04).

    ``functions`` holds ``_create_resource``, ``_initialize`` and ``_destroy_resource`` as far as the model has them;
    ``saveables`` the functions that save and restore its content, by name (RES-15).
    """

    def __init__(self, device: str = ""):
        self.functions: dict[str, Callable[..., Any]] = {}
        self.saveables: dict[str, tuple[Any, Any]] = {}
        super().__init__(device=device)

    def _create_resource(self) -> tf.Tensor:
        if CREATE not in self.functions:
            raise MissingKeyError("the resource has no function that creates it", node=CREATE, clause="RES-03")
        return self.functions[CREATE]()

    def _initialize(self) -> Any:
        function = self.functions.get(INITIALIZE)
        return None if function is None else function()

    def _destroy_resource(self) -> Any:
        function = self.functions.get(DESTROY)
        return None if function is None else function()

    def restore(self, read: Callable[[str], tf.Tensor], keys: dict[str, str]) -> None:
        """Fill the resource with what the checkpoint has of it.

        Two forms are in use: functions that exchange a dict of tensors, and older ones where the save function takes the
        checkpoint key of the whole and gives a list of names and tensors.

        Args:
          read: checkpoint key -> tensor.
          keys: checkpoint keys of this object by attribute name.

        Raises:
          MissingValueError: the checkpoint lacks a part.
        """
        for name, (save, restore) in self.saveables.items():
            if name == TENSORS:
                # The names are in the signature; the function itself may only run once there is something to save.
                restore({part: read(keys.get(_escape(part), part)) for part in save.structured_outputs})
            elif name in keys:
                parts = save(tf.constant(keys[name]))
                restore(*[read(part["name"].numpy().decode()) for part in parts])


def _escape(part: str) -> str:
    """A name as it stands in checkpoint keys, where dots and slashes have a meaning."""
    return part.replace(".", "..").replace("/", ".S")
