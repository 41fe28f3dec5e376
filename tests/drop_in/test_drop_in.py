"""What programs and suites written for `tf.saved_model` rely on without saying so: our functions in
the place of TensorFlow's.
"""

from __future__ import annotations

import copy
import pickle
import re

import pytest

import reference_impl
from reference_impl.errors import AliasError, BindingError, ChecksumError, SaveError

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def model(tf):
    made = tf.Module()
    made.w = tf.Variable([[1.0], [2.0]], name="w")
    inner = tf.function(lambda x: tf.matmul(x, made.w))
    made.f = tf.function(
        lambda x: {"y": inner(x)}, input_signature=[tf.TensorSpec([None, 2], name="x")]
    )
    return made


def _plain(tf, tmp_path, obj, save=None, load=None, **options):
    (save or reference_impl.save)(obj, tmp_path / "m", **options)
    return (load or reference_impl.load)(str(tmp_path / "m"))


# Saving in a graph of a session


@pytest.mark.clause("COMPAT-01")
def test_saving_in_a_graph_takes_values_from_the_session(tf, tmp_path):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        root = tf.Module()
        root.v, factor = tf.Variable(3.0), tf.constant(2.0)
        root.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        root.f = tf.function(lambda x: x * root.v * factor, input_signature=[tf.TensorSpec([])])
        root.look = tf.function(
            root.table.lookup, input_signature=[tf.TensorSpec([None], tf.string)]
        )
        session.run([root.v.initializer, root.table.insert(["a"], tf.constant([7], tf.int64))])
        session.run(root.v.assign(5.0))
        reference_impl.save(root, tmp_path / "m", signatures=root.f)
        again = reference_impl.load(tmp_path / "m")
        session.run([again.v.initializer, tf.compat.v1.tables_initializer()])
        assert session.run(again.f(tf.constant(1.0))) == 10.0
        session.run(again.v.assign(6.0))
        reference_impl.save(again, tmp_path / "n", signatures=again.f)
    for load in (reference_impl.load, tf.saved_model.load):
        assert load(str(tmp_path / "m")).f(tf.constant(1.0)).numpy() == 10.0
        second = load(str(tmp_path / "n"))
        assert second.signatures["serving_default"](tf.constant(1.0))["output_0"].numpy() == 12.0
        assert second.look(tf.constant(["a", "b"])).numpy().tolist() == [7, -1]


