"""`reference_impl.save` of what people put on models: tables, strategies, optimizers, generators,
datasets.
"""

from __future__ import annotations

import json
from pathlib import Path

import fresh_tensorflow
import inventory
import model_edits
import pytest

import reference_impl
from reference_impl.errors import SaveError
from reference_impl.format.container import layout
from reference_impl.graph import restore_plan
from savedmodel_tools.canonical.form import canonical

SUPPORT = Path(__file__).parents[1] / "support"

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


# The SignatureDef says what TensorFlow's own inference finds in the whole graph, and loaders learn
# it from the function
@pytest.mark.clause("ATTR-03")
def test_the_shape_of_a_tables_answer_is_known(tf, tmp_path):
    root = tf.Module()
    root.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, [0.0, 0.0])
    root.f = tf.function(
        lambda key: root.table.lookup(key), input_signature=[tf.TensorSpec([None], tf.string)]
    )
    for _ in range(2):
        reference_impl.save(root, tmp_path / "m")
        info = (
            layout.read(tmp_path / "m")
            .meta_graph(None)
            .signature_def["serving_default"]
            .outputs["output_0"]
        )
        assert [dim.size for dim in info.tensor_shape.dim] == [-1, 2]
        for load in (tf.saved_model.load, reference_impl.load):
            loaded = load(str(tmp_path / "m"))
            assert loaded.signatures["serving_default"].structured_outputs[
                "output_0"
            ].shape.as_list() == [None, 2]
        root = loaded


# On the way out replicas become one variable, on the way in one variable becomes replicas;
# functions mean what they did
@pytest.mark.clause("DIST-02", "DIST-03", "DIST-04")
def test_a_model_of_a_strategy_is_saved_as_one_without(tf, tmp_path):
    found = json.loads(fresh_tensorflow.printed(SUPPORT / "strategy_saves.py", tmp_path))
    answers = {"read": 6.0, "sum": 6.0, "mean": 4.5, "update": 5.0}
    for kind, answer in answers.items():
        expected = {
            "reference": [2.0, 3.0, 1.5, answer],
            "tf": [2.0, 3.0, 1.5, answer],
            "session": answer,
        }
        assert found[kind] == found[f"{kind} in scope"] == expected
        assert found.get(f"{kind} expanded", expected) == expected or kind == "update"
    assert found["again"] == found["read"]
    assert "root.f updates 'mirrored:0'" in found["update expanded"]
    assert "input_signature instead" in found["concrete"]
    assert (
        found["components"] == [["CPU:0", "CPU:1"]] * 3
        and found["devices"] == ["CPU:0"] * 3 + ["CPU:1"] * 3
    )
    assert found["plain devices"] == [""]


def test_RES_03_a_table_that_nobody_uses_is_in_the_graph(tf, tmp_path):
    """As in shipped exports: a reader that lists tables by node finds all of them."""

    class Table(tf.saved_model.experimental.TrackableResource):
        def _create_resource(self):
            return tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)

    module = tf.Module()
    module.tables = [Table(), Table()]
    reference_impl.save(module, tmp_path / "model")
    assert len(inventory.tables(tmp_path / "model", ["serve"])) == 2
    assert all(entries is None for *_, entries in inventory.tables(tmp_path / "model", ["serve"]))


def test_FN_05_other_implementations_of_a_function_are_kept(tf, tmp_path):
    """Keras 2 has an LSTM for GPUs that nothing refers to: the runtime swaps it in by an attribute
    of both.
    """
    module = tf.Module()
    inner = tf.function(lambda x: 2 * x)
    module.f = tf.function(lambda x: inner(x) + 1, input_signature=[tf.TensorSpec([None])])
    tf.saved_model.save(module, str(tmp_path / "model"))

    def edit(message):
        library = message.meta_graphs[0].graph_def.library
        called = {
            node.attr["f"].func.name
            for f in library.function
            for node in f.node_def
            if "PartitionedCall" in node.op
        }
        cpu = next(
            f
            for f in library.function
            if f.signature.name in called and any(node.op == "Mul" for node in f.node_def)
        )
        gpu, back = library.function.add(), library.function.add()
        for function, name in ((gpu, "gpu"), (back, "back")):
            function.CopyFrom(cpu)
            function.signature.name = function.signature.name.replace("inference", name)
        for function, device in ((cpu, "CPU"), (gpu, "GPU"), (back, "GPU")):
            function.attr["api_implements"].s = b"double"
            function.attr["api_preferred_device"].s = device.encode()
        gpu.attr["backward_function_name"].s = back.signature.name.encode()

    source = model_edits.edited(tmp_path / "model", tmp_path / "edited", edit)
    for generation in ("first", "second"):
        reference_impl.save(reference_impl.load(source), tmp_path / generation)
        assert (
            inventory.compare(inventory.of(source), inventory.of(tmp_path / generation), False)
            is None
        )
        source = tmp_path / generation
        library = layout.read(source).meta_graph().graph_def.library.function
        names = {function.signature.name: function for function in library}
        found = [function for function in library if function.attr["api_implements"].s == b"double"]
        assert sorted(function.attr["api_preferred_device"].s for function in found) == [
            b"CPU",
            b"GPU",
            b"GPU",
        ]
        (paired,) = [function for function in found if "backward_function_name" in function.attr]
        assert paired.attr["backward_function_name"].s.decode() in names
    assert canonical(tmp_path / "first").hash == canonical(tmp_path / "second").hash
    assert tf.saved_model.load(str(source)).f([1.0]).numpy() == [3.0]


