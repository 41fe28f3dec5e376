"""`bisect`: the first release in which a cell changes."""

import json
import shlex
import shutil
import sys
from pathlib import Path

import faulty_tensorflow
import pytest
from click.testing import CliRunner

import compat_matrix
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.results import Result
from compat_matrix.gate.bisect import bisect
from compat_matrix.report.gate_words import bisect_command
from compat_matrix.runtimes.places import RuntimeTrouble
from compat_matrix.runtimes.resolve import resolve
from compat_matrix.runtimes.runtime import Runtime, local_runtime
from savedmodel_compat.cli import main

RELEASES = [f"2.{minor}" for minor in range(4, 22)]


@pytest.mark.parametrize("first", RELEASES[1:])
def test_few_releases_are_asked(first):
    def ask(release):
        works = RELEASES.index(release) >= RELEASES.index(first)
        return Result(
            "p",
            "c",
            Outcome.PASS if works else Outcome.LOAD_ERROR,
            message_normalised="" if works else "unknown op",
        )

    found = bisect(RELEASES, ask)
    assert (found.before, found.after) == (RELEASES[RELEASES.index(first) - 1], first)
    assert len(found.seen) <= 7
    assert found.seen[found.before] == "LOAD_ERROR unknown op"


def test_nothing_changes():
    found = bisect(["2.4", "2.5", "2.6"], lambda release: Result("p", "c", Outcome.PASS))
    assert (found.before, found.after, list(found.seen)) == ("", "", ["2.4", "2.6"])


def test_a_failure_may_have_other_causes_on_the_way():
    messages = {"2.4": "a", "2.5": "b", "2.6": "b", "2.7": "b"}

    def ask(release):
        message = messages.get(release, "")
        return Result(
            "p", "c", Outcome.LOAD_ERROR if message else Outcome.PASS, message_normalised=message
        )

    assert bisect(RELEASES, ask).after == "2.8"
    assert bisect(["2.4", "2.5", "2.6"], ask).after == "2.5"


def test_what_a_model_says_does_not_steer_the_terminal(monkeypatch):
    def result(parts, release, *_):
        said = "" if release == "2.4" else "no op \x1b[2J\nreleases: all"
        return Result(
            "p", "c", Outcome.LOAD_ERROR if said else Outcome.PASS, message_normalised=said
        )

    monkeypatch.setattr("compat_matrix.commands.parts.gate_bisect._result", result)
    done = CliRunner().invoke(
        main, ["gate", "bisect", "a/fixture@1.15.5/tf2@2.21.0/load", "--from", "2.4", "--to", "2.6"]
    )
    assert done.exit_code == 0 and "changes in 2.5" in done.stdout
    assert "\x1b" not in done.output and "\nreleases" not in done.output


@pytest.mark.parametrize(
    ("baseline", "kind", "command"),
    [
        (
            "2.18.1",
            "regressed",
            "savedmodel-compat gate bisect a/tf2@2.18.1/c_api@2.21.0/values --from 2.18 --to 2.21",
        ),
        ("2.20.0", "regressed", ""),  # nothing lies between
        ("2.18.1", "fixed", ""),
        ("given", "regressed", ""),
    ],
)
def test_a_gate_says_how_to_find_the_release_of_a_regression(baseline, kind, command):
    cause = {"kind": kind, "cause": "CRASH", "blocks": kind == "regressed"}
    fact = {
        **cause,
        "role": "reads",
        "consumer": "c_api",
        "candidate": {"cell": "a/tf2@2.18.1/c_api@2.21.0/values"},
    }
    verdict = {"baseline": {"label": baseline}, "candidate": {"label": "2.21.0"}, "facts": [fact]}
    assert bisect_command(verdict, cause) == command


def run(*arguments):
    return CliRunner().invoke(main, ["gate", "bisect", *arguments])


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        (("2.21", "2.4"), "--from 2.21 is not older than --to 2.4"),
        (("2.4", "2.4"), "--from 2.4 is not older than --to 2.4"),
        (("2.4", "7.0"), "no release of the op history is called 7.0"),
    ],
)
def test_releases_that_make_no_range_are_refused(ends, reason):
    done = run(
        "half_plus_two/fixture@1.15.5/c_api@2.21.0/values", "--from", ends[0], "--to", ends[1]
    )
    assert done.exit_code != 0
    assert reason in done.output


