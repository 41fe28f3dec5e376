"""``savedmodel-compat runtimes doctor``: which extras of this package are complete.

Needs nothing but the base installation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from savedmodel_common import extras
from savedmodel_common.command_line.examined import Examined


def examine(needed: Collection[str]) -> Iterator[Examined]:
    """Yield each extra.

    One that lacks packages is a defect only if it is ``needed``: all extras are a user's choice.
    """
    for extra in extras.EXTRAS:
        name, absent = f"extra {extra}", extras.lacking(extra)
        if not absent:
            yield Examined(name, "complete")
            continue
        command = extras.install(extra)
        yield Examined(
            name,
            f"not installed: {', '.join(absent)}",
            ok=False,
            command=command,
            needed=extra in needed,
        )
