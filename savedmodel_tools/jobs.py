"""Process many models in several processes: results come in the order of the items; if a process
dies, only its item is lost.

Processes are spawned, not forked, since clients of object stores have threads. They end with the
process that started them, in any case: its end closes their pipe.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Union

from savedmodel_common import interrupts

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

T = TypeVar("T")
R = TypeVar("R")


class Died(NamedTuple):
    """In place of a result: the process ended. ``reason`` says how."""

    reason: str


def ordered(function: Callable[[T], R], items: Iterable[T], jobs: int) -> Iterator[Union[R, Died]]:
    """Yield ``function`` of every item, in their order, from at most so many processes; with 1 it
    is this one.

    An error that the function raises ends the process. Items and results can be pickled, and so can
    the function: it is one of a module, or a `functools.partial` of one. One that is a context
    manager is entered in each process before its first item, and left after the last one.
    """
    waiting = deque(enumerate(items))
    if jobs == 1 or len(waiting) < 2:
        with _entered(function):
            for _, item in waiting:
                interrupts.check()
                yield function(item)
        return
    from multiprocessing.connection import (
        wait,
    )  # costs those who ask for one model more than reading it

    done: dict[int, Union[R, Died]] = {}
    idle: list[_Worker] = []
    busy: dict[Any, tuple[int, _Worker]] = {}
    told = 0
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                worker = idle.pop() if idle else _Worker(function)
                number, item = waiting.popleft()
                worker.ask(item)
                busy[worker.connection] = number, worker
            interrupts.check()
            for connection in wait(list(busy)):
                number, worker = busy.pop(connection)
                done[number] = worker.answer()
                if not isinstance(done[number], Died):
                    idle.append(worker)
            while told in done:
                yield done.pop(told)
                told += 1
    finally:
        for _, worker in busy.values():
            worker.end()
        for worker in idle:
            worker.end(kill=not isinstance(function, AbstractContextManager))


def _entered(function: Callable[[Any], Any]) -> AbstractContextManager[Any]:
    return function if isinstance(function, AbstractContextManager) else nullcontext()


class _Worker:
    def __init__(self, function: Callable[[Any], Any]) -> None:
        import multiprocessing
        from multiprocessing import resource_tracker

        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(
            target=_serve, args=(theirs, function), daemon=True
        )
        resource_tracker.ensure_running()  # starting it unblocks SIGINT
        with interrupts.deferred():
            self.process.start()
        theirs.close()

    def ask(self, item: Any) -> None:
        try:
            self.connection.send(item)
        except OSError:  # it has died since; the answer tells
            return

    def answer(self) -> Any:
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self.end(kill=False)
            code = self.process.exitcode or 0
            return Died(
                "its process ended with"
                f" {interrupts.signal_name(-code) if code < 0 else f'exit code {code}'}"
            )

    def end(self, kill: bool = True) -> None:
        """End the process: at once, or as soon as it has left its context."""
        if kill:
            self.process.kill()
        self.connection.close()
        self.process.join()


def _serve(connection: Connection, function: Callable[[Any], Any]) -> None:
    """The life of a process."""
    interrupts.left_to_parent()
    with _entered(function):
        while True:
            try:
                item = connection.recv()
            except (EOFError, OSError):
                return
            connection.send(function(item))