def installed(*releases):
    for release in releases:
        try:
            resolve(release)
        except RuntimeTrouble as error:
            pytest.skip(f"the runtime of {release} is not installed: {error}")


@pytest.mark.tensorflow
def test_a_check_that_a_plan_of_several_releases_does_not_ask_of_the_cell_is_asked():
    installed("2.15", "2.16")
    cell = "keras_compiled_save/fixture@1.15.5/tf2@2.21.0/load"  # as `gate` names it
    done = run(cell, "--from", "2.15", "--to", "2.16", "--no-install")
    assert done.exit_code == 0, done.output
    assert "changes in 2.16\n  2.15: PASS\n  2.16: LOAD_ERROR" in done.output
    told = json.loads(run(cell, "--from", "2.15", "--to", "2.16", "--no-install", "--json").stdout)
    assert (told["before"], told["after"]) == ("2.15", "2.16")
    assert [(one["release"], one["outcome"]) for one in told["asked"]] == [
        ("2.15", "PASS"),
        ("2.16", "LOAD_ERROR"),
    ]


@pytest.mark.tensorflow
def test_the_release_that_lost_a_kernel_is_found():
    installed("2.2", "2.3", "2.4", "2.5")
    cell = "dtypes_removed_kernels/fixture@1.15.5/c_api@2.21.0/values"
    done = run(cell, "--from", "2.2", "--to", "2.5", "--no-install")
    assert done.exit_code == 0, done.output
    assert "changes in 2.4\n  2.3: PASS\n  2.4: LOAD_ERROR" in done.output
    assert run(cell, "--from", "2.2", "--to", "2.3", "--no-install").exit_code == 3


# Cells of the user's own models and programs
# ------------------------------------------------------------------------------

LOST = "\n\ndef parse_saved_model(export_dir):\n    raise ValueError('this loader is lost')\n"


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """release -> a runtime that stands for it: the TensorFlow that is here, and before 2.20 one
    whose loader is broken.
    """
    broken = faulty_tensorflow.copy(
        tmp_path_factory.mktemp("broken") / "tf",
        {"python/saved_model/loader_impl.py": lambda text: text + LOST},
    )

    def runtime(release):
        here = local_runtime()
        version = (
            here.tensorflow_version if release == "2.21" else f"{here.tensorflow_version}+{release}"
        )
        return Runtime(
            f"tf{release}", here.python if release > "2.19" else broken, version, spec=release
        )

    return runtime


@pytest.fixture
def asked(monkeypatch, releases):
    """Run `bisect` from 2.18 to 2.21 with these releases; the exit code and what was printed."""
    monkeypatch.setattr(
        "compat_matrix.commands.parts.gate_bisect.asked_runtimes",
        lambda specs, _: (releases(specs[0]),),
    )

    def asked_(cell_id, *options):
        done = run(cell_id, "--from", "2.18", "--to", "2.21", *map(str, options))
        return done.exit_code, done.output

    return asked_


@pytest.mark.tensorflow
def test_a_cell_of_check_is_asked_with_the_models_of_its_folder(asked, tmp_path):
    model = Path(__file__).parents[2] / "fixtures_v1" / "half_plus_two" / "model"
    bare, out = tmp_path / "bare", tmp_path / "out"
    shutil.copytree(model, bare)
    checked = CliRunner().invoke(
        main, ["check", str(bare), "--consumer", "tf2", "--check", "load", "--out", str(out)]
    )
    assert checked.exit_code == 0, checked.output
    (cell_id,) = [
        cell["id"]
        for cell in json.loads((out / "plan.json").read_text())["cells"]
        if cell["check"] == "load"
    ]
    assert "/given@" in cell_id
    code, said = asked(cell_id, "--run", out)
    assert (
        code,
        "changes in 2.20\n  2.19: LOAD_ERROR" in said,
        "is lost\n  2.20: PASS" in said,
    ) == (0, True, True), said
    code, said = asked(cell_id, "--fixtures", out / "given")
    assert (code, "changes in 2.20" in said) == (0, True), said
    code, said = asked(cell_id.replace("/load", "/values"), "--run", out)
    assert (code, "has no cell" in said) == (64, True), said


