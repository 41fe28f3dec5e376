"""``savedmodel-compat compat``: which releases load what, through which loader."""

import json

import pytest
from click.testing import CliRunner
from model_edits import FIXTURES, edited, fixture

from reference_impl.format import schema
from reference_impl.format.container import layout
from savedmodel_compat.cli import main
from savedmodel_tools import compat, targets
from savedmodel_tools.skew.history import history


def run(*arguments):
    return CliRunner().invoke(main, ["compat", *map(str, arguments)])


def uses(path, release):
    """(part, loader) -> Verdict in one release."""
    index = history().index(release)
    return {
        (use.part, use.loader): use.verdicts.get(index)
        for graph in compat.compat(path, [index])
        for use in graph.uses
    }


def names(text):
    return [history().releases[index].name for index in targets.releases(text, history())]


def test_targets():
    assert names("1.15") == names("tensorflow==1.15.5") == names("==1.15.*") == ["1.15"]
    assert names("tensorflow>=1.15,<2.1") == ["1.15", "2.0"]
    assert names("tensorflow-cpu>2.20") == ["2.20", "2.21"]  # 2.20.1 would be one
    assert names(">=2.20") == ["2.20", "2.21"]
    assert targets.one_release("2.4", history()) == history().index("2.4")
    for text in (
        "1.6",
        "tensorflow>=3",
        "numpy>=1",
        "tensorflow @ file:///x",
        "2.4;",
        "newest",
        "",
    ):
        with pytest.raises(targets.NoTarget):
            targets.releases(text, history())
    with pytest.raises(targets.NoTarget, match="takes in 2 releases"):
        targets.one_release(">=2.20", history())


def test_loaders_differ_about_default_attrs():
    found = uses(fixture("default_attrs_kept"), "1.13")
    assert found[
        "signature serving_default", "session"
    ].loads  # in Python declared defaults are stripped
    assert not found["signature serving_default", "c++"].loads
    assert "explicit_paddings" in found["signature serving_default", "c++"].reasons[0]
    assert found["load", "objects"] is None  # 1.13 has no such loader


def test_objects_do_not_look_at_the_main_graph(tmp_path):
    def name_variables(message):
        for node in message.meta_graphs[0].graph_def.node:
            if node.op == "VarHandleOp":
                node.attr["debug_name"].s = b"v"

    found = uses(edited(fixture("module_functions"), tmp_path / "m", name_variables), "2.4")
    assert found["load", "objects"].loads and found["function multiply", "objects"].loads
    assert not found["load", "session"].loads and not found["load", "c++"].loads


def test_a_cut_function_on_a_device_that_may_be_missing_is_a_risk_before_soft_placement():
    key = ("signature serving_default", "objects")
    assert "soft placement" in uses(fixture("gpu_pinned"), "1.15")[key].risks[0]
    assert uses(fixture("gpu_pinned"), "2.0")[key].risks == ()
    assert uses(fixture("half_plus_two"), "1.15")[key].risks == ()


def test_what_is_passed_over_is_a_risk(tmp_path):
    def mark(message):
        for function in message.meta_graphs[0].graph_def.library.function:
            if any(node.op == "LookupTableFindV2" for node in function.node_def):
                node = function.node_def.add(
                    name="set", op="TensorListSetItem", input=["list", "index", "item"]
                )
                node.attr["element_dtype"].type = schema.DT_FLOAT
                node.attr["resize_if_index_out_of_bounds"].b = True

    found = uses(edited(fixture("module_functions"), tmp_path / "m", mark), "2.12")
    assert "resize_if_index_out_of_bounds" in found["function lookup", "objects"].risks[0]
    assert not found["function multiply", "objects"].risks
    assert uses(tmp_path / "m", "2.13")["function lookup", "objects"].risks == ()
    assert run(tmp_path / "m", "--target", "2.12").exit_code == 1


@pytest.mark.parametrize(
    ("edit", "loads", "fails"),
    [
        ("tensor default", "2.13", "2.12"),
        ("slots", None, "2.21"),  # nowhere
        ("slots", None, "2.15"),
        ("slots of Keras 2", "2.15", "2.16"),
        ("slots of Keras 2", "2.0", "2.6"),  # whose import does not load keras
        ("ragged input", "2.4", "2.3"),
    ],
)
def test_forms_that_older_releases_do_not_read(edit, loads, fails, tmp_path):
    def change(message):
        graph = message.meta_graphs[0]
        if edit == "tensor default":
            node = next(node for node in graph.object_graph_def.nodes if node.HasField("function"))
            node.function.function_spec.fullargspec.list_value.values.add().tensor_value.dtype = (
                schema.DT_FLOAT
            )
        elif edit == "slots":
            graph.object_graph_def.nodes[0].slot_variables.add(slot_name="m")
        elif edit == "slots of Keras 2":
            optimizer = graph.object_graph_def.nodes.add()
            optimizer.user_object.identifier = "optimizer"
            optimizer.slot_variables.add(slot_name="m")
        else:
            info = graph.signature_def["serving_default"].inputs["x"]
            info.composite_tensor.components.add(name=info.name)

    model = edited(fixture("module_functions"), tmp_path / "m", change)
    at = ("signature serving_default", "objects")
    assert not uses(model, fails)[at].loads
    assert uses(model, fails)["load", "session"].loads
    assert loads is None or uses(model, loads)[at].loads


