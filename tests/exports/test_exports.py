"""Exports under check: one engine for the command and the pytest fixture, with a fake worker for
every consumer.
"""

import json
import re
import shlex
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from fake_artifacts import saved_model, write_artifact
from fake_runtime import fake_runtime

from compat_matrix.cells.results import read_results
from compat_matrix.exports import session
from compat_matrix.exports.options import OptionError, Options, tolerance
from compat_matrix.exports.session import Session
from compat_matrix.requests.given import Export
from compat_matrix.runtimes.runtime import Runtime
from reference_impl.format import schema
from savedmodel_compat.cli import main

X = np.float32([1, 2])
RIGHT = {"serving_default": [({"x": X}, {"y": np.float32([2.5, 3])})]}
OPEN = {"serving_default": [{"x": X}]}
ONLY_VALUES = Options(checks=("values", "compared"))


class World:
    """An export, and a session whose every consumer is the fake."""

    def __init__(self, folder, session):
        self.folder = folder
        self.model = folder / "export"
        self.runs = 0
        self.session = session

    def export(self, misbehave=""):
        shutil.rmtree(self.model, ignore_errors=True)
        self.model.mkdir()
        (self.model / "saved_model.pb").write_bytes(saved_model())
        if misbehave:
            (self.model / "misbehave").write_text(misbehave)
        return self.model

    def check(self, misbehave="", requests=RIGHT, options=None, **export):
        self.export(misbehave)
        self.runs += 1
        given = Export(self.model, requests, **export)
        return self.session.check([given], options or Options(), self.folder / f"out{self.runs}")


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    """The fake as the TensorFlow that is here."""
    return Runtime(
        "local", fake_runtime(tmp_path_factory.mktemp("fake")).python, "1.0", spec="local"
    )


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    with Session(tmp_path_factory.mktemp("session"), warm=True) as session:
        yield session


@pytest.fixture
def world(tmp_path, monkeypatch, fake, warm):
    monkeypatch.setattr(session, "local_runtime", lambda: fake)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # commands keep there what failed
    return World(tmp_path, warm)


def outcomes(report):
    return {
        "/".join(cell.split("/")[2:]): str(result.outcome)
        for cell, result in report.results.items()
    }


def test_an_export_that_answers_as_recorded_passes_and_says_what_was_compared(world):
    report = world.check()
    assert report.ok, report.text()
    assert set(outcomes(report).values()) == {"PASS", "NOT_APPLICABLE"}
    asked = {cell.split("@")[0] for cell in outcomes(report)}
    assert asked == {"tf2", "v1_session", "c_api", "reference", "format", "all"}
    assert report.text().splitlines()[-1] == "answers compared: 4 with recorded ones"


def test_models_that_fail_alike_are_one_cause_that_names_them_as_the_user_does(world):
    """Also in a folder with a space, where a path in a message is not seen to be one."""
    models = [
        shutil.copytree(world.export("load=error"), world.folder / name)
        for name in ("a model", "b.model", "sound")
    ]
    (models[2] / "misbehave").unlink()
    given = [Export(model, RIGHT, name=model.name) for model in models]
    report = world.session.check(
        given, Options(checks=("load", "relocate")), world.folder / "the output"
    )
    lines = report.text().splitlines()
    assert lines[0].startswith("3 models: 16 of ")
    assert (
        lines[1]
        == "LOAD_ERROR  2 models: tf2@1.0, v1_session@1.0, c_api@1.0, reference@1.0 / load,"
        " relocate"
    )
    assert lines[2] == "    models: a model, b.model"
    page = (report.out / "report.html").read_text()
    first = page.partition('<div class="cause">')[2].partition("</div>")[0]
    assert page.count('<div class="cause">') == 1 and "<strong>2 models</strong>" in first
    assert "<li>a model " in first and "<li>b.<wbr>model " in first
    assert "<details open" not in page.partition('id="cells"')[2]  # the causes lead to the cells


