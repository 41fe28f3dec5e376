"""`slim` and the other edits over a folder: summary, processes, and a second run that goes on where
the first one ended.
"""

from __future__ import annotations

import json
import shutil

import pytest
from click.testing import CliRunner
from model_edits import fixture

from reference_impl.format.container import layout
from savedmodel_compat.cli import main

CASES = ("half_plus_two", "queue_leftovers", "hash_table_v2")


@pytest.fixture
def zoo(tmp_path):
    for case in CASES:
        shutil.copytree(fixture(case), tmp_path / "zoo" / "inner" / case)
    (tmp_path / "zoo" / "broken").mkdir()
    (tmp_path / "zoo" / "broken" / "saved_model.pb").write_bytes(b"no model")
    return tmp_path


def run(zoo, *more, code=1, command=("edit", "slim")):
    done = CliRunner().invoke(main, [*command, str(zoo / "zoo"), "--out", str(zoo / "out"), *more])
    assert done.exit_code == code, done.output
    return done


def stamps(zoo):
    return {
        path: path.stat().st_mtime_ns
        for path in (zoo / "out" / "inner").rglob("*")
        if path.is_file()
    }


def test_a_folder_is_slimmed_by_processes_and_summed_up(zoo):
    done = run(zoo, "--jobs", "2")
    *_, why, count = done.stdout.splitlines()
    assert count.startswith("4 models: 1 failed, ") and " edited" in count
    assert why.startswith(f"failed 1: {zoo / 'zoo' / 'broken'}: ")
    for case in CASES:
        assert layout.read(zoo / "out" / "inner" / case).saved_model.meta_graphs
    assert not (zoo / "out" / "broken").exists()
    alone = CliRunner().invoke(
        main, ["edit", "slim", str(fixture("queue_leftovers")), "--out", str(zoo / "alone")]
    )
    assert alone.exit_code == 0 and "models" not in alone.stdout
    one, other = (
        path / "saved_model.pb"
        for path in (zoo / "out" / "inner" / "queue_leftovers", zoo / "alone")
    )
    assert one.read_bytes() == other.read_bytes()


def test_the_same_command_again_does_only_what_is_not_done(zoo):
    run(zoo)
    before = stamps(zoo)
    shutil.rmtree(zoo / "out" / "inner" / "hash_table_v2")
    shutil.rmtree(zoo / "zoo" / "broken")
    shutil.copytree(fixture("simple_save"), zoo / "zoo" / "broken")
    done = run(zoo, code=0)
    assert (
        done.stdout.splitlines()[-1].startswith("4 models: ")
        and "2 done before" in done.stdout.splitlines()[-1]
    )
    after = stamps(zoo)
    assert {
        path.relative_to(zoo / "out").parts[1] for path in after if after[path] != before.get(path)
    } == {"hash_table_v2"}
    assert (zoo / "out" / "broken" / "saved_model.pb").is_file()
    again = json.loads(run(zoo, "--json", code=0).stdout)
    assert [line["done_before"] for line in again["models"]] == [True] * 4
    assert {line["output"] for line in again["models"]} == {str(zoo / "out" / "broken")} | {
        str(zoo / "out" / "inner" / case) for case in CASES
    }
    assert sorted(path.name for path in (zoo / "out" / ".savedmodel-compat").iterdir()) == [
        "broken.json",
        "inner",
    ]


def test_a_result_that_was_replaced_by_hand_is_made_again(zoo):
    run(zoo)
    model = zoo / "out" / "inner" / "queue_leftovers" / "saved_model.pb"
    edited = model.read_bytes()
    model.write_bytes(b"no model")
    run(zoo)
    assert model.read_bytes() == edited


def test_another_edit_and_another_source_are_done_again(zoo):
    shutil.rmtree(zoo / "zoo" / "broken")
    run(zoo, code=0)
    before = stamps(zoo)
    model = zoo / "zoo" / "inner" / "queue_leftovers"
    shutil.rmtree(model)
    shutil.copytree(fixture("simple_save"), model)
    run(zoo, code=0)
    assert {
        path.relative_to(zoo / "out").parts[1]
        for path in stamps(zoo)
        if stamps(zoo)[path] != before.get(path)
    } == {"queue_leftovers"}
    assert "done before" not in run(zoo, "--keep", "optimizer", code=0).stdout
    (model / "saved_model.pb").write_bytes(b"no model")
    said = run(zoo, "--keep", "optimizer").stderr
    assert "earlier run" in said
    assert (
        zoo / "out" / "inner" / "queue_leftovers" / "saved_model.pb"
    ).read_bytes() != b"no model"


def test_what_an_edit_did_not_put_there_is_not_replaced(zoo):
    (zoo / "out" / "inner" / "hash_table_v2").mkdir(parents=True)
    (zoo / "out" / "inner" / "hash_table_v2" / "mine").touch()
    assert "output exists" in run(zoo).stderr
    assert [path.name for path in (zoo / "out" / "inner" / "hash_table_v2").iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("tags", ["mine"]),
        ("signatures", ["--rename", "serving_default=x"]),
        ("signatures", ["--copy", "serving_default=x"]),
        ("signatures", ["--drop", "serving_default"]),
        ("signatures", ["--default", "serving_default"]),
    ],
)
def test_every_edit_goes_to_processes(zoo, command, words):
    """An edit is handed to another process, so it can be pickled."""
    more = ["--dry-run", "--jobs", "2", "--json"]
    done = CliRunner().invoke(main, ["edit", command, str(zoo / "zoo"), *words, *more])
    lines = json.loads(done.stdout)["models"]
    assert len(lines) == 4 and {line.get("error", {}).get("class") for line in lines} <= {
        None,
        "RefusedError",
        "MalformedError",
        "NotASavedModelError",
    }
