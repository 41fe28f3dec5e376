"""What the op history predicts of an unknown op is what happens, wherever the op stands and whoever
reads the model.
"""

import json
import shutil

import numpy as np
import pytest

from compat_matrix.cells.consumers import CONSUMERS
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell
from compat_matrix.cells.results import Result
from compat_matrix.checks import CHECKS, run_cell
from compat_matrix.engine.predict import SAVES, Predictor
from compat_matrix.runtimes.runtime import local_runtime
from compat_matrix.verdict import prediction
from reference_impl.format import schema
from reference_impl.format.container import layout
from savedmodel_common import tensors
from savedmodel_common.provenance import hash_files
from savedmodel_tools.compat import EVERY_LOADER
from savedmodel_tools.skew.needs import OBJECTS, SESSION, needs

pytestmark = pytest.mark.tensorflow

READERS = ("tf2", "v1_session", "c_api", "reference", "reference_to_tf2", "tf2_to_reference")
ASKED = ("load", "values", "reexport")
ANSWERS = {
    "plain": ({"x": np.float32([1, 2])}, {"y": np.float32([1, 2])}),
    "look": ({"x": np.array([b"a", b"c"], object)}, {"y": np.int64([1, -1])}),
    "keep": ({"x": np.array([b"a", b"c"], object)}, {"y": np.int64([5, -1])}),
}
# Of the model with an object graph: a part of the function's name, the op that becomes unknown, and
# the requests.
IN_FUNCTIONS = {
    "the function that creates a table": ("creator", "HashTableV2", ("plain", "look")),
    "the function that fills a table": ("initializer", "LookupTableImportV2", ("plain", "look")),
    "the same, and nobody asks the table": ("initializer", "LookupTableImportV2", ("plain",)),
    "the function that restores a table": ("restore_fn", "LookupTableImportV2", ("plain", "keep")),
    "the same, and another table is asked": ("restore_fn", "LookupTableImportV2", ("look",)),
    "a function that no signature calls": ("", "Softsign", ("plain",)),
    "a branch that is not taken": ("", "Softplus", ("plain",)),
    "the function of a signature": ("", "Relu", ("plain",)),
    "the function of another signature": ("", "LookupTableFindV2", ("plain",)),
}
# Of the model of TF 1.x: an op of the main graph.
IN_THE_MAIN_GRAPH = {
    "a node that nothing reaches": ("Softsign", ("plain", "look")),
    "a signature": ("Relu", ("plain",)),
    "another signature": ("LookupTableFindV2", ("plain",)),
    "the init op": ("LookupTableImportV2", ("plain", "look")),
    "the same, and nobody asks the table": ("LookupTableImportV2", ("plain",)),
    "the restore op": ("RestoreV2", ("plain",)),
}


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def objects(tf, tmp_path_factory):
    """A model with an object graph, a static table, and a mutable one whose content is in the
    checkpoint.
    """
    root = tf.Module()
    root.static = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([1], tf.int64)), -1
    )
    root.mutable = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    root.mutable.insert(["a"], tf.constant([5], tf.int64))
    root.one = tf.Variable(1.0)
    floats, words = (
        tf.TensorSpec([None], tf.float32, name="x"),
        tf.TensorSpec([None], tf.string, name="x"),
    )

    def plain(x):
        return {
            "y": tf.cond(
                root.one > 0.0, lambda: tf.nn.relu(x) * root.one, lambda: tf.math.softplus(x)
            )
        }

    root.plain = tf.function(plain, input_signature=[floats])
    root.look = tf.function(lambda x: {"y": root.static.lookup(x)}, input_signature=[words])
    root.keep = tf.function(lambda x: {"y": root.mutable.lookup(x)}, input_signature=[words])
    root.unused = tf.function(tf.math.softsign, input_signature=[floats])
    folder = tmp_path_factory.mktemp("objects") / "model"
    tf.saved_model.save(
        root, str(folder), signatures={name: getattr(root, name) for name in ANSWERS}
    )
    return folder


@pytest.fixture(scope="module")
def main_graph(tf, tmp_path_factory):
    """A model as of TF 1.x, with a table that its init op fills."""
    v1 = tf.compat.v1
    folder = tmp_path_factory.mktemp("main_graph") / "model"
    with v1.Graph().as_default(), v1.Session() as session:
        x, words = (
            v1.placeholder(tf.float32, [None], name="x"),
            v1.placeholder(tf.string, [None], name="words"),
        )
        y = tf.nn.relu(x) * v1.get_variable("one", initializer=1.0)
        tf.math.softsign(x)
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([1], tf.int64)), -1
        )
        found = table.lookup(words)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        infos = v1.saved_model.build_tensor_info
        signatures = {
            name: v1.saved_model.build_signature_def(
                {"x": infos(given)}, {"y": infos(result)}, "tensorflow/serving/predict"
            )
            for name, given, result in (("plain", x, y), ("look", words, found))
        }
        builder = v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(
            session, ["serve"], signatures, main_op=v1.tables_initializer()
        )
        builder.save()
    return folder


