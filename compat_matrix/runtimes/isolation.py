"""A process without a network, for models that nobody vouches for: what the platform offers, asked once."""

from __future__ import annotations

import functools
import shutil
import subprocess

# Without privileges only a user namespace may hold another network; some systems and containers forbid both.
_WAYS = (("unshare", "--net"), ("unshare", "--map-root-user", "--net"))


@functools.cache
def without_network() -> tuple[str, ...]:
    """What to put in front of a command so that it has no network; nothing where this platform has no way."""
    for words in _WAYS:
        found = shutil.which(words[0])
        if found and subprocess.run([found, *words[1:], "true"], capture_output=True, check=False).returncode == 0:
            return (found, *words[1:])
    return ()
