"""What every command does with models that are there, broken or absent: exit code, one JSON
document, the same words.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner
from model_edits import fixture

from savedmodel_common.writing import write_text
from savedmodel_compat.cli import main

READ = {
    "inspect": "inspect {}",
    "verify": "verify {}",
    "compat": "compat {}",
    "edit slim --dry-run": "edit slim {} --dry-run",
    "migrate --dry-run": "migrate {} --dry-run",
}


def run(line, *paths):
    return CliRunner().invoke(main, [word.format(*paths) for word in line.split()])


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a sound model and one that cannot be read; names with a space and other
    letters.
    """
    folder = tmp_path_factory.mktemp("Mödelle")
    shutil.copytree(fixture("half_plus_two"), folder / "a modèle")
    (folder / "broken").mkdir()
    (folder / "broken" / "saved_model.pb").write_bytes(b"\xff\xff\xff\x01")
    (folder / "none").mkdir()
    return folder


@pytest.mark.parametrize("line", READ.values(), ids=READ)
@pytest.mark.parametrize("suffix", ["", "/", "/saved_model.pb"])
def test_a_model_is_named_by_its_directory_or_its_file(line, suffix, models):
    done = run(f"{line} --json", f"{models}/a modèle{suffix}")
    assert (done.exit_code, json.loads(done.stdout)["schema"]) == (0, 1), done.output


@pytest.mark.parametrize("line", READ.values(), ids=READ)
def test_of_a_folder_one_broken_model_fails_and_the_others_are_told(line, models):
    done = run(f"{line} --json", models)
    assert (done.exit_code, len(json.loads(done.stdout)["models"])) == (1, 2), done.output
    assert run(line, models).exit_code == 1
    assert run(line, models / "broken").exit_code == 1


@pytest.mark.parametrize("line", READ.values(), ids=READ)
@pytest.mark.parametrize(
    ("name", "said"), [("none", "no SavedModel is there"), ("absent", "no such file or directory")]
)
def test_what_holds_no_model_is_wrong_usage(line, name, said, models):
    done = run(f"{line} --json", models / name)
    assert (done.exit_code, done.stdout, said in done.stderr) == (64, "", True), done.output


@pytest.mark.parametrize("line", ["weights {}", "diff {} {}", "prove {} {}", "run {}"])
def test_a_path_that_does_not_exist_is_wrong_usage_for_one_model_too(line, models):
    assert run(line, *[models / "absent"] * line.count("{}")).exit_code == 64


def test_the_weights_of_a_folder_of_one_model_are_its_own(models, tmp_path):
    shutil.copytree(models / "a modèle", tmp_path / "zoo/a")
    assert run("weights {}", tmp_path / "zoo").exit_code == 0
    shutil.copytree(models / "a modèle", tmp_path / "zoo/b")
    done = run("weights {}", tmp_path / "zoo")
    assert (done.exit_code, "2 models" in done.stderr) == (64, True)


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("brokne", "broken"),
        ("Broken", "broken"),
        ("a modele", "a modèle"),
        ("brokne/", "broken"),
    ],
)
def test_a_misspelt_path_is_told_with_the_one_that_is_there(wrong, meant, models):
    done = run("inspect {}", f"{models}/{wrong}")
    assert (done.exit_code, f"Did you mean {models / meant}" in done.stderr) == (64, True)


@pytest.mark.parametrize("part", ["variables", "variables/variables.index"])
def test_a_part_of_a_model_is_told_with_its_model(part, models):
    done = run("inspect {}", models / "a modèle" / part)
    assert (done.exit_code, f"The model is {models / 'a modèle'}" in done.stderr) == (64, True)


def test_a_path_like_nothing_beside_it_is_told_alone(models, tmp_path):
    assert "Did you mean" not in run("inspect {}", tmp_path / "x" / "y").stderr
    assert "The model is" not in run("inspect {}", models / "none").stderr


