"""The canonical form: equal for what means the same, and what it says of differences and
refuses.
"""

import re
import shutil
from pathlib import Path

import model_edits as edits
import neutral_edits
import pytest

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from savedmodel_tools.canonical.form import canonical
from savedmodel_tools.comparison import form_changes

MODELS = [
    "collections",
    "control_flow_v2",
    "default_attrs_stripped",
    "defun_gradient",
    "estimator_dnn_classifier",
    "hash_table_v2",
    "keras_compiled_save",
    "module_functions",
    "nested_loops",
    "partitioned_variables",
    "ragged_io",
    "serve_and_train",
]
WITH_OBJECTS = ["keras_compiled_save", "module_functions"]


@pytest.mark.parametrize("edit", neutral_edits.NEUTRAL, ids=lambda edit: edit.__name__)
def test_edits_that_mean_nothing(edit, tmp_path):
    touched = 0
    for case in MODELS:
        source = layout.read(edits.fixture(case)).saved_model
        model = edits.edited(
            edits.fixture(case), tmp_path / case, neutral_edits.neutral(edit, seed=3)
        )
        touched += layout.read(model).saved_model != source
        found = canonical(model)
        assert found.hash == edits.form(case).hash, edits.differences(edits.form(case), found)
        assert list(form_changes(found, edits.form(case))) == []
    assert touched, "the edit has found nothing to do"


@pytest.mark.parametrize("case", WITH_OBJECTS)
def test_node_names_of_a_graph_with_objects(case, tmp_path):
    model = edits.edited(
        edits.fixture(case), tmp_path / "model", neutral_edits.neutral(neutral_edits.rename_graph)
    )
    assert canonical(model).hash == edits.form(case).hash


def test_all_edits_together(tmp_path):
    for case in MODELS:
        names = [edit.__name__ for edit in neutral_edits.NEUTRAL]
        model = edits.fixture(case)
        for number, name in enumerate(names):
            model = edits.edited(
                model, tmp_path / f"{case}-{number}", neutral_edits.neutral(name, seed=number)
            )
        assert canonical(model).hash == edits.form(case).hash


def test_order_of_meta_graphs(tmp_path):
    def turn(message):
        graphs = [
            type(graph).FromString(graph.SerializeToString()) for graph in message.meta_graphs
        ]
        del message.meta_graphs[:]
        message.meta_graphs.extend(reversed(graphs))

    assert edits.changed("serve_and_train", tmp_path, turn) == set()


def test_defaults_that_are_written_out(tmp_path):
    """Equal as long as the file says what the defaults are, and only when asked for."""
    stripped = edits.fixture("default_attrs_stripped")
    written = edits.edited(
        stripped, tmp_path / "written", neutral_edits.neutral(neutral_edits.write_defaults)
    )
    assert layout.read(written).saved_model != layout.read(stripped).saved_model
    assert canonical(written).hash == edits.form("default_attrs_stripped").hash
    exact = canonical(written, ignore_defaults=False)
    assert exact.hash != canonical(stripped, ignore_defaults=False).hash
    assert {
        change.section for change in form_changes(exact, canonical(stripped, ignore_defaults=False))
    } == {"graph"}


def test_text_and_binary(tmp_path):
    shutil.copytree(edits.fixture("while_loop"), tmp_path / "text")
    (tmp_path / "text" / "saved_model.pb").unlink()
    message = layout.read(edits.fixture("while_loop")).saved_model
    (tmp_path / "text" / "saved_model.pbtxt").write_text(schema.to_text(message), encoding="utf-8")
    assert canonical(tmp_path / "text").hash == edits.form("while_loop").hash


@pytest.mark.parametrize(
    "case", ["half_plus_two", "module_functions", "partitioned_variables", "dtypes_resource"]
)
def test_layout_of_the_checkpoint(case, tmp_path):
    """Other shards, partitioned tensors in one piece: the same values."""
    shutil.copytree(edits.fixture(case), tmp_path / "model")
    edits.copy_checkpoint(tmp_path / "model", lambda key, array: array, shards=3)
    assert canonical(tmp_path / "model").hash == edits.form(case).hash


