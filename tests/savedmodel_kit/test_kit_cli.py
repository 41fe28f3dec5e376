"""The commands ``kit build`` and ``kit check``."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import savedmodel_plugin_kit
from savedmodel_compat.cli import main
from savedmodel_kit import artifacts, build
from savedmodel_kit.hostile.catalogue import hostile_files
from savedmodel_kit.meaning import meaning_of

SMALL = [one for one in artifacts.committed() if one.name == "fixtures_v1/half_plus_two"]


def run(*words):
    return CliRunner().invoke(main, ["kit", *map(str, words)])


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """A kit of one artifact."""
    out = tmp_path_factory.mktemp("archive") / "kit.tar"
    build.build(out, SMALL)
    return out


@pytest.fixture
def reader(tmp_path):
    """A reader of checkpoints that knows one model and refuses all others."""
    file = tmp_path / "reader.py"
    told = {"checkpoint": meaning_of(SMALL[0].folder / "model")["checkpoint"]}
    file.write_text(
        "import sys\n"
        "if '/artifacts/' in sys.argv[1]:\n"
        f"    print({json.dumps(told)!r})\n"
        "else:\n"
        "    sys.exit('damaged') if CRASHES else sys.exit(2)\n"
    )

    def command(crashes=False):
        file.write_text(file.read_text().replace("CRASHES", repr(crashes)))
        return f"{sys.executable} {file}"

    return command


def test_build(tmp_path):
    done = run("build", tmp_path / "kit.tar.gz")
    assert done.exit_code == 0
    assert f"{len(hostile_files())} hostile files" in done.output
    assert (tmp_path / "kit.tar.gz").stat().st_size > 100_000


def test_build_with_more_artifacts(tmp_path):
    (tmp_path / "mine/case").mkdir(parents=True)
    (tmp_path / "mine/case/model").symlink_to(SMALL[0].folder / "model")
    done = run("build", tmp_path / "kit.tar", "--artifacts", tmp_path / "mine", "--json")
    assert done.exit_code == 0, done.output
    assert "mine/case" in [one["name"] for one in json.loads(done.output)["artifacts"]]
    done = run("build", tmp_path / "kit.tar", "--artifacts", tmp_path / "nowhere")
    assert done.exit_code == 64
    assert "no artifact" in done.output


def test_build_into_another_suffix(tmp_path):
    done = run("build", tmp_path / "kit.zip")
    assert done.exit_code == 64
    assert ".tar, .tar.gz" in done.output


def test_check_a_program(archive, reader):
    done = run("check", archive, "--consumer", reader())
    assert done.exit_code == 0, done.output
    count = sum(one.level == "L1" for one in hostile_files().values())
    first = f"L1 checkpoint: 1 of 1 artifact as stated, {count} of {count} hostile files refused"
    assert done.output.splitlines()[0] == first
    assert "broken, 0 constraints: none" in done.output


def test_check_finds_what_is_broken(archive, reader):
    done = run("check", archive, "--consumer", reader(crashes=True), "--json")
    assert done.exit_code == 1
    found = json.loads(done.output)
    assert "SM-BUNDLE-7" in found["broken"]
    assert {one["fault"] for one in found["observations"] if one["fault"]} == {"exit 1: damaged"}


def test_check_results(archive, tmp_path):
    folder = build.unpack(archive, tmp_path / "unpacked")
    hostile = json.loads((folder / "index.json").read_text())["hostile"]
    lines = [{"name": listed["folder"], "refused": "no"} for listed in hostile]
    meaning = json.loads((folder / f"artifacts/{SMALL[0].name}/meaning.json").read_text())
    lines.append({"name": f"artifacts/{SMALL[0].name}", "meaning": meaning})
    results = tmp_path / "results.jsonl"
    results.write_text("\n".join(map(json.dumps, lines)))
    done = run("check", folder, "--results", results)
    assert done.exit_code == 0, done.output
    assert len(done.output.splitlines()) == 6
    lines[-1]["meaning"]["checkpoint"]["tensors"][0]["shape"] = [1]
    results.write_text("\n".join(map(json.dumps, lines)))
    done = run("check", folder, "--results", results, "--level", "L1")
    assert done.exit_code == 1
    line = "L1 artifacts/fixtures_v1/half_plus_two: tensors.a.shape: stated [], given [1]"
    assert line in done.output


def test_a_reader_that_refuses_everything_is_not_green(archive):
    done = run("check", archive, "--consumer", f"{sys.executable} -c 'raise SystemExit(2)'")
    assert done.exit_code == 3
    assert "no level" in done.output


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "give either --consumer CMD or --results FILE"),
        (["--consumer", "x", "--level", "L3"], "L3"),
        (["--consumer", "x", "--limit", "0"], "--limit"),
    ],
)
def test_wrong_usage(words, reason, archive):
    done = run("check", archive, *words)
    assert done.exit_code == 64
    assert reason in done.output


def test_check_a_worker(archive):
    sample = Path(savedmodel_plugin_kit.__file__).parent / "samples/numpy_consumer.py"
    done = run("check", archive, "--worker", f"{sys.executable} {sample}")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[0] == "L3 answers: 0 of 1 artifact as stated, 1 refused"


def test_a_worker_that_does_not_start(archive):
    done = run("check", archive, "--worker", "/nowhere/worker")
    assert done.exit_code in (1, 3, 4)
    assert "as stated" not in done.output or "0 of 1" in done.output


def test_a_file_that_is_not_a_kit(tmp_path):
    (tmp_path / "kit.tar").write_bytes(b"nothing")
    done = run("check", tmp_path / "kit.tar", "--consumer", "x")
    assert done.exit_code == 64
    done = run("check", tmp_path, "--consumer", "x")
    assert done.exit_code == 64
    assert "has no index.json" in done.output


def test_wrong_results(archive, tmp_path):
    (tmp_path / "results.jsonl").write_text("{")
    done = run("check", archive, "--results", tmp_path / "results.jsonl")
    assert done.exit_code == 64
    assert "line 1: not JSON" in done.output


@pytest.mark.parametrize("command", ["/nowhere/reader", "no-such-reader --json", "'", ""])
def test_a_program_that_does_not_exist(archive, command):
    done = run("check", archive, "--consumer", command)
    assert done.exit_code == 64
    assert (command.split(" ")[0] or "''") in done.output
