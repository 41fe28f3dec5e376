"""Combine the ledger of the command line with the ledgers of plug-ins."""

from __future__ import annotations

import re
from pathlib import Path

from compat_matrix.cells.registry import Registry
from compat_matrix.verdict import Ledger


def ledger_text(path: Path, registry: Registry) -> str:
    """Return the text of a ledger and of the plug-ins' ledgers.

    Raises LedgerError, which names the file.
    """
    for one in (path, *registry.ledgers):
        Ledger.read(one)
    text = path.read_text(encoding="utf-8")
    for more in registry.ledgers:
        text += "\n" + re.sub(
            r"(?m)^schema\s*=.*$", f"# {more.name}", more.read_text(encoding="utf-8"), count=1
        )
    return text
