"""Every row of docs/format/drop_in.md: what TensorFlow does, what we do, and how to get TensorFlow's
behaviour.
"""

from __future__ import annotations

import collections
import functools
import gc
import json
import re
import shutil
import warnings
from pathlib import Path

import fresh_tensorflow
import model_edits
import numpy as np
import pytest

import reference_impl
from reference_impl import errors
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow

PAGE = Path(__file__).parents[2] / "docs/format/drop_in.md"
LENIENT = {"strict": False}
ROWS = {}


def row(name):
    def add(test):
        ROWS[name] = test
        return test

    return add


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def _both_load(tf, path):
    return reference_impl.load(path), tf.saved_model.load(str(path))


def _ours(root, path, strict=True, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("error" if strict else "ignore", UserWarning)
        reference_impl.save(
            root, path, options=reference_impl.SaveOptions(strict=strict), **keywords
        )
    return path


def _theirs(tf, root, path, **keywords):
    tf.saved_model.save(root, str(path), **keywords)
    return path


def _scaled(tf):
    root = tf.Module()
    root.v = tf.Variable(2.0, name="v")
    root.f = tf.function(lambda x: x * root.v, input_signature=[tf.TensorSpec([], tf.float32, "x")])
    return root


# Saving


@row("lost attributes")
def _(tf, tmp_path):
    root = _scaled(tf)
    root.table, root.held = np.arange(3.0), collections.deque([tf.Variable(1.0)])
    root.v = tf.Variable(2.0, constraint=lambda value: value)
    with pytest.raises(errors.SaveError, match=r"root\.v\.constraint|root\.table") as raised:
        _ours(root, tmp_path / "ours")
    assert all(
        name in str(raised.value) for name in ("root.table", "root.held[0]", "root.v.constraint")
    )
    for path in (
        _theirs(tf, root, tmp_path / "theirs"),
        _ours(root, tmp_path / "lenient", strict=False),
    ):
        for loaded in _both_load(tf, path):
            assert not hasattr(loaded, "table") and not hasattr(loaded, "held")


@row("elements of containers")
def _(tf, tmp_path):
    root = tf.Module()
    root.held = [tf.Variable(1.0), "text", tf.Variable(2.0)]
    with pytest.raises(errors.SaveError, match=r"root\.held\[1\]"):
        _ours(root, tmp_path / "ours")
    for path in (
        _theirs(tf, root, tmp_path / "theirs"),
        _ours(root, tmp_path / "lenient", strict=False),
    ):
        for loaded in _both_load(tf, path):
            assert loaded.held[1] is None and len(loaded.held) == 3


@row("tuples")
def _(tf, tmp_path):
    Pair = collections.namedtuple("Pair", "a b")
    root = tf.Module()
    root.plain, root.named = (tf.Variable(1.0),), Pair(tf.Variable(2.0), tf.Variable(3.0))
    for path in (_ours(root, tmp_path / "ours"), _theirs(tf, root, tmp_path / "theirs")):
        ours, theirs = _both_load(tf, path)
        assert isinstance(ours.plain, tuple) and ours.named.b.numpy() == 3.0
        assert isinstance(theirs.plain, list) and isinstance(theirs.named, list)
        assert next(iter(ours.plain)).numpy() == theirs.plain[0].numpy() == 1.0


@row("untraced functions")
def _(tf, tmp_path):
    root = tf.Module()
    root.f = tf.function(lambda x: x)
    with pytest.raises(errors.UntracedFunctionError, match=r"root\.f"):
        _ours(root, tmp_path / "ours")
    for path in (
        _theirs(tf, root, tmp_path / "theirs"),
        _ours(root, tmp_path / "lenient", strict=False),
    ):
        for loaded in _both_load(tf, path):
            with pytest.raises(
                ValueError, match="Found zero restored functions for caller function"
            ):
                loaded.f(1.0)


@row("properties")
def _(tf, tmp_path):
    class Computed(tf.Module):
        @property
        def made(self):
            return tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([])])

    theirs = tf.saved_model.load(str(_theirs(tf, Computed(), tmp_path / "theirs")))
    assert theirs.made(1.0).numpy() == 2.0
    assert not hasattr(reference_impl.load(_ours(Computed(), tmp_path / "ours")), "made")
    root = Computed()
    root.kept = root.made
    assert reference_impl.load(_ours(root, tmp_path / "assigned")).kept(1.0).numpy() == 2.0


@row("Python arguments that cannot be stored")
def _(tf, tmp_path):
    root = tf.Module()
    root.f = tf.function(lambda x, odd: x)
    root.f(tf.constant(1.0), object())
    with pytest.raises(errors.SaveError, match=r"root\.f.*'odd'"):
        _ours(root, tmp_path / "ours")
    for path in (
        _theirs(tf, root, tmp_path / "theirs"),
        _ours(root, tmp_path / "lenient", strict=False),
    ):
        for loaded in _both_load(tf, path):
            assert not loaded.f.concrete_functions


