"""A limit on the memory that a request takes beside the bytes it sent.

A few bytes of a request can claim a huge tensor, as a shape of [10^9] with one value does. Such
claims are refused before anything is made. Nothing else is limited: the stand-in is a test double,
and who sends gigabytes to it gets the memory for them.
"""

from __future__ import annotations

from reference_impl.format.limits import FILLED_BYTES
from savedmodel_standin.errors import invalid

FILLED = FILLED_BYTES  # bytes that one request may make the server hold beside those it sent


def check_filled(filled: int, what: str) -> None:
    """Check the bytes of ``what`` that were not sent, before they are made.

    Raises :class:`ServingError`.
    """
    if filled > FILLED:
        raise invalid(
            f"stand-in: {what} would take {_shown(filled)} bytes more than the request has; at most"
            f" {FILLED} are given"
        )


def _shown(size: int) -> str:
    """Return a number of bytes as text.

    Python refuses to print the product of 250 large dimensions.
    """
    return str(size) if size < 1 << 63 else "2^63 or more"