def test_files_about_the_model(tmp_path):
    """Fingerprint, debug info and files that are no part of the format."""
    shutil.copytree(edits.fixture("module_functions"), tmp_path / "model")
    (tmp_path / "model" / "fingerprint.pb").write_bytes(
        schema.serialize(schema.FingerprintDef(checkpoint_hash=7))
    )
    (tmp_path / "model" / "debug").mkdir()
    (tmp_path / "model" / "debug" / "saved_model_debug_info.pb").write_bytes(b"")
    (tmp_path / "model" / "keras_metadata.pb").write_bytes(b"x")
    assert canonical(tmp_path / "model").hash == edits.form("module_functions").hash


def test_a_table_has_no_order(tmp_path):
    """What a mutable table holds is saved in the order of its hashes."""
    model = edits.fixture("mutable_hash_table")
    with BundleReader(layout.read(model).checkpoint_prefix) as reader:
        every = list(reader.keys())
        keys = [key for key in every if key.endswith("keys") and reader.entry(key).elements > 1]
    assert keys
    tables = [key[: -len("keys")] for key in keys]

    def turned(key, array):
        return (
            array[::-1]
            if key.endswith(("keys", "values")) and key.startswith(tuple(tables))
            else array
        )

    shutil.copytree(model, tmp_path / "turned")
    edits.copy_checkpoint(tmp_path / "turned", turned)
    assert canonical(tmp_path / "turned").hash == edits.form("mutable_hash_table").hash
    shutil.copytree(model, tmp_path / "mixed")
    edits.copy_checkpoint(
        tmp_path / "mixed", lambda key, array: array[::-1] if key in keys else array
    )
    assert canonical(tmp_path / "mixed").hash != edits.form("mutable_hash_table").hash


# What is said


def test_differences_name_the_place(tmp_path):
    def edit(message):
        edits.node(message, "Mul").op = "Sub"
        edits.node(message, "ConcatV2").attr["N"].i = 7

    after = canonical(edits.edited(edits.fixture("half_plus_two"), tmp_path / "model", edit))
    assert edits.differences(edits.form("half_plus_two"), after) == [
        "graph: 54 nodes: 2 changed (scores (ConcatV2): N: 2 → 7, Mul (Mul): op: Mul → Sub)"
    ]


def test_a_meta_graph_that_one_side_lacks_hides_no_other(tmp_path):
    def edit(message):
        serve, train = sorted(message.meta_graphs, key=lambda graph: list(graph.meta_info_def.tags))
        serve.meta_info_def.tags[:] = ["another"]
        del train.signature_def["train"]

    after = canonical(edits.edited(edits.fixture("serve_and_train"), tmp_path / "model", edit))
    found = edits.differences(edits.form("serve_and_train"), after)
    assert found[0].startswith("meta: MetaGraph another") and found[1].startswith(
        "meta: MetaGraph serve"
    )
    assert any(text.startswith("signatures: MetaGraph train") for text in found)


def test_json():
    found = edits.form("serve_and_train").to_json()
    assert re.fullmatch("[0-9a-f]{64}", found["hash"])
    assert [item["tags"] for item in found["meta_graphs"]] == [["serve"], ["train"]]
    assert found["produced_by"][0]["tensorflow_version"] == "1.15.5"
    assert set(found["sections"]) == {
        "meta",
        "signatures",
        "graph",
        "functions",
        "objects",
        "collections",
        "variables",
        "assets",
    }


# What is refused


def test_two_nodes_of_one_name(tmp_path):
    def made(graph):
        for name in ("m", "n", "n"):
            graph.graph_def.node.add(name=name, op="A")

    with pytest.raises(errors.DuplicateKeyError) as caught:
        edits.built(tmp_path / "model", made)
    assert caught.value.node == "n"


def test_two_functions_of_one_name(tmp_path):
    def made(graph, ops):
        for op in ops:
            graph.graph_def.library.function.add(
                signature=schema.OpDef(name="f"), node_def=[schema.NodeDef(name="n", op=op)]
            )

    edits.built(tmp_path / "equal", lambda graph: made(graph, "AA"))
    with pytest.raises(errors.DuplicateKeyError, match="which differ"):
        edits.built(tmp_path / "model", lambda graph: made(graph, "AB"))


def test_an_asset_outside(tmp_path):
    with pytest.raises(errors.PathEscapeError):
        edits.built(
            tmp_path / "model", lambda graph: graph.asset_file_def.add(filename="../secret")
        )


