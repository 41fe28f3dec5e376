"""Model servers as runtimes of a plan: a server named on a command line becomes a column of the
matrix, even if it is missing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from packaging.version import InvalidVersion, Version

from compat_matrix.cells.plan import SERVING, STANDIN
from compat_matrix.runtimes.runtime import LABELLED, Runtime

# version of a server that does not tell; a label (LABEL=SPEC) tells two of them apart
UNKNOWN = "0+unknown"
_TAG = re.compile(r":([A-Za-z0-9_.-]+?)(?:-devel)?(?:-gpu)?(?:@sha256:.*)?\Z")


def server_runtime(spec: str, build: Callable[[], None] | None = None) -> Runtime:
    """Return the runtime of a server: an image, `standin`, `binary:PATH`, `remote:HOST:PORT`;
    LABEL=SPEC names it.

    A missing server becomes a runtime that is not ready; the reason is the command that would
    provide it. ``build`` makes a
    missing
    image of the stand-in if there is an engine. Raises ValueError for an invalid spec.
    """
    from savedmodel_servers import drivers

    label = LABELLED.fullmatch(spec.strip())
    wanted = label[2] if label else spec.strip()
    driver = drivers.of(wanted)
    if build and wanted == STANDIN:
        build()
    unready = {}
    try:
        identity = driver.identify()
    except drivers.NotHere as missing:
        kind = drivers.STANDIN if re.split("[:@]", wanted)[0] == STANDIN else drivers.SERVING
        identity = drivers.ServerIdentity(kind, _version_of_tag(wanted))
        unready = {consumer: str(missing) for consumer in (SERVING, STANDIN)}
    finally:
        driver.close()
    consumer = STANDIN if identity.kind == drivers.STANDIN else SERVING
    version = identity.version or UNKNOWN
    runtime = Runtime(
        f"{consumer}{version}",
        Path(sys.executable),
        version,
        spec=wanted,
        unready=unready,
        server=wanted,
        consumer=consumer,
    )
    return runtime.labelled(label[1]) if label else runtime


def _version_of_tag(spec: str) -> str | None:
    """Return the version that the tag of a missing image implies."""
    tag = _TAG.search(spec)
    try:
        return str(Version(tag[1])) if tag else None
    except InvalidVersion:
        return None
