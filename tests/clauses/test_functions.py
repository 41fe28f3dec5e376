"""Clauses FN-*: which functions are found, what is kept of them, what is refused."""

from __future__ import annotations

import enum
from pathlib import Path

import clause_errors
import fresh_tensorflow
import pytest

import reference_impl
from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parent.parent.parent


class Color(enum.Enum):
    RED = 1


@pytest.fixture(scope="module")
def has_fns(tf):
    """The example of the RFC, section Functions."""
    root = tf.Module()
    root.v = tf.Variable(1.0)
    root.a = tf.function(lambda x: x + root.v + 1.0)
    root.b = tf.function(lambda x: x + root.v + 2.0)
    root.c_dep = tf.function(lambda x: x + 3.0)
    root.c = tf.function(
        lambda x: root.v + root.c_dep(x), input_signature=(tf.TensorSpec([None], tf.float32),)
    )
    root.a(tf.constant(2.0))
    root.python_attribute = 12
    root.b(tf.constant(3.0))
    return root


@pytest.fixture(scope="module")
def fns(has_fns, tmp_path_factory):
    directory = tmp_path_factory.mktemp("fns") / "fns"
    reference_impl.save(has_fns, directory)
    return directory


def keys(directory):
    with BundleReader(directory) as reader:
        return {key for key in reader.keys() if key != "_CHECKPOINTABLE_OBJECT_GRAPH"}  # noqa: SIM118


def test_FN_01_what_a_checkpoint_would_hold_is_held(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable(1.0)
    root.items = [tf.Variable(2.0), {"key/with.signs": tf.Variable(3.0)}]
    root.table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -5)
    root.generator = tf.random.Generator.from_seed(1)
    reference_impl.save(root, tmp_path / "m")
    tf.train.Checkpoint(root).write(str(tmp_path / "checkpoint"))
    assert keys(tmp_path / "m/variables/variables") == keys(tmp_path / "checkpoint") - {
        "save_counter/.ATTRIBUTES/VARIABLE_VALUE"
    }


def test_FN_02_functions_of_every_reachable_object_are_found(tf, both, tmp_path):
    def doubling():
        return tf.function(lambda x: x * 2.0, input_signature=[tf.TensorSpec([], tf.float32)])

    root = tf.Module()
    root.child = tf.Module()
    root.child._private = doubling()
    root.listed = [doubling(), {"key": doubling()}]
    reference_impl.save(root, tmp_path / "m")
    for loaded in both(tmp_path / "m"):
        for function in (loaded.child._private, loaded.listed[0], loaded.listed[1]["key"]):
            assert function(3.0).numpy() == 6.0


def test_FN_03_decorated_methods_are_found_and_no_property_runs(tf, both, tmp_path):
    spec = [tf.TensorSpec([], tf.float32)]

    class Base(tf.Module):
        @tf.function(input_signature=spec)
        def inherited(self, x):
            return x + 1.0

        @tf.function(input_signature=spec)
        def overridden(self, x):
            return x + 2.0

    class Derived(Base):
        @tf.function(input_signature=spec)
        def overridden(self, x):
            return x + 3.0

        @tf.function(input_signature=spec)
        def __call__(self, x):
            return x + 4.0

        @staticmethod
        @tf.function(input_signature=spec)
        def static(x):
            return x + 5.0

        @property
        def trap(self):
            raise AssertionError("the property was run")

        @property
        def made_each_time(self):
            return tf.function(lambda x: x, input_signature=spec)

    reference_impl.save(Derived(), tmp_path / "m")
    for loaded in both(tmp_path / "m"):
        found = [loaded.inherited, loaded.overridden, loaded, loaded.static]
        assert [function(0.0).numpy() for function in found] == [1.0, 3.0, 4.0, 5.0]
        assert not hasattr(loaded, "trap") and not hasattr(loaded, "made_each_time")