@row("Python values that have changed")
def _(tf, tmp_path):
    setting = {"factor": 2.0}

    def model():
        root = tf.Module()
        root.f = tf.function(lambda x: x * setting["factor"], input_signature=[tf.TensorSpec([])])
        root.f(1.0)
        return root

    root = model()
    setting["factor"] = 5.0
    assert root.f(1.0).numpy() == 2.0
    assert tf.saved_model.load(str(_theirs(tf, root, tmp_path / "theirs"))).f(1.0).numpy() == 5.0
    root = model()
    setting["factor"] = 7.0
    assert reference_impl.load(_ours(root, tmp_path / "ours")).f(1.0).numpy() == 5.0
    root.f = tf.function(root.f.python_function, input_signature=root.f.input_signature)
    assert reference_impl.load(_ours(root, tmp_path / "anew")).f(1.0).numpy() == 7.0


@row("structures as inputs of signatures")
def _(tf, tmp_path):
    root = tf.Module()
    root.f = tf.function(
        lambda xs: xs[0] - xs[1], input_signature=[[tf.TensorSpec([]), tf.TensorSpec([])]]
    )
    with pytest.raises(errors.SignatureError, match="SIG-13"):
        _ours(root, tmp_path / "ours", signatures=root.f)
    for path in (
        _theirs(tf, root, tmp_path / "theirs", signatures=root.f),
        _ours(root, tmp_path / "lenient", strict=False, signatures=root.f),
    ):
        for loaded in _both_load(tf, path):
            signature = loaded.signatures["serving_default"]
            assert signature(xs=tf.constant(3.0), xs_1=tf.constant(1.0))["output_0"].numpy() == 2.0
    for path in (
        _theirs(tf, root, tmp_path / "their_default"),
        _ours(root, tmp_path / "our_default"),
    ):
        for loaded in _both_load(tf, path):
            assert sorted(loaded.signatures["serving_default"].structured_input_signature[1]) == [
                "xs",
                "xs_1",
            ]


@row("a default signature that cannot be made")
def _(tf, tmp_path):
    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([])])
        def _default_save_signature(self, x):
            return {"y": [x]}

    with pytest.raises(ValueError, match="non-Tensor value"):
        _theirs(tf, Model(), tmp_path / "theirs")
    for loaded in _both_load(tf, _ours(Model(), tmp_path / "ours")):
        assert not loaded.signatures
    with pytest.raises(errors.SignatureError, match="non-Tensor value"):
        _ours(Model(), tmp_path / "asked", signatures=Model()._default_save_signature)


@row("names of inputs that Python does not take")
def _(tf, tmp_path):
    for number, name in enumerate(("in", "_x")):
        root = tf.Module()
        root.f = tf.function(
            lambda x: x + 1.0, input_signature=[tf.TensorSpec([], tf.float32, name=name)]
        )
        with pytest.raises(ValueError):
            _theirs(tf, root, tmp_path / f"theirs{number}", signatures=root.f)
        for loaded in _both_load(tf, _ours(root, tmp_path / f"ours{number}", signatures=root.f)):
            assert (
                loaded.signatures["serving_default"](**{name: tf.constant(1.0)})["output_0"].numpy()
                == 2.0
            )


@row("inputs of models of TensorFlow 2.11 and older")
def _(tf, tmp_path):
    root = tf.Module()
    specs = [tf.TensorSpec([], tf.float32, name=name) for name in ("user/id", "user_age")]
    root.f = tf.function(lambda a, b: {"y": a - b}, input_signature=specs)
    old = model_edits.names_of_old_releases(
        _theirs(tf, root, tmp_path / "new", signatures=root.f), tmp_path / "old"
    )
    given = {"user/id": tf.constant(3.0), "user_age": tf.constant(1.0)}
    ours, theirs = [
        loaded.signatures["serving_default"](**given)["y"].numpy() for loaded in _both_load(tf, old)
    ]
    assert (ours, theirs) == (2.0, -2.0)


@row("signatures of a loaded model")
def _(tf, tmp_path):
    root = _scaled(tf)
    _theirs(tf, root, tmp_path / "first", signatures={"mine": root.f})
    ours, theirs = _both_load(tf, tmp_path / "first")
    assert list(reference_impl.load(_ours(ours, tmp_path / "ours")).signatures) == ["mine"]
    assert list(reference_impl.load(_theirs(tf, theirs, tmp_path / "theirs")).signatures) == [
        "serving_default"
    ]
    again = reference_impl.load(
        _ours(ours, tmp_path / "given", signatures={"serving_default": ours.f})
    )
    assert list(again.signatures) == ["serving_default"]


@row("an attribute called signatures")
def _(tf, tmp_path):
    root = _scaled(tf)
    root.signatures = 3
    with pytest.raises(errors.SignatureError, match=r"del obj\.signatures"):
        _ours(root, tmp_path / "ours")
    _theirs(tf, root, tmp_path / "theirs")
    del root.signatures
    _ours(root, tmp_path / "removed")


