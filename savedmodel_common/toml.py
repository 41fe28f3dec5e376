"""Read TOML with the one library of this project.

It is imported when a file is read: not every installation has it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def parse(text: str) -> dict[str, Any]:
    """Return the document as plain dicts and lists. Raises ValueError if ``text`` is not TOML."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text).unwrap()
    except TOMLKitError as error:
        raise ValueError(str(error)) from error


def read(path: Path) -> dict[str, Any]:
    """Return the document in a file as plain dicts and lists.

    Raises OSError, and ValueError if the file is not TOML.
    """
    return parse(path.read_text(encoding="utf-8"))
