"""One defect, five judges: `verify`, `compat`, `check`, `migrate` and the loaders themselves do not
contradict each other.

Each model has one of the defects of `planted_facts`, in one of its signatures.
"""

import json
import subprocess
import sys
from pathlib import PurePath

import pytest
from click.testing import CliRunner
from planted_facts import FACTS

import reference_impl
from reference_impl.errors import SavedModelError
from savedmodel_compat.cli import main
from savedmodel_tools.skew.history import history

tf = pytest.importorskip("tensorflow")

pytestmark = pytest.mark.tensorflow
CORRECTED = "other promised shape"
CONSUMERS = {"session": "v1_session", "c++": "c_api", "objects": "tf2"}


@pytest.fixture(scope="module")
def release():
    newest = history().releases[-1].name
    if not tf.__version__.startswith(f"{newest}."):
        pytest.skip(f"the op history ends with TensorFlow {newest}, this is {tf.__version__}")
    return newest


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("facts")
    paths = {}
    for fact, (make, _, _) in FACTS.items():
        paths[fact] = folder / fact.replace(",", "").replace(" ", "_")
        make(paths[fact])
    return paths


def answer(*arguments):
    done = CliRunner().invoke(main, [*map(str, arguments), "--json"])
    return json.loads(done.stdout), done.exit_code


@pytest.fixture(scope="module")
def verified(models):
    found, code = answer("verify", *models.values())
    assert code == 1
    return dict(zip(models, [model["findings"] for model in found["models"]]))


@pytest.fixture(scope="module")
def foretold(models, release):
    """Fact -> whether `compat` passes it, and (loader, part) -> whether it works; None: not
    told.
    """
    found, _ = answer("compat", "--target", release, *models.values())
    answers = {}
    for fact, model in zip(models, found["models"]):
        (graph,) = model["meta_graphs"]
        parts = {}
        for use in graph["uses"]:
            works = bool(use["releases"])
            parts[use["loader"], use["part"]] = None if works and use.get("unknown") else works
        answers[fact] = model["ok"], parts
    return answers


@pytest.fixture(scope="module")
def checked(models, tmp_path_factory):
    """Fact -> (consumer, check) -> outcome and message."""
    out = tmp_path_factory.mktemp("checked")
    names = ",".join([*CONSUMERS.values(), "reference"])
    found, code = answer("check", *models.values(), "--consumer", names, "--out", out / "out")
    assert code == 1
    folders = {path.name: fact for fact, path in models.items()}
    outcomes = {fact: {} for fact in models}
    for cell in found["cells"]:
        case, _, consumer, check = cell["cell"].split("/")
        outcomes[folders[case]][consumer.partition("@")[0], check] = (
            cell["outcome"],
            cell["message"],
        )
    return outcomes


@pytest.mark.parametrize("fact", FACTS)
def test_verify_has_an_error_and_compat_does_not_pass_the_model(fact, verified, foretold):
    _, key, rule = FACTS[fact]
    assert [(item["rule"], item["severity"]) for item in verified[fact]] == [(rule, "error")]
    passes, parts = foretold[fact]
    assert not passes
    assert any(not works for (_, part), works in parts.items() if part == f"signature {key}")


@pytest.mark.parametrize("fact", FACTS)
def test_what_compat_says_of_loading_is_what_the_loaders_do(fact, foretold, checked):
    _, parts = foretold[fact]
    for loader, consumer in CONSUMERS.items():
        outcome, message = checked[fact][consumer, "load"]
        assert parts[loader, "load"] is (outcome == "PASS"), (loader, outcome, message)


@pytest.mark.parametrize("fact", FACTS)
def test_check_is_red_for_what_verify_calls_an_error(fact, checked):
    outcome, message = checked[fact]["format", "verify"]
    assert outcome == "FAIL_STRUCTURE", message


@pytest.mark.parametrize("fact", ["other promised dtype", "other promised shape"])
def test_every_consumer_that_answers_is_held_to_the_promise(fact, checked):
    answered = 0
    for consumer in ("v1_session", "c_api", "reference"):
        outcome, message = checked[fact][consumer, "values"]
        assert outcome == "FAIL_SIGNATURE" and "promises" in message, (consumer, outcome, message)
        answered += 1
    assert answered == 3


