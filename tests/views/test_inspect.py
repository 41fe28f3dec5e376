"""What `inspect` says of genuine SavedModels, and of ones made to confuse it."""

import json
from collections import Counter

import model_edits as edits
import neutral_edits
import pytest

from reference_impl.format import schema
from reference_impl.format.container import layout
from reference_impl.graph.signature_tensors import tensor_names
from reference_impl.views.model import inspect, signature_spec

CASES = sorted(path.parent.name for path in edits.FIXTURES.glob("*/model"))
assert len(CASES) >= 30
# Fixtures that say on purpose something that cannot be found.
BROKEN = {"v1_checkpoint"}


@pytest.fixture(scope="module")
def look():
    known = {}

    def get(case):
        if case not in known:
            known[case] = inspect(edits.fixture(case))
        return known[case]

    return get


def meta_graph(case, number=0):
    return layout.read(edits.fixture(case)).saved_model.meta_graphs[number]


def built(tmp_path, build):
    """What `inspect` says of the one MetaGraph of a hand-made model."""
    message, graph = edits.new_model()
    build(graph)
    return inspect(edits.write(message, tmp_path / "model")).meta_graphs[0]


# All genuine models


@pytest.mark.parametrize("case", CASES)
def test_a_genuine_model(case, look):
    """Counts against counts by other means; nothing is wrong with it; the JSON is plain and the
    same each time.
    """
    info = look(case)
    assert bool(info.problems) == (case in BROKEN), info.problems
    files = [path for path in edits.fixture(case).rglob("*") if path.is_file()]
    assert info.size == sum(path.stat().st_size for path in files)
    text = json.dumps(info.to_json(), allow_nan=False)
    assert text == json.dumps(inspect(edits.fixture(case)).to_json())
    assert json.loads(text) == info.to_json()
    model = layout.read(edits.fixture(case))
    assert len(info.meta_graphs) == len(model.saved_model.meta_graphs)
    for graph, found in zip(model.saved_model.meta_graphs, info.meta_graphs):
        counts = {}
        for nodes in edits.bodies(graph):
            for node in nodes:
                counts[node.op] = counts.get(node.op, 0) + 1
        assert {item.op: item.count for item in found.ops} == counts
        assert {item.op: item.main_graph for item in found.ops if item.main_graph} == Counter(
            node.op for node in graph.graph_def.node
        )
        assert {item.name: item.nodes for item in found.library} == {
            function.signature.name: len(function.node_def)
            for function in graph.graph_def.library.function
        }
        assert [asset.status for asset in found.assets] == ["present"] * len(found.assets)
        assert sum(collection.items > 0 for collection in found.collections) == len(
            graph.collection_def
        )
        assert found.sizes.total == graph.ByteSize()


# Signatures


def test_signatures(look):
    found = {item.key: item for item in look("half_plus_two").meta_graphs[0].signatures}
    assert {key: item.method_name.rpartition("/")[2] for key, item in found.items()} == {
        "classify_x_to_y": "classify",
        "regress_x_to_y": "regress",
        "serving_default": "predict",
    }
    (x,) = found["serving_default"].inputs
    assert (x.name, x.kind, x.dtype, x.shape, x.tensors[0].tensor) == (
        "x",
        "dense",
        "float32",
        (None, 1),
        "x:0",
    )
    assert [item.name for item in found["classify_x_to_y"].outputs] == ["classes", "scores"]


def test_signature_spec_of_sparse_arguments(look):
    found = signature_spec(meta_graph("sparse_io"))["serving_default"]
    assert found["inputs"] == {
        f"{name}/{part}": {"dtype": dtype, "shape": shape}
        for name in "ab"
        for part, dtype, shape in (
            ("values", "float32", [None]),
            ("indices", "int64", [None, 2]),
            ("dense_shape", "int64", [2]),
        )
    }
    assert set(found["outputs"]) == {
        "dense",
        "product",
        "sum/values",
        "sum/indices",
        "sum/dense_shape",
    }
    tensors = {
        item.name: [slot.tensor for slot in item.tensors]
        for item in look("sparse_io").meta_graphs[0].signatures[1].inputs
    }
    assert tensors == {
        name: [f"{name}/values:0", f"{name}/indices:0", f"{name}/shape:0"] for name in "ab"
    }