def test_FN_06_constants_of_any_type_and_rank_are_captured(tf, tmp_path):
    module = tf.Module()
    held = [
        tf.constant("text"),
        tf.constant(["a", "bc"]),
        tf.constant(True),
        tf.constant(2.0 + 1.0j),
        tf.constant(3, tf.int8),
    ]
    module.f = tf.function(lambda: list(map(tf.identity, held)), input_signature=[])
    reference_impl.save(module, tmp_path / "model")
    found = reference_impl.load(tmp_path / "model").f()
    assert [item.numpy().tolist() if item.shape.rank else item.numpy() for item in found] == [
        b"text",
        [b"a", b"bc"],
        True,
        2 + 1j,
        3,
    ]


def test_FN_05_other_implementations_that_were_traced_are_saved(tf, tmp_path):
    module = tf.Module()
    spec = tf.TensorSpec([None])
    implementations = {
        device: tf.function(
            body,
            experimental_attributes={"api_implements": "twice", "api_preferred_device": device},
        )
        for device, body in (("CPU", lambda x: 2 * x), ("GPU", lambda x: x + x))
    }
    kept = implementations["GPU"].get_concrete_function(spec)
    module.f = tf.function(lambda x: implementations["CPU"](x) + 1, input_signature=[spec])
    reference_impl.save(module, tmp_path / "model")
    library = layout.read(tmp_path / "model").meta_graph().graph_def.library.function
    found = [
        dict(function.attr) for function in library if function.attr["api_implements"].s == b"twice"
    ]
    assert sorted(attributes["api_preferred_device"].s for attributes in found) == [b"CPU", b"GPU"]
    for load in (reference_impl.load, tf.saved_model.load):
        assert load(str(tmp_path / "model")).f(tf.constant([1.0])).numpy() == [3.0]
    del kept


# OpenVINO's frontend takes the name in the object graph, which several variables may have, for that
# of the last one's handle
def test_handles_of_variables_of_one_name_are_numbered_as_tensorflow_does(tf, tmp_path):
    root = tf.Module()
    root.pair = (tf.Variable(1.0), {"inner": tf.Variable(2.0), "named": tf.Variable(3.0, name="w")})
    root.third, root.w = tf.Variable(5.0), tf.Variable(7.0, name="w")
    root.f = tf.function(
        lambda x: x * root.pair[0] * root.pair[1]["inner"] + root.third,
        input_signature=[tf.TensorSpec([])],
    )
    names = []
    for save in (tf.saved_model.save, reference_impl.save):
        save(root, str(tmp_path / save.__module__))
        found = restore_plan.restore_plan(layout.read(tmp_path / save.__module__).meta_graph(None))
        names.append({one.key: one.node for one in found})
    assert names[0] == names[1] and len(names[0]) == 5


@pytest.mark.clause("RP-03")
def test_RP_03_a_variable_without_a_value_is_refused_by_name(tf, tmp_path):
    """Reading one gives an empty array in some releases, which no variable of that shape could
    load.
    """
    source = tf.Module()
    source.v, source.w = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    tf.saved_model.save(source, str(tmp_path / "source"))
    root = reference_impl.load(
        tmp_path / "source", options=reference_impl.LoadOptions(skip_checkpoint=True)
    )
    root.w.assign(4.0)
    with pytest.raises(SaveError, match=r"root\.v: .*no value"):
        reference_impl.save(root, tmp_path / "m")
    assert not (tmp_path / "m").exists()
    with pytest.warns(UserWarning, match=r"root\.v: .*no value"):
        reference_impl.save(root, tmp_path / "m", options=reference_impl.SaveOptions(strict=False))
    for load in (reference_impl.load, tf.saved_model.load):
        with pytest.raises(FileNotFoundError, match=r"Key v/.ATTRIBUTES/VARIABLE_VALUE not found"):
            load(str(tmp_path / "m"))
    partial = reference_impl.load(
        tmp_path / "m", options=reference_impl.LoadOptions(allow_partial_checkpoint=True)
    )
    assert partial.w.numpy() == 4.0 and not partial.v.is_initialized()


@pytest.mark.parametrize("updates", [False, True])
def test_PRIM_01_a_function_of_a_cached_value_reads_the_variable(tf, updates, tmp_path):
    """With a `caching_device` functions capture a copy of the first value.

    In a file it would be a constant.
    """
    module = tf.Module()
    module.v = tf.Variable(2.0, caching_device="/cpu:0")

    def body(x):
        if updates:
            module.v.assign_add(x)
        return module.v * x

    module.f = tf.function(body, input_signature=[tf.TensorSpec([])])
    module.f.get_concrete_function()
    module.v.assign(5.0)
    reference_impl.save(module, tmp_path / "model")
    for load in (tf.saved_model.load, reference_impl.load):
        loaded = load(str(tmp_path / "model"))
        assert (
            float(loaded.signatures["serving_default"](x=tf.constant(3.0))["output_0"]) == 15.0
        )  # before the update
        loaded.v.assign(10.0)
        with tf.GradientTape() as tape:
            answer = loaded.f(tf.constant(3.0))
        assert float(answer) == 30.0 and float(tape.gradient(answer, loaded.v)) == 3.0
        assert float(loaded.v) == (13.0 if updates else 10.0)
