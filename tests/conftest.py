"""What holds for all tests."""

from __future__ import annotations

import signal

# In a process that a shell has put in the background SIGINT is ignored, and would be in those that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
