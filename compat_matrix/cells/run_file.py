"""``run.json`` of an output folder: options, time and place of the start of a run, for its
processes and reports.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compat_matrix.cells.plan import PlanError
from compat_matrix.runtimes.pasts import Past
from compat_matrix.runtimes.runtime import Runtime, local_runtime
from savedmodel_common import strict_json
from savedmodel_common.own_version import tool_version
from savedmodel_common.writing import write_text

RUN_FILE = "run.json"
SCHEMA = 1
_FOLDERS = ("cases", "fixtures")  # what a folder of the user's may replace
_INPUTS = ("options", "runtimes")  # needed by the processes of a run beside the plan; not reported


class RunFileError(PlanError):
    """A ``run.json`` cannot be read; the message names the file and the reason."""


@dataclass
class RunFile:
    """How a run was started.

    Attributes:
      started: date and time; "" for cells that were executed without a run file.
      seconds: how long the run took, None until it has ended.
      require: whether cells that are not run fail the run (`verdict.summary`).
      selection: the selectors, axis -> patterns. They describe the run, no process needs them.
      folders: the folders that replace our ``cases`` and ``fixtures``; processes find models there.
      named: the names that the command line gave, axis -> names or patterns: one that is not asked
        fails the run.
      processes: how many processes execute cells.
      earlier: the programs that made results of earlier sessions, where they are not this one.
      options: of `matrix run`, to make the same plan again.
      runtimes: those of the plan.
      past: that of the worker processes, None for the usual one.
    """

    started: str = ""
    seconds: float | None = None
    require: bool | str = False
    selection: Mapping[str, Sequence[str]] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, Sequence[str]] = field(default_factory=dict)
    processes: int = 1
    tool_version: str | None = None
    revision: str | None = None
    python: str = ""
    platform: str = ""
    earlier: Sequence[str] = ()
    options: Sequence[str] = ()
    runtimes: Sequence[Runtime] = ()
    past: Past | None = None

    @classmethod
    def of_now(cls, **given: Any) -> RunFile:
        """Return the record of a run that starts here and now."""
        tool = tool_version()
        return cls(
            started=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            tool_version=str(tool) if tool else None,
            revision=_revision(),
            python=platform.python_version(),
            platform=platform.platform(),
            **given,
        )

    @classmethod
    def read(cls, out: Path) -> RunFile:
        """Read the record of a folder; return an empty one if there is none.

        Raises RunFileError.
        """
        path = out / RUN_FILE
        if not path.exists():
            return cls()
        try:
            data = strict_json.loads(path.read_text(encoding="utf-8"))
            if data.pop("schema") != SCHEMA:
                raise ValueError(f"the schema is not {SCHEMA}")
            data["folders"] = _folders(data)
            data["earlier"] = tuple(data.get("earlier", ()))
            data["runtimes"] = [Runtime.from_json(item) for item in data.get("runtimes", ())]
            data["past"] = Past.from_json(data["past"]) if data.get("past") else None
            found = cls(**data)
            if not _is_lists(found.named):
                raise ValueError("the names that were given are not lists of strings")
            if (
                not isinstance(found.selection, dict)
                or type(found.processes) is not int
                or found.processes < 1
            ):
                raise ValueError("no selection, or no number of processes")
            if found.seconds is not None and not isinstance(found.seconds, (int, float)):
                raise ValueError(f"it took {found.seconds!r} seconds")
        except (AttributeError, KeyError, OSError, TypeError, ValueError) as error:
            raise RunFileError(f"{path}: {type(error).__name__}: {error}") from error
        return found

    def write(self, out: Path) -> None:
        """Write the record into a folder."""
        inputs = {
            "options": list(self.options),
            "runtimes": [runtime.to_json() for runtime in self.runtimes],
        }
        write_text(out / RUN_FILE, json.dumps({**self.facts(), **inputs}, indent=1) + "\n")

    def facts(self) -> dict[str, Any]:
        """Return the facts about the run for reports; empty without a run file."""
        if not self.started:
            return {}
        named = {
            one.name: getattr(self, one.name)
            for one in dataclasses.fields(self)
            if one.name not in _INPUTS
        }
        lists = {name: list(values) for name, values in self.selection.items()}
        given = {axis: list(names) for axis, names in self.named.items() if names}
        return {
            "schema": SCHEMA,
            **named,
            "selection": lists,
            "folders": dict(self.folders),
            "named": given,
            "past": self.past and self.past.to_json(),
        }

    @property
    def program(self) -> str:
        """Return the revision of this program, or its version where it was installed."""
        return self.revision or self.tool_version or "unknown"

    @property
    def by_name(self) -> dict[str, Runtime]:
        """Return the runtimes by name; the local one if none is named."""
        return {runtime.name: runtime for runtime in self.runtimes or (local_runtime(),)}

    def folder(self, what: str) -> Path | None:
        """Return the folder that replaces our ``cases`` or ``fixtures``."""
        given = self.folders.get(what)
        return Path(given) if given else None

    @property
    def is_about_ours(self) -> bool:
        """Whether the models of the run are the project's own."""
        return not self.folders


def _folders(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the folders of a run file. One of an older version has them in its selection."""
    if "folders" not in data:
        selection = data.get("selection", {})
        return {what: selection[what][0] for what in _FOLDERS if what in selection}
    folders = data["folders"]
    if set(folders) - set(_FOLDERS) or not all(isinstance(one, str) for one in folders.values()):
        raise ValueError("the folders are not those of cases and fixtures")
    return dict(folders)


def _is_lists(named: object) -> bool:
    """Return whether a value of a file is a mapping of lists of strings."""
    if not isinstance(named, dict):
        return False
    for names in named.values():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return False
    return True


def _revision() -> str | None:
    """Return the git revision, with ``+`` if files were changed; None outside of a checkout."""
    package = Path(__file__).resolve().parents[1]
    if not (package.parent / ".git").exists() or not shutil.which("git"):
        return None
    answers = []
    for command in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"]):
        done = subprocess.run(
            ["git", "-C", str(package), *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        if done.returncode:
            return None
        answers.append(done.stdout.strip())
    return answers[0] + ("+" if answers[1] else "")
