"""`verify`: every planted defect is found by its rule, and nothing on what is sound."""

import model_edits as edits
import pytest
import verify_planted
import zoo
from click.testing import CliRunner

from property_tests.attacks import effects
from property_tests.faults import rules
from property_tests.faults.stage import Stage
from reference_impl.format import schema
from savedmodel_common.exit_codes import ExitCode
from savedmodel_compat import cli
from savedmodel_tools.verify.findings import Severity
from savedmodel_tools.verify.rules import (
    UnknownRule,
    all_rules,
    choose,
)
from savedmodel_tools.verify.run import MAX_FINDINGS, verify

FIXTURES = sorted(path.parent.name for path in edits.FIXTURES.glob("*/model"))


def ids(report, least=Severity.INFO):
    assert report.error is None
    return {finding.rule for finding in report.findings if finding.severity >= least}


def test_every_rule_has_a_planted_model():
    assert [rule.id for rule in all_rules()] == sorted(verify_planted.PLANTED)
    for rule in all_rules():
        assert rule.summary.endswith(".") and rule.why.endswith(".") and rule.fix.endswith("."), (
            rule.id
        )


@pytest.mark.parametrize("fault", rules.ROWS, ids=lambda fault: fault.name)
def test_a_planted_defect_is_found_by_its_rule_and_no_other(fault, tmp_path):
    with Stage(tmp_path) as stage:
        seen = fault.found_by.look(fault, stage)
    assert (seen.defect, bool(seen.line)) == ("", True)


@pytest.mark.parametrize("rule", sorted(set(verify_planted.PLANTED) - {"SMC102"}))
def test_a_rule_that_is_not_chosen_finds_nothing(rule, tmp_path):
    verify_planted.PLANTED[rule](tmp_path / "model")
    assert verify(tmp_path / "model", choose(all_rules(), [], [rule])).findings == ()


@pytest.mark.parametrize("case", FIXTURES)
def test_a_genuine_model(case):
    """Nothing worth a warning, unless the fixture has the defect on purpose."""
    report = verify(edits.fixture(case))
    assert ids(report, Severity.WARNING) == verify_planted.DEFECTIVE.get(case, set()), (
        report.findings
    )


def test_an_object_graph_without_a_checkpoint_is_found(tmp_path):
    """Also without variables: a public model lost its (empty) variables/, and `tf.saved_model.load`
    refuses it.
    """
    message, graph = edits.new_model()
    assert "SMC201" not in ids(verify(edits.write(message, tmp_path / "v1")))
    graph.object_graph_def.nodes.add().user_object.identifier = "_generic_user_object"
    report = verify(edits.write(message, tmp_path / "v2"))
    assert [finding.file for finding in report.findings if finding.rule == "SMC201"] == [
        "variables/variables.index"
    ]


def test_where_a_finding_is(tmp_path):
    verify_planted.PLANTED["SMC512"](tmp_path / "model")
    (finding,) = verify(tmp_path / "model").findings
    assert finding.tags == "serve" and finding.function.startswith("__inference") and finding.node
    assert "CustomGradient-12" in finding.message
    verify_planted.PLANTED["SMC203"](tmp_path / "damaged")
    (finding,) = verify(tmp_path / "damaged").findings
    assert finding.file == "variables/variables.data-00000-of-00001" and finding.node == "b"


def test_a_path_that_a_constant_holds_as_content_is_found(tmp_path):
    def edit(message):
        tensor = verify_planted.node(message.meta_graphs[0], "path", "Const").attr["value"].tensor
        tensor.dtype = schema.DT_STRING
        path = b"/home/me/data/vocabulary.txt"
        tensor.tensor_content = bytes([len(path)]) + path

    model = edits.edited(edits.fixture("half_plus_two"), tmp_path / "model", edit)
    (finding,) = [item for item in verify(model).findings if item.rule == "SMC413"]
    assert "/home/me/data/vocabulary.txt" in finding.message


@pytest.mark.clause("GOAL-09")
def test_a_captured_variable_that_is_not_restored_is_found(tmp_path):
    """What Python answers and a server does not: the functions use another handle than the restore
    function assigns.
    """

    def edit(graph):
        restore = next(
            item
            for item in graph.graph_def.library.function
            if any(node.op == "RestoreV2" for node in item.node_def)
        )
        node = next(node for node in restore.node_def if node.op == "AssignVariableOp")
        node.op = "NoOp"
        node.ClearField("input")
        node.ClearField("attr")

    verify_planted.graph_edit("module_functions", edit)(tmp_path / "model")
    (finding,) = verify(tmp_path / "model").findings
    assert (finding.rule, finding.node) == ("SMC213", "scale")


def test_many_findings_of_a_rule_are_counted(tmp_path):
    def edit(graph):
        for number in range(MAX_FINDINGS + 5):
            verify_planted.node(graph, f"n{number}", "Identity", "nowhere")

    verify_planted.graph_edit("half_plus_two", edit)(tmp_path / "model")
    findings = verify(tmp_path / "model").findings
    assert len(findings) == MAX_FINDINGS + 1 and findings[-1].message.startswith("5 more findings")


def test_selecting_by_prefix():
    rules = all_rules()

    def chosen(select=(), ignore=()):
        return [rule.id for rule in choose(rules, select, ignore)]

    assert chosen() == chosen(["ALL"]) == [rule.id for rule in rules]
    assert chosen(["SMC30"]) == [rule.id for rule in rules if rule.id.startswith("SMC30")]
    assert chosen(["smc301,SMC302"]) == ["SMC301", "SMC302"]
    assert chosen(["SMC30"], ["SMC301"]) == chosen(["SMC30"])[1:]
    assert chosen(["SMC301"], ["SMC3"]) == ["SMC301"]  # the longer prefix wins
    assert chosen([], ["ALL"]) == chosen(["SMC301"], ["SMC301"]) == []
    with pytest.raises(UnknownRule, match="'SMC9'"):
        chosen(["SMC9"])


@pytest.mark.skipif(not zoo.models(), reason=zoo.ABSENT)
def test_real_models():
    """Every rule can be applied to every one; hostile or broken, none ends the run."""
    models = zoo.models()
    assert models
    for model in models:
        assert "SMC100" not in ids(verify(model)), model


def damaged_assets(folder):
    """A model that writes a file at load, and whose list of assets cannot be decoded."""
    effects.write_at_init(folder)
    path = folder / "saved_model.pb"
    message = schema.parse(schema.SavedModel, path.read_bytes())
    message.meta_graphs[0].collection_def["saved_model_assets"].any_list.value.add(
        value=b"\xff\xff"
    )
    path.write_bytes(message.SerializeToString())
    return folder


@pytest.mark.parametrize(
    "select", [(), ("--select", "SMC601"), ("--select", "SMC6", "--ignore", "SMC100")]
)
def test_a_rule_of_safety_that_cannot_be_applied_fails_the_run(tmp_path, select):
    """Whatever is damaged: a model must not pass because a rule could not look at it."""
    result = CliRunner().invoke(
        cli.main, ["verify", *select, str(damaged_assets(tmp_path / "model"))]
    )
    assert result.exit_code == ExitCode.UNEXPECTED
    assert "SMC601" in result.stdout and "SMC100" in result.stdout