@row("missing assets")
def _(tf, tmp_path):
    (tmp_path / "file.txt").write_text("text")
    root = tf.Module()
    root.file = tf.saved_model.Asset(str(tmp_path / "file.txt"))
    (tmp_path / "file.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"file\.txt"):
        _ours(root, tmp_path / "ours")
    for path in (
        _theirs(tf, root, tmp_path / "theirs"),
        _ours(root, tmp_path / "lenient", strict=False),
    ):
        assert not (path / "assets" / "file.txt").exists()


@row("variables without a value")
def _(tf, tmp_path):
    source = _theirs(tf, _scaled(tf), tmp_path / "source")
    root = tf.saved_model.load(
        str(source), options=tf.saved_model.LoadOptions(experimental_skip_checkpoint=True)
    )
    with pytest.raises(errors.SaveError, match=r"root\.v"):
        _ours(root, tmp_path / "ours", signatures={})
    for path in (
        _theirs(tf, root, tmp_path / "theirs", signatures={}),
        _ours(root, tmp_path / "lenient", strict=False, signatures={}),
    ):
        for load in _loads(tf):
            with pytest.raises(FileNotFoundError, match="Key v"):
                load(path)


@row("Python state")
def _(tf, tmp_path):
    class Counter(tf.train.experimental.PythonState):
        def __init__(self, count):
            self.count, self.table = count, np.arange(count)

        def serialize(self):
            return str(self.count)

        def deserialize(self, string_value):
            self.__init__(int(string_value))

    def model(count):
        root = _scaled(tf)
        root.counter = Counter(count)
        return root

    first = _theirs(tf, model(3), tmp_path / "theirs"), _ours(model(3), tmp_path / "ours")
    for number, path in enumerate(first):
        for loaded in _both_load(tf, path):
            assert not hasattr(loaded.counter, "count") and loaded.f(2.0).numpy() == 4.0
        restored = model(0)
        tf.train.Checkpoint(restored).restore(
            str(path / "variables" / "variables")
        ).expect_partial()
        assert restored.counter.count == 3
        ours, theirs = _both_load(tf, path)
        for loaded, save, kept in (
            (ours, _ours, True),
            (theirs, functools.partial(_theirs, tf), False),
        ):
            copy = save(loaded, tmp_path / f"{number}{kept}", signatures={})
            keys = tf.train.load_checkpoint(
                str(copy / "variables" / "variables")
            ).get_variable_to_shape_map()
            assert ("counter/.ATTRIBUTES/py_state" in keys) is kept
    reference_impl.register("drop_in.Counter", Counter)
    try:
        assert reference_impl.load(_ours(model(7), tmp_path / "registered")).counter.count == 7
    finally:
        reference_impl.unregister("drop_in.Counter")


@row("checkpoint hooks that need Python")
def _(tf, tmp_path):
    class Held(tf.Module):
        def __init__(self, number):
            super().__init__()
            self.number = number

        def _serialize_to_tensors(self):
            return {"number": tf.constant(self.number)}

        def _restore_from_tensors(self, restored):
            self.number = float(restored["number"].numpy())

    root = _scaled(tf)
    root.held = Held(3.0)
    with pytest.raises(AttributeError, match="numpy"):
        _theirs(tf, root, tmp_path / "theirs")
    with pytest.raises(errors.SaveError, match=r"root\.held: "):
        _ours(root, tmp_path / "ours")
    path = _ours(root, tmp_path / "lenient", strict=False)
    for loaded in _both_load(tf, path):
        assert loaded.f(2.0).numpy() == 4.0
    restored = _scaled(tf)
    restored.held = Held(0.0)
    tf.train.Checkpoint(restored).restore(str(path / "variables" / "variables")).expect_partial()
    assert restored.held.number == 3.0


@row("DTensors")
def _(tf, tmp_path):
    """In a process of its own, which has two devices."""
    printed = fresh_tensorflow.printed(_DTENSORS, tmp_path).splitlines()
    assert printed == [
        "theirs refused a captured tensor",
        *["[12.0, 16.0]"] * 6,
        "theirs cannot be loaded",
        *["0.333333343"] * 2,
    ]


_DTENSORS = """
import sys
import tensorflow as tf
from tensorflow.experimental import dtensor
import reference_impl

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
mesh = dtensor.create_mesh([("x", 2)], devices=["CPU:0", "CPU:1"])
whole = dtensor.Layout.replicated(mesh, 2)


def shared(values):
    copied = dtensor.copy_to_mesh(tf.constant(values), whole)
    return dtensor.relayout(copied, dtensor.Layout(["x", dtensor.UNSHARDED], mesh))


def model(read):
    root = tf.Module()
    root.v = dtensor.DVariable(shared([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]))
    root.f = tf.function(lambda x: x @ read(root), input_signature=[tf.TensorSpec([1, 4])])
    return root


def answers(path):
    for load in (reference_impl.load, tf.saved_model.load):
        loaded = load(path)
        print(loaded.f(tf.ones([1, 4])).numpy()[0].tolist())


out = sys.argv[1]
tensor = shared([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]])
captures = model(lambda root: tensor)
try:
    tf.saved_model.save(captures, out + "/refused")
except ValueError:
    print("theirs refused a captured tensor")
for name, save, read in (
    ("theirs", tf.saved_model.save, lambda root: root.v),
    ("ours", reference_impl.save, lambda root: root.v),
    ("captured", reference_impl.save, lambda root: tensor),
):
    save(model(read), out + "/" + name)
    answers(out + "/" + name)

root = tf.Module()
root.v = dtensor.DVariable(shared([[0.0, 1.0 / 3.0]] * 4))
dtensor.enable_save_as_bf16([root.v])
tf.saved_model.save(root, out + "/theirs16")
try:
    tf.saved_model.load(out + "/theirs16")
except tf.errors.InvalidArgumentError:
    print("theirs cannot be loaded")
reference_impl.save(root, out + "/ours16")
for load in (reference_impl.load, tf.saved_model.load):
    print(format(load(out + "/ours16").v.numpy()[0, 1], ".9f"))
"""


@row("variables that only a checkpoint hook can read")
def _(tf, tmp_path):
    class Parked(type(tf.Variable(1.0))):
        def read_value(self):
            raise tf.errors.UnavailableError(None, None, "parked elsewhere")

        def _serialize_to_tensors(self):
            return {"VARIABLE_VALUE": tf.constant(self.parked)}

    root = tf.Module()
    root.v = Parked(1.0)
    root.v.parked = 5.0
    for path in (_theirs(tf, root, tmp_path / "theirs"), _ours(root, tmp_path / "ours")):
        for loaded in _both_load(tf, path):
            assert loaded.v.numpy() == 5.0
    root.v.parked = 5
    _theirs(tf, root, tmp_path / "unreadable")
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.saved_model.load(str(tmp_path / "unreadable"))
    with pytest.raises(errors.SaveError, match=r"root\.v: .*int32"):
        _ours(root, tmp_path / "refused")


@row("calls of Python code")
def _(tf, tmp_path):
    root = tf.Module()
    root.f = tf.function(
        lambda x: tf.numpy_function(lambda value: value * np.float32(2), [x], tf.float32),
        input_signature=[tf.TensorSpec([])],
    )
    with pytest.raises(errors.SaveError, match=r"root\.f: .*\(PyFunc\)"):
        _ours(root, tmp_path / "ours")
    with pytest.warns(UserWarning, match="this process"):
        reference_impl.save(
            root, tmp_path / "lenient", options=reference_impl.SaveOptions(**LENIENT)
        )
    _theirs(tf, root, tmp_path / "theirs")
    for path in (tmp_path / "theirs", tmp_path / "lenient"):
        (meta_graph,) = layout.read(path).saved_model.meta_graphs
        assert "PyFunc" in {
            node.op
            for function in meta_graph.graph_def.library.function
            for node in function.node_def
        }


@row("gradients of custom gradients")
def _(tf, tmp_path):
    root = tf.Module()
    root.f = tf.function(
        lambda x: tf.distribute.get_replica_context().all_reduce("SUM", x * x) * x,
        input_signature=[tf.TensorSpec([])],
    )
    for path, orders in (
        (_theirs(tf, root, tmp_path / "theirs"), 1),
        (_ours(root, tmp_path / "ours"), 3),
    ):
        (meta_graph,) = layout.read(path).saved_model.meta_graphs
        assert len(meta_graph.graph_def.library.registered_gradients) == orders


@row("aliases of functions that are not exported")
def _(tf, tmp_path):
    root, other = _scaled(tf), tf.function(lambda x: x, input_signature=[tf.TensorSpec([])])
    other.get_concrete_function()
    options = tf.saved_model.SaveOptions(function_aliases={"other": other})
    with pytest.raises(errors.AliasError, match="not among"):
        reference_impl.save(root, tmp_path / "ours", options=options)
    both = {"both": [root.f.get_concrete_function(), other.get_concrete_function()]}
    with pytest.raises(errors.AliasError, match=r"function_aliases\['both'\]"):
        reference_impl.save(
            root, tmp_path / "both", options=tf.saved_model.SaveOptions(function_aliases=both)
        )
    with pytest.warns(UserWarning, match="without an alias"):
        reference_impl.save(
            root,
            tmp_path / "both",
            options=reference_impl.SaveOptions(strict=False, function_aliases=both),
        )
    (meta_graph,) = layout.read(tmp_path / "both").saved_model.meta_graphs
    assert list(meta_graph.meta_info_def.function_aliases.values()) == ["both"]
    loaded = tf.saved_model.load(
        str(tmp_path / "both"),
        options=tf.saved_model.LoadOptions(experimental_load_function_aliases=True),
    )
    assert list(loaded.function_aliases) == ["both"]
    with pytest.raises(TypeError, match="Unsupported type"):
        reference_impl.save(
            root,
            tmp_path / "odd",
            options=reference_impl.SaveOptions(strict=False, function_aliases={"odd": 3}),
        )
    path = _theirs(tf, root, tmp_path / "theirs", options=options)
    (meta_graph,) = layout.read(path).saved_model.meta_graphs
    library = {function.signature.name for function in meta_graph.graph_def.library.function}
    assert meta_graph.meta_info_def.function_aliases.keys() - library


@row("aliases of a loaded model")
def _(tf, tmp_path):
    root = _scaled(tf)
    options = tf.saved_model.SaveOptions(function_aliases={"scale": root.f})
    path = _theirs(tf, root, tmp_path / "m", options=options)
    again = (
        _theirs(tf, tf.saved_model.load(str(path)), tmp_path / "theirs"),
        _ours(reference_impl.load(path), tmp_path / "ours"),
    )
    theirs, ours = (
        layout.read(each).saved_model.meta_graphs[0].meta_info_def.function_aliases
        for each in again
    )
    assert not theirs and list(ours.values()) == ["scale"]


@row("names and bytes")
def _(tf, tmp_path):
    root = _scaled(tf)
    ours = [(_ours(root, tmp_path / name) / "saved_model.pb").read_bytes() for name in ("a", "b")]
    theirs = [
        (_theirs(tf, root, tmp_path / name) / "saved_model.pb").read_bytes() for name in ("c", "d")
    ]
    assert ours[0] == ours[1] and theirs[0] != theirs[1]


@row("variables of shards")
def _(tf, tmp_path):
    root, parts = (
        tf.Module(),
        [tf.Variable([1.0, 2.0], name="v/part_0"), tf.Variable([3.0, 4.0], name="v/part_1")],
    )
    root.v = tf.__internal__.distribute.ShardedVariable(parts, name="v")
    _theirs(tf, root, tmp_path / "theirs")
    with pytest.raises(errors.SaveError, match="convert_to_tensor"):
        _ours(root, tmp_path / "ours")
    root.v = tf.Variable(tf.convert_to_tensor(root.v))
    for loaded in _both_load(tf, _ours(root, tmp_path / "whole")):
        assert loaded.v.numpy().tolist() == [1.0, 2.0, 3.0, 4.0]


@row("an export in the place of another")
def _(tf, tmp_path):
    (tmp_path / "file.txt").write_text("text")
    first = tf.Module()
    first.file = tf.saved_model.Asset(str(tmp_path / "file.txt"))
    for save, left in ((_ours, False), (lambda root, path: _theirs(tf, root, path), True)):
        path = tmp_path / str(left)
        save(first, path)
        save(_scaled(tf), path)
        assert (path / "assets" / "file.txt").exists() == left


UPDATES = """
import json, sys
import tensorflow as tf
import reference_impl
(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy, out = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), sys.argv[1]
for on_read, aggregation in ((False, "SUM"), (False, "MEAN"), (False, "ONLY_FIRST_REPLICA"), (True, "SUM")):
    synchronization = "ON_READ" if on_read else "AUTO"
    with strategy.scope():
        variable = tf.Variable(
            1.0,
            aggregation=tf.VariableAggregation[aggregation],
            synchronization=tf.VariableSynchronization[synchronization],
        )
    root = tf.Module()
    root.v = variable

    @tf.function(input_signature=[tf.TensorSpec([])])
    def apart(x):
        strategy.run(
            lambda: root.v.assign_add(x * tf.cast(1 + tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32))
        )

    root.f = apart
    seen = []
    for save in (tf.saved_model.save, reference_impl.save):
        try:
            save(root, out, signatures={})
        except reference_impl.errors.SaveError:
            seen.append("SaveError")
            continue
        for load in (tf.saved_model.load, reference_impl.load):
            loaded = load(out)
            loaded.f(2.0)
            seen.append(float(loaded.v))
    root.f(tf.constant(2.0))
    print(json.dumps([float(tf.convert_to_tensor(variable)), *seen]))
"""


@row("functions that update distributed variables")
def _(tf, tmp_path):
    done = fresh_tensorflow.run(UPDATES, tmp_path / "m")
    assert done.returncode == 0, done.stderr
    live, *seen = zip(*map(json.loads, done.stdout.splitlines()[:3]))
    assert live == (7.0, 4.0, 3.0)  # 1 + (2 + 4), the mean of these, the first of these
    theirs, ours = seen[:2], seen[2:]
    assert (
        ours == [live, live] and theirs == [(13.0, 7.0, 5.0)] * 2
    )  # the update twice: once for each replica
    assert json.loads(done.stdout.splitlines()[3])[3:] == ["SaveError"]


@row("an export at a URL in the place of another")
def _(tf, tmp_path):
    url = f"ram://{tmp_path.name}"
    wide, narrow = tf.Module(), tf.Module()
    wide.file, wide.v = tf.saved_model.Asset(__file__), tf.Variable([1.0, 2.0])
    narrow.v = tf.Variable(3.0)
    for root in (wide, narrow):
        reference_impl.save(root, f"{url}/ours")
    for load in _loads(tf):
        assert load(f"{url}/ours").v.numpy() == 3.0
    assert tf.io.gfile.exists(f"{url}/ours/assets/{Path(__file__).name}")
    for root in (wide, narrow):
        tf.saved_model.save(root, f"{url}/theirs")
    for load in _loads(tf):
        with pytest.raises(Exception):  # noqa: B017  # whichever file is read first
            load(f"{url}/theirs")
    tf.saved_model.save(narrow, f"{url}/new")
    assert reference_impl.load(f"{url}/new").v.numpy() == 3.0


def _unfillable(tf, path):
    """Write a TF 1.x model with one signature that needs no iterator, and one whose iterator fails
    when it is filled.
    """
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None], name="x")
        batches = v1.data.Dataset.from_tensor_slices([[1.0], [2.0]]).padded_batch(
            tf.constant(0, tf.int64), [None]
        )
        element = tf.reduce_sum(v1.data.make_one_shot_iterator(batches).get_next())
        predict = v1.saved_model.predict_signature_def
        builder = v1.saved_model.Builder(str(path))
        signatures = {
            "plain": predict({"x": x}, {"y": x + 1.0}),
            "next": predict({"x": x}, {"y": x + element}),
        }
        builder.add_meta_graph_and_variables(session, ["serve"], signatures)
        builder.save()
    return path


