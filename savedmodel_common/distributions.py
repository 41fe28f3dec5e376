"""The distributions that install the package ``tensorflow``."""

from __future__ import annotations

# The usual one first.
DISTRIBUTIONS = (
    "tensorflow",
    "tensorflow-cpu",
    "tf-nightly",
    "tf-nightly-cpu",
    "tensorflow-intel",
    "tensorflow-macos",
)
