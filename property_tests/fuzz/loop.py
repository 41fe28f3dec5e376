"""A child process runs a target, held to its limits; the parent notes what killed it and starts
another.
"""

from __future__ import annotations

import gc
import mmap
import os
import re
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from property_tests.fuzz.guard import MEMORY, SECONDS, Guard, Violation
from property_tests.fuzz.parsers import Wrong
from property_tests.fuzz.targets import Target

LONGEST = 1 << 18  # bytes of an input
_POOL = 400  # inputs kept because they ended as none before
_HANG = 60.0  # seconds without a next input
_DIGITS = re.compile(r"\d+|'.*?'|\".*?\"")
_HEAD = struct.Struct("<QQQ")  # executions, length of the input, findings


@dataclass
class Outcome:
    """What a run has shown."""

    executions: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    answers: Counter[str] = field(
        default_factory=Counter
    )  # "accepted", or the class of a named error
    endings: set[str] = field(default_factory=set)  # class and reason without its numbers
    findings: dict[str, bytes] = field(
        default_factory=dict
    )  # what broke the contract -> the first input that did

    def note(self, what: str, data: bytes) -> None:
        """Keep a finding; of those that say the same the shortest input."""
        if what not in self.findings or len(data) < len(self.findings[what]):
            self.findings[what] = data


class Fuzzer:
    """Makes inputs, deterministic by seed: mostly one to four changes of a seed or of an input that
    ended as none before.
    """

    def __init__(self, target: Target, seed: int) -> None:
        self.seeds = target.seeds()
        self.change = target.mutator(self.seeds)
        self.pool = list(self.seeds)
        self.seed, self.learns = seed, target.learns

    def make(self, index: int) -> bytes:
        """The input of that number, given what `learn` was told until then."""
        rng = Random(self.seed << 40 | index)
        if index < len(self.seeds):
            return self.seeds[index]
        data = rng.choice(self.seeds if rng.random() < 0.4 else self.pool)
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            changed = self.change(rng, data)
            data = changed if len(changed) <= LONGEST else data
        return data[:LONGEST]

    def learn(self, data: bytes) -> None:
        """An input ended as none before."""
        if self.learns and len(self.pool) < _POOL and len(data) < LONGEST // 8:
            self.pool.append(data)


def once(
    target: Target, folder: Path, data: bytes, guard: Guard, named: tuple[type[Exception], ...]
) -> tuple[str, str, str]:
    """Give a parser one input.

    Returns the answer, the same with its reason, and what is wrong ("" when nothing is).
    """
    target.place(folder, data)
    try:
        with guard.watching():
            target.parse(folder)
    except Violation as error:
        return "", "", f"{target.name}: {error}"
    except named as error:
        return (
            type(error).__name__,
            (
                f"{type(error).__name__}:"
                f" {_DIGITS.sub('#', str(getattr(error, 'reason', error)))[:60]}"
            ),
            "",
        )
    except Exception as error:  # every other one is a finding
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.name}"
        kind = "wrong result" if isinstance(error, Wrong) else type(error).__name__
        return "", "", f"{target.name}: {kind} in {where}: {_DIGITS.sub('#', str(error))[:80]}"
    return "accepted", "accepted", ""


def run(
    target: Target,
    runs: int,
    seed: int,
    seconds: float = SECONDS,
    inputs: list[bytes] | None = None,
) -> Outcome:
    """Run a target in child processes.

    Args:
      target: the parser.
      runs: how many inputs.
      seed: of the random numbers.
      seconds: CPU time one input may take.
      inputs: these, in place of `runs` made ones.
    """
    outcome = Outcome()
    started = time.monotonic()
    done = 0
    total = len(inputs) if inputs is not None else runs
    while done < total:
        done = _child(target, total, seed, seconds, inputs, done, outcome)
    outcome.executions, outcome.seconds = total, time.monotonic() - started
    return outcome


def _child(
    target: Target,
    total: int,
    seed: int,
    seconds: float,
    inputs: list[bytes] | None,
    start: int,
    outcome: Outcome,
) -> int:
    """Run from input `start` on in a child, until all are done or it dies.

    Returns how many are done.
    """
    shared = mmap.mmap(-1, _HEAD.size + 2 * LONGEST)
    folder = Path(
        tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    )
    report = folder.with_suffix(".report")
    try:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            _work(target, total, seed, seconds, inputs, start, shared, folder, report)
        status = _wait(pid, shared)
        executed, length, _ = _HEAD.unpack_from(shared)
        _read_report(report, outcome)
        if status != 0:
            data = shared[_HEAD.size : _HEAD.size + length]
            outcome.note(f"{target.name}: the process ended with {_words(status)}", bytes(data))
            return max(executed, start) + 1
        return total
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        report.unlink(missing_ok=True)
        shared.close()


def _words(status: int) -> str:
    if os.WIFSIGNALED(status):
        return (
            signal.Signals(os.WTERMSIG(status)).name
            if os.WTERMSIG(status) != signal.SIGXCPU
            else "a hang"
        )
    return f"status {os.WEXITSTATUS(status)}"


def _wait(pid: int, shared: mmap.mmap) -> int:
    last, since = b"", time.monotonic()
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        now = bytes(shared[: _HEAD.size])
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > _HANG:
            os.kill(pid, signal.SIGXCPU)
        time.sleep(0.02)


def _work(
    target: Target,
    total: int,
    seed: int,
    seconds: float,
    inputs: list[bytes] | None,
    start: int,
    shared: mmap.mmap,
    folder: Path,
    report: Path,
) -> None:
    """The child's life. Never returns."""
    status = 1
    try:
        fuzzer = Fuzzer(target, seed)
        named = target.named()
        target.place(folder, fuzzer.seeds[0])
        try:
            target.parse(folder)  # imports what is imported late
        except named:
            pass
        gc.collect()
        gc.freeze()  # a parser that collects its garbage need not look at all that was imported
        guard = Guard(folder, seconds, target.memory)
        outcome = Outcome()
        for index in range(start, total):
            data = inputs[index] if inputs is not None else fuzzer.make(index)
            _HEAD.pack_into(shared, 0, index, len(data), len(outcome.findings))
            shared[_HEAD.size : _HEAD.size + len(data)] = data
            answer, ending, wrong = once(target, folder, data, guard, named)
            if wrong:
                outcome.note(wrong, data)
                continue
            outcome.answers[answer] += 1
            if ending not in outcome.endings:
                outcome.endings.add(ending)
                fuzzer.learn(data)
        outcome.slowest = guard.slowest
        _write_report(report, outcome)
        status = 0
    except BaseException:
        traceback.print_exc()  # of the fuzzer itself
    finally:
        sys.stderr.flush()
        os._exit(status)


def _write_report(path: Path, outcome: Outcome) -> None:
    import pickle  # of our own child

    path.write_bytes(
        pickle.dumps((outcome.slowest, outcome.answers, outcome.endings, outcome.findings))
    )


def _read_report(path: Path, outcome: Outcome) -> None:
    import pickle

    if not path.exists():
        return
    slowest, answers, endings, findings = pickle.loads(path.read_bytes())
    outcome.slowest = max(outcome.slowest, slowest)
    outcome.answers.update(answers)
    outcome.endings |= endings
    for what, data in findings.items():
        outcome.note(what, data)


__all__ = ["MEMORY", "Fuzzer", "Outcome", "once", "run"]
