"""The names of devices, as TensorFlow's C++ and Python read them."""

from __future__ import annotations

import re

_DEVICE = re.compile(
    r"(/?(job:[A-Za-z][\w.-]*|(replica|task):(\d+|\*)|(device:)?[A-Za-z]\w*(:(\d+|\*))?))*/?",
    re.ASCII,
)


def is_device(name: str) -> bool:
    """Return whether TensorFlow can read the name of a device; "" is any device."""
    return _DEVICE.fullmatch(name) is not None
