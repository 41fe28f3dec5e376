"""`reference_impl.load` of models of TensorFlow 2: what is refused, by name."""

from __future__ import annotations

import shutil

import pytest
from made_models import edit, save
from model_edits import fixture

import reference_impl
from reference_impl import errors
from reference_impl import errors as format_errors
from reference_impl.format import schema
from reference_impl.format.values import dtypes, structure
from reference_impl.format.values.structure import nested_values

pytestmark = pytest.mark.tensorflow


def test_V1_04_and_05_tags(original):
    for tags in ("train", ["serve", "tpu"], []):
        with pytest.raises(ValueError, match="there are: serve"):
            reference_impl.load(original[1], tags=tags)
    assert reference_impl.load(original[1], tags={"serve"}).tensorflow_version


def test_a_missing_value_is_named(tf, tmp_path):
    root = tf.Module()
    root.part = tf.Module()
    root.part.bias = tf.Variable(1.0)
    directory = save(tf, tmp_path, root)

    def rename(meta_graph):
        for node in meta_graph.object_graph_def.nodes:
            for child in node.children:
                child.local_name = child.local_name.replace("bias", "bais")

    edit(directory, rename)
    with pytest.raises(FileNotFoundError, match=r"Key root\.part\.bais not found"):
        reference_impl.load(directory)


def _child(graph):
    graph.nodes[0].children[0].node_id = 10**6


def _dependency(graph):
    graph.nodes[1].dependencies.add(node_id=len(graph.nodes), local_name="needed")


def _bound_input(graph):
    next(f for f in graph.concrete_functions.values() if f.bound_inputs).bound_inputs[0] = -5


def _function_name(graph):
    next(
        n for n in graph.nodes if n.HasField("function") and n.function.concrete_functions
    ).function.concrete_functions[0] = "no_such"


def _asset(graph):
    next(n for n in graph.nodes if n.HasField("asset")).asset.asset_file_def_index = 77


def _kind(graph):
    next(n for n in graph.nodes if n.HasField("variable")).ClearField("variable")


def _empty(graph):
    graph.ClearField("nodes")
    graph.concrete_functions.clear()


def _tuple_in_itself(graph):
    node = next(n for n in graph.nodes if n.user_object.identifier == "trackable_tuple_wrapper")
    number = list(graph.nodes).index(node)
    node.children[0].node_id = number


def _contain(graph, *identifiers):
    """Make each of these containers the first element of the one before, and the first one that of
    the last.
    """
    numbers = [
        next(i for i, n in enumerate(graph.nodes) if n.user_object.identifier == each)
        for each in identifiers
    ]
    for number, inner in zip(numbers, numbers[1:] + numbers[:1]):
        graph.nodes[number].children[0].node_id = inner


def _list_in_itself(graph):
    _contain(graph, "trackable_list_wrapper")


def _dict_in_itself(graph):
    _contain(graph, "trackable_dict_wrapper")


def _containers_in_each_other(graph):
    _contain(graph, "trackable_list_wrapper", "trackable_tuple_wrapper", "trackable_dict_wrapper")


def _long_list(graph):
    node = next(n for n in graph.nodes if n.user_object.identifier == "trackable_list_wrapper")
    node.children[0].local_name = str(10**15)


@pytest.mark.parametrize(
    "damage, error, text",
    [
        (_child, format_errors.MalformedError, r"nodes\[0\].*refers to node 1000000"),
        (_dependency, format_errors.MalformedError, r"nodes\[1\].*refers to node \d+ of"),
        (_bound_input, format_errors.MalformedError, "captures node -5"),
        (_function_name, format_errors.MissingKeyError, "no_such"),
        (_asset, format_errors.MalformedError, "asset 77 of 1"),
        (_kind, errors.UnsupportedModelError, "object of kind None"),
        (_empty, format_errors.MalformedError, "object graph is empty"),
        (_tuple_in_itself, format_errors.CycleError, "contains itself"),
        (_list_in_itself, format_errors.CycleError, "contains itself"),
        (_dict_in_itself, format_errors.CycleError, "contains itself"),
        (_containers_in_each_other, format_errors.CycleError, "contains itself"),
        (_long_list, format_errors.LimitError, "1000000000000001 elements"),
    ],
)
def test_a_damaged_object_graph_is_refused(original, tmp_path, damage, error, text):
    copy = tmp_path / "copy"
    shutil.copytree(original[1], copy)
    edit(copy, lambda meta_graph: damage(meta_graph.object_graph_def))
    with pytest.raises(error, match=text):
        reference_impl.load(copy)


@pytest.mark.parametrize(
    ("dimensions", "error"), [(254, format_errors.LimitError), (255, format_errors.MalformedError)]
)
def test_a_constant_of_more_elements_than_can_be_written_down_is_refused(
    tf, tmp_path, dimensions, error
):
    root = tf.Module()
    root.value = tf.constant(2.0)
    root.f = tf.function(lambda: root.value * 2.0, input_signature=[])
    tf.saved_model.save(root, str(tmp_path))

    def damage(meta_graph):
        captured = {
            node.constant.operation
            for node in meta_graph.object_graph_def.nodes
            if node.constant.operation
        }
        node = next(n for n in meta_graph.graph_def.node if n.name in captured)
        for _ in range(dimensions):
            node.attr["value"].tensor.tensor_shape.dim.add(size=2**63 - 1)

    edit(tmp_path, damage)
    with pytest.raises(error, match="onstant"):
        reference_impl.load(tmp_path)


