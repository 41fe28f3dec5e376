"""Generated gradient names of a file that meet names of the process: the numbers of two processes
may be equal by chance.

`tf.saved_model.save` keeps the first order of a custom gradient. The functions that it writes name
further gradients, such as ``CustomGradient-130``, which no one registers. `tf.saved_model.load`
numbers the gradients of the file anew, from a counter of the process. The programs below advance
the counter so that both numbers meet.
"""

import hashlib
import json

import fresh_tensorflow
import pytest

from reference_impl.format.container import layout
from reference_impl.format.names import CUSTOM_GRADIENT
from savedmodel_tools.verify.run import verify

pytestmark = [pytest.mark.tensorflow, pytest.mark.clause("FMT-14")]

# Makes and saves a model. The gradients of both functions have custom gradients again.
WRITER = """
import sys
import tensorflow as tf
@tf.custom_gradient
def a(x):
    return tf.identity(x), lambda dy: 3.0 * a(dy)
@tf.custom_gradient
def b(x):
    return tf.identity(x), lambda dy: 1000.0 * b(dy)
@tf.custom_gradient
def thousandfold(x):
    return tf.identity(x), lambda dy: 1000.0 * dy
called = tf.function(lambda x: thousandfold(x) / 1000.0, input_signature=[tf.TensorSpec([2])])
@tf.custom_gradient
def calling(x):
    return tf.identity(x), lambda dy: 1000.0 * calling(called(dy) * 1000.0)
root = tf.Module()
root.called = called
second = {"one": b, "last": thousandfold, "callee": calling}[sys.argv[2]]
root.f = tf.function(lambda x: a(x * x * x) + second(x * x * x) / 2.0, input_signature=[tf.TensorSpec([2])])
tf.saved_model.save(root, sys.argv[1])
"""

# Advances the counter, loads with TensorFlow (or with ours), saves with ours.
RESAVER = """
import sys
import tensorflow as tf, reference_impl
from tensorflow.python.framework import ops
loader, source, target, start = sys.argv[1:5]
while ops.uid() < int(start):
    pass
model = {"tf2": tf.saved_model.load, "reference": reference_impl.load}[loader](source)
reference_impl.save(model, target)
"""

# Prints f(x) and its derivatives, errors as texts. With a start, the counter is advanced before the
# load.
READER = """
import json, sys
import tensorflow as tf, reference_impl
from tensorflow.python.framework import ops
loader, source, start = sys.argv[1:4]
while ops.uid() < int(start):
    pass
model = {"tf2": tf.saved_model.load, "reference": reference_impl.load}[loader](source)
def derivative(function):
    def differentiated(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)
    return differentiated
answers, function = [], model.f
for order in range(3):
    try:
        answers.append([float(each) for each in function(tf.constant([1.0, 2.0]))])
    except Exception as error:
        answers.append(f"{type(error).__name__}: {error}")
    function = derivative(function)
print(json.dumps(answers))
"""

VALUE, FIRST = [1.5, 12.0], [1509.0, 6036.0]


def run(program, *arguments):
    done = fresh_tensorflow.run(program, *arguments)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def answers(loader, folder, start=0):
    return json.loads(run(READER, loader, folder, start).splitlines()[-1])


def dangling(folder):
    """Return the numbers of the generated gradients that the file names and does not have."""
    (graph,) = layout.read(folder).saved_model.meta_graphs
    library = graph.graph_def.library
    known = {item.registered_op_type for item in library.registered_gradients}
    found = set()
    for function in library.function:
        for node in function.node_def:
            name = node.attr[CUSTOM_GRADIENT].s.decode() if CUSTOM_GRADIENT in node.attr else ""
            if name.startswith("CustomGradient-") and name not in known:
                found.add(int(name.rpartition("-")[2]))
    return found


def digest(folder):
    contents = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        contents.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
    return contents.hexdigest()


@pytest.fixture(scope="module", params=["one", "last", "callee"])
def written(request, tmp_path_factory):
    """A model of TensorFlow; its gradients have custom gradients again.

    ``one``: those of both functions. ``last``: that of the first. ``callee``: those of both, and a
    function that one calls has a custom gradient too, which is in the file.
    """
    folder = tmp_path_factory.mktemp(request.param) / "model"
    run(WRITER, folder, request.param)
    assert dangling(folder)
    return folder


