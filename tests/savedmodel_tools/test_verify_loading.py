"""`verify` foretells what the Python loaders of the newest TensorFlow refuse: held against
TensorFlow, fixtures, real models.
"""

import csv
from collections import defaultdict

import model_edits as edits
import pytest
import skew_models
import verify_planted
import zoo

from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.container import layout
from savedmodel_tools.skew.history import history
from savedmodel_tools.verify.findings import Severity
from savedmodel_tools.verify.model import Model
from savedmodel_tools.verify.run import verify
from savedmodel_tools.verify.shapes import Shapes

# The rules that foretell a refusal, and what TensorFlow says then.
SAYS = {
    "SMC309": "refers to an Operation not in the graph",
    "SMC521": "appears more than once in the input list",
    "SMC522": "depends transitively on placeholder",
    "SMC523": "wrapping <tf.Tensor 'both:1'",
    "SMC524": "has a reference type",
    "SMC525": "refers to a Tensor which does not exist",
    "SMC526": "'class' is not a valid parameter name",
    "SMC527": "Invalid version: '1.15.0-built-here'",
    "SMC528": "has not been registered",
    "SMC529": "Op type not registered 'Resampler'",
    "SMC531": "has an _output_shapes attribute inconsistent with the GraphDef",
}
BROKEN = {
    "SMC101",
    "SMC201",
    "SMC202",
    "SMC203",
    "SMC211",
    "SMC212",
    "SMC214",
    "SMC301",
    "SMC302",
    "SMC303",
}  # nothing loads these
NEEDS_MORE = {"SMC511", "SMC603"}  # a package imported first
ABSENT_FILE = {"untracked_vocabulary": "SMC601"}  # the initialiser reads a file of another machine


@pytest.fixture
def tf():
    """TensorFlow, if it is the release that the rules speak of."""
    import tensorflow

    newest = history().releases[-1].name
    if not tensorflow.__version__.startswith(f"{newest}."):
        pytest.skip(f"the rules foretell TensorFlow {newest}, this is {tensorflow.__version__}")
    return tensorflow


def findings(path, tags):
    """The rules with a finding of a warning or worse about the MetaGraph of these tags, or about
    the whole directory.
    """
    report = verify(path)
    assert report.error is None, report.error
    named = ", ".join(sorted(tags))
    return {
        item.rule
        for item in report.findings
        if item.severity >= Severity.WARNING and item.tags in (None, named)
    }


@pytest.mark.tensorflow
@pytest.mark.parametrize("rule", sorted(SAYS))
def test_tensorflow_refuses_what_a_rule_finds(rule, tf, tmp_path):
    verify_planted.PLANTED[rule](tmp_path / "model")
    with pytest.raises(Exception) as caught:
        tf.saved_model.load(str(tmp_path / "model"))
    assert SAYS[rule] in str(caught.value)
    assert rule in findings(tmp_path / "model", {"serve"})


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("name", "loads"),
    [
        ("match", True),
        ("a b", True),
        ("_", True),
        ("1", True),
        ("π", True),
        ("None", False),
        ("", False),
        ("a²", False),
    ],
)
def test_names_of_inputs(name, loads, tf, tmp_path):
    def edit(graph):
        tensor = verify_planted.placeholder(graph, "given")
        verify_planted.node(graph, "taken", "Identity", "given")
        verify_planted.signature(graph, {name: tensor}, {"y": "taken:0"})

    verify_planted.graph_edit(verify_planted.V1, edit)(tmp_path / "model")
    assert ("SMC526" not in findings(tmp_path / "model", {"serve"})) == loads
    if loads:
        tf.saved_model.load(str(tmp_path / "model"))
    else:
        with pytest.raises((ValueError, IndexError)):
            tf.saved_model.load(str(tmp_path / "model"))


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "text",
    [
        "",
        "1.15",
        "1.15.0-rc1",
        "2.1.0-dev20200101",
        "1.12.0+nv18.11",
        "unknown",
        "1.4.0-19-ga52c8d9b01",
    ],
)
def test_versions_of_writers(text, tf, tmp_path):
    def edit(graph):
        graph.meta_info_def.tensorflow_version = text

    verify_planted.graph_edit(verify_planted.V1, edit)(tmp_path / "model")
    try:
        tf.saved_model.load(str(tmp_path / "model"))
        loads = True
    except ValueError:
        loads = False
    assert ("SMC527" not in findings(tmp_path / "model", {"serve"})) == loads
    # With an object graph only the v1 loader looks at it.
    verify_planted.graph_edit(verify_planted.V2, edit)(tmp_path / "objects")
    tf.saved_model.load(str(tmp_path / "objects"))
    assert "SMC527" not in findings(tmp_path / "objects", {"serve"})


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "case", sorted(path.parent.name for path in edits.FIXTURES.glob("*/model"))
)
def test_a_fixture_is_refused_where_a_rule_says_so_and_loaded_elsewhere(case, tf):
    path = edits.fixture(case)
    graphs = layout.read(path).saved_model.meta_graphs
    assert graphs
    for graph in graphs:
        tags = set(graph.meta_info_def.tags)
        foretold = findings(path, tags) & {*SAYS, *NEEDS_MORE, ABSENT_FILE.get(case)}
        try:
            tf.saved_model.load(str(path), tags=sorted(tags))
            said = None
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        if case == "keras_compiled_save" and said is None:
            foretold.discard("SMC511")  # where a test before this one has imported tf_keras
        assert bool(foretold) == (said is not None), (tags, foretold, said)


