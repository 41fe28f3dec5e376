"""`matrix report` and `matrix expect update`, killed at every moment at which they change the
folder of a run.

``python -m property_tests.faults.programs.killed_report report|expect_update FOLDER``. Prints a
line for each kill: whether the files are the old or the new ones, and how many temporary files are
left when the command has run again.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "tests" / "support"))

from kill_points import Killer

from property_tests.faults import finished_runs

FILES = ("expectations.toml", "junit.xml", "report.html", "summary.json")
BEFORE, AFTER = 2, 5  # failures of the run that is told of
Act = Callable[[Path], None]
Files = dict[str, bytes]


def quietly(act: Act) -> Act:
    """Return a command whose own words are not among the lines of this program."""

    def quiet(out: Path) -> None:
        with redirect_stdout(io.StringIO()):
            act(out)

    return quiet


def files(out: Path) -> Files:
    """Return the files of a report that are there, and the ledger."""
    found = {}
    for name in FILES:
        with suppress(FileNotFoundError):
            found[name] = (out / name).read_bytes()
    return found


def prepared(folder: Path, act: Act) -> Path:
    """Return the folder of a run that was told of; another run has been put there since."""
    out = folder / "out"
    finished_runs.finished_run(out, BEFORE)
    act(out)
    finished_runs.finished_run(out, AFTER)
    return out


def state_of(now: Files, old: Files, new: Files) -> str:
    """Return "old", "new", "unsealed" (a report without its summary, which comes last), or what is
    mixed.
    """
    mixed = [name for name, data in now.items() if data not in (old[name], new[name])]
    if mixed:
        return f"mixture:{mixed}"
    if now == old:
        return "old"
    if now == new:
        return "new"
    return "mixture:set" if "summary.json" in now else "unsealed"


def temporary(out: Path) -> int:
    return len([path for path in out.iterdir() if path.suffix == ".tmp"])


def kill_everywhere(folder: Path, act: Act) -> None:
    """Fork once for every moment; print what is left each time."""
    out = prepared(folder / "undisturbed", act)
    old = files(out)
    act(out)
    new = files(out)
    point, status = 0, -1
    while status != 0:
        point += 1
        out = prepared(folder / str(point), act)
        child = os.fork()
        if child == 0:
            killer = Killer(out, point)
            killer.armed = True
            act(out)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert status in (0, signal.SIGKILL), status
        state = state_of(files(out), old, new)
        act(out)
        assert files(out).keys() == new.keys()
        print(state, temporary(out), flush=True)
    print(state_of(new, old, new), 0)


if __name__ == "__main__":
    kill_everywhere(Path(sys.argv[2]), quietly(getattr(finished_runs, sys.argv[1])))