def test_FN_04_each_instance_has_its_own_traces(tf, both, tmp_path):
    class Scaled(tf.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = tf.Variable(factor)

        @tf.function
        def scale(self, x):
            return x * self.factor

    root = tf.Module()
    root.one, root.two = Scaled(2.0), Scaled(3.0)
    root.one.scale(tf.constant(1.0))
    root.two.scale(tf.constant([1.0]))
    reference_impl.save(root, tmp_path / "m")
    for loaded in both(tmp_path / "m"):
        assert loaded.one.scale(tf.constant(1.0)).numpy() == 2.0 and loaded.two.scale(
            tf.constant([1.0])
        ).numpy() == [3.0]
        assert (
            len(loaded.one.scale.concrete_functions)
            == len(loaded.two.scale.concrete_functions)
            == 1
        )
        with pytest.raises(ValueError, match="Could not find matching concrete function"):
            loaded.one.scale(tf.constant([1.0]))


def test_FN_05_one_function_def_for_each_trace(tf, both, tmp_path):
    root = tf.Module()
    root.f = tf.function(lambda x: x + x)
    for value in (tf.constant(1.0), tf.constant([1]), tf.constant("a")):
        root.f(value)
    reference_impl.save(root, tmp_path / "m")
    meta_graph = layout.read(tmp_path / "m").meta_graph(None)
    names = next(
        node.function.concrete_functions
        for node in meta_graph.object_graph_def.nodes
        if node.HasField("function")
    )
    assert len(set(names)) == 3
    assert set(names) <= {
        function.signature.name for function in meta_graph.graph_def.library.function
    }
    for loaded in both(tmp_path / "m"):
        assert len(loaded.f.concrete_functions) == 3
        assert (
            loaded.f(tf.constant([2])).numpy() == [4]
            and loaded.f(tf.constant("b")).numpy() == b"bb"
        )


def test_FN_06_a_function_without_a_trace_is_refused(tf, tmp_path):
    class Model(tf.Module):
        @tf.function
        def method(self, x):
            return x

    root = tf.Module()
    root.part = Model()
    root.attribute = tf.function(lambda x: x)
    with pytest.raises(errors.UntracedFunctionError) as caught:
        reference_impl.save(root, tmp_path / "m")
    assert all(
        words in str(caught.value)
        for words in ("root.attribute", "root.part.method", "input_signature")
    )
    assert not (tmp_path / "m").exists()
    with pytest.warns(UserWarning, match=r"root\.attribute, root\.part\.method"):
        reference_impl.save(root, tmp_path / "m", options=reference_impl.SaveOptions(strict=False))
    with pytest.raises(ValueError, match="Found zero restored functions for caller function"):
        reference_impl.load(tmp_path / "m").attribute(1.0)


@pytest.mark.parametrize("name", ["_update_step_xla", "update_step"])
def test_FN_06_private_helpers_of_a_library_are_not_missed(tf, tmp_path, name):
    """Optimizers of Keras 2 have one that nobody has called."""

    def helper(x):
        return x

    helper.__module__, helper.__name__ = "keras.src.optimizers.optimizer", name
    root = tf.Module()
    setattr(root, name, tf.function(helper))
    if name.startswith("_"):
        reference_impl.save(root, tmp_path / "m")
        assert tf.saved_model.load(str(tmp_path / "m")) and reference_impl.load(tmp_path / "m")
    else:
        with pytest.raises(errors.UntracedFunctionError, match=r"root\.update_step"):
            reference_impl.save(root, tmp_path / "m")


def test_FN_05_what_says_that_it_cannot_be_saved_is_refused_in_its_words(tf, tmp_path):
    """`FuncGraph.mark_as_unsaveable`; functions that call a marked one are marked too."""
    from reference_impl.saving.options import SaveOptions

    @tf.function
    def marked(x):
        tf.compat.v1.get_default_graph().mark_as_unsaveable("it has state in this process")
        return x

    root = tf.Module()
    root.child = tf.Module()
    root.child.f = tf.function(lambda x: marked(x), input_signature=[tf.TensorSpec([])])
    with pytest.raises(errors.SaveError, match=r"root\.child\.f: .*state"):
        reference_impl.save(root, tmp_path / "m")
    with pytest.raises(errors.SaveError, match=r"root\.signatures\['s'\]: .*state"):
        reference_impl.save(tf.Module(), tmp_path / "m", {"s": root.child.f})
    with pytest.raises(
        errors.SaveError, match=r"root\.child\.f: .*code"
    ):  # nor does TensorFlow write one
        reference_impl.save(root, tmp_path / "m", {}, options=SaveOptions(strict=False))


def test_FMT_08_handles_that_functions_take_are_scalars_in_the_file(tf, tmp_path):
    """Those of save and restore too, which no tracing gave a shape."""
    root = tf.Module()
    root.v, root.table = (
        tf.Variable(1.0),
        tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0),
    )
    reference_impl.save(root, tmp_path / "m")
    found = [
        shape.unknown_rank or len(shape.dim)
        for function in layout.read(tmp_path / "m").meta_graph(None).graph_def.library.function
        for argument, shape in zip(
            function.signature.input_arg, function.attr["_input_shapes"].list.shape
        )
        if argument.type == schema.DT_RESOURCE
    ]
    assert len(found) >= 4 and not any(found)


