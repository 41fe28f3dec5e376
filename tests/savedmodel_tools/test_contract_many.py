"""``contract`` of models that are many, or not on this machine."""

from __future__ import annotations

import json

import model_edits
import pytest
from click.testing import CliRunner

from savedmodel_compat.cli import main

CASE = "half_plus_two"


def run(*arguments):
    done = CliRunner().invoke(main, ["contract", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done


def drop_signature(message):
    message.meta_graphs[0].signature_def.pop("serving_default")


@pytest.fixture
def remote():
    """A model in an in-memory file system of fsspec, under two URLs: as it is, and without a
    signature.
    """
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed (extra dev)")
    memory = fsspec.filesystem("memory")
    yield lambda name, folder: memory.pipe(
        {
            f"/frozen/{name}/{path.relative_to(folder)}": path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
    )
    memory.rm("/frozen", recursive=True)


def test_a_remote_model_has_its_contract_here(remote, tmp_path):
    remote("kept", model_edits.fixture(CASE))
    remote(
        "broken", model_edits.edited(model_edits.fixture(CASE), tmp_path / "broken", drop_signature)
    )
    assert "--out" in run("write", "memory://frozen/kept").output
    file = tmp_path / "m.contract.json"
    assert run("write", "memory://frozen/kept", "--out", file).exit_code == 0
    assert run("check", "memory://frozen/kept", file).exit_code == 0
    done = run("check", "memory://frozen/broken", file)
    assert done.exit_code == 1 and "serving_default" in done.output
    assert run("check", "memory://frozen", file, "--json").exit_code == 1


def test_a_model_that_cannot_be_read_does_not_stop_the_others_and_a_second_run_goes_on(tmp_path):
    for name in ("a", "b", "c"):
        model_edits.edited(model_edits.fixture(CASE), tmp_path / "zoo" / name, lambda message: None)
    (tmp_path / "zoo/b/saved_model.pb").write_bytes(b"not a model")
    assert run("write", tmp_path / "zoo/a").exit_code == 0
    before = (tmp_path / "zoo/a.contract.json").stat().st_mtime_ns
    done = run("write", tmp_path / "zoo")
    assert done.exit_code == 1
    assert (
        f"no contract written: {tmp_path}/zoo/b" in done.output
        and "a.contract.json " in done.output
    )
    assert (tmp_path / "zoo/c.contract.json").is_file() and not (
        tmp_path / "zoo/b.contract.json"
    ).exists()
    assert (tmp_path / "zoo/a.contract.json").stat().st_mtime_ns == before


def test_what_was_written_as_json(tmp_path):
    for name in ("a", "b", "c"):
        model_edits.edited(model_edits.fixture(CASE), tmp_path / "zoo" / name, lambda message: None)
    assert run("write", tmp_path / "zoo/a").exit_code == 0
    (tmp_path / "zoo/b/saved_model.pb").write_bytes(b"not a model")
    done = run("write", tmp_path / "zoo", "--json")
    found = {model["status"]: model for model in json.loads(done.stdout)["models"]}
    assert (done.exit_code, done.stderr, set(found)) == (1, "", {"there", "refused", "written"})
    assert "saved_model.pb" in found["refused"]["reason"] and "--update" in found["there"]["reason"]
    assert (found["written"]["meta_graphs"], found["written"]["answers"]) == (1, None)
    message = model_edits.layout.read(tmp_path / "zoo/a").saved_model
    drop_signature(message)
    model_edits.write(message, tmp_path / "zoo/a")
    (model,) = json.loads(run("write", tmp_path / "zoo/a", "--update", "--json").stdout)["models"]
    assert [finding["rule"] for finding in model["findings"]] == ["SIGNATURE_REMOVED"]


def test_the_rules_as_json():
    listed = json.loads(run("check", "--rule", "all", "--json").stdout)["rules"]
    assert [f"{rule['rule']:<22} {rule['category']:<10} {rule['why']}" for rule in listed] == run(
        "check", "--rule", "ALL"
    ).stdout.splitlines()


def test_several_processes_say_what_one_says_in_the_same_order(tmp_path):
    for number in range(3):
        folder = tmp_path / "zoo" / f"m{number}"
        model_edits.edited(model_edits.fixture(CASE), folder, lambda message: None)
        assert run("write", folder).exit_code == 0
    message = model_edits.layout.read(folder).saved_model
    drop_signature(message)
    model_edits.write(message, folder)
    told = [run("check", tmp_path / "zoo", "--json", "--jobs", jobs) for jobs in (1, 2)]
    assert [done.exit_code for done in told] == [1, 1]
    assert json.loads(told[0].output) == json.loads(told[1].output)
    assert [item["status"] for item in json.loads(told[0].output)["models"]] == [
        "kept",
        "kept",
        "broken",
    ]


def test_a_zoo_of_new_models_is_held_against_the_contracts_of_the_old_one(tmp_path):
    for name in ("a", "text/b", "text/a"):
        for zoo in ("old", "new"):
            model_edits.edited(
                model_edits.fixture(CASE), tmp_path / zoo / name, lambda message: None
            )
    assert run("write", tmp_path / "old").exit_code == 0
    assert run("check", tmp_path / "new", tmp_path / "old").output.count("kept ") == 3

    message = model_edits.layout.read(tmp_path / "new/text/a").saved_model
    drop_signature(message)
    model_edits.write(message, tmp_path / "new/text/a")
    done = run("check", tmp_path / "new", tmp_path / "old", "--jobs", "2")
    assert (done.exit_code, done.output.count("kept "), "broken  " in done.output) == (1, 2, True)
    one = run("check", tmp_path / "new/text/a", tmp_path / "old/text")
    assert one.exit_code == 1

    (tmp_path / "old/a.contract.json").unlink()
    assert "no contract" in run("check", tmp_path / "new", tmp_path / "old").output
    assert run("check", tmp_path / "new/a", tmp_path / "old", "--require").exit_code == 64


def test_one_file_for_many_contracts_is_refused_with_the_way_to_write_them(tmp_path):
    for name in ("a", "b"):
        model_edits.edited(model_edits.fixture(CASE), tmp_path / "zoo" / name, lambda message: None)
    done = run("write", tmp_path / "zoo", "--out", tmp_path / "contracts")
    assert done.exit_code == 64
    assert "2 were found" in done.output and "MODEL.contract.json" in done.output
