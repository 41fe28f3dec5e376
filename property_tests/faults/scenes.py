"""The sound files that faults are planted in: each scene fills an empty folder, once, and is copied
for every fault.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compat_matrix.cases import CASES_DIR
from savedmodel_common import provenance, tensors
from savedmodel_standin import executable

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "support"))
import faulty_tensorflow  # noqa: E402

CASES = Path(__file__).with_name("scene_cases")
WORKER = Path(__file__).parent / "programs" / "planted_worker.py"
SAMPLE = Path(__file__).parent / "programs" / "wrong_sample.py"


@dataclass(frozen=True)
class Scene:
    """``fill`` makes the files in an empty folder, where the commands run."""

    name: str
    fill: Callable[[Path], None]


def savedmodel_compat(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user does, in the folder of a scene.

    Its folder ``site`` comes first on the path of Python.
    """
    path = os.pathsep.join(map(str, (folder / "site", ROOT)))
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        # `python` in a command is the Python of this environment.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PLANTED": str(folder / "fault"),
        "COLUMNS": "200",
    }
    environment.pop("PYTEST_ADDOPTS", None)
    words = [sys.executable, "-m", "savedmodel_compat", *shlex.split(command)]
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False
    )


def stamp(artifact: Path, **more: str) -> None:
    """Make the provenance, if there is one, list the files as they are: whoever made the artifact
    made it so.
    """
    path = artifact / "provenance.json"
    if path.exists():
        facts = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(
            json.dumps({**facts, **more, "files": provenance.hash_files(str(artifact))}),
            encoding="utf-8",
        )


def _expect(folder: Path, command: str, code: int = 0) -> None:
    done = savedmodel_compat(folder, command)
    assert done.returncode == code, f"{command}: {done.stdout}{done.stderr}"


def _tools(folder: Path) -> None:
    """What the commands of all scenes name: programs of consumers, a ledger."""
    (folder / "planted.py").symlink_to(WORKER)
    (folder / "sample.py").symlink_to(SAMPLE)
    (folder / "fault").write_text("")
    (folder / "ledger.toml").write_text("schema = 1\n")


def _case(folder: Path, name: str, cases: Path = CASES) -> None:
    """``artifacts/NAME`` as the TensorFlow here writes it, and ``original``, a copy of its model,
    with a contract.
    """
    _tools(folder)
    (folder / "cases").mkdir()
    shutil.copy(cases / f"{name}.py", folder / "cases")
    _expect(folder, "matrix run --out made -n 1 --cases-dir cases --producer tf2 --check produce")
    (made,) = (folder / "made" / "artifacts" / name).glob("tf2@*")
    shutil.copytree(made, folder / "artifacts" / name)
    shutil.copytree(made / "model", folder / "original")
    _expect(folder, "contract write original --answers")
    shutil.rmtree(folder / "made")


def _fixture(folder: Path, name: str) -> None:
    """``artifacts/NAME``, made by a TensorFlow 1.x, and ``original``, a copy of its model."""
    _tools(folder)
    shutil.copytree(ROOT / "fixtures_v1" / name, folder / "artifacts" / name)
    shutil.copytree(folder / "artifacts" / name / "model", folder / "original")
    _expect(folder, "contract write original")


def _predictor(folder: Path) -> None:
    """As the fixture half_plus_two, with the requests that the sample consumer of
    docs/exporters/plugins.md answers.
    """
    _tools(folder)
    artifact = folder / "artifacts" / "predictor"
    shutil.copytree(ROOT / "fixtures_v1" / "half_plus_two", artifact)
    path = artifact / "io" / "io.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    facts["requests"] = [
        request for request in facts["requests"] if request["signature"] == "serving_default"
    ]
    path.write_text(json.dumps(facts), encoding="utf-8")
    stamp(artifact, case="predictor")


RUN = "matrix run --out {} -n 1 --fixtures artifacts --consumer c_api --expectations ledger.toml"


TOLERANT_RUN = (
    'matrix run --out {} -n 1 --fixtures artifacts --check values --consumer "planted=python'
    ' planted.py"'
)


def _runs(folder: Path) -> None:
    """The folders of two runs, ``run`` and ``other``."""
    _predictor(folder)
    _expect(folder, RUN.format("run"))
    _expect(folder, RUN.format("other"))


def _tolerant_runs(folder: Path) -> None:
    """The folders of two runs about answers that have a tolerance."""
    _case(folder, "subject")
    for name in ("run", "other"):
        _expect(folder, TOLERANT_RUN.format(name))


def _failed_run(folder: Path) -> None:
    """The folder of a run in which the answers differ from the recorded ones."""
    _predictor(folder)
    for path in (folder / "artifacts" / "predictor" / "io").glob("serving_default-*.out.npz"):
        answer = tensors.load(str(path))
        answer["y"].array[...] += 1
        path.unlink()
        tensors.save(str(path), answer)
    stamp(folder / "artifacts" / "predictor")
    _expect(folder, RUN.format("run"), 1)


def _served(folder: Path) -> None:
    """``server``, the stand-in for TensorFlow Serving, beside an artifact."""
    _predictor(folder)
    executable.write(folder / "server", sys.executable)


def _two_runtimes(folder: Path) -> None:
    """``other``, a copy of the environment with the TensorFlow here, whose version may be
    edited.
    """
    _predictor(folder)
    faulty_tensorflow.copy(
        folder / "other", {"python/framework/versions.py": lambda text: text + "\n"}
    )


EXTENDED_MODEL = """
import tensorflow as tf

import reference_impl

root = tf.Module()
root.v = reference_impl.initializer(tf.Variable([1.0, 2.0]), lambda: tf.constant([1.0, 2.0]))
root.f = tf.function(lambda x: x + root.v, input_signature=[tf.TensorSpec([2], tf.float32)])
options = reference_impl.SaveOptions(function_aliases={"add": root.f})
reference_impl.save(root, "artifacts/extended/model", signatures=root.f, options=options)
"""


def _extended(folder: Path) -> None:
    """A model with what only an option asks for: a function's alias, an initial value."""
    _tools(folder)
    (folder / "artifacts" / "extended").mkdir(parents=True)
    (folder / "write.py").write_text(EXTENDED_MODEL)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "write.py"], cwd=folder, env=environment, capture_output=True, check=True
    )
    shutil.copytree(folder / "artifacts" / "extended" / "model", folder / "original")


def _case_scene(name: str) -> Scene:
    return Scene(name, lambda folder: _case(folder, name))


def _fixture_scene(name: str) -> Scene:
    return Scene(name, lambda folder: _fixture(folder, name))


PREDICTOR = Scene("predictor", _predictor)
TOLERANT_RUNS = Scene("tolerant_runs", _tolerant_runs)
RUNS, FAILED_RUN = Scene("runs", _runs), Scene("failed_run", _failed_run)
SERVED, TWO_RUNTIMES = Scene("served", _served), Scene("two_runtimes", _two_runtimes)
EXTENDED = Scene("extended", _extended)
ADAM = Scene("optimizer_v1_adam", lambda folder: _case(folder, "optimizer_v1_adam", CASES_DIR))
SUBJECT, COUNTER = _case_scene("subject"), _case_scene("counter")
HALF_PLUS_TWO, TABLE, TWO_GRAPHS = map(
    _fixture_scene, ("half_plus_two", "hash_table_v2", "serve_and_train")
)