def test_a_model_that_cannot_be_read_fails_and_the_others_are_checked(world):
    broken = world.folder / "broken"
    broken.mkdir()
    (broken / "saved_model.pb").write_bytes(b"\xff\xff\xff\x01")
    report = world.session.check(
        [Export(broken), Export(world.export(), RIGHT)], ONLY_VALUES, world.folder / "out"
    )
    assert report.exit_code == 1
    assert {o for cell, o in outcomes(report).items() if cell.endswith("values")} == {"PASS"}
    (cause,) = report.causes()
    assert (cause.outcome, cause.models, cause.title.rpartition(" / ")[2]) == (
        "FAIL_STRUCTURE",
        [str(broken)],
        "inspect",
    )
    assert (
        "MalformedError" in cause.lines[0]
        and cause.replay == f"savedmodel-compat check {broken} --check inspect"
    )


def test_without_recorded_answers_consumers_are_compared_with_each_other(world):
    report = world.check(requests=OPEN)
    assert report.ok, report.text()
    assert report.text().splitlines()[-1].endswith("compared: 3 with those of tf2@1.0")


def test_without_requests_they_are_made_up_and_of_as_many_as_asked_none_is_the_other(world):
    assert world.check(requests=None).ok
    report = world.check(requests=None, options=Options(make_up=3))
    assert report.ok
    assert "compared: 9 with those of tf2@1.0" in report.text()
    io = report.prepared[0].directory / "io"
    assert len({path.read_bytes() for path in io.glob("*.in.npz")}) == 3


def test_a_wrong_answer_tells_all_that_is_needed_to_see_it_again(world):
    report = world.check("call=wrong")
    assert report.exit_code == 1
    lines = report.text().splitlines()
    assert lines[0].startswith(f"{world.model}: 11 of ")
    # One cause, one message: four consumers, each asked again from another place and after saving.
    who = "tf2@1.0, v1_session@1.0, c_api@1.0, reference@1.0"
    assert lines[1] == f"FAIL_VALUE  {who} / values, relocate, reexport"
    said = (
        "element [1] is 4.0, recorded 3.0; 1 of 2 differ, by at most 1 or 4.1943e+06 ulp".replace(
            "4.1943e+06", "4194304"
        )
    )
    assert (
        lines[2].strip()
        == f"request 0-serving_default: signature 'serving_default', output 'y': {said}"
    )
    folder = Path(lines[3].split("evidence: ")[1].split(" (")[0])
    assert {path.name for path in folder.iterdir()} >= {"expected.npz", "got.npz"}
    command = shlex.split(lines[4].partition("reproduce: ")[2])
    assert command[:2] == ["savedmodel-compat", "check"]
    again = CliRunner().invoke(main, [*command[1:], "-q"])
    assert again.exit_code == 1
    assert said in again.output


def test_the_page_shows_failures_by_cause_with_the_name_the_user_gave(world):
    report = world.check("call=wrong", name="exports/mine")
    page = (report.out / "report.html").read_text()
    assert page.count('<div class="cause">') == 1 == len(report.causes())
    first = page.partition('<div class="cause">')[2].partition("</div>")[0]
    assert all(
        f"{who}@1.0 / <a href=" in first for who in ("tf2", "v1_session", "c_api", "reference")
    )
    assert (
        "element [1] is 4.0, recorded 3.0" in first
        and "Replay: <code>savedmodel-compat check" in first
    )
    assert first.count('href="#cell-') == 11
    matrix = page.partition('<h2 id="matrix">')[2]
    assert ">exports/<wbr>mine</a>" in matrix and "<h3>exports/<wbr>mine <span" in matrix
    again = CliRunner().invoke(main, ["matrix", "report", str(report.out)])
    assert (again.exit_code, (report.out / "report.html").read_text()) == (1, page)
    (report.out / "about.json").write_text("[")
    assert CliRunner().invoke(main, ["matrix", "report", str(report.out)]).exit_code == 4


def test_a_consumer_that_differs_from_the_others_is_named(world):
    report = world.check("reference_worker/call=wrong", OPEN, ONLY_VALUES)
    assert outcomes(report)["reference@1.0/values"] == "FAIL_VALUE"
    assert [outcome for cell, outcome in outcomes(report).items() if "values" in cell].count(
        "PASS"
    ) == 3
    assert "element [1] is 4.0, tf2@1.0 answered 3.0" in report.text()