def test_signature_spec_of_composite_arguments(look):
    found = signature_spec(meta_graph("ragged_io"))["serving_default"]
    assert found["inputs"] == {
        "r/component_0": {"dtype": "float32", "shape": [None]},
        "r/component_1": {"dtype": "int64", "shape": [None]},
    }
    (ragged,) = look("ragged_io").meta_graphs[0].signatures[1].inputs
    assert (ragged.kind, ragged.type_spec, ragged.dtype, ragged.shape) == (
        "composite",
        "Ragged(float32[?,?])",
        None,
        None,
    )


def test_components_of_components(tmp_path):
    def build(graph):
        info = graph.signature_def["s"].inputs["x"]
        inner = info.composite_tensor.components.add().composite_tensor
        for name in "ab":
            inner.components.add(name=f"{name}:0", dtype=schema.DT_HALF)
        info.composite_tensor.components.add(
            name="c:0", dtype=schema.DT_BOOL
        ).tensor_shape.unknown_rank = True

    (x,) = built(tmp_path, build).signatures[0].inputs
    assert [(slot.part, slot.tensor, slot.dtype) for slot in x.tensors] == [
        ("component_0", "a:0", "float16"),
        ("component_1", "b:0", "float16"),
        ("component_2", "c:0", "bool"),
    ]
    assert x.tensors[2].shape is None


def test_reserved_signatures_and_defaults(tmp_path):
    def build(graph):
        graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "init"
        signature = graph.signature_def["s"]
        signature.inputs["x"].dtype = schema.DT_FLOAT
        signature.defaults["x"].CopyFrom(schema.TensorProto(dtype=schema.DT_FLOAT, float_val=[2.5]))

    found = built(tmp_path, build)
    assert [(item.key, item.inputs[0].default) for item in found.signatures] == [
        ("s", "float32[] = 2.5")
    ]
    assert [(item.source, item.op) for item in found.init_ops] == [
        ("__saved_model_init_op", "init")
    ]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("legacy_init_op", [("legacy_init_op", "legacy_init_op")]),
        ("main_op", [("saved_model_main_op", "custom_main_op")]),
        ("table_no_init", []),
        ("module_functions", [("saved_model_main_op", "NoOp"), ("__saved_model_init_op", "NoOp")]),
    ],
)
def test_init_ops(case, expected, look):
    assert [(item.source, item.op) for item in look(case).meta_graphs[0].init_ops] == expected


# Objects and functions


def test_objects(look):
    graph = look("module_functions").meta_graphs[0]
    by_path = {item.path: item for item in graph.objects}
    assert {
        path: by_path[path].kind
        for path in ("", "parts", "parts.1", "table", "multiply", "table._initializer._filename")
    } == {
        "": "user_object",
        "parts": "user_object",
        "parts.1": "variable",
        "table": "resource",
        "multiply": "function",
        "table._initializer._filename": "asset",
    }
    assert by_path["parts"].details["identifier"] == "trackable_list_wrapper"
    assert by_path["parts.1"].details["trainable"] is False
    # child.scale is the object that scale is: known by its shorter name, referred to by id.
    assert [(child.name, child.id) for child in by_path["child"].children] == [
        ("scale", by_path["scale"].id)
    ]
    assert "child.scale" not in by_path
    assert [item.id for item in graph.objects] == list(range(len(graph.objects)))


