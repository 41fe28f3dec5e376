"""Run a process without a network, for untrusted models.

A means that was found is not looked for again.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import Optional

from reference_impl.remembering import found_once

# Without privileges only a user namespace may hold another network; some systems and containers
# forbid both.
_WAYS = (("unshare", "--net"), ("unshare", "--map-root-user", "--net"))


def without_network() -> tuple[str, ...]:
    """Return the words before a command that deny it the network; empty where the platform has no
    such means.
    """
    return _means() or ()


@found_once
def _means() -> Optional[tuple[str, ...]]:
    for words in _WAYS:
        found = shutil.which(words[0])
        if (
            found
            and subprocess.run(
                [found, *words[1:], "true"], capture_output=True, check=False
            ).returncode
            == 0
        ):
            return (found, *words[1:])
    return None