def test_a_tree_in_text_and_json(tmp_path):
    done = run(
        FIXTURES / "default_attrs_kept",
        FIXTURES / "module_functions",
        "--target",
        "tensorflow>=1.13,<2.22",
    )
    assert done.exit_code == 1, done.output
    assert "1.13 lacks attr 'explicit_paddings'" in done.output and "node 'conv'" in done.output
    assert "function multiply" in done.output and "every release" in done.output
    done = run(FIXTURES / "module_functions", "--target", "2.15", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert (found["schema"], found["releases"], found["models"][0]["ok"]) == (1, ["2.15"], True)
    use = found["models"][0]["meta_graphs"][0]["uses"][0]
    assert use == {
        "part": "load",
        "loader": "session",
        "releases": "2.15",
        "fails": {},
        "risks": {},
    }


def test_one_release_is_yes_or_no_and_the_rewrite_that_helps_is_named(tmp_path):
    def modernize(message):
        for node in message.meta_graphs[0].graph_def.node:
            if node.op == "VarHandleOp":
                node.attr["debug_name"].s = b"v"

    modern = edited(fixture("module_functions"), tmp_path / "zoo" / "m", modernize)
    done = run(tmp_path / "zoo", fixture("module_functions"), "--target", "1.15")
    assert done.exit_code == 1, done.output
    assert (
        "load                       no       no   yes" in done.output
        and "load                       yes      yes  yes" in done.output
    )
    assert (
        "    downgrade --target 1.15 rewrites it for session, c++, and proves it\n" in done.output
    )
    assert done.output.endswith("1 of 2 models load in 1.15 with all parts\n")
    found = json.loads(run(modern, "--target", "1.15", "--json").output)["models"]
    assert found[0]["rewritable"] == ["session", "c++", "objects"]
    assert "rewritable" not in run(modern, "--target", ">=1.15", "--json").output

    def random(message):
        modernize(message)
        function = message.meta_graphs[0].graph_def.library.function[0]
        function.node_def.add(name="draw", op="StatelessRandomGetKeyCounter", input=["seed"]).attr[
            "Tseed"
        ].type = schema.DT_INT32

    lost = edited(fixture("module_functions"), tmp_path / "lost", random)
    assert "downgrade cannot rewrite it for 1.15" in run(lost, "--target", "1.15").output


def test_a_downgrade_is_advised_only_where_a_newer_release_loads_it():
    done = run(fixture("keras_compiled_save"), "--target", "2.21")
    assert (
        "    only older releases load all of it for objects: 1.15 to 2.5, or 2.7 to 2.15\n"
        in done.output
    )
    assert "downgrade" not in done.output
    done = run(fixture("keras_compiled_save"), "--target", "2.6", "--for", "objects")
    assert (
        "    only older releases load all of it for objects: 1.15 to 2.5, or 2.7 to 2.15\n"
        not in done.output
    )
    assert "    downgrade cannot rewrite it for 2.6\n" in done.output


def test_a_rewrite_that_changes_nothing_is_not_advised(tmp_path):
    """No rewrite gives an optimizer with slots a class, although no release of the table has that
    class either.
    """

    def slots(message):
        message.meta_graphs[0].object_graph_def.nodes[0].slot_variables.add(slot_name="m")

    model = edited(fixture("module_functions"), tmp_path / "m", slots)
    done = run(model, "--target", "2.21")
    assert done.exit_code == 1 and "slot variables" in done.output, done.output
    assert "no release" in done.output and "downgrade" not in done.output
    assert json.loads(run(model, "--target", "2.21", "--json").output)["models"][0][
        "rewritable"
    ] == ["session", "c++"]


def of_any_rank(message):
    """The placeholders of a model take any shape, so that no op can refuse the shape of its
    input.
    """
    for node in message.meta_graphs[0].graph_def.node:
        if node.op == "Placeholder":
            node.attr["shape"].shape.CopyFrom(schema.TensorShapeProto(unknown_rank=True))


@pytest.mark.parametrize(
    ("op", "attrs", "fails"),
    [
        ("GatherNd", {"Tparams": "type:float32", "Tindices": "type:int32"}, ()),
        (
            "GatherNd",
            {"Tparams": "type:float32", "Tindices": "type:int32", "bad_indices_policy": "odd"},
            ("2.18", "2.21"),
        ),
        ("DepthToSpace", {"T": "type:float32", "block_size": 2}, ()),
        ("SpaceToDepth", {"T": "type:float32", "block_size": 2, "data_format": "NHWC"}, ()),
        (
            "SpaceToDepth",
            {"T": "type:float32", "block_size": 2, "data_format": "NCHW"},
            ("2.18", "2.21"),
        ),
        (
            "TopK",
            {"T": "type:float32", "k": 1, "producer": 6},
            ("2.18", "2.21"),
        ),  # its kernels constrain an attr that it does not have
    ],
)
def test_kernels_that_constrain_attrs_besides_dtypes(op, attrs, fails, tmp_path):
    from skew_models import model

    inputs = ("x", "x") if op == "GatherNd" else ("x",)
    path = edited(model(tmp_path / "m", op, inputs=inputs, **attrs), tmp_path / "open", of_any_rank)
    releases = (
        ["2.18", "2.21"] if "bad_indices_policy" in attrs else ["1.15", "2.18", "2.21"]
    )  # 1.15 does not know the attr
    for release in releases:
        verdict = uses(path, release)["signature serving_default", "c++"]
        assert verdict.loads == (release not in fails), (release, verdict.reasons)
        assert verdict.loads or f"CPU kernel of op '{op}'" in verdict.reasons[0]


@pytest.mark.parametrize("release", ["2.10", "2.21"])
def test_python_functions_have_a_kernel_in_python_alone(release):
    found = uses(fixture("py_func"), release)
    key = next(
        part for part, loader in found if loader == "session" and part.startswith("signature")
    )
    assert found[key, "session"].loads and found["load", "objects"].loads
    assert not found[key, "c++"].loads and "outside of Python" in found[key, "c++"].reasons[0]
    assert found["load", "c++"].loads == (
        release == "2.10"
    )  # whose only library is the one of Python


def test_what_another_function_of_the_session_needs_is_said_of_the_signature(tmp_path):
    """A variable of uint32 is restored by any release, and read by 2.4 or newer."""

    def change(message):
        graph = message.meta_graphs[0]
        for node in graph.graph_def.node:
            if node.op == "VarHandleOp":
                node.attr["dtype"].type = schema.DT_UINT32

    found = uses(edited(fixture("module_functions"), tmp_path / "m", change), "2.3")
    assert any(
        "variables of uint32" in reason
        for reason in found["signature serving_default", "session"].reasons
    )
    assert not any("variables of uint32" in reason for reason in found["load", "session"].reasons)


@pytest.mark.parametrize(
    ("algorithm", "as_content", "since"),
    [(1, False, "2.5"), (1, True, "2.5"), (3, False, "2.7"), (3, True, "2.7")],
)
def test_random_algorithms(algorithm, as_content, since, tmp_path):
    def change(message):
        for function in message.meta_graphs[0].graph_def.library.function:
            if any(node.op == "LookupTableFindV2" for node in function.node_def):
                how = function.node_def.add(name="how", op="Const")
                how.attr["dtype"].type = schema.DT_INT32
                value = how.attr["value"].tensor
                value.dtype = schema.DT_INT32
                if as_content:
                    value.tensor_content = algorithm.to_bytes(4, "little")
                else:
                    value.int_val.append(algorithm)
                inputs = ["shape", "key", "counter", "how:output:0"]
                node = function.node_def.add(
                    name="draw", op="StatelessRandomUniformV2", input=inputs
                )
                node.attr["dtype"].type, node.attr["Tshape"].type = schema.DT_FLOAT, schema.DT_INT32

    model = edited(fixture("module_functions"), tmp_path / "m", change)
    for release in ("2.4", "2.5", "2.6", "2.7"):
        found = uses(model, release)
        told = any(
            "the device selects" in reason for reason in found["function lookup", "objects"].reasons
        )
        assert told == (algorithm == 3 and release != since)
        assert not any(
            "selects" in reason for reason in found["function multiply", "objects"].reasons
        )


def test_only_some_loaders():
    assert run(fixture("default_attrs_kept"), "--target", "1.13", "--for", "session").exit_code == 0
    assert run(fixture("default_attrs_kept"), "--target", "1.13", "--for", "c++").exit_code == 1


def test_wrong_usage_and_models_that_cannot_be_read(tmp_path):
    assert run(tmp_path).exit_code == 64
    assert run(fixture("half_plus_two"), "--target", "torch>=2").exit_code == 64
    (tmp_path / "saved_model.pb").write_bytes(b"\xff\xff")
    done = run(tmp_path, fixture("half_plus_two"), "--json")
    assert done.exit_code == 1
    broken, sound = json.loads(done.output)["models"]
    assert "error" in broken and sound["ok"]


def test_what_was_foretold_is_held_against_what_a_release_did():
    from compat_matrix.cells.outcomes import Outcome
    from compat_matrix.exports.release_proof import Reading
    from docs.reality import Tally

    index = history().index("1.13")
    (foretold,) = compat.compat(fixture("default_attrs_kept"), [index])
    tally = Tally()
    for reader, outcome in (
        ("v1_session", Outcome.PASS),  # as foretold: it loads, and answers
        ("v1_session", Outcome.FAIL_VALUE),
        ("c_api", Outcome.LOAD_ERROR),  # as foretold
        ("c_api", Outcome.PASS),
    ):
        failed = ("r",) if outcome is Outcome.FAIL_VALUE else ()
        tally.add("m", foretold, index, Reading(reader, ("serve",), outcome, "why", 1, failed))
    assert (tally.loads[True], tally.loads[False]) == (3, 1)
    assert (tally.answers[True], tally.answers[False]) == (1, 1)
    assert [text.split(":")[0] for text in tally.wrong] == ["m, v1_session", "m, c_api"]


def test_a_summary_has_one_line_for_each_model_and_says_what_the_long_form_says(tmp_path):
    models = [fixture("default_attrs_kept"), fixture("half_plus_two"), tmp_path / "broken"]
    models[2].mkdir()
    (models[2] / "saved_model.pb").write_bytes(b"\xff" * 9)
    lines = run(*models, "--summary", "csv", "--target", "1.13").stdout.splitlines()
    assert lines[0] == "model,session,c++,objects,error"
    assert lines[1:3] == [
        f"{models[0]},yes,no,(no such loader),",
        f"{models[1]},yes,yes,(no such loader),",
    ]
    assert lines[3].startswith(f"{models[2]},?,?,?,") and "MalformedError" in lines[3]
    every = json.loads(run(models[0], "--json").stdout)["models"][0]["meta_graphs"]
    spans = {use["releases"] for graph in every for use in graph["uses"] if use["loader"] == "c++"}
    table = run(models[0], "--summary")
    assert len(spans) == 1 and table.exit_code == 0
    assert (
        table.stdout.splitlines()[1].split("  ")[2].strip() == f"{spans.pop().rstrip('-')} or newer"
    )
    assert (
        run(*models, "--summary", "csv", "--jobs", "2").stdout
        == run(*models, "--summary", "csv").stdout
    )
    assert run(models[0], "--summary", "--json").exit_code == 64


@pytest.mark.parametrize(("op", "refused"), [("While", False), ("StatelessWhile", True)])
def test_the_first_release_that_lowers_control_flow_in_functions_does_not_lower_all(
    op, refused, tmp_path
):
    """As in 1.13: `While` is replaced before its attributes are read; `StatelessWhile` cannot be
    lowered there.
    """

    def change(message):
        for function in message.meta_graphs[0].graph_def.library.function:
            if any(node.op == "LookupTableFindV2" for node in function.node_def):
                node = function.node_def.add(name="loop", op=op)
                node.attr["_lower_using_switch_merge"].b = True
                node.attr["parallel_iterations"].i = 7
                node.attr["T"].list.SetInParent()

    model = edited(fixture("module_functions"), tmp_path / "m", change)
    for loader in ("session", "c++"):
        ours = uses(model, "1.13")
        (part,) = (part for part, used in ours if used == loader and "lookup" in part)
        said = ours[part, loader].reasons
        assert any("_lower_using_switch_merge" in reason for reason in said) == refused
        assert (
            any("parallel_iterations" in reason and f"'{op}'" in reason for reason in said)
            == refused
        )
        assert not any(
            "_lower_using" in reason for reason in uses(model, "1.15")[part, loader].reasons
        )


@pytest.mark.parametrize("given", [{"min_consumer": 99999}, {"bad_consumers": [2474]}], ids=list)
def test_versions_of_the_graph_count_for_those_who_import_it(tmp_path, given):
    """`tf.saved_model.load` imports the main graph of models without objects alone
    (tests/functions/test_graph_versions.py).
    """

    def exclude(saved_model):
        saved_model.meta_graphs[0].graph_def.versions.MergeFrom(schema.VersionDef(**given))

    table = history()
    index = table.index("2.21")
    for case, by_objects in (("half_plus_two", False), ("module_functions", True)):
        found = compat.of_model(
            layout.read(edited(fixture(case), tmp_path / case, exclude)),
            [index],
            table,
            compat.EVERY_LOADER,
        )
        loads = {
            use.loader: use.verdicts[index].loads for use in found[0].uses if use.part == "load"
        }
        imports = dict.fromkeys(("session", "c++"), False)
        assert loads == {**loads, **imports, "objects": by_objects, "reference": by_objects}, case