def test_slots_have_checkpoint_keys(look):
    graph = look("keras_compiled_save").meta_graphs[0]
    (optimizer,) = [item for item in graph.objects if "slots" in item.details]
    assert {slot["name"] for slot in optimizer.details["slots"]} == {"m", "v"}
    variables = {item.key: item for item in graph.variables}
    for slot in optimizer.details["slots"]:
        of = graph.objects[slot["variable"]].details["checkpoint_keys"]["VARIABLE_VALUE"]
        key = graph.objects[slot["slot"]].details["checkpoint_keys"]["VARIABLE_VALUE"]
        assert key.startswith(of.removesuffix(".ATTRIBUTES/VARIABLE_VALUE") + ".OPTIMIZER_SLOT/")
        assert key.endswith(f"/{slot['name']}/.ATTRIBUTES/VARIABLE_VALUE")
        assert variables[key].stored
        assert variables[key].path is None


def test_functions(look):
    graph = look("module_functions").meta_graphs[0]
    found = {
        item.path: [(trace.signature, trace.bound_inputs) for trace in item.traces]
        for item in graph.functions
    }
    # In the order of the file, which TensorFlow 1.15 does not determine.
    assert sorted(found["multiply"]) == [
        ("multiply(x: float32[?], training=False) -> float32[?]", ("scale",)),
        ("multiply(x: float32[?], training=True) -> float32[?]", ("scale",)),
    ]
    assert found["nested"] == [
        (
            "nested(pair: {'x': float32[], 'y': float32[]}) -> [float32[], {'product': float32[]}]",
            (),
        )
    ]
    assert found["lookup"][0][0] == "lookup(words: string[?]) -> {'ids': int64[?], 'size': int64[]}"
    assert found["lookup"][0][1][0] == "table"
    assert found["table._initialize"] == [
        ("_initialize() -> int32[]", ("table._initializer._filename", "table"))
    ]
    reached = {item.name: item.reachable_from for item in graph.library}
    assert {signatures for name, signatures in reached.items() if "_lookup_" in name} == {
        ("lookup",)
    }
    assert {signatures for name, signatures in reached.items() if "nested" in name} == {()}


def test_savers(look, tmp_path):
    saver = look("half_plus_two").meta_graphs[0].saver
    assert (saver.filename_tensor, saver.save_tensor, saver.restore_op) == (
        "save/Const:0",
        "save/Identity:0",
        "save/restore_all",
    )
    assert (saver.version, saver.sharded, saver.restores) == ("V2", True, 2)

    def circular(graph):
        graph.saver_def.restore_op_name = "f"
        graph.graph_def.node.add(name="f", op="f")
        function = graph.graph_def.library.function.add()
        function.signature.name = "f"
        function.node_def.add(name="again", op="f")

    assert built(tmp_path, circular).saver.restores is None
    assert built(tmp_path / "none", lambda graph: None).saver is None


def test_flat_signatures(tmp_path):
    """Of a FunctionDef itself: types, type attributes, nothing."""

    def build(graph):
        signature = graph.graph_def.library.function.add().signature
        signature.CopyFrom(schema.OpDef(name="f"))
        signature.input_arg.add(name="a", type=schema.DT_INT32)
        signature.input_arg.add(name="b", type_attr="T")
        signature.output_arg.add(name="c", type_attr="T")
        signature.output_arg.add(name="d", type=schema.DT_STRING)
        signature.output_arg.add(name="e")

    assert [item.signature for item in built(tmp_path, build).library] == [
        "f(a: int32, b: T) -> (T, string, ?)"
    ]


def function_spec(args, is_method=False):
    spec = schema.FunctionSpec(is_method=is_method)
    names = spec.fullargspec.named_tuple_value.values.add(key="args").value.list_value
    for name in args:
        names.values.add(string_value=name)
    return spec