def test_FN_08_reachable_from_the_root_is_enough_until_a_part_is_saved_alone(tf, both, tmp_path):
    root = tf.Module()
    root.a, root.b = tf.Module(), tf.Module()
    root.b.v = tf.Variable(2.0, name="elsewhere")
    root.a.f = tf.function(lambda x: x * root.b.v, input_signature=[tf.TensorSpec([], tf.float32)])
    reference_impl.save(root, tmp_path / "m")
    for loaded in both(tmp_path / "m"):
        assert loaded.a.f(3.0).numpy() == 6.0
        with pytest.raises(errors.UntrackedCaptureError, match=r"root\.f captures .*'elsewhere:0'"):
            reference_impl.save(loaded.a, tmp_path / "a")


@pytest.mark.parametrize(
    "value",
    [object(), len, frozenset([1]), Color.RED, b"bytes", 1j, 2**63],
    ids=lambda value: type(value).__name__,
)
def test_FN_09_an_argument_that_cannot_be_stored_is_named(tf, tmp_path, value):
    root = tf.Module()
    root.part = tf.Module()
    root.part.f = tf.function(lambda x, *, odd: x)
    root.part.f(tf.constant(1.0), odd=value)
    with pytest.raises(errors.SaveError) as caught:
        reference_impl.save(root, tmp_path / "m")
    assert caught.value.clause in ("FN-09", "PY-06")
    assert "root.part.f" in str(caught.value) and "'odd'" in str(caught.value)
    assert not (tmp_path / "m").exists()


def test_FN_09_so_is_that_of_a_concrete_function(tf, both, tmp_path):
    root = tf.Module()
    root.concrete = tf.function(lambda x, odd: x).get_concrete_function(
        tf.TensorSpec([], tf.float32), Color.RED
    )
    with clause_errors.raises(errors.SaveError, "FN-09", match=r"root\.concrete: .*'odd'"):
        reference_impl.save(root, tmp_path / "m")
    concrete, root = root.concrete, tf.Module()
    reference_impl.save(
        root, tmp_path / "m", concrete
    )  # a signature knows nothing of other arguments (SIG-06)
    for loaded in both(tmp_path / "m"):
        assert loaded.signatures["serving_default"](x=tf.constant(1.0))["output_0"].numpy() == 1.0


def test_FN_09_so_is_a_default_value(tf, tmp_path):
    root = tf.Module()
    root.f = tf.function(
        lambda x, odd=frozenset([1]): x, input_signature=[tf.TensorSpec([], tf.float32)]
    )
    with clause_errors.raises(errors.SaveError, "FN-09", match=r"root\.f.*'odd'"):
        reference_impl.save(root, tmp_path / "m")


