"""A worker: a program of ``compat_matrix/workers`` in a runtime, started on first use, restarted
after it died.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from compat_matrix.runtimes import forks, pasts, places, programs
from compat_matrix.runtimes.children import TEMPORARY, Own, Start
from compat_matrix.runtimes.native import build as native
from compat_matrix.runtimes.pasts import Past
from compat_matrix.runtimes.places import RuntimeTrouble
from compat_matrix.runtimes.process import Crashed, Process, TimedOut, log_size, log_tail
from compat_matrix.runtimes.programs import Program
from compat_matrix.runtimes.runtime import Runtime, same_release
from compat_matrix.workers import stored

PROTOCOL = 1
STORED = "stored"  # a capability
INPUTS = "inputs.npz"
ASKING = (
    "call",
    "call_in_threads",
    "differentiate",
)  # operations that receive a request of io.json
RECORDED = (
    "outputs",
    "structure",
    "gradients",
    "compared",
    "error",
)  # members of an entry of io.json: the producer's answer
START_LIMIT = forks.IMPORT_LIMIT
LIFE_LIMIT = 60.0  # seconds for one step of the past of a process
STARTS = 2  # a process that dies during its start may have been killed from outside


class ReplyError(Exception):
    """Raised when the worker's answer is not ``ok``: ``status`` is ``error``, ``rejected`` or
    ``unsupported``.
    """

    def __init__(self, op: str, reply: Mapping[str, Any], tail: str) -> None:
        super().__init__(str(reply.get("message", "")))
        self.op = op
        self.status = str(reply["status"])
        self.error_class = str(reply.get("error_class", "")) or None
        self.traceback = str(reply.get("traceback", ""))
        self.tail = tail


class WorkerDied(Exception):
    """Raised when the process crashed (``timed_out`` False) or was killed because it did not answer
    in time.
    """

    def __init__(self, op: str, cause: Crashed | TimedOut, tail: str) -> None:
        super().__init__(str(cause))
        self.op = op
        self.timed_out = isinstance(cause, TimedOut)
        self.error_class = cause.error_class if isinstance(cause, Crashed) else "TimeLimit"
        self.tail = tail


class NotStarted(Exception):
    """Raised for a worker that does not start or does not answer ``hello``.

    It is never tried again.
    """


class Worker:
    """One program in one runtime.

    ``generation`` counts its processes: handles of an earlier process are invalid.

    ``past`` is what each process has behind it; ``models``: the folders of the models of that past.
    """

    def __init__(
        self,
        runtime: Runtime,
        program: str | Program,
        folder: Path,
        logs: Path,
        past: Past | None = None,
        models: Sequence[Path] = (),
    ) -> None:
        self.runtime = runtime
        self.program = programs.of(program)
        self.past = past
        self.generation = 0
        self.busy_seconds = 0.0  # time spent waiting for replies, without starts
        self._folder = folder
        self._logs = logs
        self._models = models
        self._process: Process | None = None
        self._hello: dict[str, Any] = {}
        self._unusable: NotStarted | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.alive

    @property
    def last_hello(self) -> dict[str, Any]:
        """The hello of the last process that started; empty before."""
        return self._hello

    def hello(self) -> dict[str, Any]:
        """Return the hello of the running process; start one when none is running or usable.

        Raises :class:`NotStarted`.
        """
        self.refresh()
        if not self.alive:
            self._start()
        return self._hello

    def refresh(self) -> Crashed | None:
        """Check the process and return why it is dead, if it died by itself since the last request.

        The log also tells.
        """
        if self._process is None:
            return None
        try:
            self._process.check()
        except Crashed as cause:
            with self._process.stderr.open("a", encoding="utf-8") as log:
                log.write(f"savedmodel-compat: {cause}\n")
            return cause
        return None

    def check(self, op: str) -> None:
        """Raise :class:`WorkerDied` when the process has died since the last request, which was
        ``op`` or a prerequisite of ``op``.
        """
        cause = self.refresh()
        if cause is not None:
            assert self._process is not None
            raise WorkerDied(op, cause, log_tail(self._process.stderr))

    def request(
        self, op: str, limit: float, generation: int | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Send a request and wait ``limit`` seconds for the reply. With ``generation``, only that
        process is used and none is started.

        Raises :class:`ReplyError`, :class:`WorkerDied`, :class:`NotStarted`.
        """
        if generation is None:
            self.hello()
        else:
            self.check(op)
            if not self.alive or self.generation != generation:
                raise WorkerDied(
                    op, Crashed("gone", f"the worker that was to be asked to {op!r} is gone"), ""
                )
        assert self._process is not None
        if op in ASKING:
            fields = self._inputs_alone(fields)
        log, start = self._process.stderr, log_size(self._process.stderr)
        began = time.perf_counter()
        try:
            reply = self._process.request({"op": op, **fields}, limit)
        except (Crashed, TimedOut) as cause:
            raise WorkerDied(op, cause, log_tail(log, start)) from None
        finally:
            self.busy_seconds += time.perf_counter() - began
        if reply["status"] != "ok":
            raise ReplyError(op, reply, log_tail(log, start))
        return reply

    def _inputs_alone(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a call that hides the recorded answer: the request and its folder hold only the
        inputs.

        The file is left uncompressed for a worker that cannot read compressed files.
        """
        request = {key: value for key, value in fields["request"].items() if key not in RECORDED}
        source, folder = Path(fields["io_dir"]) / request["inputs"], self._folder / "inputs"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if STORED in self._hello.get("capabilities", ()):
            stored.rewrite(str(source), str(folder / INPUTS))  # type: ignore[no-untyped-call]
        else:
            try:
                os.link(
                    source, folder / INPUTS
                )  # a hard link: the target of a symbolic link could be read
            except OSError:
                shutil.copyfile(source, folder / INPUTS)
        return {**fields, "request": {**request, "inputs": INPUTS}, "io_dir": str(folder)}

    def log_position(self) -> tuple[int, int]:
        """Return the current end of the error log; pass it to :meth:`log_since` to read later
        output.
        """
        return self.generation, log_size(self._process.stderr) if self._process else 0

    def log_since(self, position: tuple[int, int]) -> str:
        """Return the tail of the error log, from ``position`` on; a process started later has its
        own log.
        """
        generation, start = position
        return (
            log_tail(self._process.stderr, start if generation == self.generation else 0)
            if self._process
            else ""
        )

    def close(self) -> None:
        """End the process: ask first, then kill."""
        if self._process is not None:
            self._process.close()

    def _start(self) -> None:
        if self.program.broken:
            self._unusable = NotStarted(self.program.broken)
        if self._unusable:
            raise self._unusable
        for attempt in range(1, STARTS + 1):
            self.generation += 1
            tail = ""
            try:
                reason, tail = self._try_start()
                if not reason:
                    return
            except (OSError, native.BuildError, RuntimeTrouble) as error:
                reason = str(error)
            except (Crashed, TimedOut) as error:
                reason, tail = str(error), log_tail(self._process.stderr) if self._process else ""
                if attempt < STARTS:
                    continue
            break
        reason = self.runtime.with_advice(reason)
        self._unusable = NotStarted(
            f"{self.program.name} does not start in the runtime {self.runtime.name}:"
            f" {reason}\n{tail}".rstrip()
        )
        raise self._unusable

    def _try_start(self) -> tuple[str, str]:
        """Start a process; return why it cannot be used and its own message, nothing when it can be
        used.
        """
        logs = self._logs.with_name(f"{self._logs.name}-{self.generation}")
        words = command(self.runtime, self.program)
        self._process = Process(words, self._environment(), self._folder, logs, start(self.program))
        hello = self._process.request({"op": "hello", "protocol": PROTOCOL}, START_LIMIT)
        if hello["status"] == "ok" and hello.get("protocol") == PROTOCOL:
            reason, tail = self._other_version(hello) or self.program.contradiction(hello), ""
            if not reason:
                self._hello = hello
                self._live()
                return "", ""
        else:
            reason, tail = (
                f"{hello.get('error_class')}: {hello.get('message')}",
                str(hello.get("traceback") or hello),
            )
        self._process.close()
        return reason, tail

    def _environment(self) -> dict[str, str]:
        """Return the environment of a process, with its temporary folder, which is made."""
        given = environment(self.program)
        if self.past is None:
            return given
        given.update(self.past.environment())
        if self.past.temporary:
            temporary = (self._folder / self.past.temporary).absolute()
            temporary.mkdir(parents=True, exist_ok=True)
            given[TEMPORARY] = str(temporary)
        return given

    def _live(self) -> None:
        """Give a process that has just started its past: load, save and free earlier models.

        Raises Crashed, TimedOut.

        A program that does not know the operation, or cannot load a model, keeps the rest of its
        past.
        """
        if self.past is None or self._process is None:
            return
        ask = self._process.request
        ask({"op": "past", **self.past.start()}, LIFE_LIMIT)
        for model in self._models:
            loaded = ask(
                {"op": "load", "dir": str(model), "tags": ["serve"], "timeout": LIFE_LIMIT},
                LIFE_LIMIT,
            )
            if loaded["status"] != "ok":
                continue
            saved = self._folder / "earlier"
            if "resave" in self._hello.get("capabilities", ()):
                ask(
                    {
                        "op": "resave",
                        "handle": loaded["handle"],
                        "dir": str(saved),
                        "tags": ["serve"],
                    },
                    LIFE_LIMIT,
                )
                shutil.rmtree(saved, ignore_errors=True)
            ask({"op": "close", "handle": loaded["handle"]}, LIFE_LIMIT)

    def count_to(self, counter: int | None) -> None:
        """Advance the counter of unique numbers of the running process, where the program has one.

        Raises what :meth:`request` raises, except ReplyError.
        """
        if counter is not None:
            with suppress(ReplyError):  # the program of a plug-in need not know the operation
                self.request("past", LIFE_LIMIT, umask=None, garbage=pasts.USUAL, counter=counter)

    def _other_version(self, hello: Mapping[str, Any]) -> str:
        """Return what is wrong with the TensorFlow that a worker uses, or "": a cell must not name
        one version and test another.

        A program with its own Python is exempt: its cells name its own version.
        """
        wanted, said = self.runtime.tensorflow_version, hello.get("versions", {}).get("tensorflow")
        if self.program.at_home:
            return ""
        if wanted is None or said is None or same_release(wanted, str(said)):
            return ""
        return f"the runtime was said to hold TensorFlow {wanted}, the worker uses {said}"


def command(runtime: Runtime, program: str | Program) -> list[str]:
    """Return the command line of a worker.

    Raises BuildError (compilation failed) or RuntimeTrouble (no environment).
    """
    return programs.of(program).words(runtime)


def start(program: Program) -> Start:
    """Return how a worker's process is started: as a fork, if it imports TensorFlow."""
    return forks.forked(dict(program.environment)) if program.tensorflow else Own


def environment(program: str | Program) -> dict[str, str]:
    """Return a worker's environment: the user's, without variables that change answers or the
    interpreter, with ones that pin them.
    """
    return {
        **places.environment("PYTEST_", "TF_", "TF2_", "SAVEDMODEL_COMPAT_", TEMPORARY),
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",  # the last output of a crashing process must be in its log
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        # Fused kernels and the division of a sum among threads depend on the CPU; the answers' bits
        # must not.
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "TF_NUM_INTRAOP_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        **dict(programs.of(program).environment),
    }
