"""Artifacts of cells: altered, invalid, relocated, produced; with a fake worker for a consumer.

Needs no TensorFlow.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_artifacts import cell, fake_host, saved_model, seal, write_artifact
from fake_runtime import fake_runtime

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.checks import NotProduced, run_cell
from compat_matrix.checks.kinds import relocate as relocate_check
from compat_matrix.checks.produce import produce
from compat_matrix.hosts.host import Host
from compat_matrix.requests.artifact import altered_files


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with fake_host(tmp_path) as host:
        yield host


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda folder: (folder / "model" / "saved_model.pb").write_bytes(saved_model()[:-1]),
            "model/saved_model.pb was changed",
        ),
        (lambda folder: (folder / "io" / "out.npz").unlink(), "io/out.npz is missing"),
        (lambda folder: (folder / "model" / "more").write_text("x"), "model/more is not listed"),
    ],
)
@pytest.mark.parametrize("check", ["load", "values"])
def test_an_artifact_that_was_altered_is_not_asked(
    host: Host, damage: Any, message: str, check: str
) -> None:
    artifact = write_artifact(host.out.parent / "altered", "load=abort")
    damage(artifact)
    seen = run_cell(cell(check, artifact), host, host.out)
    assert seen.outcome is Outcome.FAIL_STRUCTURE
    assert message in seen.message
    assert host.worker("fake", "tf2_worker").generation == 0


@pytest.mark.parametrize(
    ("io", "words"),
    [
        ("{", "io.json: Expecting property name"),
        ('{"schema": 2}', "io.json: not of schema 1"),
        ('{"schema": 1}', "requests"),
        (
            (
                '{"schema": 1, "requests": [{"id": "r", "kind": "signature", "tags": [], "inputs":'
                ' "../x", "outputs": null}]}'
            ),
            "'../x' is not the name",
        ),
        (
            (
                '{"schema": 1, "requests": [{"id": "r", "kind": "dance", "tags": [], "inputs": "x",'
                ' "outputs": null}]}'
            ),
            "unknown kind",
        ),
    ],
)
def test_an_artifact_that_breaks_the_contract_is_our_own_fault(
    host: Host, io: str, words: str
) -> None:
    artifact = write_artifact(host.out.parent / "invalid")
    (artifact / "io" / "io.json").write_text(io)
    seal(artifact)
    seen = run_cell(cell("load", artifact), host, host.out)
    assert seen.outcome is Outcome.SETUP_ERROR
    assert words in seen.message
    assert "io.json" in seen.message


def test_a_model_nobody_can_read_without_tensorflow_fails_the_checks_that_need_it(
    host: Host,
) -> None:
    artifact = write_artifact(host.out.parent / "unreadable")
    (artifact / "model" / "saved_model.pb").write_bytes(b"\xff")
    seal(artifact)
    seen = run_cell(cell("signatures", artifact), host, host.out)
    assert seen.outcome is Outcome.FAIL_STRUCTURE
    assert seen.error_class and seen.error_class.startswith("reference_impl.errors.")
    assert run_cell(cell("values", artifact), host, host.out).outcome is Outcome.PASS


def test_a_relocated_model_has_no_trace_of_its_first_place(tmp_path: Path) -> None:
    artifact = write_artifact(tmp_path / "artifact")
    moved = relocate_check.moved_copy(artifact / "model", tmp_path / "scratch")
    assert (moved / "saved_model.pb").read_bytes() == saved_model()
    assert [
        path
        for path in (tmp_path / "scratch").rglob("saved_model.pb")
        if path != moved / "saved_model.pb"
    ] == []


def test_production_writes_a_complete_artifact(host: Host) -> None:
    made = cell("produce", "artifacts/half/tf2@1.0")
    seen = run_cell(made, host, host.out)
    assert seen.outcome is Outcome.PASS, seen.message
    assert seen.timings["produce"] > 0
    provenance = json.loads((host.out / made.artifact / "provenance.json").read_text())
    assert provenance["producer"] == {"name": "tf2", "versions": seen.versions}
    assert (provenance["case"], provenance["title"]) == (
        "half",
        "A case for a producer that needs no TensorFlow.",
    )
    assert set(provenance["files"]) == {"model/made_by", "io/io.json"}
    assert altered_files(host.out / made.artifact) == []
    assert sorted(path.name for path in (host.out / "artifacts" / "half").iterdir()) == [
        ".tf2@1.0.lock",
        "tf2@1.0",
    ]


def test_a_failed_production_leaves_nothing_and_its_cells_are_not_run(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_PRODUCE", "error")
    made = cell("produce", "artifacts/half/tf2@1.0")
    seen = run_cell(made, host, host.out)
    assert (seen.outcome, seen.error_class) == (Outcome.CALL_ERROR, "OSError")
    assert [path.name for path in (host.out / "artifacts" / "half").iterdir()] == [".tf2@1.0.lock"]
    with pytest.raises(NotProduced, match="no such op"):
        run_cell(cell("load", made.artifact, producer="tf2"), host, host.out)


def test_a_missing_fixture_is_our_own_fault(host: Host) -> None:
    seen = run_cell(cell("load", host.out / "nowhere"), host, host.out)
    assert seen.outcome is Outcome.SETUP_ERROR
    assert "producer fixture" in seen.message


def make_artifact(out: Path, runtime_folder: Path, cases: Path) -> None:
    with Host(out, {"fake": fake_runtime(runtime_folder)}, cases) as host:
        produce(cell("load", "artifacts/half/tf2@1.0", producer="tf2"), host, out, again=False)


def test_two_processes_make_one_artifact(host: Host) -> None:
    """The loser of the race finds it made and leaves it alone."""
    folders = [host.out.parent / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=make_artifact, args=(host.out, folder, host.cases))
        for folder in folders
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert len(list((host.out / "logs").glob("*.stdout"))) == 1  # only one of them started a worker
