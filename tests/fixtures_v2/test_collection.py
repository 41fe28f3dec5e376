"""The artifacts of TensorFlow 2 releases: complete, unchanged, asked in full. No TensorFlow is needed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from compat_matrix.cases import all_cases, read_case
from compat_matrix.cells.generators import all_generators, fixtures_root
from fixtures_v2 import collection
from reference_impl import format
from reference_impl.graph.object_graph import checkpoint_keys
from reference_impl.views.model import inspect
from savedmodel_common import tensors

RELEASES = list(collection.releases())
CAP = 12 << 20  # bytes of everything together; issue 42


def record(folder: Path) -> dict:
    return json.loads((folder / "provenance.json").read_text(encoding="utf-8"))


def artifacts(release: str) -> list[Path]:
    return [collection.artifact(*one) for one in collection.wanted(release)]


def test_every_release_of_the_registry_has_its_set():
    assert collection.problems() == []
    assert len(RELEASES) >= 22 and {"2.0", "2.21"} <= set(RELEASES)
    assert 12 <= len(collection.cases()) <= 20


def test_a_new_release_without_its_set_is_a_problem(monkeypatch):
    newest = collection.releases()[RELEASES[-1]]
    known = {**collection.releases(), "2.99": replace(newest, name="tf2.99", tensorflow="2.99.0")}
    monkeypatch.setattr(collection, "releases", lambda: known)
    (problem,) = collection.problems()
    assert problem.startswith("TensorFlow 2.99 ") and "tf2_concrete_functions" in problem
    assert problem.endswith("Make them: python -m fixtures_v2 add 2.99")


def test_a_missing_artifact_without_a_declared_reason_is_a_problem(monkeypatch):
    monkeypatch.setattr(collection, "absences", tuple)
    problems = collection.problems()
    assert any(line.startswith("TensorFlow 2.0 ") for line in problems)


def test_a_declaration_that_does_not_fit_is_a_problem(monkeypatch):
    wrong = (
        collection.Absence("tf2_module", SpecifierSet("<2.1"), "reason", "error"),
        collection.Absence("tf2_module", SpecifierSet("<2.0"), "reason", "error"),
    )
    declared = collection.absences() + wrong
    monkeypatch.setattr(collection, "absences", lambda: declared)
    assert sorted(line.partition(": ")[0] for line in collection.problems()) == [
        "absent.toml",
        "tf2_module/2.0",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is no list of tables"),
        ("absent = 3", "there is no list of tables"),
        ('[[absent]]\ncase = "tf2_module"', "entry 1 has case; an entry has case, error, reason"),
        (
            '[[absent]]\ncase = "a"\nreleases = "2.0"\nreason = "b"\nerror = "c"',
            "entry 1: Invalid specifier",
        ),
    ],
)
def test_a_broken_table_is_named_with_its_entry(monkeypatch, tmp_path, text, words):
    (tmp_path / "absent.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(collection, "ABSENT", tmp_path / "absent.toml")
    with pytest.raises(ValueError, match=words):
        collection.absences.__wrapped__()


@pytest.mark.parametrize("release", RELEASES)
def test_the_artifacts_of_a_release_are_unchanged(release):
    problems = {str(folder): collection.verify(folder) for folder in artifacts(release)}
    assert {name: lines for name, lines in problems.items() if lines} == {}


@pytest.mark.parametrize("release", RELEASES)
def test_the_provenance_names_the_release_and_its_lock(release):
    stanza = collection.releases()[release]
    for folder in artifacts(release):
        said = record(folder)
        assert said["case"] == folder.parent.name
        assert said["title"] == read_case(folder.parent / "case.py").title
        assert said["producer"]["name"] == "fixture"
        versions = said["producer"]["versions"]
        assert versions["tensorflow"] == stanza.tensorflow
        assert versions["python"].startswith(f"{stanza.python}.")
        assert said["environment"]["lock"] == stanza.lock.name
        assert len(said["environment"]["sha256"]) == 64
        assert said["licence"] == "Apache-2.0"


@pytest.mark.parametrize("release", RELEASES)
def test_every_signature_is_asked_and_answered(release):
    found = artifacts(release)
    assert found
    for folder in found:
        asked = json.loads((folder / "io" / "io.json").read_text(encoding="utf-8"))["requests"]
        meta_graph = format.read(folder / "model").meta_graph("serve")
        keys = {key for key in meta_graph.signature_def if not key.startswith("__saved_model")}
        if folder.parent.name == "tf2_keras_export":
            keys -= {"serve"}  # the same function under the name of its endpoint
        assert {one["signature"] for one in asked if one["kind"] == "signature"} == keys
        for one in asked:
            assert tensors.load(folder / "io" / one["outputs"]), (folder, one["id"])


@pytest.mark.parametrize("release", RELEASES)
def test_files_and_object_graphs_are_read_without_tensorflow(release):
    found = artifacts(release)
    assert found
    for folder in found:
        model = format.read(folder / "model")
        saved = model.meta_graph("serve").object_graph_def
        variables = [
            i for i, node in enumerate(saved.nodes) if node.WhichOneof("kind") == "variable"
        ]
        with model.open_checkpoint() as checkpoint:
            checkpoint.verify_all()
            keys = checkpoint_keys(saved, checkpoint.object_graph())
            assert all(keys[index]["VARIABLE_VALUE"] in checkpoint for index in variables), folder
        shown = inspect(folder / "model").meta_graphs[0]
        assert shown.signatures, folder


def test_the_collection_is_small_and_names_no_machine():
    files = [
        path
        for path in collection.ROOT.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    assert sum(path.stat().st_size for path in files) <= CAP
    for path in files:
        if path.suffix in (".pb", ".json", ".index"):
            data = path.read_bytes()
            assert not [word for word in (b"/tmp/", b"/root/", b"/dev/shm/") if word in data], path


def test_no_case_has_the_name_of_another_case_of_the_matrix():
    taken = {case.name for case in all_cases()}
    taken |= {generator.name for generator in all_generators(fixtures_root())}
    assert taken & set(collection.cases()) == set()


@pytest.fixture
def copied(tmp_path):
    """An artifact that may be damaged, with its case beside it."""
    case = tmp_path / "tf2_tuples"
    shutil.copytree(collection.artifact("tf2_tuples", RELEASES[-1]), case / "2.21")
    shutil.copy(collection.case_file("tf2_tuples"), case)
    return case / "2.21"


def test_changed_missing_and_additional_files_are_found(copied):
    assert collection.verify(copied) == []
    (copied / "model" / "variables" / "variables.index").unlink()
    (copied / "model" / "new.txt").write_text("new")
    (copied / "model" / "saved_model.pb").write_bytes(b"")
    (copied.parent / "case.py").write_text("# nothing\n")
    problems = dict(line.split(": ", 1) for line in collection.verify(copied))
    assert list(problems) == [
        "model/variables/variables.index",
        "model/new.txt",
        "model/saved_model.pb",
        "case.py",
    ]
    assert "missing" in problems["model/variables/variables.index"]
    assert "sha256" in problems["model/saved_model.pb"]


@pytest.mark.parametrize("text", ["", "[]", '{"files": {}}'])
def test_a_broken_provenance_is_reported(copied, text):
    (copied / "provenance.json").write_text(text)
    (problem,) = collection.verify(copied)
    assert problem.startswith("provenance.json: ")
