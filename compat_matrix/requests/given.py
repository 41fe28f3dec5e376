"""Make an artifact (docs/exporters/artifacts.md, section 1) of a user's SavedModel, with requests
and recorded answers.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

from compat_matrix.cells.plan import ABSENT, is_complete
from compat_matrix.hosts.host import Host
from compat_matrix.requests import questions as asking
from compat_matrix.requests.artifact import ArtifactError, is_recorded, read_artifact, read_document
from compat_matrix.requests.policies import Allowed, OptionError, Policy
from compat_matrix.requests.recorder import ANSWERED_BY, Reader, Recorder, local_readers
from reference_impl.format.container import layout
from savedmodel_common import provenance, staging, tensors

PRODUCER = "given"
QUESTIONS = Path("io") / "io.json"
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
Requests = Union[Path, Mapping[str, Any], None]


@dataclass
class Export:
    """A user's SavedModel. ``requests``: a mapping (questions.from_python), a folder with an
    ``io.json``, or None. ``tags`` and ``stateful`` belong to requests in Python; ``name`` is the
    user's name for the model.
    """

    path: Path
    requests: Requests = None
    tags: Sequence[str] | str | None = None
    stateful: bool = False
    name: str = ""


@dataclass
class Prepared:
    """An artifact, and the problems found while it was made."""

    name: str  # of the export, as its user calls it
    directory: Path  # of the artifact
    problems: list[str] = field(default_factory=list)  # requests that do not fit the export
    left_out: list[str] = field(
        default_factory=list
    )  # signatures and requests that cannot be asked, and why
    refused: Exception | None = (
        None  # why the model cannot be read or taken along; the artifact has none then
    )

    @property
    def answered_by(self) -> dict[str, str]:
        """Return request -> the consumer whose answer was recorded, without requests whose answers
        the exporter recorded.
        """
        return {
            str(r["id"]): str(r[ANSWERED_BY])
            for r in read_artifact(self.directory).requests
            if r.get(ANSWERED_BY)
        }


def as_artifact(
    path: Path, folder: Path, policy: Policy, requests: Path | None = None, host: Host | None = None
) -> Prepared:
    """Make an artifact of the SavedModel at ``path`` in ``folder``, which is emptied, unless it is
    one.

    The local TensorFlow answers, through ``host`` or one that is ended afterwards. Raises as
    :func:`prepare`.
    """
    with Host(folder / "recording") if host is None else nullcontext(host) as shared:
        made = prepare(
            Export(path, requests), policy, folder, lambda _: shared, local_readers(policy)
        )
    made.left_out[:0] = made.problems
    return made


def prepare(
    export: Export,
    policy: Policy,
    folder: Path,
    host: Callable[[str], Host],
    readers: Sequence[Reader],
    taken: set[str] | None = None,
    tolerance: Allowed | None = None,
) -> Prepared:
    """Make the artifact below ``folder``, unless the export already is the requested artifact.

    Args:
      host: gives the host of a runtime by name.
      readers: are asked for answers, in order.
      taken: names of cases; that of this one is added.
      tolerance: of answers, whatever the requests state.

    Raises OptionError, ArtifactError: the requests cannot be read; SavedModelError, Unstageable,
    OSError: there is no SavedModel, or it cannot be taken along.
    """
    taken = set() if taken is None else taken
    name = export.name or str(export.path)
    path = export.path.resolve()
    path = path.parent if path.name == "model" and is_complete(path.parent) else path
    plain = (
        export.requests is None and tolerance is None and policy.beside and policy.make_up is None
    )
    if plain and _is_artifact(path, policy) and (case := _case_of(path)) not in taken:
        taken.add(case)
        return Prepared(name, path)
    model = (
        path / "model"
        if (path / "model").is_dir() and not any((path / name).is_file() for name in layout.FORMATS)
        else path
    )
    found = layout.read(model)
    directory = folder / _free(case_name(path), taken)
    io = lay_out(model, directory)
    source = (
        export.requests if export.requests is not None or not policy.beside else beside(path, model)
    )
    asked, stated = questions_of(export, source, found, directory)
    made_up = (
        policy.make_up
        if policy.make_up is not None
        else int(not asked.questions and not asked.problems)
    )
    questions = [*asked.questions, *asking.invent(found, asked.questions, made_up, policy.instead)]
    recorder = Recorder(found, directory / "model", io, host, policy, bool(stated.get("stateful")))
    gone = recorder.record(questions, readers)
    entries = [
        question.entry for question in questions if not (question in gone or question.is_needless)
    ]
    used = (
        tolerance._asdict() if tolerance else stated.get("tolerance") or policy.tolerance._asdict()
    )
    _write(io, {"schema": 1, "stateful": recorder.stateful, "tolerance": used, "requests": entries})
    sign(directory, found, f"the SavedModel at {name}", f"savedmodel-compat check {name}")
    return Prepared(
        name, directory, asked.problems, asking.left_out(gone) + asking.unasked(found, questions)
    )


def unreadable(export: Export, folder: Path, taken: set[str], error: Exception) -> Prepared:
    """Make an artifact below ``folder`` that stands for a model which cannot be read or taken
    along: it has no model.
    """
    name = export.name or str(export.path)
    directory = folder / _free(case_name(export.path), taken)
    io = directory / "io"
    io.mkdir(parents=True)
    _write(io, {"schema": 1, "stateful": False, "tolerance": None, "requests": []})
    sign(
        directory,
        None,
        f"the SavedModel at {name}, which cannot be read",
        f"savedmodel-compat check {name}",
    )
    return Prepared(name, directory, refused=error)


def lay_out(model: Path, artifact: Path) -> Path:
    """Begin an artifact in place of whatever is there; returns its folder ``io``, empty.

    Raises Unstageable.
    """
    shutil.rmtree(artifact, ignore_errors=True)
    io = artifact / "io"
    io.mkdir(parents=True)
    staging.place(model, artifact / "model")
    return io


def sign(artifact: Path, found: layout.Layout | None, title: str, command: str) -> None:
    """Complete an artifact of a model that somebody gave: its provenance."""
    provenance.write(
        artifact,
        case=artifact.name,
        title=title,
        clauses=(),
        features=(),
        producer={
            "name": PRODUCER,
            "versions": {"tensorflow": written_by(found) if found else ABSENT},
        },
        generator=artifact / "io" / "io.json",
        environment={"runtime": "", "platform": ""},
        command=command,
    )


def copied(
    artifact: Path, io: Path, document: dict[str, Any], model: layout.Layout, title: str
) -> None:
    """Complete an artifact: the requests of ``document``, whose tensors lie in the folder ``io``,
    and the provenance.
    """
    (artifact / "io").mkdir(parents=True, exist_ok=True)
    for name in sorted(_files_of(document)):
        shutil.copyfile(io / name, artifact / "io" / name)
    (artifact / "io" / "io.json").write_text(
        json.dumps(document, indent=1) + "\n", encoding="utf-8"
    )
    sign(artifact, model, title, "")


def _files_of(document: Mapping[str, Any]) -> set[str]:
    """Return the files of tensors that an ``io.json`` names."""
    files: set[str] = set()
    for request in document["requests"]:
        sides = (request.get(side) for side in ("inputs", "outputs", "gradients"))
        files.update(file for file in sides if file)
    return files


def written_by(found: layout.Layout) -> str:
    """Return the TensorFlow version that a model names as its writer, as a segment of a cell id."""
    versions = {
        graph.meta_info_def.tensorflow_version for graph in found.saved_model.meta_graphs
    } - {""}
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", max(versions, default="")) or ABSENT


def case_name(path: Path) -> str:
    """Return the name of the directory, or of its parent if the name is just "model" or a version
    number.
    """
    name = path.resolve().name
    name = path.resolve().parent.name if name.isdigit() or name == "model" else name
    return _UNSAFE.sub("_", name).strip("_") or "model"


def _is_artifact(path: Path, policy: Policy) -> bool:
    """Return whether a folder is an artifact whose answers need not be recorded."""
    if not (is_complete(path) and (path / "model").is_dir()):
        return False
    return policy.keeps_unanswered or all(map(is_recorded, read_artifact(path).requests))


def _case_of(artifact: Path) -> str:
    """Return the name of an artifact in a plan; any name if its provenance cannot be read, since
    the plan refuses it.
    """
    try:
        return str(read_document(artifact / "provenance.json")["case"])
    except (ArtifactError, KeyError):
        return artifact.name


def beside(path: Path, model: Path) -> Path | None:
    """Return the folder of requests that lies in the directory named, or beside that of the model;
    None where there is none.
    """
    for folder in (path, model.parent):
        if (folder / QUESTIONS).is_file():
            return folder / "io"
    return None


def questions_of(
    export: Export, source: Requests, found: layout.Layout, directory: Path
) -> tuple[asking.Asked, dict[str, Any]]:
    """Return the questions of ``source``, and what else their ``io.json`` states; their tensors go
    to ``directory/io``.

    Raises OptionError, ArtifactError: they cannot be read.
    """
    io = directory / "io"
    if source is None:
        return asking.Asked(), {}
    if not isinstance(source, Path):
        tags = asking.chosen_tags(found, export.tags)
        return asking.from_python(source, found, tags, io), {"stateful": export.stateful}
    source = source.parent if source.is_file() else source
    if not (source / "io.json").is_file():
        raise OptionError(f"{source} holds no io.json (docs/exporters/artifacts.md, section 1)")
    shutil.copytree(source, io, dirs_exist_ok=True)
    artifact = read_artifact(directory)
    document = read_document(io / "io.json")
    try:
        for file in (io / name for name in _files_of(document)):
            if tensors.is_plain(file):  # workers read only files that state their dtypes
                tensors.save(file, tensors.load(file, plain=True))
        return asking.from_artifact(artifact, found), document
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{source}: {error}") from error


def _write(io: Path, document: dict[str, Any]) -> None:
    """Write ``io.json``, and remove files beside it that it does not name."""
    named = {*_files_of(document), "io.json"}
    (io / "io.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    for path in io.iterdir():
        if path.name not in named:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    taken.add(free)
    return free