BIG = (4, 5, 6, 7)
MISFITS = [  # op, its attrs, shapes of its inputs (or values), whether TensorFlow takes them
    ("Add", {"T": "type:float32"}, [(2, 3), (3,)], True),
    ("Add", {"T": "type:float32"}, [(2, 3), (2,)], False),
    ("Add", {"T": "type:float32"}, [(2, None), (2, 7)], True),
    ("Equal", {"T": "type:float32", "incompatible_shape_error": False}, [(2, 3), (2,)], True),
    ("MatMul", {"T": "type:float32"}, [(2, 3), (3, 4)], True),
    ("MatMul", {"T": "type:float32", "transpose_b": True}, [(2, 3), (3, 4)], False),
    ("MatMul", {"T": "type:float32"}, [(2, 3), (3,)], False),
    ("BiasAdd", {"T": "type:float32"}, [(2, 3), (3,)], True),
    ("BiasAdd", {"T": "type:float32"}, [(2, 3), (2,)], False),
    ("BiasAdd", {"T": "type:float32"}, [(3,), (3,)], False),
    ("Reshape", {"T": "type:float32"}, [(2, 3), [6]], True),
    ("Reshape", {"T": "type:float32"}, [(2, 3), [-1, 2]], True),
    (
        "Reshape",
        {"T": "type:float32"},
        [(None, 3), [4]],
        None,
    ),  # that 3 does not divide 4 only TensorFlow says
    ("Reshape", {"T": "type:float32"}, [(2, 3), [4]], False),
    ("Reshape", {"T": "type:float32"}, [(2, 3), [-1, 4]], False),
    ("ExpandDims", {"T": "type:float32", "Tdim": "type:int32"}, [(2,), [2]], False),
    ("ConcatV2", {"T": "type:float32", "N": 2}, [(2, 3), (2, 4), [1]], True),
    ("ConcatV2", {"T": "type:float32", "N": 2}, [(2, 3), (2, 4), [0]], False),
    ("ConcatV2", {"T": "type:float32", "N": 2}, [(2, 3), (2,), [0]], False),
    ("Pack", {"T": "type:float32", "N": 2}, [(2, 3), (2, 4)], False),
    ("Transpose", {"T": "type:float32"}, [(2, 3), [1, 0]], True),
    ("Transpose", {"T": "type:float32"}, [(2, 3), [1, 0, 2]], False),
    ("Sum", {"T": "type:float32"}, [(2, 3), [1]], True),
    ("Sum", {"T": "type:float32"}, [(2, 3), [2]], False),
    (
        "Conv2D",
        {"T": "type:float32", "padding": "SAME", "strides": [1, 1, 1, 1]},
        [BIG, (3, 3, 7, 2)],
        True,
    ),
    (
        "Conv2D",
        {"T": "type:float32", "padding": "SAME", "strides": [1, 1, 1, 1]},
        [BIG, (3, 3, 4, 2)],
        False,
    ),
    (
        "Conv2D",
        {"T": "type:float32", "padding": "SAME", "strides": [1, 1, 1, 1]},
        [(5, 6, 7), (3, 3, 7, 2)],
        False,
    ),
    (
        "MaxPool",
        {"T": "type:float32", "padding": "SAME", "strides": [1, 1, 1, 1], "ksize": [1, 2, 2, 1]},
        [(5, 6, 7)],
        False,
    ),
    ("ResizeBilinear", {"T": "type:float32"}, [(5, 6, 7), [2, 2]], False),
    ("ReluGrad", {"T": "type:float32"}, [(2, 3), (2, 3)], True),
    ("ReluGrad", {"T": "type:float32"}, [(2, 3), (2, 4)], False),
    (
        "TanhGrad",
        {"T": "type:float32"},
        [(2, 3), (2, 4)],
        True,
    ),  # TensorFlow looks at the first alone
    ("AddN", {"T": "type:float32", "N": 2}, [(2, None), (2, 4)], True),
    ("AddN", {"T": "type:float32", "N": 2}, [(2, 3), (2, 4)], False),
    ("BiasAddGrad", {"T": "type:float32"}, [(2, 3)], True),
    ("BiasAddGrad", {"T": "type:float32"}, [(3,)], False),
    (
        "MaxPoolGrad",
        {"T": "type:float32", "padding": "SAME", "strides": [1, 1, 1, 1], "ksize": [1, 2, 2, 1]},
        [BIG] * 3,
        True,
    ),
    (
        "MaxPoolGrad",
        {"T": "type:float32", "padding": "SAME", "strides": [1, 1, 1, 1], "ksize": [1, 2, 2, 1]},
        [BIG[1:], BIG, BIG],
        False,
    ),
    ("SoftmaxCrossEntropyWithLogits", {"T": "type:float32"}, [(2, 3), (1, 3)], True),
    ("SoftmaxCrossEntropyWithLogits", {"T": "type:float32"}, [(2, 3), (4, 3)], False),
    ("PlaceholderWithDefault", {"dtype": "type:float32", "shape": (2, 3)}, [(2, 4)], False),
]


