"""`prove` raises no alarm over the fixtures that tf2onnx and TensorFlow Lite convert.

It takes minutes (tox -e prove).
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from prove_environments import MAKE, interpreter

import fixtures_v1
import fixtures_v2
from reference_impl.errors import SavedModelError
from reference_impl.format.container import layout
from savedmodel_prove import proof, questions
from savedmodel_prove.questions import NoQuestion
from savedmodel_prove.sides.side import SideError
from savedmodel_prove.verdicts import Kind

TAGS = ("serve",)
NEWEST = "2.21"  # of fixtures_v2, each case of which every release wrote
MOST_SIGNATURES = 3  # of one model
LOCKS = {".onnx": "onnx.txt", ".tflite": "tensorflow.txt"}
# Defects of a converter that `prove` finds: TensorFlow Lite's turns infinite constants into the
# largest float32 (first at node extremes).
DEFECTS = {".onnx": [], ".tflite": [("pbtxt", "serving_default", ["extremes"])]}
LEAST_COMPARED = {".onnx": 60, ".tflite": 40}


def models():
    """The models of the fixtures that have the tag serve."""
    first = sorted(Path(fixtures_v1.__file__).parent.glob("*/model"))
    second = sorted(Path(fixtures_v2.__file__).parent.glob(f"*/{NEWEST}/model"))
    for path in [*first, *second]:
        try:
            found = layout.read(path)
        except SavedModelError:
            continue
        if frozenset(TAGS) in found.tag_sets:
            yield found


@pytest.fixture(params=LOCKS)
def converted(request, tmp_path_factory):
    """The suffix of a format, the Python of its runtime, and the signatures with their files."""
    if not os.environ.get(MAKE):
        pytest.skip("it takes minutes; tox -e prove runs it")
    suffix = request.param
    python, folder = interpreter(LOCKS[suffix]), tmp_path_factory.mktemp("converted")
    targets = {}
    for number, found in enumerate(models()):
        keys = sorted(found.meta_graph(TAGS).signature_def)
        for key in [key for key in keys if not key.startswith("__")][:MOST_SIGNATURES]:
            path = folder / f"{number}-{len(targets)}{suffix}"
            targets[path] = questions.target_of(found, TAGS, key)
    jobs = [
        [str(target.found.directory), target.key, str(path)] for path, target in targets.items()
    ]
    (folder / "jobs.json").write_text(json.dumps(jobs))
    script = Path(__file__).with_name("convert_fixtures.py")
    command = [str(python), str(script), str(folder / "jobs.json")]
    subprocess.run(command, check=True, capture_output=True)
    return suffix, python, {path: one for path, one in targets.items() if path.exists()}


def test_no_false_alarm(converted, tmp_path):
    suffix, python, targets = converted
    compared, alarms = 0, []
    for path, target in targets.items():
        folder = tmp_path / path.stem
        try:
            sides = proof.open_sides(target, path, folder, python, use_tensorflow=False)
        except SideError:
            continue
        try:
            found = proof.prove(target, path, sides, seed=0, count=2, beside=tmp_path)
        except NoQuestion:
            continue
        finally:
            sides.close()
        kinds = {verdict.kind for verdict in found.verdicts}
        compared += bool(kinds & {Kind.EQUAL, Kind.WITHIN})
        if Kind.DIFFERS in kinds:
            differing = [one.output for one in found.verdicts if one.kind is Kind.DIFFERS]
            alarms.append((target.found.directory.parent.name, target.key, differing))
    assert alarms == DEFECTS[suffix]
    assert compared >= LEAST_COMPARED[suffix]
