"""The pool of workers and of the models they have loaded."""

from __future__ import annotations

import os
import shutil
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compat_matrix.cases import CASES_DIR
from compat_matrix.cells.generators import fixtures_root
from compat_matrix.cells.plan import Cell
from compat_matrix.cells.registry import OURS, Registry
from compat_matrix.hosts import servers
from compat_matrix.hosts.private_copies import PrivateCopies
from compat_matrix.hosts.servers import Servers
from compat_matrix.runtimes import forks, pasts, programs
from compat_matrix.runtimes.pasts import Past
from compat_matrix.runtimes.programs import Program
from compat_matrix.runtimes.runtime import Runtime, local_runtime
from compat_matrix.runtimes.worker import ASKING, ReplyError, Worker, WorkerDied
from savedmodel_common.deleting import Deleter

KEPT_LOADED = 4  # models a worker keeps for the next check
AHEAD = 16  # models announced to a server in advance
CLOSE_LIMIT = 30.0  # seconds to free a model
CHANGING = (*ASKING, "change")  # operations that may change the state of a model
RESTART_AFTER = 500  # models, in long runs: TensorFlow keeps everything it has registered

Failure = (ReplyError, WorkerDied)


@dataclass
class Loaded:
    """A model in a worker.

    ``seconds`` and ``rss_kib`` were measured during its load; ``role``: see :meth:`Host.model`.
    ``touched``: it was asked something that may have changed its state.
    """

    worker: Worker
    directory: Path
    handle: int
    generation: int
    seconds: float
    rss_kib: int | None = None
    role: str = ""
    touched: bool = False

    @property
    def alive(self) -> bool:
        return self.worker.alive and self.worker.generation == self.generation

    def ask(self, op: str, limit: float, **fields: Any) -> dict[str, Any]:
        """Send a request about this model. Raises what :meth:`Worker.request` raises; WorkerDied
        too if the model's process has ended.

        A new process has other models, perhaps one with this handle.
        """
        self.touched = self.touched or op in CHANGING
        return self.worker.request(
            op, limit, self.generation, **_of_role(self.role), **fields, handle=self.handle
        )

    def free(self) -> None:
        """Free the model. Raises WorkerDied when the worker dies over it."""
        if self.alive:
            with suppress(ReplyError):
                self.ask("close", CLOSE_LIMIT)

    def close(self) -> None:
        """Free the model; a worker that fails to free it is replaced by the next request."""
        with suppress(WorkerDied):
            self.free()


@dataclass
class _Shared:
    """Models that the checks of one artifact share, by (directory, tags, stamp), or the reason why
    one is missing.
    """

    models: OrderedDict[tuple[Any, ...], Loaded] = field(default_factory=OrderedDict)
    failures: dict[tuple[Any, ...], Exception] = field(default_factory=dict)
    deadly: set[tuple[Any, ...]] = field(default_factory=set)  # models that killed a process once

    def forget(self, model: Loaded) -> None:
        """Share a model no longer."""
        for key in [key for key, known in self.models.items() if known is model]:
            del self.models[key]