@pytest.fixture
def folder(tmp_path):
    """A folder with one case of the user."""
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "doubled.py").write_text(
        '"""A product."""\nCLAUSES = ("FN-05",)\nFEATURES = ("functions",)\n\n\ndef build(tf,'
        " work):\n    root = tf.Module()\n    spec = [tf.TensorSpec([None], tf.float32)]\n   "
        ' root.f = tf.function(lambda x: {"y": x * 2.0}, input_signature=spec)\n    return root,'
        ' {"serving_default": root.f}\n\n\ndef requests(np):\n    return [("serving_default", {"x":'
        " np.float32([1, 2])})]\n"
    )
    return folder


@pytest.mark.tensorflow
def test_the_command_that_a_gate_prints_finds_the_case_of_the_user(
    asked, folder, tmp_path, releases
):
    out = tmp_path / "gate"
    command = [
        "gate",
        "run",
        "--baseline",
        "local",
        "--candidate",
        str(releases("2.18").python),
        "--cases-dir",
        str(folder),
        "-n",
        "1",
    ]
    command += [
        "--no-install",
        "--check",
        "load",
        "--producer",
        "tf2",
        "--consumer",
        "tf2",
        "--out",
        str(out),
    ]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1, done.output
    verdict = json.loads((out / "gate.json").read_text())
    assert verdict["candidate"]["run"] == str(out / "run")
    verdict["baseline"]["label"], verdict["candidate"]["label"] = (
        "2.18.0",
        "2.21.0",
    )  # copies of one release: name two
    (cause,) = [
        cause
        for cause in verdict["causes"]
        if (cause["kind"], cause["roles"]) == ("regressed", ["reads"])
    ]
    words = shlex.split(bisect_command(verdict, cause))
    assert words[:2] == ["savedmodel-compat", "gate"] and words[4:8] == [
        "--from",
        "2.18",
        "--to",
        "2.21",
    ]
    code, said = asked(words[3], *words[8:])
    assert (code, "changes in 2.20" in said) == (0, True), said


@pytest.mark.tensorflow
def test_a_cell_of_cases_and_plugins_of_the_user_is_asked(asked, folder):
    written = f"doubled/tf2@{local_runtime().tensorflow_version}"
    code, said = asked(f"{written}/tf2@2.21.0/load", "--cases-dir", folder)
    assert (code, "changes in 2.20" in said) == (0, True), said
    sample = Path(compat_matrix.__path__[0]) / "plugins" / "samples" / "numpy_consumer.py"
    code, said = asked(
        "doubled/tf2@2.19.0/mine@1.0/load",
        "--cases-dir",
        folder,
        "--consumer",
        f"mine={sys.executable} {sample}",
    )
    assert (code, "mine has a version of its own" in said) == (64, True), said
    code, said = asked("doubled/nobody@2.19.0/tf2@2.21.0/load", "--cases-dir", folder)
    assert (code, "no producer is called nobody" in said) == (64, True), said


@pytest.mark.tensorflow
def test_a_release_that_gives_no_answer_is_no_change(monkeypatch):
    """A worker that does not start says nothing about a release."""
    here = local_runtime()
    other = Runtime("tf2.18", here.python, "2.18.0", spec="2.18")
    runtimes = {"2.18": other, "2.21": here}
    monkeypatch.setattr(
        "compat_matrix.commands.parts.gate_bisect.asked_runtimes",
        lambda specs, _: (runtimes[specs[0]],),
    )
    done = run("half_plus_two/fixture@1.15.5/c_api@2.21.0/values", "--from", "2.18", "--to", "2.21")
    assert (done.exit_code, "2.18 was not asked: SETUP_ERROR" in done.output) == (
        4,
        True,
    ), done.output