@row("iterators of TF 1.x that cannot be filled")
def _(tf, tmp_path):
    ours, theirs = _both_load(tf, _unfillable(tf, tmp_path / "m"))
    for loaded in (ours, theirs):
        assert loaded.signatures["plain"](x=tf.constant([1.0]))["y"].numpy() == [2.0]
        with pytest.raises(tf.errors.OpError):
            loaded.signatures["next"](x=tf.constant([1.0]))
    with pytest.raises(errors.SaveError, match=r"iterator.*cannot be filled.*greater than zero"):
        _ours(ours, tmp_path / "ours")
    for loaded in _both_load(tf, _ours(ours, tmp_path / "lenient", strict=False)):
        assert loaded.signatures["plain"](x=tf.constant([1.0]))["y"].numpy() == [2.0]
        with pytest.raises(tf.errors.OpError):
            loaded.signatures["next"](x=tf.constant([1.0]))


@row("registered checkpoint savers")
def _(tf, tmp_path):
    import saver_world

    world = saver_world.World(strict=True)
    _theirs(tf, world.model([1.0, 2.0]), tmp_path / "theirs")
    _ours(world.model([1.0, 2.0]), tmp_path / "ours")
    with world.unregistered():
        assert tf.saved_model.load(str(tmp_path / "theirs")).deep.v.numpy().tolist() == [0.0, 0.0]
        for loaded in _both_load(tf, tmp_path / "ours"):
            assert loaded.deep.v.numpy().tolist() == [1.0, 2.0]


