"""A command on an attack, in a process of its own that is held to limits and watched for what it
reads and writes.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from property_tests.attacks import (
    bombs,
    contradictions,
    effects,
    files,
    imports,
    naming,
    nodes,
    objects,
    paths,
    paths_of_ops,
    published,
    sizes,
    special,
)
from property_tests.attacks.commands import COMMANDS, OUT, WRITING, Refused

SECONDS = 120  # of CPU time; what takes longer is killed
WAIT = 600  # of the clock: only what waits for something that never comes takes so long
MEMORY = 3 << 30  # beside what the process had
OUTPUT = 1 << 24  # characters that a command may print

Attack = Callable[[Path], None]


def _attacks() -> Iterator[tuple[str, Attack]]:
    for module in (
        paths,
        bombs,
        contradictions,
        objects,
        naming,
        nodes,
        effects,
        paths_of_ops,
        imports,
        sizes,
        files,
        published,
    ):
        for name, function in vars(module).items():
            ours = inspect.isfunction(function) and function.__module__ == module.__name__
            if (
                ours
                and list(inspect.signature(function).parameters) == ["folder"]
                and not name.startswith("_")
            ):
                yield name, function
    yield from special.MADE.items()


ATTACKS: dict[str, Attack] = dict(_attacks())


@dataclass(frozen=True)
class Answer:
    """What became of a command.

    Attributes:
      verdict: "accepted", the class of a named error, "DEFECT: ..." for another one, or how the
        process was killed.
      told: the message of the error, problems, warnings.
      kib: memory that the process needed more than it had.
      seconds: CPU time.
      trespasses: what it read or changed outside the model's directory, and in it.
      printed: what it wrote on stdout.
    """

    verdict: str
    told: str
    kib: int
    seconds: float
    trespasses: tuple[str, ...]
    printed: str


@contextmanager
def made(name: str) -> Iterator[Path]:
    """The directory of an attack, removed afterwards."""
    place = Path(
        tempfile.mkdtemp(
            prefix="attack-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        )
    )
    try:
        ATTACKS[name](place / "model")
        yield place / "model"
    finally:
        shutil.rmtree(place, ignore_errors=True)


def attempt(folder: Path, command: str) -> Answer:
    """Run a command in a child."""
    before = _state(folder.parent)
    read, write = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _child(folder, COMMANDS[command], write)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        said = stream.read()
    _, status, usage = os.wait4(pid, 0)
    told: dict[str, Any] = json.loads(said) if said else {}
    changed = {name for name, _ in set(before.items()) ^ set(_state(folder.parent).items())}
    if command in WRITING and told.get("verdict") == "accepted":
        changed = {name for name in changed if name.partition("/")[0] != OUT}
    trespasses = sorted({*told.get("trespasses", ()), *(f"changes {name}" for name in changed)})
    _remove(folder.parent / OUT)
    kib = max(0, usage.ru_maxrss - told.get("kib", usage.ru_maxrss))
    seconds = round(usage.ru_utime + usage.ru_stime, 2)
    verdict = told.get("verdict") or f"killed by signal {os.WTERMSIG(status)}"
    return Answer(
        verdict, told.get("told", ""), kib, seconds, tuple(trespasses), told.get("printed", "")
    )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def _first(entries: Iterator[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
    """All folders, and a hundred of the rest."""
    rest = 100
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False):
            rest -= 1
            if rest < 0:
                continue
        yield entry


def _state(place: Path) -> dict[str, str]:
    """What is below a directory: names, and hashes of what is small."""
    found, pending = {}, [place]
    while pending:
        top = pending.pop()
        with os.scandir(top) as entries:
            paths = {Path(entry): entry.is_dir(follow_symlinks=False) for entry in _first(entries)}
        if top.name != "assets.extra":
            pending += [path for path, is_folder in paths.items() if is_folder]
        for path in paths:
            facts = path.lstat()
            content = (
                path.read_bytes()
                if path.is_file() and not path.is_symlink() and facts.st_size < 1 << 16
                else b""
            )
            size = 0 if path.is_dir() else facts.st_size
            found[path.relative_to(place).as_posix()] = (
                f"{facts.st_mode} {size} {hashlib.sha256(content).hexdigest()}"
            )
    return found


def _child(folder: Path, command: Callable[[Path], str], write: int) -> None:
    """Run, tell the parent, end."""
    answer: dict[str, Any] = {
        "kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "trespasses": [],
    }
    out = io.StringIO()
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:  # noqa: PTH123
            mapped = int(stream.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY,) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(WAIT)
        _watch(folder, answer["trespasses"])
        with redirect_stdout(out):
            answer["told"] = command(folder)
        answer["verdict"] = "accepted"
    except BaseException as error:
        answer["verdict"], answer["told"] = _named(error), str(error)
    answer["printed"] = out.getvalue()[:OUTPUT]
    with os.fdopen(write, "wb") as stream:
        stream.write(json.dumps(answer).encode())
    os._exit(0)


def _named(error: BaseException) -> str:
    from reference_impl.errors import SavedModelError

    if isinstance(error, Refused):
        return error.verdict
    if isinstance(error, SavedModelError):
        return type(error).__name__
    known = type(error).__module__.startswith(("tensorflow.python.framework", "reference_impl"))
    return type(error).__name__ if known else f"DEFECT: {error!r:.200}"


def _watch(folder: Path, trespasses: list[str]) -> None:
    """Note what Python opens beside the model's directory, which may be held open itself.

    What TensorFlow's own code reads is not seen, only what it changes.
    """
    outside = os.path.realpath(folder.parent) + os.sep
    inside = os.path.realpath(folder) + os.sep
    written = (
        outside + OUT,
        f"{outside}.{OUT}.",
    )  # the result, and where it is made; both are gone after a refusal

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or isinstance(arguments[0], int):
            return
        path = os.path.realpath(os.fsdecode(arguments[0]))
        beside = path.startswith(outside) and not (path + os.sep).startswith((inside, *written))
        if beside or path in ("/etc/passwd", "/etc/shadow"):
            trespasses.append(f"reads {path.removeprefix(outside)}")

    sys.addaudithook(watch)
