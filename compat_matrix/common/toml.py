"""Read TOML with the one library of this project. It is imported when a file is read: not every installation has it."""

from __future__ import annotations

from typing import Any


def parse(text: str) -> dict[str, Any]:
    """Return the document as plain dicts and lists. Raises ValueError if ``text`` is not TOML."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text).unwrap()
    except TOMLKitError as error:
        raise ValueError(str(error)) from error