@row("TF 1.x state that TensorFlow loaded")
def _(tf, tmp_path):
    source = model_edits.fixture("half_plus_two")
    loaded = tf.saved_model.load(str(source))
    with pytest.raises(errors.SaveError, match=r"reference_impl\.load"):
        _ours(loaded, tmp_path / "ours", signatures=loaded.signatures)
    _ours(loaded, tmp_path / "lenient", strict=False, signatures=loaded.signatures)
    copy = reference_impl.load(_ours(reference_impl.load(source), tmp_path / "copy"))
    assert copy.signatures.keys() == loaded.signatures.keys() and copy.variables


# Loading


@row("variables of loaded objects")
def _(tf, tmp_path):
    ours, theirs = _both_load(tf, _theirs(tf, _scaled(tf), tmp_path / "m"))
    assert ours.variables == (ours.v,) == ours.trainable_variables and not hasattr(
        theirs, "variables"
    )
    assert list(ours.functions) == ["f"]
    for loaded in (ours, theirs):
        assert not isinstance(loaded, tf.Module)
        assert _seen_around(tf, loaded) == []
    module = reference_impl.load(tmp_path / "m", options=reference_impl.LoadOptions(modules=True))
    assert isinstance(module, tf.Module) and _seen_around(tf, module) == [module.v]


