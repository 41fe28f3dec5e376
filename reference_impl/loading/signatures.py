"""The immutable map of signatures (ATTR-01, ATTR-02, SIG-10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reference_impl import tensorflow_api as api


class SignatureMap(Mapping, api.Trackable):  # type: ignore[misc,type-arg]
    """Signature key -> concrete function. A function takes keywords, or a single positional argument when it has one input.

    Results are dicts with sorted keys. The map cannot be changed: it says what the file holds.
    """

    def __init__(self, functions: Mapping[str, Any]):
        self._functions = dict(functions)

    def __getitem__(self, key: str) -> Any:
        return self._functions[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __repr__(self) -> str:
        return f"SignatureMap({self._functions})"