def shape_model(op, values, inputs):
    def edit(graph):
        names = []
        for number, given in enumerate(inputs):
            name = f"in{number}"
            names.append(name)
            if isinstance(given, tuple):
                verify_planted.placeholder(
                    graph, name, [-1 if size is None else size for size in given]
                )
                continue
            constant = verify_planted.node(graph, name, "Const")
            tensor = constant.attr["value"].tensor
            constant.attr["dtype"].type = tensor.dtype = schema.DT_INT32
            tensor.int_val.extend(given)
            one = op in ("ExpandDims", "ConcatV2")  # a scalar
            tensor.tensor_shape.CopyFrom(verify_planted.dims(*([] if one else [len(given)])))
        made = verify_planted.node(graph, "planted", op, *names)
        for key, value in values.items():
            if isinstance(value, list):
                made.attr[key].list.i.extend(value)
            elif isinstance(value, tuple):
                made.attr[key].shape.CopyFrom(verify_planted.dims(*value))
            else:
                skew_models.attrs(made, **{key: value})

    return verify_planted.graph_edit(verify_planted.V1, edit)


@pytest.mark.tensorflow
@pytest.mark.parametrize(("op", "values", "inputs", "taken"), MISFITS)
def test_shapes_that_an_op_does_not_take(op, values, inputs, taken, tf, tmp_path):
    shape_model(op, values, inputs)(tmp_path / "model")
    if taken:
        tf.saved_model.load(str(tmp_path / "model"))
    else:
        with pytest.raises(ValueError, match=r"(?i)shape|dimension|element|rank|axis|depth"):
            tf.saved_model.load(str(tmp_path / "model"))
    assert ("SMC531" in findings(tmp_path / "model", {"serve"})) == (taken is False)