def _seen_around(tf, loaded):
    outer = tf.Module()
    outer.part = loaded
    return list(outer.trainable_variables)


@row("types of loaded objects")
def _(tf, tmp_path):
    ours, theirs = _both_load(tf, _ours(_scaled(tf), tmp_path / "m"))
    other = type(ours)()
    other.v.assign(3.0)
    assert other.f(1.0).numpy() == 3.0 and ours.f(1.0).numpy() == 2.0
    assert not hasattr(type(theirs)(), "f")


@row("life of variables")
def _(tf, tmp_path):
    _theirs(tf, _scaled(tf), tmp_path / "m")
    ours, theirs = [loaded.f for loaded in _both_load(tf, tmp_path / "m")]
    gc.collect()
    assert ours(1.0).numpy() == 2.0
    with pytest.raises(AssertionError, match="deleted"):
        theirs(1.0)


@row("unknown ops")
def _(tf, tmp_path):
    root = _scaled(tf)
    root.odd = tf.function(lambda x: tf.sinh(x), input_signature=[tf.TensorSpec([])])
    _theirs(tf, root, tmp_path / "m", signatures=root.f)

    def rename(message):
        for function in message.meta_graphs[0].graph_def.library.function:
            for node in function.node_def:
                node.op = "OpOfAnotherDay" if node.op == "Sinh" else node.op

    path = model_edits.edited(tmp_path / "m", tmp_path / "edited", rename)
    with pytest.raises(
        (tf.errors.NotFoundError, ValueError, FileNotFoundError, KeyError, RuntimeError),
        match="OpOfAnotherDay",
    ):
        tf.saved_model.load(str(path))
    loaded = reference_impl.load(path)
    assert loaded.f(1.0).numpy() == 2.0
    with pytest.raises(Exception, match="OpOfAnotherDay"):
        loaded.odd(1.0)


@row("ops that act on the machine")
def _(tf, tmp_path):
    from reference_impl.safety.machine_ops import MachineOpWarning

    class Noisy(tf.saved_model.experimental.TrackableResource):
        def _create_resource(self):
            return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="noisy")

        def _initialize(self):
            tf.io.write_file(str(tmp_path / "written"), "text")

    root = tf.Module()
    root.resource = Noisy()
    root.f = tf.function(
        lambda: tf.raw_ops.VarIsInitializedOp(resource=root.resource.resource_handle),
        input_signature=[],
    )
    _theirs(tf, root, tmp_path / "m")
    (tmp_path / "written").unlink(missing_ok=True)
    tf.saved_model.load(str(tmp_path / "m"))
    assert (tmp_path / "written").exists()
    with pytest.warns(MachineOpWarning, match="WriteFile"):
        reference_impl.load(tmp_path / "m")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reference_impl.load(tmp_path / "m", options=reference_impl.LoadOptions(machine_ops="allow"))


