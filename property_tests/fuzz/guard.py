"""What a parser may not do while it runs: take time or memory without end, open what is not its
own, change anything.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

from savedmodel_common.packages import OURS

SECONDS = 1.0  # of CPU time: others may be using the machine
MEMORY = 256 << 20

_CHANGES = (
    *(
        "os.mkdir",
        "os.rmdir",
        "os.remove",
        "os.rename",
        "os.link",
        "os.symlink",
        "os.chmod",
        "os.chown",
        "os.truncate",
        "os.utime",
    ),
    *(
        "os.truncate",
        "os.putenv",
        "os.kill",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
        "subprocess.Popen",
    ),
    *(
        "shutil.rmtree",
        "shutil.copyfile",
        "shutil.move",
        "tempfile.mkstemp",
        "tempfile.mkdtemp",
        "pty.spawn",
    ),
    *("socket.connect", "socket.bind", "socket.getaddrinfo"),
)


class Violation(Exception):
    """The contract is broken; the message says how."""


class Guard:
    """Watches this process, which is spoilt for anything else.

    Args:
      folder: what may be read; beside it only Python, its packages and this project.
      seconds, memory: the limits; memory is what may be added to what the process has now.
    """

    def __init__(self, folder: Path, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        ours = Path(__file__).resolve().parents[2]
        places = {
            folder,
            *(ours / package for package in (*OURS, "property_tests")),
        }
        places |= {
            Path(sysconfig.get_path(name))
            for name in ("stdlib", "platstdlib", "purelib", "platlib")
        }
        self.readable = tuple(
            {os.path.realpath(place) + os.sep for place in places}
            | {f"{place}{os.sep}" for place in places}
        )
        self.folder, self.seconds = os.fspath(folder), seconds
        self.armed = False
        self.slowest = 0.0
        self.broken: list[
            str
        ] = []  # an exception in a hook may be swallowed by the code that is watched
        resource.setrlimit(resource.RLIMIT_AS, (_mapped() + memory,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.addaudithook(self._watch)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Run a parser in here. Raises Violation for what it may not do, MemoryError included."""
        self.broken.clear()
        self.armed = True
        start = time.process_time()
        try:
            yield
        except MemoryError as error:
            raise Violation("more memory than it may have") from error
        finally:
            self.armed = False
            taken = time.process_time() - start
            self.slowest = max(self.slowest, taken)
            if self.broken:
                raise Violation(self.broken[0])
            if taken > self.seconds:
                raise Violation(f"more than {self.seconds} s of CPU time")

    def _watch(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.armed:
            return
        if event == "open":
            path, mode, flags = arguments
            if isinstance(path, int):
                return
            name = os.path.abspath(os.fsdecode(path))  # type: ignore[arg-type]  # noqa: PTH100
            writes = (
                bool(set(mode) & set("wax+"))
                if isinstance(mode, str)
                else isinstance(flags, int) and bool(flags & 3)
            )
            if writes or not (name + os.sep).startswith(self.readable):
                self.broken.append(f"{'writes to' if writes else 'opens'} {name}")
        elif (
            event in ("os.listdir", "os.scandir")
            and arguments
            and isinstance(arguments[0], (str, bytes, os.PathLike))
        ):
            name = os.path.abspath(os.fsdecode(arguments[0]))  # noqa: PTH100
            if not (name + os.sep).startswith(self.readable):
                self.broken.append(f"lists {name}")
        elif event in _CHANGES:
            self.broken.append(f"{event}{arguments!r:.200}")


def _mapped() -> int:
    """Bytes of address space that this process has."""
    with open("/proc/self/statm", encoding="ascii") as stream:  # noqa: PTH123
        return int(stream.read().split()[0]) * resource.getpagesize()