@pytest.fixture
def starts(written):
    """Counters a few below each number, and one that meets none."""
    below = {number - distance for number in dangling(written) for distance in range(1, 6)}
    return [0, *sorted(below), max(below) + 1000]


def test_a_save_of_what_tensorflow_loaded_does_not_depend_on_its_counter(written, starts, tmp_path):
    digests = set()
    for start in starts:
        target = tmp_path / f"{start}"
        run(RESAVER, "tf2", written, target, start)
        digests.add(digest(target))
        assert not dangling(target)
    assert len(digests) == 1
    for loader in ("reference", "tf2"):
        value, first, second = answers(loader, target)
        assert (value, first) == (VALUE, FIRST)
        assert isinstance(second, str), second
    assert "no gradient here" in answers("reference", target)[2]


def test_our_load_never_follows_a_generated_name_of_a_file(written, starts, tmp_path):
    for start in starts[:3]:  # our loader does not count
        value, first, second = answers("reference", written, start)
        assert (value, first) == (VALUE, FIRST)
        assert second.startswith("MissingGradientError") and "CustomGradient-" in second


def test_a_re_export_of_ours_leaves_no_generated_name_that_means_nothing(written, tmp_path):
    run(RESAVER, "reference", written, tmp_path / "again", 0)
    assert not dangling(tmp_path / "again")
    value, first, second = answers("tf2", tmp_path / "again", 0)
    assert (value, first) == (VALUE, FIRST) and isinstance(second, str)


def test_a_name_that_this_process_registered_is_not_followed_by_a_load(written):
    """A program that numbers its own gradients as the file does."""
    program = """
import sys
import tensorflow as tf, reference_impl
number = int(sys.argv[2])
tf.RegisterGradient(f"CustomGradient-{number}")(lambda operation, *upstream: [7.0 * each for each in upstream])
model = reference_impl.load(sys.argv[1])
x = tf.constant([1.0, 2.0])
try:
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = model.f(x)
        first = inner.gradient(y, x)
    print(outer.gradient(first, x))
except reference_impl.errors.SavedModelError as error:
    print("refused", error)
"""
    answered = [run(program, written, number) for number in sorted(dangling(written))]
    assert answered and all("refused" in answer for answer in answered)


def test_verify_says_that_a_second_derivative_is_refused_or_wrong(written):
    found = [finding for finding in verify(written).findings if finding.rule == "SMC513"]
    assert found and "CustomGradient-" in found[0].message


def test_copies_of_branches_and_loops_that_tensorflow_loaded_keep_their_gradients(tmp_path):
    """To differentiate an If or While, TensorFlow copies its functions; the copies name the
    gradients of the originals.
    """
    writer = """
import sys
import tensorflow as tf
@tf.custom_gradient
def tripled(x):
    return tf.identity(x), lambda dy: 3.0 * dy
root = tf.Module()
@tf.function(input_signature=[tf.TensorSpec([2])])
def f(x):
    y = tf.cond(tf.reduce_sum(x) > 0.0, lambda: tripled(x) ** 2.0, lambda: x)
    return tf.while_loop(lambda i, y: i < 1, lambda i, y: (i + 1, tripled(y) ** 2.0), [0, y])[1]
root.f = f
tf.saved_model.save(root, sys.argv[1])
"""
    resaver = """
import sys
import tensorflow as tf, reference_impl
model = tf.Module()
model.loaded = tf.saved_model.load(sys.argv[1])
@tf.function(input_signature=[tf.TensorSpec([2])])
def f(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = model.loaded.f(x)
    return tape.gradient(y, x)
model.f = f
reference_impl.save(model, sys.argv[2])
"""
    run(writer, tmp_path / "0")
    run(resaver, tmp_path / "0", tmp_path / "1")
    # With t = tripled: f = t(t(x)^2)^2, f' = 36 t(t(x)^2) t(x), f'' = 36 (3 * 6 x * x + 3 x^2) =
    # 756 x^2.
    for loader in ("reference", "tf2"):
        value, first, _ = answers(loader, tmp_path / "1")
        assert (value, first) == ([36.0, 288.0], [756.0, 3024.0])
