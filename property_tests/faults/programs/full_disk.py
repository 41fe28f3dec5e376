"""Writers on a file system that is really full, page by page and file by file.

``python -m property_tests.faults.programs.full_disk FOLDER save|tensorflow|report|update``, to be
run in a mount namespace of its own (``unshare --mount``): a small tmpfs is mounted on the folder.
The file ``fault`` beside the folder names what there is no room for: ``pages`` or ``files``. What
was there before is written with room for all; then there is no room, then there is for one page (or
one more file), and so on until the writer is done. Prints a line of JSON for each attempt: how much
room there was, the error, what is there now, what is left over.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[3] / "tests" / "support"))

from kill_points import content, leftovers, write

from property_tests.faults import finished_runs
from property_tests.faults.planting import FAULT_FILE
from reference_impl import errors

PAGE = os.sysconf("SC_PAGE_SIZE")
SIZE, INODES = 8 << 20, 4096


class Disk:
    """A tmpfs of which nearly all is in use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mount(f"size={SIZE},nr_inodes={INODES}", "-t", "tmpfs", "tmpfs")
        self.ballast = folder / "ballast"
        self.ballast.touch()

    def _mount(self, options: str, *words: str) -> None:
        subprocess.run(["mount", "-o", options, *words, str(self.folder)], check=True)

    def leave_pages(self, count: int) -> None:
        """Room for so many pages, and for as many files as one likes."""
        self._mount(f"remount,size={SIZE},nr_inodes={INODES}")
        self.ballast.write_bytes(b"")
        self.ballast.write_bytes(bytes((os.statvfs(self.folder).f_bavail - count) * PAGE))

    def leave_files(self, count: int) -> None:
        """Room for so many files, whatever they hold."""
        self.ballast.write_bytes(b"")
        status = os.statvfs(self.folder)
        self._mount(f"remount,size={SIZE},nr_inodes={status.f_files - status.f_ffree + count}")


def attempts(
    disk: Disk,
    again: Callable[[], object],
    act: Callable[[], object],
    state: Callable[[], tuple[Any, int]],
) -> None:
    """Act on what was there ``again``, with ever more room, until it goes well.

    The fault that is planted beside the disk says what there is no room for: pages or files.
    """
    kind = disk.folder.with_name(FAULT_FILE).read_text()
    leave = {"pages": disk.leave_pages, "files": disk.leave_files}[kind]
    again()
    room, error = 0, "?"
    while error:
        leave(room)
        error = attempt(act)
        told, left = state()
        print(
            json.dumps({"room": f"{room} {kind}", "error": error, "told": told, "left": left}),
            flush=True,
        )
        room += 1


def attempt(act: Callable[[], object]) -> str:
    """What came of it: "" when all went well."""
    try:
        act()
    except errors.FileAccessError as error:
        # The reason of the system is in the text, which names the file.
        return (
            "ENOSPC"
            if os.strerror(errno.ENOSPC) in str(error) and error.file
            else f"FileAccessError: {error}"
        )
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, repr(error))
    return ""


def reports(disk: Disk, act: Callable[[Path], None]) -> None:
    """`matrix report`, `matrix expect update`: what they write, as text."""
    out = disk.folder / "out"
    names = ("summary.json", "report.html", "junit.xml", "expectations.toml")

    def again() -> None:
        finished_runs.finished_run(out, 2)
        act(out)
        finished_runs.finished_run(out, 5)

    def state() -> tuple[Any, int]:
        files = {name: (out / name).read_text() for name in names if (out / name).exists()}
        return files, len([path for path in out.iterdir() if path.suffix == ".tmp"])

    attempts(disk, again, lambda: act(out), state)


def saves(disk: Disk) -> None:
    """`reference_impl.save` over an export."""
    import reference_impl
    from property_tests.faults.programs import save_kills

    folder = disk.folder.with_name("assets")
    folder.mkdir()
    old, new = (save_kills.model(folder, value) for value in (1.0, 2.0))
    target = disk.folder / "there" / "model"

    def state() -> tuple[Any, int]:
        return save_kills.told(target), leftovers(target)

    attempts(
        disk,
        lambda: reference_impl.save(old, target),
        lambda: reference_impl.save(new, target),
        state,
    )


def main(folder: Path, what: str) -> None:
    disk = Disk(folder)
    target = folder / "there" / "model"
    if what == "save":
        target.parent.mkdir()
        acts = (lambda: write(target, "old"), lambda: write(target, "new"))
        attempts(disk, *acts, lambda: (content(target), leftovers(target)))
    elif what == "tensorflow":
        saves(disk)
    else:
        reports(disk, {"report": finished_runs.report, "update": finished_runs.expect_update}[what])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
