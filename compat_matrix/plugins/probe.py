"""Find out version and capabilities of a consumer that were not registered, by starting it once for
its hello.
"""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from compat_matrix.cells.consumers import Consumer
from compat_matrix.cells.registry import UNKNOWN
from compat_matrix.runtimes import programs
from compat_matrix.runtimes.programs import Program
from compat_matrix.runtimes.runtime import Runtime, local_runtime
from compat_matrix.runtimes.worker import NotStarted, Worker

_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


def home() -> Runtime:
    """Return the runtime for a program that does not need the harness's TensorFlow: it has its own
    version.
    """
    return Runtime("plugin", Path(sys.executable), None)


def asked(consumer: Consumer) -> Consumer:
    """Return the consumer with version and capabilities; start it to ask if they were not
    registered. Never raises.

    A consumer that does not start gets the version ``unknown`` and a program that reports the
    reason to each of its cells.
    """
    program = programs.of(consumer.program)
    if program.broken:
        return consumer
    in_runtimes = consumer.version is None and not program.at_home
    if program.capabilities is not None and (consumer.version is not None or in_runtimes):
        return consumer
    try:
        hello = _hello(program, local_runtime() if in_runtimes else home())
    except NotStarted as error:
        return replace(
            consumer,
            version=consumer.version or UNKNOWN,
            program=replace(program, broken=str(error)),
        )
    capabilities = (
        program.capabilities
        if program.capabilities is not None
        else frozenset(hello["capabilities"])
    )
    version = consumer.version or (
        None if in_runtimes else _version(hello.get("versions", {}), hello["name"])
    )
    program = replace(program, version=version, capabilities=capabilities)
    return replace(consumer, version=version, capabilities=capabilities, program=program)


def _version(versions: dict[str, str], name: str) -> str:
    """Return the version in the entry with the worker's own name, if there is one."""
    found = str(versions.get(name, ""))
    return found if _SEGMENT.fullmatch(found) else UNKNOWN


def _hello(program: Program, runtime: Runtime) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker(runtime, program, Path(folder) / "cwd", Path(folder) / "log")
        try:
            return worker.hello()
        finally:
            worker.close()
