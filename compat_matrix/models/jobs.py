"""Process many models in several processes: results come in the order of the items; if a process dies, only its item is lost.

Processes are spawned, not forked, since clients of object stores have threads. They end with the process that started them, in
any case: its end closes their pipe.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Union

from compat_matrix.common import interrupts

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

T = TypeVar("T")
R = TypeVar("R")


class Died(NamedTuple):
    """In place of a result: the process ended. ``reason`` says how."""

    reason: str


def ordered(function: Callable[[T], R], items: Iterable[T], jobs: int) -> Iterator[Union[R, Died]]:
    """Yield ``function`` of every item, in their order, from at most so many processes; with 1 it is this one.

    An error that the function raises ends the process. Items and results can be pickled, and so can the function: it is one of a
    module, or a `functools.partial` of one.
    """
    waiting = deque(enumerate(items))
    if jobs == 1 or len(waiting) < 2:
        for _, item in waiting:
            interrupts.check()
            yield function(item)
        return
    from multiprocessing.connection import wait  # costs those who ask for one model more than reading it

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
        for worker in [*idle, *(worker for _, worker in busy.values())]:
            worker.end()


class _Worker:
    def __init__(self, function: Callable[[Any], Any]) -> None:
        import multiprocessing
        from multiprocessing import resource_tracker

        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_serve, args=(theirs, function), daemon=True)
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
            return Died(f"its process ended with {interrupts.signal_name(-code) if code < 0 else f'exit code {code}'}")

    def end(self, kill: bool = True) -> None:
        if kill:
            self.process.kill()
        self.process.join()
        self.connection.close()


def _serve(connection: Connection, function: Callable[[Any], Any]) -> None:
    """The life of a process."""
    interrupts.left_to_parent()
    while True:
        try:
            item = connection.recv()
        except (EOFError, OSError):
            return
        connection.send(function(item))
