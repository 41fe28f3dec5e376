"""Names of devices, which a file may give to variables and resources."""

from __future__ import annotations

import tensorflow as tf

from reference_impl.errors import MalformedError
from reference_impl.graph.device_names import is_device


def checked_device(device: str, file: str, node: str) -> str:
    """Return the name of a device.

    Raises MalformedError, which names the node, if TensorFlow cannot read it.
    """
    if not device:
        return device  # any device
    if not is_device(device):
        reason = f"the device {device!r} does not exist: TensorFlow cannot read its name"
        raise MalformedError(reason, file=file, node=node)
    try:
        tf.DeviceSpec.from_string(device)
    except ValueError as error:
        raise MalformedError(
            f"the device {device!r} does not exist: {error}", file=file, node=node
        ) from None
    return device