def test_when_all_others_agree_it_is_the_first_that_is_alone(world):
    report = world.check("tf2_worker/call=wrong", OPEN, ONLY_VALUES)
    assert not report.ok
    assert "tf2@1.0 is alone" in report.text()
    assert "v1_session@1.0, c_api@1.0, reference@1.0 agree" in report.text()


def test_a_signature_that_was_lost_fails_by_name(world):
    report = world.check(requests={**RIGHT, "score": [{"x": X}]})
    assert report.exit_code == 1
    assert [o for cell, o in outcomes(report).items() if cell.endswith("/requests")] == [
        "FAIL_SIGNATURE"
    ]
    assert "'score'" in report.text() and "'serving_default'" in report.text()


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (
            ({"x": X}, {"y": np.float64([2.5, 3])}),
            "output 'y' is float32 in the signature, the recorded answer is float64",
        ),
        (({"x": X}, {"z": X}), "the signature has no output 'z'; the recorded answer lacks 'y'"),
        ({"z": X}, "it has no input 'z'; the request lacks 'x'"),
        (
            {"x": np.float64([1])},
            "input 'x' is float32 in the signature, the request gives float64",
        ),
        (
            {"x": np.float32([[1]])},
            "input 'x' has the shape [None] in the signature, the request gives [1, 1]",
        ),
    ],
)
def test_requests_that_do_not_fit_the_signature_fail_and_nobody_is_asked(world, inputs, said):
    report = world.check(
        requests={"serving_default": [inputs]},
        options=Options(checks=("requests", "values", "compared")),
    )
    assert report.exit_code == 1
    assert said in report.text()
    assert "NOT_RUN  all / compared: " in report.text()


def test_numbers_without_a_dtype_take_that_of_the_signature_and_one_array_needs_no_name(world):
    report = world.check(requests={"serving_default": ([1, 2], [2.5, 3])}, options=ONLY_VALUES)
    assert report.ok, report.text()


def test_a_consumer_alone_compares_nothing_with_itself(world):
    report = world.check(requests=OPEN, options=Options(consumers=("c_api",)))
    assert report.exit_code == 3
    assert "only c_api@1.0 answered" in report.text()
    assert world.check(requests=RIGHT, options=Options(consumers=("c_api",))).ok


def test_without_tensorflow_everything_is_told_as_not_run_and_is_no_pass(world, monkeypatch):
    monkeypatch.setattr(
        session, "local_runtime", lambda: Runtime("local", Path(sys.executable), None)
    )
    report = world.check()
    assert report.exit_code == 3
    assert '(pip install "savedmodel-compat[tf]")' in report.text()
    assert outcomes(report)["tf2@absent/values"] == "NOT_RUN"
    assert [
        o
        for cell, o in outcomes(report).items()
        if cell.startswith("format") and cell.endswith("inspect")
    ] == ["PASS"]


def test_a_worker_that_dies_costs_its_checks_and_no_others(world):
    report = world.check("c_api_worker/call=abort", options=ONLY_VALUES)
    assert outcomes(report)["c_api@1.0/values"] == "CRASH"
    assert "SIGABRT" in report.text()
    assert [o for cell, o in outcomes(report).items() if cell.endswith("values")] == [
        "PASS",
        "PASS",
        "CRASH",
        "PASS",
    ]
    assert world.check(options=ONLY_VALUES).ok


def test_what_kills_everybody_is_a_crash_also_where_the_request_was_made_up(world):
    report = world.check("call=abort", None, ONLY_VALUES)
    assert report.exit_code == 1
    assert {o for cell, o in outcomes(report).items() if cell.endswith("values")} == {"CRASH"}


def test_a_model_that_does_not_load_fails_for_each_consumer(world):
    report = world.check(
        "v1_session_worker/load=error", OPEN, Options(checks=("load", "values", "compared"))
    )
    assert outcomes(report)["v1_session@1.0/load"] == "LOAD_ERROR"
    assert outcomes(report)["c_api@1.0/load"] == "PASS"


