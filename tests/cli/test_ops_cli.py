"""``python -m compat_matrix.commands.ops`` as its users run it."""

import json
import os
import subprocess
import sys

import pytest
import skew_models
from model_edits import fixture


def command(*arguments):
    words = [sys.executable, "-m", "compat_matrix.commands.ops", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, encoding="utf-8")


def run(*arguments):
    return command(*arguments)


def needs(*arguments):
    return command("needs", *arguments)


def test_show_tells_since_when():
    done = run("show", "VarHandleOp")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "VarHandleOp  1.4 or newer"
    assert "  attr debug_name: string = ''   2.15 or newer" in lines
    assert "  attr dtype: type" in lines
    assert any(line.startswith("  CPU kernel dtype in int2, uint2   2.20") for line in lines)


def test_show_tells_where_a_contrib_op_was_and_where_it_went():
    text = run("show", "Resampler").stdout
    assert "Resampler  1.4 to 1.15\n" in text
    assert (
        "in 1.4 to 1.15 only after loading contrib/resampler/python/ops/_resampler_ops.so" in text
    )
    assert "    bfloat16   1.13 to 1.15" in text
    assert "instead: tensorflow-addons's op 'Addons>Resampler'" in text
    assert "no CPU kernel" not in text


def test_show_json():
    found = json.loads(run("show", "CompareAndBitpack", "--json").stdout)
    assert (found["schema"], found["op"], found["since"], found["until"]) == (
        1,
        "CompareAndBitpack",
        "1.4",
        "2.5",
    )
    assert "removed after 2.5" in found["replacement"]["advice"]
    assert found["history"]["in"] == "1.4-2.5"


def test_show_of_an_op_that_nobody_has():
    done = run("show", "Resamplr\x1b[2J")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Resamplr\\x1b[2J" in done.stderr and "Resampler" in done.stderr


def test_diff_tells_what_changed():
    lines = run("diff", "2.15", "2.16.2").stdout.splitlines()
    assert any(line.split()[:4] == ["MatMul", "attr", "added", "grad_a:"] for line in lines)
    found = json.loads(run("diff", "2.20", "2.21", "--json").stdout)
    assert {
        "op": "DecodeJxl",
        "kind": "op added",
        "what": "contents: string -> image: dtype",
    } in found["changes"]


def test_diff_of_a_release_that_was_not_asked_is_wrong_usage():
    done = run("diff", "1.5", "2.21")
    assert done.returncode == 64
    assert "1.5" in done.stderr and "1.15" in done.stderr


def test_needs_tells_the_releases_and_what_decides():
    done = needs(fixture("dtypes_removed_kernels"))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "MetaGraph serve  TensorFlow 1.15.5, GraphDef 134"
    assert lines[1].split(None, 1) == ["session", "1.4 to 2.3"]
    assert (
        "2.4 lacks a CPU kernel of op 'AssignVariableOp' for dtype=qint16, node 'var_qint16/Assign'"
        in lines[2]
    )
    assert "The kernels of 1.4, 1.8 are not known." in lines


def test_needs_json_and_several_meta_graphs():
    done = needs(fixture("serve_and_train"), "--json")
    found = json.loads(done.stdout)
    assert {tuple(graph["tags"]) for graph in found["meta_graphs"]} >= {("serve",)}
    assert len(found["meta_graphs"]) == 2


def test_needs_ends_with_1_where_no_release_will_do(tmp_path):
    evil = skew_models.model(tmp_path / "m", op="No\x1b[2JSuch")
    done = needs(evil)
    assert done.returncode == 1
    assert "no release of the table" in done.stdout and "\x1b" not in done.stdout


def test_needs_of_what_is_no_model(tmp_path):
    assert needs(tmp_path).returncode == 64
    assert needs(tmp_path / "nothing").returncode == 64


@pytest.mark.parametrize(
    "words",
    [
        ("show", "MatMul"),
        ("diff", "2.20", "2.21"),
        ("needs", fixture("half_plus_two")),
    ],
)
def test_nothing_heavy_is_imported(words):
    heavy = ("numpy", "tensorflow", "keras", "rich", "pytest", "ml_dtypes", "jinja2")
    light = () if words[0] == "needs" else ("google.protobuf",)
    program = (
        "import sys\nfrom compat_matrix.commands.ops import ops\n"
        f"try: ops({[*map(str, words)]!r})\nexcept SystemExit: pass\n"
        f"print([name for name in {(*heavy, *light)!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines()[-1] == "[]"


def test_the_table_is_part_of_the_package():
    from importlib import resources

    assert resources.files("savedmodel_tools.skew").joinpath("op_history.jsonl").is_file()


def test_needs_of_a_model_that_was_not_looked_into_ends_with_1(tmp_path):
    os.mkfifo(tmp_path / "saved_model.pb")
    done = needs(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "not looked into" in done.stderr
