"""Version skew provoked now: in the TensorFlow installed here, and in older ones where they are
installed.
"""

import pytest
import skew_models
from model_edits import edited, fixture

from compat_matrix.hosts.host import Host
from compat_matrix.runtimes.places import NotInstalled
from compat_matrix.runtimes.resolve import resolve
from compat_matrix.runtimes.worker import ReplyError
from reference_impl.errors import SavedModelError
from savedmodel_tools.skew.history import history
from savedmodel_tools.skew.naming import name
from savedmodel_tools.skew.needs import SESSION, needs
from savedmodel_tools.skew.texts import complaints

pytestmark = pytest.mark.tensorflow

LIMIT = 120.0
MODELS = (
    "nobody_knows",
    "newer_op_inner",
    "newer_type",
    "newer_dtype",
    "min_consumer",
    "deprecated",
    "contrib",
)


@pytest.fixture(scope="module", params=["local", "tf1.15", "tf2.4"])
def runtime(request):
    try:
        found = resolve(request.param)
    except NotInstalled as error:
        pytest.skip(f"{request.param}: {error}")
    if history().index(found.tensorflow_version) is None:
        pytest.skip(f"the op history does not have TensorFlow {found.tensorflow_version}")
    return found


@pytest.fixture(scope="module")
def worker(runtime, tmp_path_factory):
    with Host(tmp_path_factory.mktemp("host"), {runtime.name: runtime}) as host:
        yield host.worker(runtime.name, "c_api_worker")


@pytest.mark.parametrize("model", MODELS)
def test_what_fails_is_named_and_what_is_predicted_happens(model, runtime, worker, tmp_path):
    folder = skew_models.made(model, tmp_path)
    version = runtime.tensorflow_version
    (graph,) = needs(folder)
    session = next(part for part in graph.parts if part.name == SESSION)
    lacks = session.lacks[history().index(version)]
    try:
        worker.request("load", LIMIT, dir=str(folder), tags=["serve"], timeout=LIMIT)
    except ReplyError as error:
        skew = name(error.error_class, str(error), version, folder)
        assert skew is not None and lacks, str(error)
        assert skew.kind in {lack.kind for lack in lacks} | {
            "renamed_contrib_op",
            "removed_op",
            "missing_kernel",
        }  # some look for a kernel first
        assert skew.op in {lack.op for lack in lacks} | {
            "Placeholder"
        }  # the first node with the dtype
        return
    assert not lacks


def test_a_fixture_of_contrib_says_what_to_do(runtime, worker):
    folder = fixture("contrib_op")
    with pytest.raises(ReplyError) as caught:
        worker.request("load", LIMIT, dir=str(folder), tags=["serve"], timeout=LIMIT)
    skew = name(caught.value.error_class, str(caught.value), runtime.tensorflow_version, folder)
    old = runtime.tensorflow_version < "2"
    assert skew.kind == ("unknown_op" if old else "renamed_contrib_op")
    assert ("import tensorflow.contrib.resampler" if old else "Addons>Resampler") in skew.advice


def test_what_the_reference_says_of_a_missing_attribute_is_read_as_tensorflows_words_are(tmp_path):
    import tensorflow as tf

    import reference_impl

    root = tf.Module()
    root.f = tf.function(lambda x: x + 2.0, input_signature=[tf.TensorSpec([], tf.float32)])
    reference_impl.save(root, tmp_path / "whole")

    def without_value(message):
        for function in message.meta_graphs[0].graph_def.library.function:
            for node in function.node_def:
                if node.op == "Const":
                    node.attr.pop("value")

    model = edited(tmp_path / "whole", tmp_path / "damaged", without_value)
    with pytest.raises(SavedModelError) as told:
        reference_impl.load(model).f(tf.constant(1.0))
    found = next(iter(complaints(type(told.value).__name__, str(told.value))))
    assert (found.kind, found.op, found.attr) == ("missing_attr", "Const", "value")