CALLS = """
import json, os, sys
import numpy as np
import tensorflow as tf


def zeros(spec, dtype):
    shape = [2] if spec.rank is None else [size or 2 for size in spec.as_list()]
    return np.zeros(shape, dtype.as_numpy_dtype)


def by_objects(path, key):
    function = tf.saved_model.load(path).signatures[key]
    inputs = function.structured_input_signature[1]
    return function(**{name: tf.constant(zeros(spec.shape, spec.dtype)) for name, spec in inputs.items()})


def by_session(path, key):
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        signature = tf.compat.v1.saved_model.load(session, ["serve"], path).signature_def[key]
        given = [session.graph.get_tensor_by_name(info.name) for info in signature.inputs.values()]
        feeds = {tensor: zeros(tensor.shape, tensor.dtype) for tensor in given}
        return session.run({name: info.name for name, info in signature.outputs.items()}, feeds)


answered = {}
for fact, (path, key) in json.load(sys.stdin).items():
    for loader, call in (("objects", by_objects), ("session", by_session)):
        try:
            answered[f"{fact}|{loader}"] = sorted(name for name, value in call(path, key).items() if value is not None)
        except Exception as error:
            answered[f"{fact}|{loader}"] = f"{type(error).__name__}: {error}"[:200]
print(json.dumps(answered))
"""


@pytest.fixture(scope="module")
def called(models):
    """(fact, loader) -> the outputs of a call of the signature, or the error, in a process that
    knows no Python function.
    """
    asked = {fact: (str(path), FACTS[fact][1]) for fact, path in models.items()}
    done = subprocess.run(
        [sys.executable, "-c", CALLS],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        tuple(name.split("|")): found
        for name, found in json.loads(done.stdout.splitlines()[-1]).items()
    }


@pytest.mark.parametrize("fact", FACTS)
@pytest.mark.parametrize("loader", ["objects", "session"])
def test_what_compat_says_of_a_signature_is_what_a_call_does(fact, loader, foretold, called):
    works = foretold[fact][1].get((loader, f"signature {FACTS[fact][1]}"))
    answered = called[fact, loader]
    assert works is None or works is isinstance(answered, list), answered


@pytest.mark.parametrize("fact", FACTS)
def test_reference_impl_calls_no_signature_that_compat_calls_broken_everywhere(
    fact, models, foretold
):
    """It may load what TensorFlow refuses; a signature that no loader can call it cannot call
    either.
    """
    key, parts = FACTS[fact][1], foretold[fact][1]
    loads = [parts[loader, "load"] for loader in CONSUMERS]
    dead = all(parts.get((loader, f"signature {key}")) is False for loader in CONSUMERS) and any(
        loads
    )
    refused = None
    try:
        function = reference_impl.load(models[fact]).signatures[key]
        inputs = function.structured_input_signature[1]
        function(**{name: tf.zeros([2], spec.dtype) for name, spec in inputs.items()})
    except (SavedModelError, ValueError, KeyError, tf.errors.OpError) as error:
        refused = error
    assert refused is not None or not dead


def test_migrate_proves_no_signature_that_compat_calls_broken(models, foretold, tmp_path):
    """What it calls proved was asked; a signature that neither session nor objects can call is told
    as not asked. A false shape is corrected in the new model, which `compat` then passes.
    """
    out = tmp_path / "out"
    found, _ = answer("migrate", *models.values(), "--out", out)
    folders = {path.name: fact for fact, path in models.items()}
    broken = set()
    for model in found["models"]:
        fact = folders[PurePath(model["relative"]).name]
        key, parts = FACTS[fact][1], foretold[fact][1]
        if not any(parts.get((loader, f"signature {key}")) for loader in CONSUMERS):
            broken.add(fact)
            proved = [part for part in model["parts"] if good(part) and key in part["asked"]]
            if fact == CORRECTED:
                (part,) = proved
                assert any(repr(key) in note and "SignatureDef" in note for note in part["notes"])
                (new,) = answer("compat", out / "models" / model["relative"])[0]["models"]
                assert new["ok"], new
            else:
                assert not proved, model
    assert len(found["models"]) == len(FACTS) and len(broken) > len(FACTS) // 2


def good(part):
    return part["status"] in ("migrated", "copied", "repaired", "wrapped")
