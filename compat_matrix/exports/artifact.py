"""An export and what is asked of it, as an artifact (docs/contracts.md, section 1): what every check takes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

from compat_matrix.cells.plan import is_complete
from compat_matrix.checks.artifact import Artifact, ArtifactError, read_artifact
from compat_matrix.exports import questions as asking
from compat_matrix.exports.options import OptionError, Options
from compat_matrix.exports.recording import ANSWERED_BY, Reader, Recorder
from compat_matrix.hosts.host import Host
from compat_matrix.models.find import FORMATS
from compat_matrix.plan.planning import fixture_artifact
from compat_matrix.requests import given
from compat_matrix.requests.tolerances import ACROSS_LOADERS, ACROSS_SERVERS
from compat_matrix.runtimes.runtime import INSTALL
from reference_impl.format.container import layout

QUESTIONS = Path("io") / "io.json"
Requests = Union[Path, Mapping[str, Any], None]


@dataclass
class Export:
    """A SavedModel somebody wrote. ``requests``: a mapping (questions.from_python), a folder with an ``io.json``, or None.

    ``tags`` and ``stateful`` are of requests in Python; ``name`` is what its user calls it.
    """

    path: Path
    requests: Requests = None
    tags: Sequence[str] | str | None = None
    stateful: bool = False
    name: str = ""


@dataclass
class Prepared:
    """An artifact, and what came up while it was made.

    Attributes:
      name: of the export, as its user calls it.
      directory: of the artifact.
      problems: requests that do not fit the export.
      left_out: signatures and requests that cannot be asked, and why.
    """

    name: str
    directory: Path
    problems: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def answered_by(self) -> dict[str, str]:
        """Request -> the consumer whose answer is taken for the recorded one; those the exporter recorded are not in it."""
        return {str(r["id"]): str(r[ANSWERED_BY]) for r in read_artifact(self.directory).requests if r.get(ANSWERED_BY)}


def prepare(
    export: Export, options: Options, folder: Path, host: Callable[[str], Host], readers: Sequence[Reader], taken: set[str]
) -> Prepared:
    """Make the artifact below ``folder``, unless the export is one and nothing else is asked of it.

    Args:
      taken: names of cases; that of this one is added.

    Raises:
      OptionError, ArtifactError: the requests are none. PlanError: the artifact is none.
      SavedModelError, Unstageable, OSError: there is no SavedModel, or it cannot be taken along.
    """
    name = export.name or str(export.path)
    path = export.path.resolve()
    path = path.parent if path.name == "model" and is_complete(path.parent) else path
    plain = export.requests is None and options.tolerance is None and options.make_up is None
    if is_complete(path) and (path / "model").is_dir() and plain and (case := fixture_artifact(path).case) not in taken:
        taken.add(case)
        return Prepared(name, path)
    model = path / "model" if (path / "model").is_dir() and not any((path / name).is_file() for name in FORMATS) else path
    found = layout.read(model)
    directory = folder / _free(given.case_name(path), taken)
    io = given.lay_out(model, directory)
    asked, stated = _asked(export, _beside(path, model), found, directory, io)
    made_up = options.make_up if options.make_up is not None else int(not asked.questions and not asked.problems)
    questions = [*asked.questions, *asking.invent(found, asked.questions, made_up)]
    recorder = Recorder(directory, host, options.limit, bool(stated.get("stateful")))
    gone = recorder.record(questions, readers)
    left_out = _reasons(gone)
    kept = [question for question in questions if question not in gone]
    left_out += [f"{text}: no request asks it" for text in asking.unasked(found, questions)]
    entries = [question.entry for question in kept]
    usual = ACROSS_SERVERS if options.servers_only else ACROSS_LOADERS
    tolerance = options.tolerance._asdict() if options.tolerance else stated.get("tolerance") or usual._asdict()
    document = {"schema": 1, "stateful": recorder.stateful, "tolerance": tolerance, "requests": entries}
    _write(io, document)
    given.sign(directory, found, f"the SavedModel at {name}", f"savedmodel-compat check {name}")
    return Prepared(name, directory, asked.problems, left_out)


def _beside(path: Path, model: Path) -> Path | None:
    """The folder of requests that lies in the directory named, or beside the one called ``model``."""
    for folder in (path, model.parent if model.name == "model" else path):
        if (folder / QUESTIONS).is_file():
            return folder / "io"
    return None


def _asked(
    export: Export, beside: Path | None, found: layout.Layout, directory: Path, io: Path
) -> tuple[asking.Asked, dict[str, Any]]:
    """The questions that are given, and what else their ``io.json`` states."""
    if export.requests is not None and not isinstance(export.requests, Path):
        tags = asking.chosen_tags(found, export.tags)
        return asking.from_python(export.requests, found, tags, io), {"stateful": export.stateful}
    source = export.requests or beside
    if source is None:
        return asking.Asked(), {}
    source = source.parent if source.is_file() else source
    if not (source / "io.json").is_file():
        raise OptionError(f"{source} holds no io.json (docs/contracts.md, section 1)")
    shutil.copytree(source, io, dirs_exist_ok=True)
    artifact: Artifact = read_artifact(directory)
    document = json.loads((io / "io.json").read_text(encoding="utf-8"))
    try:
        return asking.from_artifact(artifact, found), document
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{source}: {error}") from error


def _write(io: Path, document: dict[str, Any]) -> None:
    """``io.json``, and nothing beside it that it does not name."""
    named = {request[side] for request in document["requests"] for side in ("inputs", "outputs")} | {"io.json"}
    (io / "io.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    for path in io.iterdir():
        if path.name not in named:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _reasons(questions: Sequence[asking.Question]) -> list[str]:
    """Why each cannot be asked; those of one reason in one sentence."""
    found: dict[str, list[str]] = {}
    for question in questions:
        shown = question.reasons[-1] if question.reasons else f"no TensorFlow is here to ask: {INSTALL}"
        made = "what was made up for it is not answered" if question.candidates else "not compared"
        found.setdefault(f"{made} ({shown})", []).append(repr(question.target[1]))
    return [f"{', '.join(dict.fromkeys(names))}: {reason}" for reason, names in found.items()]


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    taken.add(free)
    return free