def test_a_model_with_a_state_is_loaded_afresh_for_every_check(world):
    report = world.check("call=count", {"serving_default": [{"x": X}, {"x": X}]})
    assert report.ok, report.text()
    assert json.loads((report.prepared[0].directory / "io" / "io.json").read_text())["stateful"]


def test_chance_is_not_compared_and_that_is_no_pass(world):
    report = world.check("call=chance", OPEN)
    assert report.exit_code == 3
    assert "drawn at random" in report.text()


def test_a_signature_that_no_request_asks_is_shown_and_fails_where_all_is_required(world):
    world.export()
    saved = schema.parse(schema.SavedModel, saved_model())
    saved.meta_graphs[0].signature_def["other"].CopyFrom(
        saved.meta_graphs[0].signature_def["serving_default"]
    )
    (world.model / "saved_model.pb").write_bytes(schema.serialize(saved))
    for require in (False, True):
        options = Options(checks=("values", "asked", "compared"), require=require)
        report = world.session.check(
            [Export(world.model, RIGHT)], options, world.folder / f"asked{require}"
        )
        assert report.exit_code == (3 if require else 0)
        assert "NOT_RUN  all / asked: signature 'other': " in report.text()


def test_what_saving_again_loses_fails(world):
    assert "FAIL_SIGNATURE" in world.check("tf2_worker/resave=lose").text()


def test_a_tolerance_is_used_and_told_and_needs_a_reason(world):
    near = {"serving_default": [(X, np.float32([2.5, 3.01]))]}
    assert not world.check(requests=near, options=ONLY_VALUES).ok
    loose = Options(checks=("values", "compared"), tolerance=tolerance((0.1, 0, "rounded by hand")))
    report = world.check(requests=near, options=loose)
    assert report.ok
    assert "4 equal within" in report.text()
    for bad in ((0.1, 0), "0.1 0", (float("nan"), 0, "x"), (-1, 0, "x"), "much", (1,)):
        with pytest.raises(OptionError):
            tolerance(bad)
    assert tolerance("1e-3 0 because") == (1e-3, 0, "because")


@pytest.mark.parametrize(
    "wrong",
    [{"checks": ("vales",)}, {"fail_on": "fatal"}, {"make_up": -1}, {"limit": float("nan")}],
)
def test_options_that_mean_nothing_are_refused(wrong):
    with pytest.raises(OptionError):
        Options(**wrong)


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        ([X], "requests are a mapping"),
        ({"serving_default": [(X, X, X)]}, "not 3 things"),
        ({"serving_default": [{"x": object()}]}, "no tensor"),
        ({"serving_default": [{"x": ["a"]}]}, "no tensor"),
    ],
)
def test_requests_that_are_none_are_refused(world, requests, said):
    with pytest.raises(OptionError, match=said):
        world.check(requests=requests)


def test_an_unknown_consumer_is_refused_with_those_there_are(world):
    with pytest.raises(OptionError, match=r"tf3\. .*tf2"):
        world.check(options=Options(consumers=("tf3",)))


def test_a_consumer_of_other_people_is_named_like_ours(world):
    worker = f"mine={sys.executable} {Path(__file__).parents[1] / 'support' / 'fake_worker.py'}"
    report = world.check(
        "reference_worker/call=wrong",
        OPEN,
        Options(consumers=("c_api", worker), checks=("values",)),
    )
    assert report.ok, report.text()
    assert {cell.partition("@")[0] for cell in outcomes(report)} == {"c_api", "mine", "all"}
    report = world.check("call=wrong", options=Options(consumers=(worker,), checks=("values",)))
    again = CliRunner().invoke(main, [*shlex.split(report.failures[0].replay)[1:], "-q"])
    assert again.exit_code == 1
    assert "FAIL_VALUE  mine@" in again.output


