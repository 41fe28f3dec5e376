"""`python -m fixtures_v2`: what it says of wrong names, and what it does with artifacts that differ."""

from __future__ import annotations

import shutil

import pytest
from click.testing import CliRunner
from packaging.specifiers import SpecifierSet

import fixtures_v1
from compat_matrix.runtimes.places import RuntimeTrouble
from compat_matrix.runtimes.runtime import local_runtime
from fixtures_v2 import __main__ as command
from fixtures_v2 import collection, making

CASE = "tf2_tuples"


def run(*arguments: str):
    return CliRunner().invoke(command.main, arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Say one of add, --check and --verify."),
        (("2.21",), "Say one of add, --check and --verify."),
        (("add", "2.21", "--check"), "Say one of add, --check and --verify."),
        (("add",), "Name a release."),
        (("add", CASE), "Name a release."),
        (("--verify", "2.99", "no_such_case"), "No such case or release: 2.99, no_such_case."),
    ],
)
def test_a_wrong_use_is_refused(arguments, words):
    done = run(*arguments)
    assert (done.exit_code, done.stderr.startswith(words)) == (64, True), done.output


def test_verify_needs_no_environment_and_counts_artifacts():
    done = run("--verify", CASE, "2.20", "2.21")
    assert done.exit_code == 0 and done.output.startswith("3 of 3 ")


def test_without_names_the_artifacts_of_tensorflow_1_are_meant_too():
    done = run("--verify")
    assert done.exit_code == 0
    count = len(fixtures_v1.cases())
    assert done.output.splitlines()[-1].startswith(f"{count} of {count} cases ")


def test_a_damaged_artifact_is_named(copied):
    (copied / "2.21" / "model" / "saved_model.pb").write_bytes(b"")
    done = run("--verify", CASE, "2.21")
    assert done.exit_code == 1
    assert f"{CASE}/2.21: model/saved_model.pb: sha256 differs from provenance.json" in done.output


def test_a_runtime_that_cannot_be_had_ends_with_4(monkeypatch):
    def refuse(spec, report):
        raise RuntimeTrouble(f"{spec} cannot be installed")

    monkeypatch.setattr(making, "provide", refuse)
    done = run("--check", CASE, "2.4")
    assert (done.exit_code, done.stderr) == (4, "environment: tf2.4 cannot be installed\n")


def test_a_broken_table_of_absences_is_named(monkeypatch):
    def broken():
        raise collection.TableError("absent.toml: entry 3 has nothing")

    monkeypatch.setattr(collection, "absences", broken)
    done = run("--verify", CASE, "2.21")
    assert (done.exit_code, done.stderr) == (64, "absent.toml: entry 3 has nothing\n")


@pytest.fixture
def copied(monkeypatch, tmp_path):
    """A collection of one case, which may be damaged."""
    shutil.copytree(collection.ROOT / CASE, tmp_path / CASE)
    monkeypatch.setattr(collection, "ROOT", tmp_path)
    declared = tuple(one for one in collection.absences() if one.case == CASE)
    monkeypatch.setattr(collection, "absences", lambda: declared)
    return tmp_path / CASE


@pytest.fixture
def here(monkeypatch, copied):
    """The TensorFlow of the tests, in place of the runtime of the newest release."""
    monkeypatch.setattr(making, "provide", lambda spec, report: local_runtime())
    if not str(local_runtime().tensorflow_version).startswith("2.21."):
        pytest.skip("the artifacts are those of TensorFlow 2.21")
    return copied / "2.21"


@pytest.mark.tensorflow
def test_an_added_artifact_is_whole_and_means_the_same_as_the_committed_one(here):
    committed = (here / "provenance.json").read_text()
    shutil.rmtree(here)
    assert run("--verify", CASE, here.name).exit_code == 1
    done = run("add", here.name, CASE)
    assert done.exit_code == 0 and done.stdout.startswith("1 of 1 ")
    assert done.stderr == "2.21: 1 cases\n"
    assert collection.verify(here) == []
    assert "fixtures_v2 add" in (here / "provenance.json").read_text() != committed


@pytest.mark.tensorflow
def test_check_tells_what_differs_and_changes_nothing(here):
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    case = here.parent / "case.py"
    case.write_text(case.read_text().replace("tf.Variable(3.0)", "tf.Variable(4.0)"))
    done = run("--check", here.name, CASE)
    assert done.exit_code == 1
    told = done.output
    assert "case.py: changed" in told
    assert (
        "model/variables/variables.index: pair/1/v/.ATTRIBUTES/VARIABLE_VALUE: 1 of 1 values differ"
        in told
    )
    assert "io/serving_default-0.out.npz: y: 1 of 1 values differ" in told
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("division", None),
        ("something else", "fails otherwise than absent.toml says ('something else')"),
        (None, f"{CASE} cannot be made: "),
    ],
)
def test_a_case_that_fails_must_be_declared_with_its_error(here, monkeypatch, error, words):
    (here.parent / "case.py").write_text(
        '"""A title of a case."""\n\n\ndef build(tf, work):\n    return 1 / 0\n\n\ndef requests(np):\n    return []\n'
    )
    declared = (collection.Absence(CASE, SpecifierSet(">=2.0"), "reason", error),) if error else ()
    monkeypatch.setattr(collection, "absences", lambda: declared)
    made = making.add(here.name, [CASE], print)
    if words is None:
        assert made == {CASE: []}
    else:
        (line,) = made[CASE]
        assert words in line and "division by zero" in line


@pytest.mark.tensorflow
def test_a_declared_absence_that_is_none_is_a_problem(here, monkeypatch):
    declared = (collection.Absence(CASE, SpecifierSet(">=2.0"), "reason", "error"),)
    monkeypatch.setattr(collection, "absences", lambda: declared)
    made = making.check(here.name, [CASE], print)
    assert list(made) == [CASE] and "TensorFlow 2.21 " in made[CASE][0]