@pytest.mark.parametrize(
    "line",
    [
        "edit slim {0} --out {1}",
        "edit signatures {0} --copy serving_default=x --out {1}",
        "edit tags {0} x --out {1}",
        "downgrade {0} --target 2.4 --out {1}",
    ],
)
def test_a_copy_is_not_written_over_anything(line, models, tmp_path):
    (tmp_path / "mine").write_text("mine")
    for taken in (tmp_path, tmp_path / "mine"):
        done = run(line, models / "a modèle", taken)
        assert (done.exit_code, "exists already" in done.stderr) == (64, True), done.output
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize(
    "line",
    [
        "edit slim {}",
        "edit tags {} x",
        "migrate {}",
        "downgrade {} --target 2.4",
        "matrix run --case half_plus_two",
    ],
)
def test_a_command_that_writes_needs_a_place_or_is_a_dry_run(line, models):
    done = run(line, models / "a modèle")
    assert done.exit_code == 64 and "--out DIRECTORY" in done.stderr, done.output


@pytest.mark.parametrize("line", [*READ.values(), "check {}", "contract write {}"])
def test_a_file_that_is_not_a_model_is_wrong_usage(line, tmp_path):
    (tmp_path / "notes.txt").write_text("hi")
    done = run(line, tmp_path / "notes.txt")
    assert done.exit_code == 64 and "notes.txt: " in done.stderr, done.output


@pytest.mark.parametrize(
    "line",
    [
        "matrix report {0}",
        "matrix expect update {0}",
        "gate compare --run {0} 2.20 2.21",
        "gate compare {0} {0}",
    ],
)
def test_a_folder_that_holds_no_run_is_wrong_usage(line, tmp_path):
    done = run(line, tmp_path)
    assert done.exit_code == 64 and str(tmp_path) in done.stderr, done.output


@pytest.mark.parametrize(
    ("option", "said"), [("--cases-dir", "holds no case"), ("--fixtures", "holds no artifact")]
)
def test_a_folder_that_holds_nothing_to_run_is_named(option, said, tmp_path):
    done = run("matrix run " + option + " {0} --out {0}/out", tmp_path)
    assert (done.exit_code, f"{tmp_path} {said}" in done.stderr) == (64, True), done.output