def test_a_defect_that_verify_finds_fails_by_its_severity(world):
    world.export()
    saved = schema.parse(schema.SavedModel, saved_model())
    saved.meta_graphs[0].graph_def.node.add(name="loose", op="Identity", input=["nobody"])
    (world.model / "saved_model.pb").write_bytes(schema.serialize(saved))
    for fail_on, code in (("error", 1), ("never", 0)):
        options = Options(checks=("verify",), fail_on=fail_on)
        report = world.session.check([Export(world.model, RIGHT)], options, world.folder / fail_on)
        assert report.exit_code == code, report.text()
        assert (f"{report.plan.cells[0].consumer} / verify" in report.text()) is False
        assert ("fix: " in (report.out / "report.html").read_text()) is bool(code)
    assert report.results[report.plan.cells[0].id].details["findings"]


def test_a_limit_holds_for_what_is_asked(world):
    worker = f"mine={sys.executable} {Path(__file__).parents[1] / 'support' / 'fake_worker.py'}"
    report = world.check(
        "call=hang", RIGHT, Options(consumers=(worker,), checks=("values",), limit=2.5)
    )
    found = {
        name: (item.outcome.value, item.message)
        for name, item in report.results.items()
        if "mine" in name
    }
    assert [outcome for outcome, _ in found.values()] == ["TIMEOUT"]


def test_known_failures_are_expected_and_stale_ones_fail(world, tmp_path):
    ledger = tmp_path / "known.toml"
    ledger.write_text(
        'schema = 1\n[[expect]]\ncase = "*"\nproducer = "given"\nconsumer = "c_api"\ncheck ='
        ' "values"\noutcome = "FAIL_VALUE"\nkind = "bug"\nreason = "known"\nadded = 2026-01-01\n'
    )
    known = Options(checks=("values", "compared"), expectations=ledger)
    report = world.check("c_api_worker/call=wrong", options=known)
    assert report.ok, report.text()
    assert "1 known failure" in report.headline()
    assert world.check(options=known).exit_code == 2


def test_the_command_reads_artifacts_and_folders_and_writes_what_is_asked(world, tmp_path):
    for name, misbehave in (("good", ""), ("bad", "call=wrong")):
        folder = write_artifact(tmp_path / "zoo" / name, misbehave)
        provenance = json.loads((folder / "provenance.json").read_text())
        maker = {"name": "mine", "versions": {"tensorflow": "1.0"}}
        (folder / "provenance.json").write_text(
            json.dumps({**provenance, "case": name, "producer": maker})
        )
    out, junit = tmp_path / "checked", tmp_path / "junit.xml"
    arguments = [
        "check",
        str(tmp_path / "zoo"),
        "--out",
        str(out),
        "--junit",
        str(junit),
        "--json",
        "--check",
        "values",
    ]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 1, done.output
    told = json.loads(done.stdout)
    assert told["exit_code"] == 1
    assert told["counts"] == {"PASS": 6, "FAIL_VALUE": 4}
    assert {
        c["outcome"]
        for c in told["cells"]
        if c["cell"].startswith("bad/") and c["cell"].endswith("values")
    } == {"FAIL_VALUE"}
    assert "<failure" in junit.read_text()
    assert {"plan.json", "results.jsonl", "summary.json", "report.html", "evidence"} <= {
        p.name for p in out.iterdir()
    }


def test_the_command_refuses_what_it_would_destroy(world, tmp_path):
    write_artifact(tmp_path / "kept")
    done = CliRunner().invoke(main, ["check", "-q", str(tmp_path / "kept"), "--out", str(tmp_path)])
    assert done.exit_code == 64
    assert "from a run" in done.output
    assert (tmp_path / "kept" / "model" / "saved_model.pb").is_file()


def test_requests_beside_the_model_are_taken_and_answered_where_they_have_no_answer(
    world, tmp_path
):
    made = write_artifact(tmp_path / "made")
    (made / "provenance.json").unlink()
    document = json.loads((made / "io" / "io.json").read_text())
    document["requests"].append({**document["requests"][0], "id": "open", "outputs": None})
    (made / "io" / "io.json").write_text(json.dumps(document))
    report = world.session.check([Export(made)], ONLY_VALUES, tmp_path / "out")
    assert report.ok, report.text()
    assert "compared: 4 with recorded" in report.text() and "3 with those" in report.text()


