"""Faults for tests of drivers and fleets, asked for by environment variables.

A server started without them has none.

STANDIN_SLOW_START=SECONDS   wait so long before anything is loaded or a port is opened
STANDIN_ABORT_AT_LOAD=GLOB   abort the process (SIGABRT) when a model of this name is loaded
STANDIN_HANG_AT_LOAD=GLOB    never finish loading it
STANDIN_EXHAUST_AT_LOAD=GLOB take memory without end when it is loaded, until the kernel kills the
process
"""

from __future__ import annotations

import fnmatch
import os
import time

from savedmodel_standin import log

SLOW_START, ABORT, HANG, EXHAUST = (
    "STANDIN_SLOW_START",
    "STANDIN_ABORT_AT_LOAD",
    "STANDIN_HANG_AT_LOAD",
    "STANDIN_EXHAUST_AT_LOAD",
)
BLOCK = 1 << 26  # bytes taken at a time


def before_start() -> None:
    seconds = float(os.environ.get(SLOW_START) or 0)
    if seconds:
        log.warning("faults", f"{SLOW_START}: waiting {seconds} s")
        time.sleep(seconds)


def before_load(model: str) -> None:
    if _meant(ABORT, model):
        os.abort()
    if _meant(HANG, model):
        while True:
            time.sleep(3600)
    if _meant(EXHAUST, model):
        taken = []
        while True:
            taken.append(
                bytearray(os.urandom(4096) * (BLOCK // 4096))
            )  # written to, so that it is really allocated


def _meant(variable: str, model: str) -> bool:
    wanted = os.environ.get(variable)
    meant = bool(wanted) and fnmatch.fnmatchcase(model, str(wanted))
    if meant:
        log.error("faults", f"{variable}: {model}")
    return meant