class Host:
    """Workers by runtime and program, kept warm; a context manager that ends them.

    Only the workers of one runtime are kept, to save memory: plans are ordered by runtime. A host
    must not be shared by threads; every process of a parallel run has its own.

    ``out`` is the output folder of the run: logs go to ``out/logs``, scratch files to
    ``out/scratch``. ``cases`` is the folder of the produced cases, ``generators`` the folder of the
    fixtures whose generators run. ``upcoming``: the models that a server will be asked for.
    ``registry``: the consumers and producers that cells name. ``past``: what the workers have
    behind them. ``tolerance``: rtol and atol of the user, in place of what artifacts state.
    """

    def __init__(
        self,
        out: Path,
        runtimes: Mapping[str, Runtime] | None = None,
        cases: Path | None = None,
        generators: Path | None = None,
        upcoming: Mapping[str, Sequence[Path]] | None = None,
        registry: Registry = OURS,
        past: Past | None = None,
    ) -> None:
        self.registry = registry
        self.tolerance: tuple[float, float] | None = None
        self.past = past
        self._artifact = ""  # of the last cell
        self.out = Path(out).absolute()
        self.generators = Path(generators) if generators is not None else fixtures_root()
        self.cases = Path(cases) if cases is not None else CASES_DIR
        self._runtimes = (
            dict(runtimes) if runtimes is not None else {local_runtime().name: local_runtime()}
        )
        self._workers: dict[tuple[str, str], Worker] = {}
        self._shared: dict[tuple[str, str], _Shared] = {}
        self._servers: dict[str, Servers] = {}
        self._servers_started = 0
        self.expect(upcoming or {})
        self.keeps_logs = False  # also of a cell that passes, as evidence
        self._started = 0  # number of workers, so that each has its own log
        self.scratch = (
            self.out / "scratch" / f"{os.getpid():07d}"
        )  # one length: it is in exported names of tables
        self._private = PrivateCopies(self.scratch / "private")
        self._deleter = Deleter(self.scratch / "deleted")
        self._kept = ExitStack()
        self._kept.enter_context(forks.kept())

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *exc: object) -> None:
        self._end_all()
        self._kept.close()
        self._deleter.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _end_all(self) -> None:
        """End all workers and servers, and forget the models that they have loaded and those that
        could not be loaded.
        """
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()
        self._shared.clear()
        self._close_servers()

    @contextmanager
    def fresh(self) -> Iterator[None]:
        """Execute cells in new processes, and keep their logs as evidence."""
        self._end_all()
        self.keeps_logs = True
        try:
            yield
        finally:
            self.keeps_logs = False

    def delete(self, folder: Path) -> None:
        """Delete a folder below ``scratch``: its path is free at once, its files are deleted in the
        background.
        """
        self._deleter.delete(folder)

    def know(self, runtimes: Mapping[str, Runtime]) -> None:
        """Add runtimes by name."""
        self._runtimes.update(runtimes)

    def expect(self, upcoming: Mapping[str, Sequence[Path]]) -> None:
        """Announce the models that servers will be asked for: name of a runtime -> models, in
        order.
        """
        self._upcoming = {name: list(models) for name, models in upcoming.items()}

    def release(self) -> None:
        """Free the models that checks shared, and forget why others could not be loaded; the
        workers stay.
        """
        for shared in self._shared.values():
            for model in shared.models.values():
                model.close()
        self._shared.clear()

    def begin(self, cell: Cell) -> None:
        """End the workers that have no further cell in their past, before a cell is executed."""
        ended = {pasts.CELL, *([pasts.ARTIFACT] if cell.artifact_id != self._artifact else [])}
        self._artifact = cell.artifact_id
        for worker in self._workers.values():
            if worker.past and worker.past.fresh in ended:
                worker.close()

    def worker(
        self, runtime: str, program: str | Program, purpose: str = "", past: Past | None = None
    ) -> Worker:
        """Return the worker of a runtime known by name, not started yet.

        Raises KeyError for an unknown runtime.

        Each ``purpose`` has its own process: ops registered by a producer during a save must not
        help a consumer that loads. ``past``: in place of that of the run.
        """
        name = programs.of(program).name + purpose
        key = (runtime, name)
        if key not in self._workers:
            self._leave_others(runtime)
            self._started += 1
            logs = self.out / "logs" / f"{runtime}-{name}-{os.getpid()}-{self._started}"
            lived = past or self.past
            models = _models(lived) if lived else ()
            folder = self.scratch / f"cwd-{runtime}-{name}"
            self._workers[key] = Worker(
                self._runtimes[runtime], program, folder, logs, lived, models
            )
        return self._workers[key]

    def servers(self, runtime: str) -> Servers:
        """Return the servers of a runtime that is queried over the network; the first starts when a
        model is requested.
        """
        if runtime not in self._servers:
            self._leave_others(runtime)
            # Servers that are started anew, for a second try, find nothing of those before them.
            self._servers_started += 1
            again = f"-{self._servers_started}" if self._servers_started > 1 else ""
            work = self.out / "logs" / f"{runtime}-{os.getpid()}{again}"
            spec = self._runtimes[runtime].server
            self._servers[runtime] = servers.starter().start(spec, work)
        return self._servers[runtime]

    def ahead(self, runtime: str, model: Path) -> Sequence[Path]:
        """Return the models that a server will be asked for after ``model``."""
        models = self._upcoming.get(runtime, [])
        return models[models.index(model) + 1 :][:AHEAD] if model in models else ()

    def _close_servers(self) -> None:
        while self._servers:
            self._servers.popitem()[1].close()

    def _leave_others(self, runtime: str) -> None:
        """End the workers and servers of every other runtime."""
        self._close_servers()
        for key in [key for key in self._workers if key[0] != runtime]:
            self._workers.pop(key).close()
            self._shared.pop(key, None)

    @contextmanager
    def model(
        self,
        worker: Worker,
        directory: Path,
        tags: Sequence[str],
        timeout: float,
        shared: bool,
        role: str = "",
        untouched: bool = False,
    ) -> Iterator[Loaded]:
        """Return a loaded MetaGraph. ``shared``: the same for all checks until the files change,
        failures included; else a fresh one. ``untouched``: a model that was asked nothing that may
        have changed its state, so the first check that calls it is its last.

        The death of a worker is shared from the second time on. ``role`` is one of several readers
        in the worker's process.

        Raises what :meth:`Worker.request` raises.
        """
        load = self._shared_model if shared else self._load
        model = load(worker, directory, tags, timeout, role)

        def ends() -> bool:
            return not shared or (untouched and model.touched)

        try:
            yield model
        except BaseException:
            if ends():
                self._shared_of(worker).forget(model)
                model.close()
            raise
        if ends():
            self._shared_of(worker).forget(model)
            model.free()

    def _shared_of(self, worker: Worker) -> _Shared:
        return self._shared.setdefault((worker.runtime.name, worker.program.name), _Shared())

    def _shared_model(
        self, worker: Worker, directory: Path, tags: Sequence[str], timeout: float, role: str
    ) -> Loaded:
        shared = self._shared_of(worker)
        key = (role, directory, tuple(tags), stamp(directory))
        if key in shared.failures:
            raise shared.failures[key]
        worker.refresh()
        model = shared.models.get(key)
        if model is None or not model.alive:
            for old in [known for known, kept in shared.models.items() if not kept.alive]:
                del shared.models[old]
            while len(shared.models) >= KEPT_LOADED:
                shared.models.popitem(last=False)[1].close()
            try:
                model = self._load(worker, directory, tags, timeout, role)
            except Failure as failure:
                # A process may have been killed by the model or from outside; only a second death
                # blames the model.
                if isinstance(failure, ReplyError) or key in shared.deadly:
                    shared.failures[key] = failure
                shared.deadly.add(key)
                raise
            shared.models[key] = model
        shared.models.move_to_end(key)
        return model

    def _load(
        self, worker: Worker, directory: Path, tags: Sequence[str], timeout: float, role: str
    ) -> Loaded:
        worker.hello()  # the start is not part of the load's time limit
        opened = self._private.of(directory, stamp(directory))
        if worker.past:
            worker.count_to(worker.past.counter_before(directory))
        start = time.perf_counter()
        reply = worker.request(
            "load", timeout, dir=str(opened), tags=list(tags), timeout=timeout, **_of_role(role)
        )
        seconds = time.perf_counter() - start
        return Loaded(
            worker,
            directory,
            int(reply["handle"]),
            worker.generation,
            seconds,
            reply.get("rss_kib"),
            role,
        )


def _models(past: Past) -> tuple[Path, ...]:
    """Return the folders of the models of a past; none where the fixtures are not installed."""
    try:
        root = fixtures_root()
    except FileNotFoundError:
        return ()
    return tuple(root / name / "model" for name in past.models)


def _of_role(role: str) -> dict[str, Any]:
    return {"role": role} if role else {}


def stamp(directory: Path) -> tuple[tuple[str, int, int], ...]:
    """Return names, sizes and times of all files under ``directory``: equal as long as nobody wrote
    there.
    """
    found = []
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118  (once per cell and file: a Path costs more than the call)
            status = os.stat(path)  # noqa: PTH116
            found.append((path, status.st_size, status.st_mtime_ns))
    return tuple(sorted(found))