def _with_argspec_field(tf, folder, field, value):
    """Save a function with a default value, and write another value into one field of its
    FullArgSpec.
    """
    root = tf.Module()
    root.scale = tf.function(lambda x, k=3: x * float(k))
    root.scale(tf.constant(1.0))
    directory = save(tf, folder, root)

    def damage(meta_graph):
        for node in meta_graph.object_graph_def.nodes:
            for item in node.function.function_spec.fullargspec.named_tuple_value.values:
                if item.key == field:
                    item.value.CopyFrom(structure.encode(value))

    edit(directory, damage)
    return directory


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("args", 5),
        ("args", [1, 2]),
        ("args", "xk"),
        ("varargs", 7),
        ("varkw", ["more"]),
        ("defaults", 3),
        ("kwonlyargs", "a"),
        ("kwonlydefaults", ("a", 1)),
    ],
)
def test_a_python_signature_with_a_field_of_another_type_is_refused(tf, tmp_path, field, value):
    directory = _with_argspec_field(tf, tmp_path, field, value)
    with pytest.raises(
        errors.MalformedError, match=f"scale: the field '{field}' of the FullArgSpec"
    ) as caught:
        reference_impl.load(directory)
    assert caught.value.file.endswith("saved_model.pb")


@pytest.mark.parametrize(
    ("field", "value"), [("args", ["x", "x"]), ("kwonlyargs", ["x"]), ("varkw", "k")]
)
def test_a_python_signature_with_a_parameter_twice_is_refused(tf, tmp_path, field, value):
    """As tf.saved_model.load does.

    It used to load, and a save of it ended in a ValueError of Python.
    """
    directory = _with_argspec_field(tf, tmp_path, field, value)
    with pytest.raises(errors.MalformedError, match=r"scale: .*'[xk]' twice"):
        reference_impl.load(directory)


def _with_default(tf, directory, **fields):
    """Save a model whose signature takes a scalar, and write a default value for it."""
    root = tf.Module()
    root.f = tf.function(lambda x: {"y": x * 2.0}, input_signature=[tf.TensorSpec([], tf.float32)])
    reference_impl.save(root, directory, signatures=root.f)
    default = schema.TensorProto(**fields)
    edit(
        directory,
        lambda meta_graph: (
            meta_graph.signature_def["serving_default"].defaults["x"].CopyFrom(default)
        ),
    )
    return directory


@pytest.mark.parametrize(
    ("size", "fields", "error"),
    [
        (2**30, {"dtype": 1, "float_val": [1.0]}, errors.LimitError),
        (-1, {"dtype": 1, "float_val": [1.0]}, errors.MalformedError),
        (7, {"dtype": 1, "tensor_content": b"abc"}, errors.MalformedError),
        (1, {"dtype": 77}, errors.DtypeError),
    ],
)
def test_a_default_value_of_a_signature_that_cannot_be_made_is_refused(
    tf, tmp_path, size, fields, error
):
    shape = schema.TensorShapeProto(dim=[schema.TensorShapeProto.Dim(size=size)])
    directory = _with_default(tf, tmp_path / "m", tensor_shape=shape, **fields)
    with pytest.raises(error) as caught:
        reference_impl.load(directory)
    assert caught.value.node == "signatures['serving_default']" and caught.value.file.endswith(
        "saved_model.pb"
    )


@pytest.mark.parametrize(
    "result",
    [None, 5, [structure.TensorSpec(structure.TensorShape(()), dtypes.by_name("float32"))]],
)
def test_a_signature_whose_results_are_not_a_dict_is_refused_when_it_is_called(
    tf, tmp_path, result
):
    root = tf.Module()
    root.f = tf.function(lambda x: {"y": x * 2.0}, input_signature=[tf.TensorSpec([], tf.float32)])
    tf.saved_model.save(root, str(tmp_path / "m"), signatures=root.f)

    def damage(meta_graph):
        graph = meta_graph.object_graph_def
        names = [node.bare_concrete_function.concrete_function_name for node in graph.nodes]
        for name in filter(None, names):
            graph.concrete_functions[name].output_signature.CopyFrom(structure.encode(result))

    edit(tmp_path / "m", damage)
    loaded = reference_impl.load(tmp_path / "m")
    with pytest.raises(errors.MalformedError, match="not a dict"):
        loaded.signatures["serving_default"](x=tf.constant(1.0))