def test_FN_09_without_strict_the_other_traces_are_saved_with_a_warning(tf, both, tmp_path):
    root = tf.Module()
    root.f = tf.function(lambda x, odd: x)
    root.f(tf.constant(1.0), odd=object())
    root.f(tf.constant(1.0), odd=1)
    with pytest.warns(UserWarning, match=r"root\.f.*'odd'"):
        reference_impl.save(root, tmp_path / "m", options=reference_impl.SaveOptions(strict=False))
    for loaded in both(tmp_path / "m"):
        assert (
            len(loaded.f.concrete_functions) == 1
            and loaded.f(tf.constant(2.0), odd=1).numpy() == 2.0
        )


@pytest.mark.clause("FN-10", "FN-11", "FN-12", "FN-13", "FN-14")
def test_the_example_of_the_rfc(tf, fns, both):
    for loaded in both(fns):
        _check_example(tf, loaded)


def _check_example(tf, loaded):
    assert loaded.v.numpy() == 1.0
    assert loaded.a(tf.constant(1.0)).numpy() == 3.0 and loaded.b(tf.constant(1.0)).numpy() == 4.0
    assert loaded.c(tf.constant([1.0, 2.0])).numpy().tolist() == [
        5.0,
        6.0,
    ]  # FN-10: never called before
    assert loaded.c_dep(tf.constant([1.0])).numpy().tolist() == [4.0]  # FN-11: traced by the other
    with pytest.raises(
        ValueError, match=r"Could not find matching concrete function.*\n(.*\n)*.*1 option"
    ):
        loaded.c_dep(tf.constant(1.0))
    assert not hasattr(loaded, "python_attribute")


def test_FN_12_in_a_process_that_knows_nothing_of_the_model(fns):
    code = (
        "import sys, reference_impl, tensorflow as tf; m ="
        " reference_impl.load(sys.argv[1]);print(m.v.numpy(), m.a(1.0).numpy(), m.b(1.0).numpy(),"
        " m.c([1.0, 2.0]).numpy().tolist(), m.c_dep([1.0]).numpy())"
    )
    done = fresh_tensorflow.run(code, fns)
    assert done.stdout == "1.0 3.0 4.0 [5.0, 6.0] [4.]\n", done.stderr


def test_FN_13_the_refusal_lists_the_options_in_their_order(tf, tmp_path):
    root = tf.Module()
    root.f = tf.function(lambda x, flag=True: x)
    for x, flag in ((tf.constant([1.0, 2.0]), True), (tf.constant(1), False)):
        root.f(x, flag)
    reference_impl.save(root, tmp_path / "m")
    texts = []
    for _ in range(2):
        with pytest.raises(errors.FunctionMatchError) as caught:
            reference_impl.load(tmp_path / "m").f(tf.constant("no"))
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert (
        texts[0].index("Option 1")
        < texts[0].index("float32")
        < texts[0].index("Option 2")
        < texts[0].index("int32")
    )
    assert "argument x has" in texts[0] and "string" in texts[0] and "float32" in texts[0]


def test_FN_15_and_FN_16_an_export_is_a_training_checkpoint_without_functions(tf, fns):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(2.0))
    checkpoint.restore(str(fns)).expect_partial()
    assert checkpoint.v.numpy() == 1.0
    assert not hasattr(checkpoint, "a")


def test_FN_17_functions_are_exported_as_they_were_traced(tf, both, tmp_path):
    runs = []
    settings = {"factor": 2.0}

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def declared(x):
        runs.append(1)
        return x * settings["factor"]

    @tf.function
    def called(x):
        runs.append(1)
        return declared(x) + settings["factor"]

    root = tf.Module()
    root.declared, root.called = declared, called
    called(tf.constant(1.0))
    settings["factor"] = 5.0
    before = len(runs)
    reference_impl.save(root, tmp_path / "m", declared)
    assert len(runs) == before
    for loaded in both(tmp_path / "m"):
        assert (
            loaded.declared(1.0).numpy() == 2.0 and loaded.called(tf.constant(1.0)).numpy() == 4.0
        )
