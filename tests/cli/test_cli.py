"""The console script as its users run it: a process, its output, its exit code."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import model_edits as edits
import pytest

from reference_impl.format import schema
from savedmodel_common.printable import printable
from savedmodel_compat import cli
from savedmodel_compat.cli import SECTIONS, introduction, main

ROOT = Path(__file__).parents[2]
COMMANDS = main.list_commands(click.Context(main))


def run(*arguments, cwd=None, **environment):
    """Start the program. Warnings of ours are errors."""
    command = [
        sys.executable,
        "-W",
        "error::DeprecationWarning:compat_matrix",
        "-m",
        "savedmodel_compat",
        *map(str, arguments),
    ]
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE")
    }
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**kept, **environment},
        cwd=cwd,
        encoding="utf-8",
    )


def test_help_names_every_command():
    done = run("--help")
    assert done.returncode == 0
    for name in COMMANDS:
        text = introduction(name)
        assert re.search(rf"^  {name} +{re.escape(text[:30])}", done.stdout, re.MULTILINE)
    assert "64 usage" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_exists(name):
    done = run(name, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: ")


def test_help_imports_none_of_the_commands():
    program = (
        "import sys\nfrom savedmodel_compat.cli import main\ntry: main(['--help'])\nexcept SystemExit:"
        " pass\nheavy = ('numpy', 'rich', 'google.protobuf', 'pytest', 'tensorflow',"
        " 'savedmodel_tools.commands.inspect')\nprint([name for name in heavy if name in sys.modules],"
        " file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"


def test_version():
    done = run("--version")
    assert done.returncode == 0
    assert re.fullmatch(
        r"savedmodel-compat (\d+\.\d+\.\d+\S*|\(run from a checkout that is not installed\))\n",
        done.stdout,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nope",),
        ("--nope",),
        ("inspect",),
        ("inspect", "no/such/path"),
        ("inspect", "--nope", "."),
        ("inspect", "--only", "nope", "."),
        ("inspect", ".", "extra"),
    ],
)
def test_wrong_usage_ends_with_64(arguments):
    done = run(*arguments)
    assert done.returncode == 64
    assert "Usage: " in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


# inspect


def test_inspect_shows_a_tree():
    done = run("inspect", edits.fixture("module_functions"))
    assert done.returncode == 0
    assert done.stderr == ""
    for line in (
        "MetaGraph serve  TensorFlow 1.15.5, GraphDef 134",
        "│       ├── in  x: float32[?]  serving_default_x:0",
        "│   ├── child: object",
        "│   │   └── scale → scale",
        "│   ├── multiply(x: float32[?], training=True) -> float32[?]  captures scale",
        "│   ├── parts.1  int32[]  4 B  not trainable",
        "│   └── vocabulary.txt  6 B  asset_path_initializer:0",
        "│   ├── restore  StatefulPartitionedCall_4  5 tensors, format V2",
    ):
        assert line in done.stdout.splitlines(), line
    assert "\x1b" not in done.stdout  # no colours for a pipe


def test_inspect_fits_a_terminal_of_80_columns():
    for case in ("module_functions", "estimator_dnn_classifier", "keras_functional_save"):
        done = run("inspect", edits.fixture(case), COLUMNS="80")
        assert max(len(line.rstrip()) for line in done.stdout.splitlines()) <= 80
    wide = run("inspect", edits.fixture("estimator_dnn_classifier"))
    assert max(len(line) for line in wide.stdout.splitlines()) > 200  # piped: nothing is wrapped


def test_inspect_sections_and_abbreviation():
    model = edits.fixture("keras_functional_save")
    short, full = run("inspect", model), run("inspect", model, "--full")
    assert "(--full)" in short.stdout
    assert "(--full)" not in full.stdout
    assert len(full.stdout.splitlines()) > 2 * len(short.stdout.splitlines())
    only = run("inspect", model, "--only", "signatures", "--only", "ops").stdout
    assert "Signatures" in only
    assert "Ops" in only
    assert "Variables" not in only


def test_inspect_json():
    done = run("inspect", edits.fixture("serve_and_train"), "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["schema"] == 1
    assert [graph["tags"] for graph in found["meta_graphs"]] == [["train"], ["serve"]]
    one = json.loads(
        run("inspect", edits.fixture("serve_and_train"), "--json", "--tags", "train").stdout
    )
    assert one["meta_graphs"] == [found["meta_graphs"][0]]
    assert (
        json.loads(run("inspect", edits.fixture("empty_tags"), "--json", "--tags", "").stdout)[
            "meta_graphs"
        ][0]["tags"]
        == []
    )


def test_inspect_of_what_is_no_model(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"\xff\xff\xff")
    done = run("inspect", tmp_path)
    assert done.returncode == 1
    assert re.match(r"(Malformed|Truncated)Error: .*saved_model\.pb", done.stderr)
    assert len(done.stderr.splitlines()) == 1
    done = run("inspect", edits.fixture("half_plus_two"), "--tags", "gpu")
    assert done.returncode == 1
    assert done.stderr.startswith("NoMetaGraphError: ")


def test_inspect_of_what_is_incomplete(tmp_path):
    shutil.copytree(edits.fixture("half_plus_two"), tmp_path / "model")
    shutil.rmtree(tmp_path / "model" / "variables")
    done = run("inspect", tmp_path / "model")
    assert done.returncode == 1
    assert "2 of 2 keys: a, b" in done.stdout
    assert json.loads(run("inspect", tmp_path / "model", "--json").stdout)["problems"]


def test_inspect_of_what_cannot_be_read(tmp_path):
    """A named pipe is a defect of the model, not of the machine."""
    os.mkfifo(tmp_path / "saved_model.pb")
    done = run("inspect", tmp_path / "saved_model.pb")
    assert done.returncode == 1
    assert done.stderr.startswith("FileAccessError: ")


def test_inspect_without_tensorflow_in_reach(tmp_path):
    """Neither imported nor asked for."""
    (tmp_path / "tensorflow.py").write_text("raise SystemExit('imported')")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    assert (
        run("inspect", edits.fixture("module_functions"), "--full", PYTHONPATH=path).returncode == 0
    )


NASTY = "evil\x1b[2J\x07\r\n\x9b31m\u202ekcab\u200b[red]x[/red]"


def test_names_cannot_steer_the_terminal(tmp_path):
    message, graph = edits.new_model(["serve", NASTY])
    graph.meta_info_def.tensorflow_version = NASTY
    signature = graph.signature_def[NASTY]
    signature.method_name = NASTY
    signature.inputs[NASTY].name = NASTY
    graph.graph_def.node.add(name=NASTY, op=NASTY, device=NASTY)
    graph.graph_def.node.add(name=NASTY + "v", op="VarHandleOp")
    graph.graph_def.library.function.add().signature.name = NASTY
    graph.collection_def[NASTY].node_list.value.append(NASTY)
    graph.asset_file_def.add(filename=NASTY).tensor_info.name = NASTY
    objects = graph.object_graph_def.nodes
    objects.add().children.add(local_name=NASTY, node_id=1)
    objects.add().user_object.identifier = NASTY
    objects[1].registered_name = NASTY
    objects[0].children.add(local_name="f", node_id=2)
    objects.add().function.concrete_functions.append(NASTY)
    graph.object_graph_def.concrete_functions[
        NASTY
    ].canonicalized_input_signature.string_value = NASTY
    objects[0].children.add(local_name="v" + NASTY, node_id=3)
    objects.add().variable.name = NASTY
    graph.saver_def.restore_op_name = NASTY
    folder = edits.write(message, tmp_path / "model")
    for arguments in ((), ("--full",), ("--json",)):
        done = run("inspect", folder, *arguments, COLUMNS="80")
        assert done.returncode == 1  # the asset leads nowhere
        text = done.stdout + done.stderr
        assert not re.search(
            r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", text
        )
        assert "\\u202e" in text
        if arguments != ("--json",):
            assert "[red]x[/red]" in text.replace("\n", "")  # no markup either
    assert len(json.loads(done.stdout)["meta_graphs"][0]["signatures"]) == 1


def test_error_messages_cannot_steer_the_terminal(tmp_path):
    message, _ = edits.new_model([NASTY])
    done = run("inspect", edits.write(message, tmp_path / "model"), "--tags", "other")
    assert done.returncode == 1
    assert "\\x1b[2J" in done.stderr
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", done.stderr)


def test_printable():
    assert printable("grün ☃ [a]\\n") == "grün ☃ [a]\\n"
    assert printable("a\nb\tc\x00") == "a\nb\\tc\\x00"
    assert printable("a\nb", newlines=False) == "a\\nb"
    assert printable("\ud800\x85\u2028") == "\\ud800\\x85\\u2028"


def test_a_reader_that_goes_away(tmp_path):
    """``savedmodel-compat inspect … | head -1``: no traceback, and the status a program ended by
    SIGPIPE has.
    """
    message, graph = edits.new_model()
    for number in range(20_000):
        graph.graph_def.node.add(name=f"node{number}", op=f"SomeRatherLongNameOfAnOp{number}")
    folder = edits.write(message, tmp_path / "model")
    command = [sys.executable, "-m", "savedmodel_compat", "inspect", str(folder), "--full"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_a_defect_of_ours_shows_where(monkeypatch, capsys):
    """An error that is no verdict comes with its traceback, and not with the status of a
    verdict.
    """

    def broken(*_arguments, **_options):
        raise RuntimeError("\x1b[31moops")

    monkeypatch.setattr("reference_impl.views.model.inspect", broken)
    with pytest.raises(SystemExit) as done:
        main(["inspect", str(edits.fixture("half_plus_two"))])
    assert done.value.code == 4
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "RuntimeError: \\x1b[31moops" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("error", "code"), [(OSError(28, "No space left"), 4), (KeyboardInterrupt(), 130)]
)
def test_what_the_machine_does(error, code, monkeypatch, capsys):
    def fails(*_arguments, **_options):
        raise error

    monkeypatch.setattr("reference_impl.views.model.inspect", fails)
    with pytest.raises(SystemExit) as done:
        main(["inspect", str(edits.fixture("half_plus_two"))])
    assert done.value.code == code
    assert "Traceback" not in capsys.readouterr().err


def test_deep_object_trees_stay_readable(tmp_path):
    message, graph = edits.new_model()
    for number in range(3000):
        graph.object_graph_def.nodes.add().children.add(local_name="next", node_id=number + 1)
    folder = edits.write(message, tmp_path / "model")
    short, full = (run("inspect", folder, "--only", "objects", *more) for more in ((), ("--full",)))
    assert (short.stdout.count("next: "), full.stdout.count("next: ")) == (6, 60)
    assert "… 1 more (--full)" in short.stdout
    assert "… 1 more (--json)" in full.stdout


def test_wide_object_trees_stay_readable(tmp_path):
    """So many lines and no more; one more entry is shown rather than announced; links into nothing
    are left out.
    """
    message, graph = edits.new_model()
    nodes = graph.object_graph_def.nodes
    nodes.add()
    for parent, count in ((0, 13), (1, 13), (2, 13), (3, 2), (4, 3)):
        for number in range(count):
            nodes[parent].children.add(local_name=f"c{parent}_{number:02}", node_id=len(nodes))
            nodes.add()
        nodes[parent].children.add(local_name="nowhere", node_id=9999)
    folder = edits.write(message, tmp_path / "model")
    text = run("inspect", folder, "--only", "objects").stdout
    shown = {parent: len(re.findall(rf" c{parent}_", text)) for parent in range(5)}
    assert shown == {0: 13, 1: 13, 2: 13, 3: 2, 4: 0}
    assert "… 3 more (--full)" in text
    assert "nowhere" not in text


def test_a_hostile_model_ends_with_a_named_error(tmp_path):
    """Functions that call themselves while restoring."""
    message, graph = edits.new_model()
    body = graph.graph_def.library.function.add()
    body.signature.name = "f"
    body.node_def.add(name="n", op="PartitionedCall").attr["f"].CopyFrom(
        schema.AttrValue(func={"name": "f"})
    )
    graph.graph_def.node.add(name="start", op="f")
    graph.saver_def.restore_op_name = "start"
    done = run("inspect", edits.write(message, tmp_path / "model"))
    assert done.returncode == 1
    assert "problem: LimitError: " in done.stdout
    assert "Ops  2 kinds, 2 nodes" in done.stdout


@pytest.mark.parametrize(
    ("words", "near"),
    [(["inspct"], "inspect"), (["matrix", "rn"], "run"), (["runtimes", "lst"], "list")],
)
def test_a_command_that_does_not_exist_names_those_like_it(words, near):
    done = run(*words)
    assert done.returncode == 64
    assert f"unknown command {words[-1]!r}. Did you mean {near}" in done.stderr


def test_the_help_has_a_section_for_each_kind_of_user():
    text = run("--help").stdout
    sections = re.findall(r"^([A-Z][A-Za-z ]+):$", text, re.MULTILINE)
    assert sections == ["Options", *SECTIONS]


def test_a_command_of_no_section_comes_last_and_one_that_is_not_installed_is_left_out(monkeypatch):
    monkeypatch.setattr(
        cli, "_commands", lambda: dict.fromkeys(["prove", "theirs", "runtimes.more"])
    )
    found = cli.sections()
    assert list(found) == [*SECTIONS, cli.OTHERS]
    assert (found["You own models"], found[cli.OTHERS]) == (["prove"], ["theirs"])


def test_no_command_is_without_a_section():
    assert cli.OTHERS not in cli.sections()


def test_inspect_takes_what_verify_takes(tmp_path):
    """Several models, a tree, a list; one that cannot be read costs itself only."""
    for name in ("half_plus_two", "simple_save"):
        shutil.copytree(ROOT / "fixtures_v1" / name / "model", tmp_path / "zoo" / name)
    (tmp_path / "zoo" / "broken").mkdir()
    (tmp_path / "zoo" / "broken" / "saved_model.pb").write_bytes(b"\xff" * 9)
    (tmp_path / "list.txt").write_text(str(tmp_path / "zoo" / "half_plus_two"))
    done = run("inspect", tmp_path / "zoo", "--json")
    assert done.returncode == 1
    models = {Path(model["path"]).name: model for model in json.loads(done.stdout)["models"]}
    assert list(models) == ["broken", "half_plus_two", "simple_save"]
    assert "MalformedError" in models["broken"]["error"] and models["simple_save"]["meta_graphs"]
    alone = json.loads(run("inspect", tmp_path / "zoo" / "simple_save", "--json").stdout)
    assert {**alone, "path": models["simple_save"]["path"]} == models["simple_save"]
    shown = run(
        "inspect",
        f"@{tmp_path / 'list.txt'}",
        tmp_path / "zoo" / "simple_save",
        "--only",
        "signatures",
    )
    assert shown.returncode == 0
    assert shown.stdout.count("MetaGraph") == 2 and "simple_save\n" in shown.stdout


def test_models_are_called_as_the_user_calls_them_and_once(tmp_path):
    for name in ("half_plus_two", "simple_save"):
        shutil.copytree(edits.fixture(name), tmp_path / "zoo" / name)
    for command in (
        ["inspect", "zoo"],
        ["inspect", "zoo/half_plus_two"],
        ["diff", "zoo/half_plus_two", "zoo/simple_save"],
    ):
        said = run(*command, cwd=tmp_path).stdout
        assert str(tmp_path) not in said and said.count("zoo/half_plus_two") == 1, said