@pytest.mark.parametrize("line", ["inspect {}", "verify {}", "compat {} --summary"])
def test_a_name_that_the_terminal_cannot_show_is_escaped(line, models):
    command = [
        sys.executable,
        "-m",
        "savedmodel_compat",
        *(word.format(models / "a modèle") for word in line.split()),
    ]
    done = subprocess.run(
        command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_error_of_the_operating_system_is_a_file_and_a_reason(models, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    for line in (
        "contract write {} --out file/new.json",
        "edit slim {} --out file/new",
        "verify {} --junit file/new.xml",
    ):
        done = run(line, models / "a modèle")
        said = done.stderr.strip().splitlines()[-1]
        assert (done.exit_code, "file" in said, "Errno" in said, "None" in said) == (
            4,
            True,
            False,
            False,
        ), done.output


def test_a_failed_rename_names_the_file_that_the_caller_knows(tmp_path):
    (tmp_path / "taken" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match=r"taken'$"):
        write_text(tmp_path / "taken", "text")


@pytest.mark.parametrize("line", ["contract check {}", "verify {} --fail-on info"])
def test_no_color_is_known(line, models):
    run("contract write {}", models / "a modèle")
    command = [word.format(models / "a modèle") for word in line.split()]
    plain = CliRunner().invoke(main, command, color=True, env={"NO_COLOR": "1"}).output
    assert "\x1b" not in plain and plain == CliRunner().invoke(main, command).output


def test_a_model_and_a_folder_of_models_cannot_be_compared(models):
    done = run("diff {0} {1}", models / "a modèle", models)
    assert (done.exit_code, "a modèle is a model, " in done.stderr) == (64, True), done.output


COPIES = {
    "slim": "edit slim {0} --out {1}",
    "edit tags": "edit tags {0} x --out {1}",
    "downgrade": "downgrade {0} --target 2.4 --no-proof --out {1}",
}
OUTPUTS = ("zoo/a", "zoo/a/new", "zoo", "link")
MIGRATE = "migrate {0} --out {1}"


def copies(folder, names="ab"):
    for name in names:
        shutil.copytree(fixture("half_plus_two"), folder / name)


def content(folder):
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize(
    ("line", "source", "out"),
    [
        (line, source, out)
        for line in COPIES.values()
        for source in ("zoo", "zoo/a")
        for out in ("zoo/a", "zoo/a/new", "zoo", "link")
    ]
    + [
        (MIGRATE, "models", "."),
        (MIGRATE, "models/a", "."),
        (MIGRATE, "zoo", "zoo/a"),
        (MIGRATE, "zoo/a", "zoo/a/new"),
    ],
)
def test_a_result_is_not_written_over_a_source_or_into_one(
    line, source, out, tmp_path, monkeypatch
):
    """`migrate` writes to the folder ``models`` of its output."""
    monkeypatch.chdir(tmp_path)
    copies(tmp_path / "zoo")
    copies(tmp_path / "models")
    (tmp_path / "link").symlink_to(tmp_path / "zoo")
    before = content(tmp_path)
    done = run(line, source, out)
    assert (done.exit_code, out.partition("/")[0] in done.stderr, content(tmp_path) == before) == (
        64,
        True,
        True,
    ), done.output


@pytest.mark.parametrize("line", COPIES.values(), ids=COPIES)
def test_results_in_the_folder_of_the_models_are_not_sources_of_the_next_run(line, tmp_path):
    copies(tmp_path / "zoo")
    for _ in range(2):
        run(line, tmp_path / "zoo", tmp_path / "zoo" / "new")
        made = sorted(path.parent for path in (tmp_path / "zoo" / "new").rglob("saved_model.pb"))
        assert made == [tmp_path / "zoo" / "new" / name for name in "ab"]


def test_a_dry_run_of_downgrade_says_what_would_be_rewritten(models):
    done = run("downgrade {} --target 1.4 --dry-run --json", models / "a modèle")
    (line,) = json.loads(done.stdout)["models"]
    assert (done.exit_code, line["output"]) == (0, None) and "dry run" in line["proof"]["why"]


@pytest.mark.tensorflow
def test_a_dry_run_of_the_matrix_lists_the_cells_that_would_run(tmp_path):
    line = "matrix run --case tree_empty --producer tf2 --consumer c_api --check load --dry-run"
    done = run(line)
    *made, asked = done.stdout.splitlines()
    assert (done.exit_code, [cell.split("/")[2:] for cell in made]) == (
        0,
        [["-", "produce"]],
    ), done.output
    assert asked.startswith("tree_empty/tf2@") and asked.endswith("/load")
    cells = json.loads(run(f"{line} --json").stdout)["cells"]
    assert [cell["id"] for cell in cells] == [*made, asked]
    assert run(f"{line} -k nothing").exit_code == 64


@pytest.mark.tensorflow
def test_a_run_is_quiet_and_its_report_is_json(tmp_path):
    done = run(
        "matrix run --case half_plus_two --producer fixture --consumer c_api --check load -n 1 -q"
        " --json --out {}",
        tmp_path,
    )
    assert (done.exit_code, done.stderr, json.loads(done.stdout)["by_outcome"]["PASS"]) == (
        0,
        "",
        1,
    ), done.output
    assert json.loads(run("matrix report {} --json", tmp_path).stdout)["exit_code"] == 0


@pytest.mark.parametrize("option", ["--junit", "--sarif"])
def test_the_folder_of_a_file_is_made(option, models, tmp_path):
    """As pytest does: the result of a long run must not be lost for it."""
    done = run("verify {0} " + option + " {1}", models / "a modèle", tmp_path / "new" / "file")
    assert (done.exit_code, (tmp_path / "new" / "file").is_file()) == (0, True), done.output


@pytest.mark.parametrize(
    "line", ["edit slim {0} --out {1}", "downgrade {0} --target 2.4 --no-proof --out {1}"]
)
def test_a_folder_whose_only_model_cannot_be_read_has_nothing_to_edit(line, tmp_path):
    (tmp_path / "model").mkdir()
    os.mkfifo(tmp_path / "model" / "saved_model.pb")
    done = run(line, tmp_path / "model", tmp_path / "out")
    assert (done.exit_code, "Traceback" in done.stderr) == (1, False), done.output
    assert "saved_model.pb" in done.stderr