def test_the_hooks_of_pre_commit_run_and_are_about_the_files_of_models(world, tmp_path):
    text = (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text()
    hooks = dict(
        zip(
            re.findall(r"^- id: (.*)$", text, re.MULTILINE),
            re.findall(r"^  entry: (.*)$", text, re.MULTILINE),
        )
    )
    assert hooks.keys() == {"savedmodel-verify", "savedmodel-check"}
    for pattern in re.findall(r"^  files: (.*)$", text, re.MULTILINE):
        assert re.search(pattern, "models/a/1/saved_model.pb")
        assert not re.search(pattern, "models/a/1/not_saved_model.pb")
    assert len(re.findall(r"^  files: ", text, re.MULTILINE)) == len(hooks)
    world.export()
    for misbehave, codes in (("", [0, 0]), ("c_api_worker/call=wrong", [0, 1])):
        file = world.export(misbehave) / "saved_model.pb"
        done = [
            CliRunner().invoke(main, [*shlex.split(entry)[1:], str(file)])
            for entry in hooks.values()
        ]
        assert [one.exit_code for one in done] == codes, done[-1].output


def test_an_exporter_that_overwrites_while_others_are_checked_is_no_matter(world):
    """The artifact is of its own: what is written at the path later changes nothing."""
    report = world.check("reference_worker/call=wrong", OPEN, ONLY_VALUES)
    shutil.rmtree(world.model)
    command = shlex.split(report.failures[0].replay)
    assert CliRunner().invoke(main, [*command[1:], "-q"]).exit_code == 1


def test_a_check_that_is_interrupted_keeps_what_it_saw(world):
    def interrupt(result):
        raise KeyboardInterrupt

    out, options = world.folder / "interrupted", Options(consumers=("tf2",))
    with pytest.raises(KeyboardInterrupt):
        world.session.check([Export(world.export(), RIGHT)], options, out, advance=interrupt)
    results = read_results(out / "results.jsonl")
    told = Counter(str(result.outcome) for result in results if result.message != "interrupted")
    assert told["PASS"] == 1 and not (out / "summary.json").exists(), told
    assert any(
        str(result.outcome) == "NOT_RUN" and result.message == "interrupted" for result in results
    )
    assert world.check(options=options).ok, "the session goes on"


# What is named is asked, and what a model states about itself has a limit
# -------------------------------------------------


@pytest.mark.parametrize(
    ("options", "who"),
    [
        (Options(consumers=("tf2", "cpp")), "consumer cpp ("),
        (
            Options(checks=("values", "fingerprint")),
            "check fingerprint (the export has no fingerprint.pb)",
        ),
        (
            Options(consumers=("c_api",), checks=("values", "objects")),
            "check objects (the consumer cannot describe)",
        ),
    ],
)
def test_what_was_named_and_not_asked_leaves_the_check_incomplete(world, options, who):
    """All that was asked passes, and the user is told that a name of theirs was not."""
    report = world.check(options=options)
    assert not report.failures
    assert report.exit_code == 3, report.text()
    assert f"asked: {who}" in report.text()
    assert [one["name"] for one in report.to_json()["not_asked"]] == [who.split()[1]]
    assert who.split(" (")[0] in (report.out / "report.html").read_text()


def test_a_tolerance_beside_the_model_counts_up_to_its_limit_and_that_of_the_user_beyond(world):
    artifact = write_artifact(
        world.folder / "stated",
        "call=wrong",
        tolerance={"rtol": 1e300, "atol": 0.0, "reason": "trust me"},
    )
    (artifact / "provenance.json").unlink()  # a model with requests beside it
    report = world.session.check([Export(artifact)], ONLY_VALUES, world.folder / "out")
    assert {str(result.outcome) for result in report.failures} == {"FAIL_VALUE"}, report.text()
    assert report.exit_code == 1
    loose = Options(checks=("values", "compared"), tolerance=tolerance((0.5, 0, "quantised")))
    allowed = world.session.check([Export(artifact)], loose, world.folder / "loose")
    assert allowed.ok, allowed.text()
    assert (
        world.session.check([Export(artifact)], ONLY_VALUES, world.folder / "again").exit_code == 1
    )  # nothing is kept
