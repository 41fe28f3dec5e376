"""`slim`: what goes is what nobody can reach and what only training needs; what stays is as it was.

Without TensorFlow.
"""

import json
import shutil

import pytest
from click.testing import CliRunner
from model_edits import FIXTURES, differences, edited, fixture

from reference_impl.format import schema
from reference_impl.format.bundle.reader import OBJECT_GRAPH_KEY, BundleReader
from reference_impl.format.container import layout
from reference_impl.graph.node_defs import strings_of_constant
from reference_impl.graph.restore_plan import restore_plan
from savedmodel_compat.cli import main
from savedmodel_tools.canonical.form import canonical
from savedmodel_tools.canonical.functions import Functions
from savedmodel_tools.edits import signatures
from savedmodel_tools.edits.proof import RefusedError, faults
from savedmodel_tools.edits.run import edit
from savedmodel_tools.edits.slim import slim

KERAS = "keras_compiled_save"


def slimmed(source, out, **options):
    return edit(source, out, lambda draft: slim(draft, **options))


def keys(model):
    with BundleReader(model.checkpoint_prefix) as reader:
        return set(reader.keys())


def test_an_optimizer_goes_from_all_places(tmp_path):
    done = slimmed(fixture(KERAS), tmp_path / "out")
    before, after = layout.read(fixture(KERAS)), layout.read(tmp_path / "out")
    graph = after.meta_graph()
    assert keys(before) - keys(after) == {key for key in keys(before) if "optimizer" in key}
    assert {item.key for item in restore_plan(graph)} == keys(after) - {OBJECT_GRAPH_KEY}
    assert not [node.name for node in graph.graph_def.node if "Adam" in node.name]
    assert not any(node.slot_variables for node in graph.object_graph_def.nodes)
    with BundleReader(after.checkpoint_prefix) as reader:
        tracked = reader.object_graph()
        raw = reader.read(OBJECT_GRAPH_KEY).item()
    named = {item.checkpoint_key for node in tracked.nodes for item in node.attributes}
    assert named == keys(after) - {OBJECT_GRAPH_KEY} and not any(
        node.slot_variables for node in tracked.nodes
    )
    # What the graph stores when it saves itself is the same object graph.
    assert raw in [
        value for node in graph.graph_def.node for value in node.attr["value"].tensor.string_val
    ]
    assert (
        any("8 slot variables" in text for text in done.changes)
        and done.before["objects"] > done.after["objects"]
    )


def test_the_constant_of_the_object_graph_is_updated_in_either_form_of_a_tensor(tmp_path):
    """Its string may be listed, or stand in `tensor_content` behind its length."""
    with BundleReader(layout.read(fixture(KERAS)).checkpoint_prefix) as reader:
        old = bytes(reader.read(OBJECT_GRAPH_KEY).item())
    length = bytes([len(old) & 127 | 128, len(old) >> 7])
    changed = []

    def pack(message):
        for node in message.meta_graphs[0].graph_def.node:
            if list(node.attr["value"].tensor.string_val) == [old]:
                node.attr["value"].tensor.ClearField("string_val")
                node.attr["value"].tensor.tensor_content = length + old
                changed.append(node.name)

    slimmed(edited(fixture(KERAS), tmp_path / "packed", pack), tmp_path / "out")
    after = layout.read(tmp_path / "out")
    with BundleReader(after.checkpoint_prefix) as reader:
        new = bytes(reader.read(OBJECT_GRAPH_KEY).item())
    nodes = {node.name: node for node in after.meta_graph().graph_def.node}
    assert changed and old != new and len(old) >> 14 == 0
    assert [strings_of_constant(nodes[name], 2) for name in changed] == [[new]] * len(changed)


def test_each_call_gives_what_its_function_takes(tmp_path):
    slimmed(fixture(KERAS), tmp_path / "out")
    graph = layout.read(tmp_path / "out").meta_graph().graph_def
    functions = {item.signature.name: item for item in graph.library.function}
    calls = [node for node in graph.node if node.op == "StatefulPartitionedCall"]
    assert len(calls) == 3
    for node in calls:
        function = functions[node.attr["f"].func.name]
        types = [item.type for item in function.signature.input_arg]
        assert len(node.input) == len(types) and list(node.attr["Tin"].list.type) == types
        assert set(function.arg_attr) <= set(range(len(types)))
        for save in (inner for inner in function.node_def if inner.op in ("SaveV2", "RestoreV2")):
            inputs = [text for text in save.input if not text.startswith("^")]
            count = len(save.attr["dtypes"].list.type)
            assert save.op == "RestoreV2" or len(inputs) == 3 + count
            (names,) = [
                inner for inner in function.node_def if inner.name == inputs[1].partition(":")[0]
            ]
            assert (
                len(names.attr["value"].tensor.string_val)
                == count
                == names.attr["value"].tensor.tensor_shape.dim[0].size
            )