def test_saving_in_a_graph_without_a_session_says_so(tf, tmp_path):
    with tf.Graph().as_default():
        root = tf.Module()
        root.v = tf.Variable(3.0)
        with pytest.raises(SaveError, match="session"):
            reference_impl.save(root, tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.clause("COMPAT-01")
def test_saving_while_a_function_is_traced_is_an_assertion_error(tf, tmp_path, model):
    @tf.function
    def traced():
        reference_impl.save(model, tmp_path / "m")
        return 1

    with pytest.raises(AssertionError, match=r"tf\.function"):
        traced()


# Errors and arguments


def test_errors_keep_their_class_on_their_way_out_of_a_traced_function(tf, tmp_path, model):
    loaded = _plain(tf, tmp_path, model)

    @tf.function
    def outer(x):
        return loaded.f(x, x)

    with pytest.raises(BindingError) as raised:
        outer(tf.ones([1, 2]))
    assert isinstance(raised.value, TypeError)


def test_options_may_be_positional(tf, tmp_path, model):
    reference_impl.save(model, tmp_path / "m", None, tf.saved_model.SaveOptions())
    assert (
        reference_impl.load(tmp_path / "m", None, tf.saved_model.LoadOptions()).signatures
        is not None
    )


def test_an_alias_of_something_that_is_no_function_is_a_type_error(tf, tmp_path, model):
    with pytest.raises(AliasError, match="Unsupported type") as raised:
        _plain(tf, tmp_path, model, options=tf.saved_model.SaveOptions(function_aliases={"a": 3}))
    assert isinstance(raised.value, TypeError)


def test_an_object_without_attributes_may_list_its_own_children(tf, tmp_path):
    class Lister(tf.__internal__.tracking.AutoTrackable):
        def _trackable_children(self, save_type="checkpoint", **kwargs):
            return {**super()._trackable_children(save_type, **kwargs), "a": tf.Variable(5.0)}

    assert _plain(tf, tmp_path, Lister()).a.numpy() == 5.0


def test_wrong_arguments_are_told_in_the_words_that_callers_look_for(tf, tmp_path, model):
    reference_impl.save(model, tmp_path / "m")
    for tags in ("x", ["serve", "gpu"], [], 3, [["x"]]):
        with pytest.raises(ValueError, match=r"incompatible argument to `tags`.*serve"):
            reference_impl.load(tmp_path / "m", tags=tags)
    assert reference_impl.load(tmp_path / "m", tags=[["serve"]]).w is not None
    for options in ("x", 3, {"strict": True}):
        with pytest.raises(TypeError, match="options are SaveOptions"):
            reference_impl.save(model, tmp_path / "n", options=options)
    for root in (object(), None, [tf.Variable(1.0)], tf.constant(1.0)):
        with pytest.raises(ValueError, match="Expected an object of type `Trackable`"):
            reference_impl.save(root, tmp_path / "n")
    for data in (b"\xff\xff\xff", (tmp_path / "m" / "saved_model.pb").read_bytes()[:100]):
        (tmp_path / "m" / "saved_model.pb").write_bytes(data)
        with pytest.raises(OSError, match="Cannot parse file"):
            reference_impl.load(tmp_path / "m")


@pytest.mark.clause("FN-07")
@pytest.mark.parametrize(
    ("caught", "text"),
    [
        (AssertionError, "Trackable referencing this tensor.*some_unique_name"),
        (KeyError, "not reachable from root"),
    ],
)
def test_an_untracked_variable_raises_what_callers_catch(tf, tmp_path, caught, text):
    root, other = tf.Module(), tf.Variable(1.0, name="some_unique_name")
    root.f = tf.function(lambda x: x * other, input_signature=[tf.TensorSpec([])])
    with pytest.raises(caught, match=text):
        reference_impl.save(root, tmp_path / "m")


def test_what_was_loaded_is_copied_as_far_as_tensorflow_copies_it(tf, tmp_path, model):
    loaded = _plain(tf, tmp_path, model)
    x = tf.ones([1, 2])
    for function in (loaded.f, loaded.f.concrete_functions[0]):
        assert copy.copy(function)(x)["y"].numpy().tolist() == [[3.0]]
    assert copy.copy(loaded).f(x)["y"].numpy().tolist() == [[3.0]]
    assert copy.deepcopy(loaded.w).numpy().tolist() == [[1.0], [2.0]]
    for refused in (loaded, loaded.f, loaded.f.concrete_functions[0], loaded.signatures):
        with pytest.raises(TypeError, match=r"neither pickled.*reference_impl\.save"):
            copy.deepcopy(refused)
    with pytest.raises(TypeError, match=r"neither pickled"):
        pickle.dumps(loaded.signatures)


def _description(function):
    """What it says of itself, without addresses, and without captures, which TensorFlow lists for
    some functions only.
    """
    short, long = (
        re.sub("0x[0-9A-F]+", "0x0", repr(function)),
        str(function).partition("Captures")[0],
    )
    assert short.startswith("<ConcreteFunction ") and long.startswith("ConcreteFunction ")
    return short, long


def _results(function):
    """The results in its type, which TensorFlow has from 2.14 on."""
    return function.function_type.output if hasattr(function, "function_type") else None


def test_concrete_functions_describe_themselves_as_those_of_tensorflow(tf, tmp_path, model):
    reference_impl.save(model, tmp_path / "m")
    ours, theirs = [
        load(str(tmp_path / "m")) for load in (reference_impl.load, tf.saved_model.load)
    ]
    assert _description(ours.f.concrete_functions[0]) == _description(
        theirs.f.concrete_functions[0]
    )
    for get in (
        lambda root: root.f.concrete_functions[0],
        lambda root: root.signatures["serving_default"],
    ):
        assert _results(get(ours)) == _results(get(theirs))
    assert _description(ours.signatures["serving_default"]) == _description(
        theirs.signatures["serving_default"]
    )
    assert ours.f.trace_0 is ours.f.concrete_functions[0] and not hasattr(ours.f, "trace_1")
    assert ours.signatures._signatures == dict(ours.signatures)


# What readers and writers of TensorFlow ask of our files and functions


def _shape_in_outer_function(tf, function):
    outer = tf.function(lambda x: function(x)["y"]).get_concrete_function(tf.TensorSpec([None, 2]))
    return outer.structured_outputs.shape.as_list()


@pytest.mark.clause("ATTR-03")
def test_shapes_of_results_come_through_calls_and_declarations(tf, tmp_path, model):
    def declared(x):
        y = tf.reshape(x, tf.shape(x) + tf.constant([0, 0]))
        y.set_shape([None, 2])
        return {"y": y}

    model.g = tf.function(declared, input_signature=[tf.TensorSpec([None, None])])
    reference_impl.save(model, tmp_path / "m", signatures={"f": model.f})
    for load in (reference_impl.load, tf.saved_model.load):
        loaded = load(str(tmp_path / "m"))
        assert _shape_in_outer_function(tf, loaded.f) == [None, 1]
        assert _shape_in_outer_function(tf, loaded.g) == [None, 2]
        assert loaded.signatures["f"].outputs[0].shape.as_list() == [None, 1]
        assert loaded.f.concrete_functions[0].outputs[0].shape.as_list() == [None, 1]


def test_a_handle_that_went_through_a_nested_function_is_differentiable_for_tensorflow(
    tf, tmp_path, model
):
    def launder(x):
        handle = tf.identity(model.w.handle)
        model.w.read_value()  # or no tape would watch it
        inner = tf.function(lambda: tf.identity(handle))
        return x @ tf.raw_ops.ReadVariableOp(resource=inner(), dtype=tf.float32)

    model.h = tf.function(launder, input_signature=[tf.TensorSpec([None, 2])])
    loaded = _plain(tf, tmp_path, model, load=tf.saved_model.load)
    with tf.GradientTape() as tape:
        y = loaded.h(tf.ones([1, 2]))
    assert tape.gradient(y, loaded.w).numpy().tolist() == [[1.0], [1.0]]


def test_tensorflow_finds_the_signature_of_what_we_loaded(tf, tmp_path, model):
    loaded = _plain(tf, tmp_path, model)
    tf.saved_model.save(loaded, str(tmp_path / "n"))
    for load in (reference_impl.load, tf.saved_model.load):
        again = load(str(tmp_path / "n"))
        assert list(again.signatures) == ["serving_default"]
        assert again.signatures["serving_default"](tf.ones([1, 2]))["y"].numpy().tolist() == [[3.0]]
        assert again.f.input_signature == (tf.TensorSpec([None, 2], name="x"),)


@pytest.mark.clause("FMT-14")
def test_custom_gradients_over_variable_arguments_go_on_to_the_second_order_and_to_tensorflow(
    tf, tmp_path
):
    @tf.custom_gradient
    def steep(x):
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda dy: dy * e

    root = tf.Module()
    root.f = tf.function(lambda x: steep(steep(x * x)))
    v = tf.Variable(1.0)

    def gradients(f):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = f(v)
            first = inner.gradient(y, v)
        return float(first), float(outer.gradient(first, v))

    expected = gradients(root.f)
    loaded = _plain(tf, tmp_path, root)
    assert gradients(loaded.f) == pytest.approx(expected)
    tf.saved_model.save(loaded, str(tmp_path / "n"))
    assert gradients(tf.saved_model.load(str(tmp_path / "n")).f) == pytest.approx(expected)
    assert gradients(reference_impl.load(tmp_path / "n").f) == pytest.approx(expected)


# Paths and damage


@pytest.mark.parametrize(
    "form", ["bytes", "space and é", "PathLike", "trailing slash", "working directory"]
)
def test_all_forms_of_a_path(tf, tmp_path, model, form, monkeypatch):
    place = tmp_path / "a place é"
    given = {"bytes": str(place).encode(), "PathLike": place, "trailing slash": f"{place}/"}.get(
        form, str(place)
    )
    if form == "working directory":
        place.mkdir()
        monkeypatch.chdir(place)
        given = "."
    for value in (1.0, 5.0):  # the second replaces the first
        model.w.assign([[value], [0.0]])
        reference_impl.save(model, given)
        assert reference_impl.load(given).w.numpy()[0] == value
    assert tf.saved_model.load(str(place)).w.numpy()[0] == 5.0


@pytest.mark.clause("API-04")
def test_what_else_is_in_a_directory_stays_there(tf, tmp_path, model):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    (tmp_path / "assets.extra").mkdir()
    (tmp_path / "assets.extra" / "warmup").write_text("w")
    for _ in range(2):
        reference_impl.save(model, tmp_path)
        assert (tmp_path / "notes" / "mine.txt").read_text() == "mine"
        assert (tmp_path / "assets.extra" / "warmup").read_text() == "w"
    reference_impl.load(tmp_path)


def test_what_cannot_be_loaded_is_an_oserror(tf, tmp_path, model):
    with pytest.raises(OSError, match="SavedModel file does not exist at"):
        reference_impl.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="SavedModel file does not exist at"):
        reference_impl.load(tmp_path / "nowhere")
    reference_impl.save(model, tmp_path)
    data = tmp_path / "variables" / "variables.data-00000-of-00001"
    content = bytearray(data.read_bytes())
    content[0] ^= 255
    data.write_bytes(content)
    with pytest.raises(tf.errors.DataLossError) as raised:
        reference_impl.load(tmp_path)
    assert isinstance(raised.value, ChecksumError)
    assert raised.value.file == str(data)
    (tmp_path / "saved_model.pb").write_bytes(b"garbage!!")
    with pytest.raises(OSError, match=r"saved_model\.pb"):
        reference_impl.load(tmp_path)


def test_a_signature_called_with_another_dtype_raises_what_the_runtime_raises(tf, tmp_path, model):
    loaded = _plain(tf, tmp_path, model)
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        loaded.signatures["serving_default"](x=tf.ones([1, 2], tf.int32))
    assert isinstance(raised.value, BindingError)


def test_captures_have_the_names_of_the_file(tf, tmp_path, model):
    model.g = tf.function(
        lambda x: x @ model.w, input_signature=[tf.TensorSpec([None, 2], name="x")]
    )
    loaded = _plain(tf, tmp_path, model)
    theirs = tf.saved_model.load(str(tmp_path / "m"))
    assert len(loaded.g.concrete_functions) == len(theirs.g.concrete_functions) == 1
    for function, other in zip(loaded.g.concrete_functions, theirs.g.concrete_functions):
        assert [tensor.name for tensor in function.inputs] == [
            tensor.name for tensor in other.inputs
        ]
