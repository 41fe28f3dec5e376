"""A program that is asked about models, and answers in a file."""

import json
import sys
import time

import pytest

from savedmodel_kit.consumer import Answer, ResultsError, ask, ask_all, read_results


def program(folder, source):
    file = folder / "reader.py"
    file.write_text(source)
    return [sys.executable, str(file)]


def test_a_meaning(tmp_path):
    command = program(tmp_path, "import sys\nprint('{\"container\": \"' + sys.argv[1] + '\"}')")
    assert ask(command, tmp_path, 20) == Answer(meaning={"container": str(tmp_path)})


def test_a_refusal(tmp_path):
    command = program(tmp_path, "import sys\nprint('no magic', file=sys.stderr)\nsys.exit(2)")
    assert ask(command, tmp_path, 20) == Answer(refused="no magic")
    command = program(tmp_path, "import sys\nsys.exit(2)")
    assert ask(command, tmp_path, 20).refused


@pytest.mark.parametrize(
    ("source", "failed"),
    [
        ("import sys\nprint('a bug', file=sys.stderr)\nsys.exit(1)", "exit 1: a bug"),
        ("import os\nos.abort()", "exit -6"),
        ("print('no JSON')", "the output is not JSON"),
        ("print('[1]')", "the output is not a JSON object"),
    ],
)
def test_a_failure(source, failed, tmp_path):
    answer = ask(program(tmp_path, source), tmp_path, 20)
    assert answer.meaning is None and answer.refused is None
    assert answer.failed.startswith(failed)


def test_a_program_that_hangs_is_killed_with_its_children(tmp_path):
    source = (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    )
    started = time.monotonic()
    assert ask(program(tmp_path, source), tmp_path, 1) == Answer(failed="no answer in 1 s")
    assert time.monotonic() - started < 30


def test_many_models(tmp_path):
    command = program(tmp_path, "import json, sys\nprint(json.dumps({'f': sys.argv[1]}))")
    folders = {str(number): tmp_path / str(number) for number in range(5)}
    answers = ask_all(command, folders, 20)
    assert {name: one.meaning["f"] for name, one in answers.items()} == {
        name: str(folder) for name, folder in folders.items()
    }


def test_a_program_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError):
        ask([str(tmp_path / "nothing")], tmp_path, 1)


def results(folder, *lines):
    file = folder / "results.jsonl"
    file.write_text(
        "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    )
    return file


def test_results(tmp_path):
    file = results(
        tmp_path,
        {"name": "a", "meaning": {"checkpoint": None}},
        "",
        {"name": "b", "refused": "no"},
        {"name": "c", "failed": "a bug"},
    )
    assert read_results(file) == {
        "a": Answer(meaning={"checkpoint": None}),
        "b": Answer(refused="no"),
        "c": Answer(failed="a bug"),
    }


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["{"], "line 1: not JSON"),
        (["[]"], "line 1: an answer has the members name"),
        ([{"name": "a"}], "line 1: an answer has the members name"),
        ([{"name": "a", "meaning": {}, "refused": "no"}], "line 1: an answer has the members"),
        ([{"name": "a", "meaning": 3}], "line 1: meaning is not an object"),
        ([{"name": "a", "refused": "no"}] * 2, "line 2: a second answer for 'a'"),
    ],
)
def test_wrong_results(lines, reason, tmp_path):
    with pytest.raises(ResultsError, match=reason):
        read_results(results(tmp_path, *lines))