def test_python_signatures(tmp_path):
    """Methods, positional arguments beyond the named ones, keywords, functions without a trace or
    without a body.
    """

    def build(graph):
        objects = graph.object_graph_def
        root = objects.nodes.add()
        for number, (name, args, is_method, traces) in enumerate(
            [
                ("m", ["self", "x"], False, ["f"]),
                ("n", ["this", "x"], True, ["f"]),
                ("p", ["x"], False, ["f", "g"]),
                ("u", [], False, []),
            ]
        ):
            root.children.add(local_name=name, node_id=number + 1)
            made = objects.nodes.add().function
            made.function_spec.CopyFrom(function_spec(args, is_method))
            made.concrete_functions.extend(traces)
        trace = objects.concrete_functions["f"]
        positional, keywords = (
            trace.canonicalized_input_signature.tuple_value.values.add() for _ in range(2)
        )
        spec = positional.tuple_value.values.add().tensor_spec_value
        spec.dtype = schema.DT_FLOAT
        spec.shape.unknown_rank = True
        positional.tuple_value.values.add().int64_value = 7
        keywords.dict_value.fields["flag"].bool_value = True
        trace.output_signature.none_value.SetInParent()
        trace.bound_inputs.append(99)

    found = {item.path: item.traces for item in built(tmp_path, build).functions}
    assert found["m"][0].signature == "m(x: float32[...], 7, flag=True) -> None"
    assert found["n"][0].signature == "n(x: float32[...], 7, flag=True) -> None"
    assert [item.signature for item in found["p"]] == [
        "p(x: float32[...], 7, flag=True) -> None",
        "p(?)",
    ]
    assert [item.in_library for item in found["p"]] == [False, False]
    assert found["m"][0].bound_inputs == ("(node 99)",)
    assert found["u"] == ()


# Variables


def test_variables_of_objects(look):
    found = {item.path: item for item in look("module_functions").meta_graphs[0].variables}
    assert {
        path: (item.dtype, item.shape, item.size, item.trainable) for path, item in found.items()
    } == {
        "scale": ("float32", (), 4, True),
        "parts.0": ("float32", (2,), 8, True),
        "parts.1": ("int32", (), 4, False),
        "named.left": ("float32", (1, 1), 4, True),
        "named.right": ("string", (), found["named.right"].size, True),
    }
    assert {item.key for item in found.values()} == {
        f"{path.replace('.', '/')}/.ATTRIBUTES/VARIABLE_VALUE" for path in found
    }
    assert all(item.stored and item.kind == "resource" and item.node for item in found.values())


def test_variables_of_a_graph(look):
    found = {item.name: item for item in look("partitioned_variables").meta_graphs[0].variables}
    rows = [found[f"rows/part_{number}"] for number in range(3)]
    assert [(item.key, item.shape, item.size, item.kind, item.slice) for item in rows] == [
        ("rows", (3, 2), 24, "reference", "7 2 0,3:0,2"),
        ("rows", (2, 2), 16, "reference", "7 2 3,2:0,2"),
        ("rows", (2, 2), 16, "reference", "7 2 5,2:0,2"),
    ]
    assert found["columns/part_1"].kind == "resource"
    local = {item.name: item for item in look("local_variables").meta_graphs[0].variables}["local"]
    assert (local.key, local.stored, local.trainable, local.size) == (None, False, False, None)


def test_trainable_of_producers_that_did_not_say(tmp_path):
    """TF 1.4 wrote no such field: the variables in trainable_variables are trainable; without any
    collection it is unknown.
    """
    model = edits.edited(edits.fixture("half_plus_two"), tmp_path / "old", lambda message: None)
    message = layout.read(model).saved_model
    message.meta_graphs[0].meta_info_def.tensorflow_version = "1.4.1"
    collections = message.meta_graphs[0].collection_def
    for key in ("variables", "trainable_variables"):
        values = collections[key].bytes_list.value
        values[:] = [
            neutral_edits.without(schema.VariableDef, data, "trainable") for data in values
        ]
    del collections["trainable_variables"].bytes_list.value[0]
    edits.write(message, model)
    assert [item.trainable for item in inspect(model).meta_graphs[0].variables] == [False, True]
    message.meta_graphs[
        0
    ].meta_info_def.tensorflow_version = "1.10.0"  # it writes the field: absent means not trainable
    edits.write(message, model)
    assert [item.trainable for item in inspect(model).meta_graphs[0].variables] == [False, False]
    message.meta_graphs[0].collection_def.clear()
    edits.write(message, model)
    assert [item.trainable for item in inspect(model).meta_graphs[0].variables] == [None, None]