SIZES = [2, 5, 6, 3]
POOL = {"T": "type:float32", "padding": "SAME", "strides": [1, 1, 1, 1], "ksize": [1, 2, 2, 1]}
CONVOLUTION = {"T": "type:float32", "padding": "SAME", "strides": [1, 1, 1, 1]}
GRADIENTS = [  # op, its attrs, its inputs, the shape of its first output as TensorFlow infers it
    ("ReluGrad", {"T": "type:float32"}, [(2, 3), (None, 3)], (2, 3)),
    ("TanhGrad", {"T": "type:float32"}, [(2, 3), (2, 3)], (2, 3)),
    ("SqrtGrad", {"T": "type:float32"}, [(2, 3), (2, 3)], (2, 3)),
    ("AddN", {"T": "type:float32", "N": 2}, [(2, 3), (2, 3)], (2, 3)),
    ("BiasAddGrad", {"T": "type:float32"}, [(2, 3)], (3,)),
    ("Conv2DBackpropInput", CONVOLUTION, [SIZES, (3, 3, 3, 4), (2, 5, 6, 4)], (2, 5, 6, 3)),
    ("Conv2DBackpropFilter", CONVOLUTION, [(2, 5, 6, 3), [3, 3, 3, 4], (2, 5, 6, 4)], (3, 3, 3, 4)),
    ("AvgPoolGrad", POOL, [SIZES, (2, 5, 6, 3)], (2, 5, 6, 3)),
    ("MaxPoolGrad", POOL, [(2, 5, 6, 3)] * 3, (2, 5, 6, 3)),
    ("Fill", {"T": "type:float32", "index_type": "type:int32"}, [SIZES, ()], (2, 5, 6, 3)),
    ("SoftmaxCrossEntropyWithLogits", {"T": "type:float32"}, [(2, 3), (2, 3)], (2,)),
]


@pytest.mark.tensorflow
@pytest.mark.parametrize(("op", "values", "inputs", "shape"), GRADIENTS)
@pytest.mark.parametrize("fits", [True, False])
def test_a_gradient_that_says_another_shape_than_follows(
    op, values, inputs, shape, fits, tf, tmp_path
):
    """`_output_shapes` of a training graph: TensorFlow refuses one that contradicts, and takes one
    that says the same.
    """
    said = shape if fits else (*shape[:-1], shape[-1] + 1)

    def edit(message):
        (graph,) = message.meta_graphs
        (made,) = [node for node in graph.graph_def.node if node.name == "planted"]
        made.attr["_output_shapes"].list.shape.add().CopyFrom(verify_planted.dims(*said))
        if op == "SoftmaxCrossEntropyWithLogits":
            made.attr["_output_shapes"].list.shape.add().unknown_rank = True

    shape_model(op, values, inputs)(tmp_path / "plain")
    edits.edited(tmp_path / "plain", tmp_path / "model", edit)
    if fits:
        tf.saved_model.load(str(tmp_path / "model"))
    else:
        with pytest.raises(ValueError, match="inconsistent with the GraphDef"):
            tf.saved_model.load(str(tmp_path / "model"))
    assert ("SMC531" in findings(tmp_path / "model", {"serve"})) != fits


@pytest.mark.tensorflow
def test_a_signature_that_says_another_shape_than_follows(tf, tmp_path):
    def edit(graph):
        tensor = verify_planted.placeholder(graph, "given", (2, 3))
        verify_planted.node(graph, "taken", "Identity", "given")
        made = verify_planted.signature(graph, {"x": tensor}, {"y": "taken:0"})
        made.outputs["y"].tensor_shape.CopyFrom(verify_planted.dims(4))

    verify_planted.graph_edit(verify_planted.V1, edit)(tmp_path / "model")
    with pytest.raises(ValueError, match="Shapes must be equal rank"):
        tf.saved_model.load(str(tmp_path / "model"))
    assert "SMC531" in findings(tmp_path / "model", {"serve"})


