"""Consumers: who loads an artifact, with which worker program, and what it can be asked.

A consumer is a worker program, ``compat_matrix/workers/NAME_worker.py``, which runs inside a
runtime. It declares itself by a literal ``CONSUMER = {...}``, which is read here without running
the file: ``summary``, ``capabilities``, ``place`` in the order of the consumers, ``checks`` if it
takes part in some checks only, ``loader`` and ``saver`` if the op history can predict its results,
and ``reproducible`` if the bytes of its re-exports do not depend on what its process did before.

Capabilities (docs/contribute/internals.md): ``functions`` calls on the object graph; ``resave``
writes what it loaded; ``variables`` names the values it holds; ``describe`` says what variables and
functions are and changes variables; ``fetch`` reads tensors of the main graph; ``tags`` can choose
a MetaGraph; ``threads`` answers several threads at once. A plan decides by them, before anything
runs, which cells are NOT_APPLICABLE.

Model servers are consumers too (:attr:`compat_matrix.cells.plan.Cell.is_served`), but they are not
worker programs: see :mod:`savedmodel_servers`. Third-party consumers come from
:mod:`compat_matrix.plugins`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import compat_matrix.workers

if TYPE_CHECKING:
    from compat_matrix.runtimes.programs import Program

CPP = "cpp"
THREADS = "threads"  # a capability
# A request of this kind needs this capability of the consumer; None: every consumer answers it.
CAPABILITY_OF_KIND = {"signature": None, "function": "functions"}
_WORKER = "_worker"
_DECLARATION = re.compile(r"^CONSUMER = (\{$.*?^\})$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Consumer:
    """One way to read a SavedModel.

    ``program`` is the name of one of our programs (``runtimes.programs.of``) or a Program;
    ``checks`` lists the checks to plan
    (None: all). ``version`` is the version in cell ids. It is None if the consumer has the version
    of its runtime's TensorFlow;
    every runtime is then asked.
    ``tolerance``: (rtol, atol, reason) of a consumer with its own kernels; it applies even if an
    artifact allows less.
    ``role`` selects a reader if one process of the program holds several.
    ``loader`` is one of :data:`savedmodel_tools.compat.EVERY_LOADER`, ``saver`` one of
    :data:`compat_matrix.engine.predict.SAVES`. ``reproducible``: the bytes of its re-exports do not
    depend on its process.
    """

    name: str
    program: str | Program
    capabilities: frozenset[str]
    summary: str
    checks: frozenset[str] | None = None
    version: str | None = None
    tolerance: tuple[float, float, str] | None = None
    role: str = ""
    loader: str = ""
    saver: str = ""
    reproducible: bool = False


def answerable(kind: str, capabilities: Collection[str]) -> bool:
    """Return whether a consumer with ``capabilities`` can be asked a request of ``kind``."""
    needed = CAPABILITY_OF_KIND[kind]
    return needed is None or needed in capabilities


def _declared(folder: Path) -> dict[str, Consumer]:
    """Return the consumers that the worker programs in ``folder`` declare, in the order of their
    places.
    """
    found = []
    for path in folder.glob(f"*{_WORKER}.py"):
        declaration = _DECLARATION.search(path.read_text(encoding="utf-8"))
        if declaration:
            said = ast.literal_eval(declaration[1])
            consumer = Consumer(
                path.stem[: -len(_WORKER)],
                path.stem,
                frozenset(said["capabilities"]),
                said["summary"],
                checks=frozenset(said["checks"]) if "checks" in said else None,
                version=said.get("version"),
                tolerance=said.get("tolerance"),
                loader=said.get("loader", ""),
                saver=said.get("saver", ""),
                reproducible=said.get("reproducible", False),
            )
            found.append((said["place"], consumer))
    return {
        consumer.name: consumer
        for _, consumer in sorted(found, key=lambda item: (item[0], item[1].name))
    }


CONSUMERS = _declared(Path(next(iter(compat_matrix.workers.__path__))))
