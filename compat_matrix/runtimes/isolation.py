"""Run a process without a network, for untrusted models. The platform's abilities are checked once."""

from __future__ import annotations

import functools
import shutil
import subprocess

# Without privileges only a user namespace may hold another network; some systems and containers forbid both.
_WAYS = (("unshare", "--net"), ("unshare", "--map-root-user", "--net"))


@functools.cache
def without_network() -> tuple[str, ...]:
    """Return the words before a command that deny it the network; empty where the platform has no such means."""
    for words in _WAYS:
        found = shutil.which(words[0])
        if found and subprocess.run([found, *words[1:], "true"], capture_output=True, check=False).returncode == 0:
            return (found, *words[1:])
    return ()