@pytest.mark.tensorflow
@pytest.mark.parametrize(("producer", "taken"), [(21, False), (22, False), (15, False)])
def test_a_placeholder_of_old_graphs_becomes_a_scalar_when_its_signature_is_copied(
    producer, taken, tf, tmp_path
):
    """Behind the input of a signature, where the nodes are copied all the same."""

    def edit(graph):
        graph.graph_def.versions.producer = producer
        verify_planted.placeholder(graph, "given", ())
        verify_planted.placeholder(graph, "matrix", (2, 2))
        verify_planted.node(graph, "product", "MatMul", "given", "matrix").attr[
            "T"
        ].type = schema.DT_FLOAT
        verify_planted.node(graph, "between", "Identity", "product")
        verify_planted.node(graph, "taken", "Identity", "between")
        verify_planted.signature(graph, {"x": "between:0"}, {"y": "taken:0"})

    verify_planted.graph_edit(verify_planted.V1, edit)(tmp_path / "model")
    with pytest.raises(ValueError, match="must be rank 2"):
        tf.saved_model.load(str(tmp_path / "model"))
    assert "SMC531" in findings(tmp_path / "model", {"serve"})


def graphs():
    """The main graphs of all fixtures and real models that can be read."""
    for path in [*sorted(edits.FIXTURES.glob("*/model")), *zoo.models()]:
        try:
            model = Model(layout.read(path))
        except SavedModelError:
            continue
        yield from model.graphs


@pytest.mark.tensorflow
def test_no_shape_is_inferred_that_tensorflow_does_not_infer(tf):
    compared = 0
    for graph in graphs():
        proto = tf.compat.v1.GraphDef.FromString(graph.proto.graph_def.SerializeToString())
        for item in (*proto.node, *graph.main.messages):
            item.attr.pop("_output_shapes", None)
        imported = tf.Graph()
        try:
            with imported.as_default():
                tf.import_graph_def(proto, name="")
        except (tf.errors.NotFoundError, ValueError):
            continue  # an op that is not here
        shapes = Shapes(graph.main, proto.versions.producer)
        assert shapes.misfits == []
        for operation in imported.get_operations():
            for tensor in operation.outputs:
                mine = shapes.of(tensor.name)
                if mine is not None:
                    compared += 1
                    assert tensor.shape.rank == len(mine), (tensor.name, mine, tensor.shape)
                    theirs = tensor.shape.as_list()
                    assert all(one in (None, other) for one, other in zip(mine, theirs)), (
                        tensor.name,
                        mine,
                        theirs,
                    )
    assert compared > 3000


def baseline():
    """(model, tags) -> whether TensorFlow 2.21 loads it, of the real models."""
    folder = zoo.models()[0].parent
    found = {}
    with (folder.parent / "baseline_tf221.csv").open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            tags = frozenset(filter(None, row["tags"].replace("<empty>", "").split("+")))
            found[folder / row["id"], tags] = row["v2_status"] == "ok"
    return found


@pytest.mark.skipif(not zoo.models(), reason=zoo.ABSENT)
def test_real_models_that_tensorflow_refuses_have_a_finding_and_those_it_loads_have_none():
    silent, alarms, counts = [], defaultdict(set), defaultdict(int)
    for (path, tags), loads in baseline().items():
        found = findings(path, tags)
        counts[loads] += 1
        if loads and found & {*SAYS, *NEEDS_MORE}:
            alarms[path.name] = found & {*SAYS, *NEEDS_MORE}
        if not loads and not found & {*SAYS, *NEEDS_MORE, *BROKEN}:
            silent.append(path.name)
    assert counts[True] > 50 and counts[False] > 30, counts
    assert dict(alarms) == {}
    assert silent == []