@row("registered names")
def _(tf, tmp_path):
    _theirs(tf, _scaled(tf), tmp_path / "m")

    def name(message):
        message.meta_graphs[0].object_graph_def.nodes[0].registered_name = "somebody.Else"

    path = model_edits.edited(tmp_path / "m", tmp_path / "edited", name)
    with pytest.warns(UserWarning, match="somebody.Else"):
        loaded = reference_impl.load(path)
    assert loaded.f(1.0).numpy() == tf.saved_model.load(str(path)).f(1.0).numpy() == 2.0

    from tensorflow.python.saved_model import registration

    class Named(tf.Module):
        """Made by its own constructor."""

    registration.register_serializable(package="drop_in", name="Named")(Named)
    tf.saved_model.save(Named(), str(tmp_path / "named"))
    assert isinstance(tf.saved_model.load(str(tmp_path / "named")), Named)
    with pytest.warns(UserWarning, match="drop_in.Named"):
        assert not isinstance(reference_impl.load(tmp_path / "named"), Named)
    reference_impl.register("drop_in.Named", Named)
    try:
        assert isinstance(reference_impl.load(tmp_path / "named"), Named)
    finally:
        reference_impl.unregister("drop_in.Named")


@row("NumPy scalars as Python arguments")
def _(tf, tmp_path):
    root = tf.Module()
    root.f = tf.function(lambda x, training: x * 2.0 if training else x)
    root.f(tf.constant(1.0), True)
    ours, theirs = _both_load(tf, _theirs(tf, root, tmp_path / "m"))
    assert ours.f(tf.constant(1.0), np.bool_(True)).numpy() == 2.0
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        theirs.f(tf.constant(1.0), np.bool_(True))
    assert theirs.f(tf.constant(1.0), bool(np.bool_(True))).numpy() == 2.0


@row("reading the checkpoint")
def _(tf, tmp_path):
    from tensorflow.python.framework import op_callbacks

    _theirs(tf, _scaled(tf), tmp_path / "m")
    found = []

    def note(op_type, *_args, **_keywords):
        found.append(op_type)

    for load in _loads(tf):
        op_callbacks.add_op_callback(note)
        try:
            load(tmp_path / "m")
        finally:
            op_callbacks.remove_op_callback(note)
        found.append(load)
    ours, theirs = (
        found[: found.index(reference_impl.load)],
        found[found.index(reference_impl.load) :],
    )
    assert b"RestoreV2" not in ours and theirs.count(b"RestoreV2") == 1


def _loads(tf):
    def theirs(path):
        return tf.saved_model.load(str(path))

    return reference_impl.load, theirs


@row("variables of TF 1.x")
def _(tf, tmp_path):
    ours, theirs = _both_load(tf, model_edits.fixture("half_plus_two"))
    assert (
        all(isinstance(variable, tf.Variable) for variable in ours.variables)
        and len(ours.variables) == 2
    )
    assert not theirs.variables


@row("signatures of TF 1.x that cannot be called")
def _(tf, tmp_path):
    def lose(message):
        definition = message.meta_graphs[0].signature_def
        definition["other"].CopyFrom(definition["serving_default"])
        definition["other"].inputs["x"].name = "nowhere:0"

    path = model_edits.edited(model_edits.fixture("half_plus_two"), tmp_path / "m", lose)
    with pytest.raises(KeyError, match="nowhere"):
        tf.saved_model.load(str(path))
    loaded = reference_impl.load(path)
    assert loaded.signatures["serving_default"](tf.constant([[2.0]]))["y"].numpy() == 3.0
    with pytest.raises(errors.MalformedError, match="nowhere"):
        loaded.signatures["other"](tf.constant([[2.0]]))


@row("the init op of TF 1.x as a signature")
def _(tf, tmp_path):
    source, tags = model_edits.fixture("keras_experimental_export"), ["serve"]
    theirs, ours = tf.saved_model.load(str(source), tags), reference_impl.load(source, tags)
    assert set(theirs.signatures) - set(ours.signatures) == {"__saved_model_init_op"}
    variable, *_ = ours.variables
    ours.initializer._initialize()
    assert variable.is_initialized()


@row("load options for TF 1.x")
def _(tf, tmp_path):
    def alias(message):
        message.meta_graphs[0].meta_info_def.function_aliases["f"] = "alias"

    path = model_edits.edited(model_edits.fixture("half_plus_two"), tmp_path / "m", alias)
    options = tf.saved_model.LoadOptions(experimental_load_function_aliases=True)
    assert not hasattr(tf.saved_model.load(str(path), options=options), "function_aliases")
    with pytest.raises(errors.UnsupportedModelError, match="alias"):
        reference_impl.load(path, options=options)
    assert reference_impl.load(path).variables


