"""What findings stop: `verify` and `compat` take it from one list, and severities are those for the
releases of a target.
"""

import json

import model_edits as edits
import pytest
import verify_planted
from click.testing import CliRunner

from reference_impl.format import schema
from savedmodel_compat.cli import main
from savedmodel_tools import compat
from savedmodel_tools.skew.history import history
from savedmodel_tools.verify.consequences import OF_RULE
from savedmodel_tools.verify.findings import Severity
from savedmodel_tools.verify.rules import all_rules
from savedmodel_tools.verify.run import verify

NEWEST = len(history().releases) - 1
# Errors that stop no loader of `compat`: of a server's own file, or of what the model does to the
# machine.
STOPS_NONE = {"SMC541", "SMC601", "SMC605"}
UNREADABLE = {"SMC100", "SMC101", "SMC102", "SMC108"}


def severity(path, rule, *arguments):
    """The severity of the finding of one rule by the command; None without one."""
    done = CliRunner().invoke(main, ["verify", str(path), "--json", *arguments])
    (model,) = json.loads(done.stdout)["models"]
    return next((item["severity"] for item in model["findings"] if item["rule"] == rule), None)


def cells(path, *releases):
    """(loader, part) -> whether it loads in every one of the releases; None: not told."""
    (graph, *_) = compat.compat(path, releases)
    found = {}
    for use in graph.uses:
        verdicts = use.verdicts.values()
        found[use.loader, use.part] = (
            None if use.unknown and use.members else all(item.loads for item in verdicts)
        )
    return found


def test_every_rule_says_what_it_stops():
    assert sorted(OF_RULE) == [rule.id for rule in all_rules()]


@pytest.mark.parametrize("rule", sorted(set(verify_planted.PLANTED) - UNREADABLE))
def test_compat_does_not_pass_a_model_that_verify_calls_broken(rule, tmp_path):
    verify_planted.PLANTED[rule](tmp_path / "model")
    worst = verify(tmp_path / "model").worst()
    passes = all(cells(tmp_path / "model", NEWEST).values())
    assert worst is not Severity.ERROR or rule in STOPS_NONE or not passes


def test_what_is_proved_of_a_signature_leaves_the_others_alone(tmp_path):
    verify_planted.PLANTED["SMC522"](tmp_path / "model")
    found = cells(tmp_path / "model", NEWEST)
    assert (
        found["session", "load"]
        and found["c++", "load"]
        and found["session", "signature serving_default"]
    )
    assert not found["session", "signature planted"] and not found["c++", "signature planted"]
    assert not found["objects", "load"] and not found["objects", "signature serving_default"]


def test_all_signatures_are_stopped_where_more_are_broken_than_a_report_lists(tmp_path):
    def edit(graph):
        tensor = verify_planted.placeholder(graph, "given")
        for number in range(30):
            made = graph.signature_def[f"s{number:02}"]
            made.inputs["x"].name, made.outputs["y"].name = tensor, "nowhere:0"

    verify_planted.graph_edit(verify_planted.V1, edit)(tmp_path / "model")
    found = cells(tmp_path / "model", NEWEST)
    assert {found["c++", f"signature s{number:02}"] for number in range(30)} == {False}


def test_a_severity_is_that_for_the_target(tmp_path):
    verify_planted.PLANTED["SMC531"](tmp_path / "model")
    assert severity(tmp_path / "model", "SMC531") == "error"
    assert severity(tmp_path / "model", "SMC531", "--target", "2.15") == "error"
    assert (
        severity(tmp_path / "model", "SMC531", "--target", "1.15") == "warning"
    )  # nobody has seen it refuse the model
    assert severity(tmp_path / "model", "SMC531", "--target", ">=1.15") == "error"
    assert severity(edits.fixture("dtypes_removed_kernels"), "SMC529") == "error"
    assert severity(edits.fixture("dtypes_removed_kernels"), "SMC529", "--target", "1.15") is None


def test_a_target_that_is_none_is_wrong_usage(tmp_path):
    done = CliRunner().invoke(
        main, ["verify", str(edits.fixture("half_plus_two")), "--target", "9.9"]
    )
    assert done.exit_code == 64 and "9.9" in done.output


def test_older_releases_are_not_told_what_newer_ones_are_proved_to_refuse(tmp_path):
    verify_planted.PLANTED["SMC531"](tmp_path / "model")
    old, new = history().index("2.4"), history().index("2.12")
    assert cells(tmp_path / "model", old)["session", "load"] is None
    assert cells(tmp_path / "model", new)["session", "load"] is False
    done = CliRunner().invoke(main, ["compat", str(tmp_path / "model")])
    assert "2.12 or newer" in done.output


@pytest.mark.parametrize("version", ["0.12.head", "1.15.0-built-here"])
def test_a_version_that_python_cannot_parse_stops_sessions(version, tmp_path):
    def edit(graph):
        graph.meta_info_def.tensorflow_version = version

    verify_planted.graph_edit(verify_planted.V1, edit)(tmp_path / "model")
    found = cells(tmp_path / "model", NEWEST)
    assert not found["session", "load"] and not found["objects", "load"] and found["c++", "load"]


@pytest.mark.parametrize(
    ("dtype", "found"),
    [(schema.DT_FLOAT, False), (schema.DT_DOUBLE, True), (schema.DT_INVALID, False)],
)
def test_promised_dtypes(dtype, found, tmp_path):
    """Of the output of a call, in a model with objects.

    A dtype that is not stated promises nothing.
    """

    def edit(graph):
        next(iter(graph.signature_def["serving_default"].outputs.values())).dtype = dtype

    verify_planted.graph_edit(verify_planted.V2, edit)(tmp_path / "model")
    assert (severity(tmp_path / "model", "SMC532") == "error") is found