# Ops


def test_ops_of_branches_and_bodies(look):
    """They are only named in attributes of While, If and Case."""
    graph = look("control_flow_v2").meta_graphs[0]
    reached = {item.name for item in graph.library if item.reachable_from}
    for start in (
        "cond_true",
        "cond_false",
        "loop_body",
        "loop_cond",
        "map_while_body",
        "switch_case_indexed_case_branch2",
    ):
        assert any(name.startswith(start) for name in reached), start
    only_inside = [item for item in graph.ops if not item.main_graph and item.reachable_from]
    assert only_inside
    assert all(item.functions for item in only_inside)


def test_reach(tmp_path):
    """Through calls by op type and by attribute, attributes of function values, lists of functions,
    gradients, circles.
    """

    def build(graph):
        library = graph.graph_def.library
        for name in (
            "direct",
            "in_attr",
            "in_list",
            "in_func_attr",
            "gradient",
            "circle",
            "unused",
        ):
            function = library.function.add()
            function.signature.name = name
            function.node_def.add(name="n", op=f"Op_{name}")
            if name == "direct":
                node = function.node_def.add(name="m", op="circle")
                node.attr["_gradient_op_type"].s = b"G-1"
            if name == "circle":
                function.node_def.add(name="m", op="circle")
        library.registered_gradients.add(registered_op_type="G-1", gradient_func="gradient")
        nodes = graph.graph_def.node
        nodes.add(name="a", op="direct")
        node = nodes.add(name="b", op="While", input=["a:0", "^c"])
        node.attr["body"].func.name = "in_attr"
        node.attr["cond"].func.attr["T"].func.name = "in_func_attr"
        nodes.add(name="c", op="Case").attr["branches"].list.func.add(name="in_list")
        graph.signature_def["all"].outputs["y"].name = "b:0"
        graph.signature_def["some"].outputs["y"].name = "a:0"
        graph.signature_def["none"].outputs["y"].name = "nowhere:0"

    found = built(tmp_path, build)
    assert {item.name: item.reachable_from for item in found.library} == {
        **dict.fromkeys(("direct", "circle", "gradient"), ("all", "some")),
        **dict.fromkeys(("in_attr", "in_list", "in_func_attr"), ("all",)),
        "unused": (),
    }
    ops = {item.op: item for item in found.ops}
    assert (ops["circle"].count, ops["circle"].main_graph, ops["circle"].functions) == (
        2,
        0,
        ("direct", "circle"),
    )
    reached = [ops[op].reachable_from for op in ("Op_in_list", "While", "direct")]
    assert reached == [("all",), ("all",), ("all", "some")]


# Sizes


def test_sizes(tmp_path):
    def build(graph):
        for size in (5, 50, 500, 1, 20, 300, 7):
            constant = graph.graph_def.node.add(name=f"c{size}", op="Const")
            constant.attr["value"].tensor.CopyFrom(
                schema.TensorProto(dtype=schema.DT_UINT8, tensor_content=bytes(size))
            )

    found = built(tmp_path, build).sizes
    assert [item.node for item in found.largest_constants] == ["c500", "c300", "c50", "c20", "c7"]
    assert 883 <= found.constants < found.graph < found.total
    assert found.functions == 0


def test_the_tensors_of_a_signature_come_in_the_order_of_its_arguments():
    """A map of a message has the order of its hashes, which differs in each process: findings
    followed it.
    """
    signature = schema.SignatureDef()
    for name in "hdbgfaec":
        signature.outputs[name].name = f"{name}:0"
    assert tensor_names(signature.outputs) == [f"{name}:0" for name in "abcdefgh"]