def artifact(model, folder, nodes_of, op, asked):
    """An artifact of a copy of a model in which the op of some nodes is unknown."""
    shutil.copytree(model, folder / "model")
    message = layout.read(folder / "model").saved_model
    victims = [node for node in nodes_of(message.meta_graphs[0].graph_def) if node.op == op]
    assert victims
    for node in victims:
        node.op = "NobodyKnowsThisOp"
    (folder / "model" / "saved_model.pb").write_bytes(schema.serialize(message))
    (folder / "io").mkdir()
    requests = []
    for key in asked:
        for name, arrays in zip(("in", "out"), ANSWERS[key]):
            found = {argument: tensors.from_numpy(array) for argument, array in arrays.items()}
            tensors.save(folder / "io" / f"{key}.{name}.npz", found)
        request = {"id": key, "kind": "signature", "tags": ["serve"], "signature": key}
        requests.append({**request, "inputs": f"{key}.in.npz", "outputs": f"{key}.out.npz"})
    (folder / "io" / "io.json").write_text(
        json.dumps({"schema": 1, "stateful": False, "requests": requests})
    )
    (folder / "provenance.json").write_text(json.dumps({"schema": 1, "files": hash_files(folder)}))
    return folder


def asked_of(host, folder):
    """(cell, prediction, result) of every reader and check."""
    version = str(local_runtime().tensorflow_version)
    predictor = Predictor(host.out, [version])
    places = {"runtime": "local", "producer_runtime": "local", "artifact": str(folder)}
    for reader in READERS:
        for check in ASKED:
            consumer = CONSUMERS[reader]
            if CHECKS[check].among(consumer.checks) and not CHECKS[check].not_applicable(
                consumer.capabilities, ["signature"]
            ):
                names = {
                    "case": "planted",
                    "producer": "fixture",
                    "producer_version": version,
                    "consumer_version": version,
                }
                cell = Cell(**names, consumer=reader, check=check, **places)
                yield (
                    cell,
                    predictor.of(cell),
                    Result.observed("", cell.id, run_cell(cell, host, host.out)),
                )


def as_predicted(host, folder):
    wrong, outcomes = [], {}
    for cell, foretold, found in asked_of(host, folder):
        outcomes[cell.consumer, cell.check] = found.outcome
        if not prediction.holds(foretold, found):
            wrong.append(
                f"{cell.consumer}, {cell.check}: predicted {foretold}; {found.outcome}"
                f" {found.message}"
            )
    assert not wrong, "\n".join(wrong)
    assert len(outcomes) == 13
    return outcomes


@pytest.mark.parametrize("place", IN_FUNCTIONS)
def test_an_unknown_op_in_a_function(objects, warm_host, tmp_path, place):
    word, op, asked = IN_FUNCTIONS[place]

    def nodes(graph):
        return [
            node
            for item in graph.library.function
            if word in item.signature.name
            for node in item.node_def
        ]

    outcomes = as_predicted(warm_host, artifact(objects, tmp_path / "artifact", nodes, op, asked))
    assert (
        outcomes["reference", "load"] is Outcome.PASS
        and outcomes["tf2", "load"] is Outcome.LOAD_ERROR
    )


@pytest.mark.parametrize("place", IN_THE_MAIN_GRAPH)
def test_an_unknown_op_in_a_main_graph(main_graph, warm_host, tmp_path, place):
    op, asked = IN_THE_MAIN_GRAPH[place]
    outcomes = as_predicted(
        warm_host, artifact(main_graph, tmp_path / "artifact", lambda graph: graph.node, op, asked)
    )
    assert outcomes["tf2", "load"] is Outcome.LOAD_ERROR
    assert (outcomes["reference", "load"] is Outcome.PASS) == (place != "the restore op")


def test_an_unknown_op_in_the_main_graph_beside_an_object_graph(objects, warm_host, tmp_path):
    """Sessions import it; tf.saved_model.load and reference_impl.load do not look at it."""

    def nodes(graph):
        return [graph.node.add(name="stray", op="NoOp")]

    folder = artifact(objects, tmp_path / "artifact", nodes, "NoOp", ("plain",))
    outcomes = as_predicted(warm_host, folder)
    assert outcomes["tf2", "values"] is outcomes["reference", "values"] is Outcome.PASS
    assert outcomes["c_api", "load"] is Outcome.LOAD_ERROR
    (graph,) = needs(folder / "model")
    assert {part.name: bool(part.members) for part in graph.parts} == {
        SESSION: False,
        **{f"signature {key}": False for key in ANSWERS},
        OBJECTS: True,
    }


def test_consumers_declare_loaders_that_there_are():
    assert {one.loader for one in CONSUMERS.values()} - {""} == set(EVERY_LOADER)
    assert {one.saver for one in CONSUMERS.values()} - {""} == set(SAVES)
