"""`savedmodel-compat verify` as its users run it: text, JSON, SARIF, JUnit, exit codes."""

import json
import os
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import model_edits as edits
import pytest
import verify_planted
from click.testing import CliRunner

from savedmodel_compat.cli import main
from savedmodel_tools.verify import run as running
from savedmodel_tools.verify.rules import all_rules


def run(*arguments):
    return CliRunner().invoke(main, ["verify", *map(str, arguments)])


@pytest.fixture
def zoo(tmp_path, monkeypatch):
    """A sound model, one with an error, one with a warning, an unfinished one."""
    monkeypatch.chdir(tmp_path)
    verify_planted.whole("half_plus_two", tmp_path / "zoo/sound")
    for rule, name in (
        ("SMC203", "damaged"),
        ("SMC413", "pinned to a path"),
        ("SMC102", "unfinished"),
    ):
        verify_planted.PLANTED[rule](tmp_path / "zoo" / name)
    return tmp_path


def test_text_says_what_where_and_what_to_do(zoo):
    done = run("zoo")
    assert done.exit_code == 1, done.output
    lines = done.output.splitlines()
    assert lines[0] == "zoo/damaged"
    assert lines[1].startswith("  error    SMC203  node b: ChecksumError: ")
    assert lines[2].startswith("           fix: Copy variables/ again")
    assert any(
        line.startswith("  warning  SMC413  [serve] node path: ") and "'/home/me/data" in line
        for line in lines
    )
    assert lines[-1] == "4 models: 2 errors, 1 warning"
    assert "zoo/sound" not in done.output


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["zoo/sound"], 0),
        (["zoo/pinned to a path"], 0),
        (["zoo/pinned to a path", "--fail-on", "warning"], 1),
        (["zoo/damaged", "--fail-on", "never"], 0),
        (["zoo/damaged", "--ignore", "SMC203"], 0),
        (["zoo/damaged", "--select", "SMC1,SMC3"], 0),
        (["zoo/damaged", "--select", "SMC9"], 64),
        (["zoo/damaged", "--select", "SMC203", "--ignore", "SMC203"], 64),
        (["zoo/nothing"], 64),
        ([], 64),
        (["zoo/unfinished"], 1),
    ],
)
def test_exit_codes(zoo, arguments, code):
    assert run(*arguments).exit_code == code