@row("OneShotIterators of TF 1.x")
def _(tf, tmp_path):
    ours, theirs = _both_load(tf, model_edits.fixture("one_shot_iterator"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="shared_name"):
        theirs.signatures["next"](tf.constant([1.0]))
    assert ours.signatures["next"](tf.constant([1.0]))["y"].numpy() == [1.0]
    copy = tf.saved_model.load(str(_ours(ours, tmp_path / "copy")))
    assert copy.signatures["next"](x=tf.constant([1.0]))["y"].numpy() == [1.0]


@row("an export that is replaced during a load")
def _(tf, tmp_path):
    other = _scaled(tf)
    other.v.assign(3.0)
    read, replaced = layout.read_message, []

    def read_message(file):
        message = read(file)
        if not replaced:
            replaced.append(_ours(other, tmp_path / "m"))
        return message

    for in_graph in (False, True):
        _ours(_scaled(tf), tmp_path / "m")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(layout, "read_message", read_message)
            replaced.clear()
            if in_graph:
                with (
                    tf.Graph().as_default(),
                    pytest.raises(errors.FileAccessError, match="another export"),
                ):
                    reference_impl.load(tmp_path / "m")
            else:
                assert reference_impl.load(tmp_path / "m").f(1.0).numpy() == 3.0


@row("state that a registered checkpoint saver wrote")
def _(tf, tmp_path):
    import saver_world

    world = saver_world.World(strict=True)
    path = _theirs(tf, world.model([1.0, 2.0]), tmp_path / "m")
    with world.registered():
        for loaded in _both_load(tf, path):
            assert loaded.deep.v.numpy().tolist() == [1.0, 2.0]
    with world.unregistered():
        assert tf.saved_model.load(str(path)).deep.v.numpy().tolist() == [0.0, 0.0]
        with (
            pytest.warns(UserWarning),
            pytest.raises(errors.MissingValueError, match=rf"root\.deep.*{world.name}"),
        ):
            reference_impl.load(path)
        with pytest.warns(UserWarning):
            loaded = reference_impl.load(
                path, options=tf.saved_model.LoadOptions(allow_partial_checkpoint=True)
            )
        assert not loaded.deep.v.is_initialized()


@row("a value of another shape or dtype")
def _(tf, tmp_path):
    wide = tf.Module()
    wide.v, wide.w = tf.Variable([1.0, 2.0]), tf.Variable(5.0)
    narrow = tf.Module()
    narrow.v, narrow.w = tf.Variable([1.0]), tf.Variable(6.0)
    path = _theirs(tf, wide, tmp_path / "m")
    shutil.rmtree(path / "variables")
    shutil.copytree(_theirs(tf, narrow, tmp_path / "narrow") / "variables", path / "variables")
    partial = tf.saved_model.LoadOptions(allow_partial_checkpoint=True)
    for options in (None, partial):
        with pytest.raises(ValueError, match="shape"):
            tf.saved_model.load(str(path), options=options)
    with pytest.raises(errors.ShapeError, match=r"root\.v.*allow_partial_checkpoint"):
        reference_impl.load(path)
    loaded = reference_impl.load(path, options=partial)
    assert loaded.w.numpy() == 6.0 and not loaded.v.is_initialized()


@row("savers of loaded tables")
def _(tf, tmp_path):
    root = tf.Module()
    root.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, -1)
    root.table.insert("a", 15.0)
    ours, theirs = _both_load(tf, _theirs(tf, root, tmp_path / "m"))
    assert (
        not ours.table._self_saveable_object_factories
        and theirs.table._self_saveable_object_factories
    )
    for loaded in (ours, theirs):
        tf.train.Checkpoint(loaded).write(str(tmp_path / "ckpt"))
        assert (
            "table/.ATTRIBUTES/table-keys"
            in tf.train.load_checkpoint(str(tmp_path / "ckpt")).get_variable_to_shape_map()
        )


@row("names of files that lead out of the model")
def _(tf, tmp_path):
    (tmp_path / "file.txt").write_text("text")
    (tmp_path / "secret.txt").write_text("secret")
    root = tf.Module()
    root.file = tf.saved_model.Asset(str(tmp_path / "file.txt"))
    root.f = tf.function(lambda: tf.io.read_file(root.file.asset_path), input_signature=[])
    _theirs(tf, root, tmp_path / "m")

    def escape(message):
        message.meta_graphs[0].asset_file_def[0].filename = "../../secret.txt"

    path = model_edits.edited(tmp_path / "m", tmp_path / "edited", escape)
    theirs = tf.saved_model.load(str(path))
    assert theirs.f().numpy() == b"secret"
    with pytest.raises(errors.PathEscapeError):
        reference_impl.load(path)


# The page


@pytest.mark.parametrize("name", ROWS)
def test_what_the_page_says_is_so(tf, tmp_path, name):
    ROWS[name](tf, tmp_path)


def test_every_row_of_the_page_is_tested():
    rows = re.findall(r"^\| \*\*(.+?)\*\* \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(ROWS)


def test_the_one_hook_that_runs_saving_code_of_tensorflow_is_called_for_what_overrides_it(
    tf, tmp_path
):
    """The page declares `_trackable_children(save_type="savedmodel")`: it is asked for objects with
    an override alone.
    """
    asked = []

    class Lists(tf.Module):
        def _trackable_children(self, save_type="checkpoint", **keywords):
            asked.append(save_type)
            return {**super()._trackable_children(save_type, **keywords), "more": tf.Variable(5.0)}

    root = tf.Module()
    root.part = Lists()
    assert reference_impl.load(_ours(root, tmp_path / "m")).part.more.numpy() == 5.0
    assert set(asked) == {"savedmodel"}
    assert '_trackable_children(save_type="savedmodel")' in PAGE.read_text(encoding="utf-8")
    assert not layout.read(tmp_path / "m").meta_graph(None).signature_def.keys() - {
        "__saved_model_init_op"
    }