def test_a_damaged_weight(tmp_path):
    shutil.copytree(edits.fixture("half_plus_two"), tmp_path / "model")
    (shard,) = (tmp_path / "model" / "variables").glob("*.data-*")
    data = bytearray(shard.read_bytes())
    data[0] ^= 1
    shard.write_bytes(data)
    with pytest.raises(errors.ChecksumError):
        canonical(tmp_path / "model")


def test_dangling_references_are_part_of_the_form(tmp_path):
    def build(name, child=77):
        def made(graph):
            graph.graph_def.node.add(name="n", op="A", input=[name])
            graph.signature_def["s"].outputs["y"].name = "nowhere:0"
            graph.object_graph_def.nodes.add().children.add(node_id=child, local_name="x")

        return made

    form = edits.built(tmp_path / "a", build("missing"))
    assert form.hash != edits.built(tmp_path / "b", build("absent")).hash
    assert (
        form.hash == edits.built(tmp_path / "c", build("missing", 1)).hash
    )  # just behind the last node


def test_functions_that_a_text_attribute_names(tmp_path):
    """As `forward_function_name` does: the name does not count, what is behind it does."""

    def build(name, op):
        def made(graph):
            for function, node_op in (("f", "A"), (name, op)):
                graph.graph_def.library.function.add().signature.name = function
                graph.graph_def.library.function[-1].node_def.add(name="n", op=node_op)
            graph.graph_def.library.function[0].attr["forward_function_name"].s = name.encode()

        return made

    form = edits.built(tmp_path / "a", build("__forward_f_1", "B"))
    assert form.hash == edits.built(tmp_path / "b", build("__forward_f_2", "B")).hash
    other = edits.built(tmp_path / "c", build("__forward_f_1", "C"))
    first, second = (graph.meta_graphs[0].functions.hashes["f"] for graph in (form, other))
    assert first != second


def test_a_side_effect_that_is_not_there(tmp_path):
    def build(node):
        def made(graph):
            function = graph.graph_def.library.function.add()
            function.signature.name = "f"
            function.node_def.add(name="first", op="A")
            function.control_ret["effect"] = node

        return made

    assert (
        edits.built(tmp_path / "a", build("missing")).hash
        != edits.built(tmp_path / "b", build("first")).hash
    )


def test_the_spec_of_a_bare_function(tmp_path):
    def build(**spec):
        def made(graph):
            graph.graph_def.library.function.add().signature.name = "f"
            graph.object_graph_def.nodes.add().children.add(node_id=1, local_name="f")
            bare = graph.object_graph_def.nodes.add().bare_concrete_function
            bare.concrete_function_name = "f"
            if spec:
                bare.function_spec.CopyFrom(schema.FunctionSpec(**spec))

        return made

    forms = [
        edits.built(tmp_path / f"{number}", build(**spec))
        for number, spec in enumerate([{}, {"is_method": True}, {"jit_compile": 1}])
    ]
    assert len({form.hash for form in forms}) == 3


def test_zoo():
    import zoo

    models = zoo.models()
    if not models:
        pytest.skip(zoo.ABSENT)
    done = 0
    for path in models[::4]:
        try:
            first = canonical(path)
        except errors.SavedModelError as error:
            assert str(error)
        else:
            done += 1
            assert list(form_changes(first, first)) == []
    assert done > len(models[::4]) * 0.9


def test_path_of_a_file():
    folder = Path(edits.fixture("half_plus_two"))
    assert canonical(folder / "saved_model.pb").hash == edits.form("half_plus_two").hash


def test_the_devices_of_a_config_proto_come_in_any_order():
    """Around them, fields of every wire type stay where they are."""
    from savedmodel_tools.canonical.values import _config_proto

    cpu, gpu = b"\x0a\x07\x0a\x03CPU\x10\x01", b"\x0a\x07\x0a\x03GPU\x10\x00"
    rest = b"\x10\x05" + b"\x15four" + b"\x11eighteig" + b"\x32\x01x"
    assert _config_proto(gpu + cpu + rest) == _config_proto(cpu + gpu + rest) == cpu + gpu + rest
    assert _config_proto(rest + gpu + cpu) == cpu + gpu + rest
    assert (
        _config_proto(cpu + b"\x32\x01y" + b"\x32\x01x") == cpu + b"\x32\x01y" + b"\x32\x01x"
    )  # no map: the order counts
    for broken in (b"\x0a\x09ab", b"\x0b", gpu + cpu + b"\x15abc"):
        assert _config_proto(broken) == broken