def test_what_is_slim_stays_as_it_is(tmp_path):
    for case in (KERAS, "queue_leftovers", "module_functions"):
        slimmed(fixture(case), tmp_path / case / "once")
        again = slimmed(tmp_path / case / "once", tmp_path / case / "twice")
        assert again.changes == () and again.before == again.after
        one, two = (layout.read(tmp_path / case / name).saved_model for name in ("once", "twice"))
        assert one == two


def test_optimizers_of_graphs_are_told_by_their_ops(tmp_path):
    done = slimmed(fixture("queue_leftovers"), tmp_path / "out")
    model = layout.read(tmp_path / "out")
    assert keys(layout.read(fixture("queue_leftovers"))) - keys(model) == {
        "beta1_power",
        "beta2_power",
        "w/Adam",
        "w/Adam_1",
    }
    assert not {"train_op", "losses", "summaries", "queue_runners"} & set(
        model.meta_graph().collection_def
    )
    assert {item.key for item in restore_plan(model.meta_graph())} == keys(model)
    assert done.after["nodes"] < done.before["nodes"] / 4
    variables = model.meta_graph().collection_def["variables"].bytes_list.value
    assert [schema.parse(schema.VariableDef, value).variable_name for value in variables] == [
        "global_step:0",
        "w:0",
    ]


def test_what_somebody_needs_is_kept_with_the_reason(tmp_path):
    def serve_a_slot(message):
        (graph,) = message.meta_graphs
        graph.signature_def["slot"].method_name = "tensorflow/serving/predict"
        graph.signature_def["slot"].outputs["m"].CopyFrom(
            next(iter(graph.signature_def["serving_default"].outputs.values()))
        )
        graph.signature_def["slot"].outputs["m"].name = "w/Adam/read:0"

    edited(fixture("queue_leftovers"), tmp_path / "model", serve_a_slot)
    done = slimmed(tmp_path / "model", tmp_path / "out")
    assert len(done.kept) == 1 and "w/Adam" in done.kept[0] and "signature slot" in done.kept[0]
    assert "w/Adam" in keys(layout.read(tmp_path / "out")) and "w/Adam_1" not in keys(
        layout.read(tmp_path / "out")
    )


def test_parts_can_be_kept(tmp_path):
    done = slimmed(fixture(KERAS), tmp_path / "out", keep=("optimizer", "training"))
    assert done.changes == () and keys(layout.read(tmp_path / "out")) == keys(
        layout.read(fixture(KERAS))
    )
    assert not differences(canonical(fixture(KERAS)), canonical(tmp_path / "out"))
    slimmed(fixture("queue_leftovers"), tmp_path / "graph", keep=("training",))
    assert "w/Adam" in keys(
        layout.read(tmp_path / "graph")
    )  # its op is what the collection train_op names


def test_serving_only_leaves_the_signatures(tmp_path):
    done = slimmed(fixture("module_functions"), tmp_path / "out", serving_only=True)
    graph = layout.read(tmp_path / "out").meta_graph()
    assert sorted(child.local_name for child in graph.object_graph_def.nodes[0].children) == [
        *("child", "named", "parts", "scale", "signatures", "table"),
    ]
    # The table is still made and filled, for those who load the model and for sessions.
    names = {item.signature.name.rpartition("_")[0] for item in graph.graph_def.library.function}
    assert {"__inference__creator", "__inference__initializer"} <= names
    assert done.after["functions"] < done.before["functions"]
    assert (
        canonical(tmp_path / "out").sections["signatures"]
        == canonical(fixture("module_functions")).sections["signatures"]
    )


def test_after_a_signature_is_dropped_slim_takes_what_it_alone_needed(tmp_path):
    edit(
        fixture("module_functions"),
        tmp_path / "less",
        lambda draft: signatures.drop(draft, ("lookup",)),
    )
    done = slimmed(tmp_path / "less", tmp_path / "out", keep=("training",))
    assert "lookup_words" in done.removed["nodes"] and any(
        "signature_wrapper" in name for name in done.removed["functions"]
    )


def test_meta_graphs_for_training_are_left_alone_unless_chosen(tmp_path):
    source = fixture("serve_and_train")
    done = slimmed(source, tmp_path / "out")
    assert len(done.kept) == 1 and "MetaGraph train" in done.kept[0]
    assert layout.read(tmp_path / "out").meta_graph("train") == layout.read(source).meta_graph(
        "train"
    )
    assert keys(layout.read(tmp_path / "out")) == keys(layout.read(source))


def test_what_cannot_be_taken_out_of_a_saver_is_refused_by_name(tmp_path):
    def printed(message):
        (graph,) = message.meta_graphs
        (restore,) = [
            f
            for f in graph.graph_def.library.function
            if any(node.op == "RestoreV2" for node in f.node_def)
        ]
        for node in restore.node_def:
            if node.op == "Identity" and node.input[0].startswith("RestoreV2:tensors:"):
                node.op = "Negate"

    edited(fixture(KERAS), tmp_path / "model", printed)
    with pytest.raises(
        RefusedError,
        match=r"Identity_\d+: Negate .*--keep optimizer",
    ):
        slimmed(tmp_path / "model", tmp_path / "out")
    slimmed(tmp_path / "model", tmp_path / "out", keep=("optimizer",))