def test_a_folder_that_cannot_be_listed_makes_the_run_incomplete(zoo, monkeypatch):
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("sound"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    done = run("zoo", "--fail-on", "never")
    assert done.exit_code == 3
    assert "zoo/sound: " in done.output


def test_a_defect_of_ours_costs_one_model_and_not_the_run(zoo, monkeypatch):
    findings_of = running.findings_of

    def fail(rule, model, tell=False):
        if model.layout.directory.name == "sound":
            raise RuntimeError("oops")
        return findings_of(rule, model, tell)

    monkeypatch.setattr(running, "findings_of", fail)
    done = run("zoo")
    assert done.exit_code == 4
    assert "zoo/sound\n  could not be " in done.output
    assert "SMC203" in done.output and "1 could not" in done.output


def test_json(zoo):
    done = run("zoo", "--json")
    found = json.loads(done.stdout)
    assert (found["schema"], found["counts"], found["skipped"]) == (
        1,
        {"error": 2, "warning": 1},
        [],
    )
    assert found["rules"] == [rule.id for rule in all_rules()]
    models = {model["name"]: model["findings"] for model in found["models"]}
    assert models["zoo/sound"] == []
    (finding,) = models["zoo/damaged"]
    assert set(finding) == {
        "rule",
        "severity",
        "message",
        "fix",
        "tags",
        "file",
        "node",
        "function",
    }
    assert (finding["rule"], finding["severity"], finding["node"]) == ("SMC203", "error", "b")
    assert finding["file"] == "variables/variables.data-00000-of-00001"
    assert done.stdout == run("zoo", "--json").stdout


# What the published schema of SARIF 2.1.0 asks of the objects that are written: their properties,
# and those that must be there.
SARIF = {
    "log": ({"$schema", "version", "runs"}, {"version", "runs"}),
    "run": ({"tool", "invocations", "columnKind", "results"}, {"tool"}),
    "driver": ({"name", "version", "rules"}, {"name"}),
    "rule": (
        {"id", "name", "shortDescription", "fullDescription", "help", "defaultConfiguration"},
        {"id"},
    ),
    "invocation": ({"executionSuccessful", "toolExecutionNotifications"}, {"executionSuccessful"}),
    "notification": ({"level", "message"}, {"message"}),
    "result": (
        {"ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"},
        {"message"},
    ),
    "location": ({"physicalLocation", "logicalLocations"}, set()),
    "logical": ({"name", "fullyQualifiedName", "kind"}, set()),
}


def is_a(kind, item):
    allowed, required = SARIF[kind]
    assert required <= set(item) <= allowed, (kind, item)
    return item


def test_sarif(zoo):
    """Checked against the published schema by hand when it was written; here object by object."""
    assert run("zoo", "--sarif", "out.sarif").exit_code == 1
    log = is_a("log", json.loads((zoo / "out.sarif").read_text(encoding="utf-8")))
    assert log["version"] == "2.1.0" and "sarif-schema-2.1.0" in log["$schema"]
    (made,) = log["runs"]
    is_a("run", made)
    assert made["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    assert [is_a("invocation", item)["executionSuccessful"] for item in made["invocations"]] == [
        True
    ]
    rules = [is_a("rule", item) for item in is_a("driver", made["tool"]["driver"])["rules"]]
    assert [item["id"] for item in rules] == [rule.id for rule in all_rules()]
    assert {item["defaultConfiguration"]["level"] for item in rules} == {"error", "warning", "note"}
    results = [is_a("result", item) for item in made["results"]]
    for item in results:
        assert rules[item["ruleIndex"]]["id"] == item["ruleId"] and item["level"] in (
            "none",
            "note",
            "warning",
            "error",
        )
        assert item["message"]["text"]
        for location in item["locations"]:
            for logical in is_a("location", location).get("logicalLocations", ()):
                is_a("logical", logical)
    uris = {
        item["ruleId"]: item["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for item in results
    }
    assert uris["SMC203"] == "zoo/damaged/variables/variables.data-00000-of-00001"
    assert uris["SMC413"] == "zoo/pinned%20to%20a%20path/saved_model.pb"
    assert len({item["partialFingerprints"]["finding/v1"] for item in results}) == len(results) == 3


def test_junit(zoo):
    run("zoo", "--junit", "out.xml")
    suite = ElementTree.parse(zoo / "out.xml").getroot()[0]
    states = {
        (case.get("classname"), case.get("name")): [child.tag for child in case] for case in suite
    }
    assert states == {
        ("zoo/sound", "verify"): [],
        ("zoo/damaged", "SMC203"): ["failure"],
        ("zoo/pinned to a path", "SMC413"): [],
        ("zoo/unfinished", "SMC102"): ["failure"],
    }
    assert suite.get("failures") == "2"


def test_a_rule_explained():
    done = run("--rule", "smc401")
    assert done.exit_code == 0 and done.output.startswith(
        "SMC401 table-not-initialised (error)\n\n"
    )
    assert run("--rule", "asset-missing").output.startswith("SMC411")
    assert run("--rule", "SMC999").exit_code == 64


def test_rules_are_listed_by_the_beginning_of_their_ids():
    lines = run("--rule", "smc41").output.splitlines()
    assert [line.split()[0] for line in lines] == ["SMC411", "SMC412", "SMC413", "SMC414"]
    assert lines[0].split() == ["SMC411", "error", "asset-missing"]
    assert "Did you mean asset-missing" in run("--rule", "assetmissing").output
    assert "savedmodel-compat verify --rule SMC`" in run("--rule", "SMC999").output


def test_names_from_a_model_cannot_steer_the_terminal(tmp_path):
    def edit(graph):
        verify_planted.node(graph, "\x1b[2J\n", "Identity", "\x1b]0;owned\x07")

    verify_planted.graph_edit("half_plus_two", edit)(tmp_path / "model")
    for arguments in ([], ["--json"], ["--sarif", tmp_path / "s"], ["--junit", tmp_path / "j"]):
        assert "\x1b" not in run(tmp_path / "model", *arguments).output
    assert "\\u001b" not in (tmp_path / "s").read_text(encoding="utf-8")
    assert "\x1b" not in (tmp_path / "j").read_text(encoding="utf-8")


def test_starts_without_heavy_imports():
    """No TensorFlow, no NumPy, and none of the harness."""
    program = (
        "import sys\nfrom click.testing import CliRunner\nfrom savedmodel_compat.cli import main\ndone"
        " = CliRunner().invoke(main, ['verify',"
        f" {str(edits.fixture('module_functions'))!r}])\nprint(done.exit_code,"
        " sorted({'tensorflow', 'numpy', 'rich', 'jinja2', 'pytest', 'fsspec'} &"
        " set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8"
    )
    assert done.stdout == "0 []\n", done.stderr


def test_links_out_of_a_model(tmp_path):
    """Not read without being told to."""
    model = verify_planted.whole("half_plus_two", tmp_path / "zoo/model")
    shutil.move(model / "variables", tmp_path / "elsewhere")
    (model / "variables").symlink_to(tmp_path / "elsewhere")
    done = run(tmp_path / "zoo", "--fail-on", "info")
    assert done.exit_code == 1 and "symbolic link" in done.output
    assert run(tmp_path / "zoo", "--follow-links", "--fail-on", "info").exit_code == 0


def test_a_narrowed_verify_names_the_rules_that_it_did_not_apply():
    """The words `nothing found` are about the rules that were applied."""
    model = edits.fixture("half_plus_two")
    whole, part = (
        CliRunner().invoke(main, ["verify", str(model), *more]).output
        for more in ((), ("--select", "SMC2"))
    )
    assert "not applied" not in whole
    assert "rules not applied (SMC1" in part.splitlines()[-1]
