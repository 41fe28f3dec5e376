"""The error of an edit that cannot be done, or not safely."""

from __future__ import annotations

from reference_impl.errors import SavedModelError


class RefusedError(SavedModelError):
    """The edit would break the model, or names something that it does not have."""