def test_a_saver_that_contradicts_itself_is_refused(tmp_path):
    def fewer_types(message):
        for function in message.meta_graphs[0].graph_def.library.function:
            for node in function.node_def:
                if node.op == "RestoreV2" and len(node.attr["dtypes"].list.type) > 1:
                    del node.attr["dtypes"].list.type[3:]

    edited(fixture(KERAS), tmp_path / "model", fewer_types)
    with pytest.raises(RefusedError, match="RestoreV2: "):
        slimmed(tmp_path / "model", tmp_path / "out")


def test_every_fixture_keeps_its_signatures_weights_and_assets(tmp_path):
    models = sorted(FIXTURES.glob("*/model"))[::6]
    assert models
    for number, model in enumerate(models):
        slimmed(model, tmp_path / str(number), serving_only=bool(number % 2))
        before, after = canonical(model), canonical(tmp_path / str(number))
        assert (
            before.sections["signatures"] == after.sections["signatures"]
            and before.sections["assets"] == after.sections["assets"]
        )
        slim_model = layout.read(tmp_path / str(number))
        assert [
            list(faults(slim_model, index))
            for index in range(len(slim_model.saved_model.meta_graphs))
        ] == [[]] * len(slim_model.saved_model.meta_graphs)


def test_the_command(tmp_path):
    result = CliRunner().invoke(
        main, ["edit", "slim", str(fixture(KERAS)), "--out", str(tmp_path / "out"), "--json"]
    )
    assert result.exit_code == 0, result.output
    (line,) = json.loads(result.stdout)["models"]
    assert (
        len(line["removed"]["keys"]) == 13
        and line["after"]["checkpoint_bytes"] < line["before"]["checkpoint_bytes"]
    )
    dry = CliRunner().invoke(main, ["edit", "slim", str(FIXTURES / "queue_leftovers"), "--dry-run"])
    assert dry.exit_code == 0 and "beta1_power" in dry.stdout


@pytest.mark.parametrize("case", ["keras_compiled_save", "queue_leftovers", "module_functions"])
def test_a_dry_run_tells_the_sizes_that_the_files_get(case, tmp_path):
    """Of a checkpoint with keys dropped, of one whose object graph is written again, of one that
    stays.
    """
    model = FIXTURES / case / "model"
    told = [edit(model, out, slim).to_json() for out in (None, tmp_path / "out")]
    sizes = sum(
        file.stat().st_size for file in (tmp_path / "out" / "variables").glob("variables.*")
    )
    assert told[0]["after"] == told[1]["after"] and told[0]["after"]["checkpoint_bytes"] == sizes


def test_a_model_with_a_fault_is_slimmed_if_the_fault_was_there_before(tmp_path):
    source = fixture(KERAS)
    message = layout.read(source).saved_model
    message.meta_graphs[0].graph_def.library.function[0].node_def.add(
        name="odd", op="NoOp", input=["^nobody"]
    )
    faulty = tmp_path / "faulty"
    shutil.copytree(source, faulty)
    (faulty / "saved_model.pb").write_bytes(schema.serialize(message))
    assert [fault for fault in faults(layout.read(faulty), 0) if "nobody" in fault]
    done = slimmed(faulty, tmp_path / "out")
    assert (
        any("slot variables" in text for text in done.changes)
        and (tmp_path / "out" / "saved_model.pb").exists()
    )


def test_functions_that_stay_as_they_are_written_are_not_canonicalised(tmp_path, monkeypatch):
    hashed = []
    monkeypatch.setattr(
        Functions,
        "digest",
        lambda self, name, digest=Functions.digest: hashed.append(name) or digest(self, name),
    )
    slimmed(fixture(KERAS), tmp_path / "out")
    assert hashed == []


def test_a_function_that_is_only_written_otherwise_is_compared_by_its_canonical_form(tmp_path):
    def turned_round(draft):
        for function in draft.message.meta_graphs[0].graph_def.library.function:
            nodes = [schema.copy_of(node) for node in function.node_def]
            del function.node_def[:]
            function.node_def.extend(reversed(nodes))

    edit(fixture(KERAS), tmp_path / "out", turned_round)
    assert canonical(tmp_path / "out").hash == canonical(fixture(KERAS)).hash


def test_a_function_that_computes_something_else_is_refused(tmp_path):
    def changed(draft):
        for function in draft.message.meta_graphs[0].graph_def.library.function:
            for node in function.node_def:
                if node.op == "Relu":
                    node.op = "Elu"

    with pytest.raises(RefusedError, match="something else"):
        edit(fixture(KERAS), tmp_path / "out", changed)
    assert not (tmp_path / "out").exists()