def test_default_values_of_many_functions_cannot_fill_the_memory(tf, tmp_path):
    """Each of them grows less than a tensor may; together they would take what the machine has."""
    root, one = tf.Module(), tf.constant([1.0])
    for index in range(3):
        function = tf.function(lambda x, k=one: x * k[0])
        function(tf.constant(1.0))
        setattr(root, f"f{index}", function)
    reference_impl.save(root, tmp_path / "m")
    changed = []

    def enlarge(meta_graph):
        for node in meta_graph.object_graph_def.nodes:
            for value in nested_values(node.function.function_spec.fullargspec):
                if value.HasField("tensor_value"):
                    value.tensor_value.tensor_shape.dim[0].size = 2**24
                    changed.append(value)

    edit(tmp_path / "m", enlarge)
    assert len(changed) == 3
    with pytest.raises(errors.LimitError, match="than are stored"):
        reference_impl.load(tmp_path / "m")


def test_FMT_11_a_list_or_a_variable_may_be_the_root(tf, tmp_path):
    for number, root in enumerate(
        [tf.Variable(3.0), tf.__internal__.tracking.wrap([tf.Variable(3.0)])]
    ):
        tf.saved_model.save(root, str(tmp_path / str(number)))
        loaded = reference_impl.load(tmp_path / str(number))
        assert not loaded.signatures and loaded.tensorflow_version == tf.version.VERSION
        assert (loaded if number == 0 else loaded[0]).numpy() == 3.0


@pytest.mark.parametrize("whose", ["TensorFlow", "ours"])
@pytest.mark.parametrize(
    "form",
    ["a scalar", "nothing", "other fields", "numbers for names", "a part more than is restored"],
)
def test_the_content_of_a_table_in_another_form_is_refused(tf, tmp_path, whose, form):
    """The save function of the table becomes one that returns something else: a list of named
    tensors, or a dict, is wanted.
    """
    results = {
        "a scalar": lambda key: tf.strings.length(key),
        "nothing": lambda key: [],
        "other fields": lambda key: [{"key": key}],
        "numbers for names": lambda key: (
            [{"name": tf.constant(1), "slice_spec": key, "tensor": key}] * 2
        ),
        "a part more than is restored": lambda key: (
            [{"name": key, "slice_spec": key, "tensor": key}] * 3
        ),
    }
    root = tf.Module()
    root.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    root.other = tf.function(results[form], input_signature=[tf.TensorSpec([], tf.string)])
    root.other.get_concrete_function()
    root.count = tf.function(lambda: root.table.size(), input_signature=[])
    folder = save(tf, tmp_path, root)
    if whose == "ours":
        reference_impl.save(reference_impl.load(folder), tmp_path / "ours")
        folder = tmp_path / "ours"

    def change(meta_graph):
        graph = meta_graph.object_graph_def
        children = {child.local_name: child.node_id for child in graph.nodes[0].children}
        (pair,) = graph.nodes[children["table"]].saveable_objects.values()
        other = graph.nodes[children["other"]].function.concrete_functions[0]
        graph.nodes[pair.save_function].bare_concrete_function.concrete_function_name = other

    edit(folder, change)
    with pytest.raises(errors.SavedModelError, match=r"saved_model.pb: (root\.table|__inference)"):
        reference_impl.load(folder)


def test_what_initialises_a_tf_1_model_that_tensorflow_saved_again_is_saved_once_more(tf, tmp_path):
    """TensorFlow writes a `_create_resource` for it that returns a number, for no function takes
    its handle.
    """
    folders = [fixture("simple_save"), tmp_path / "again", tmp_path / "third"]
    for load, source, target in zip(
        (tf.saved_model.load, reference_impl.load), folders, folders[1:]
    ):
        loaded = load(str(source))
        tf.saved_model.save(loaded, str(target), loaded.signatures["serving_default"])
    answers = [
        reference_impl.load(folder).signatures["serving_default"](x=tf.ones([1, 3]))
        for folder in folders
    ]
    first, *others = [
        {name: value.numpy().tolist() for name, value in answer.items()} for answer in answers
    ]
    assert first and others == [first, first]


@pytest.mark.parametrize("made", ["a number", "a list", "a tuple", "nothing"])
def test_a_table_made_by_a_function_that_returns_no_handle_is_refused(tf, tmp_path, made):
    results = {"a number": 1.0, "a list": [], "a tuple": (1.0, 2.0), "nothing": None}
    root = tf.Module()
    initializer = tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([1], tf.int64))
    root.table = tf.lookup.StaticHashTable(initializer, -1)
    root.other = tf.function(
        lambda: (
            tf.nest.map_structure(tf.constant, results[made]) if results[made] else results[made]
        )
    )
    root.other.get_concrete_function()
    folder = save(tf, tmp_path, root)

    def change(meta_graph):
        graph = meta_graph.object_graph_def
        children = {child.local_name: child.node_id for child in graph.nodes[0].children}
        create = next(
            child
            for child in graph.nodes[children["table"]].children
            if child.local_name == "_create_resource"
        )
        create.node_id = children["other"]

    edit(folder, change)
    with pytest.raises(
        errors.MalformedError,
        match=r"saved_model.pb: (other|__inference).*handle",
    ):
        reference_impl.load(folder)
