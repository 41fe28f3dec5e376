"""The canonical form of what else a MetaGraph says, and of weights."""

import model_edits as edits
import numpy as np
from made_graphs import function

from reference_impl.format import schema
from reference_impl.format.bundle.writer import BundleWriter
from savedmodel_tools.canonical.form import canonical


def test_strings_with_their_lengths(tmp_path):
    found = set()
    for number, value in enumerate(([b"ab", b"c"], [b"a", b"bc"], [b"abc", b""], [b"", b"abc"])):
        folder = tmp_path / str(number)
        edits.write(edits.new_model()[0], folder)
        with BundleWriter(folder / "variables" / "variables") as writer:
            writer.add("key", np.array(value, object))
        found.add(canonical(folder).hash)
    assert len(found) == 4


def test_defaults_of_a_signature(hashes):
    def build(*values):
        def made(graph):
            signature = graph.signature_def["s"]
            signature.inputs["x"].dtype = schema.DT_FLOAT
            for value in values:
                signature.defaults["x"].CopyFrom(
                    schema.TensorProto(dtype=schema.DT_FLOAT, float_val=[value])
                )

        return made

    assert len(hashes(build(), build(1), build(2))) == 3


def test_names_of_contexts(hashes):
    """They name no node; only their numbers do not count."""

    def build(name):
        def made(graph):
            data = schema.CondContextDef(context_name=name, branch=1).SerializeToString()
            graph.collection_def["cond_context"].bytes_list.value.append(data)

        return made

    assert len(hashes(build("cond/cond_text"), build("cond_3/cond_text"))) == 1
    assert len(hashes(build("cond/cond_text"), build("other/cond_text"))) == 2


def test_a_copy_of_a_function_with_a_table(hashes):
    def build(*names):
        def made(graph):
            for name in names:
                body = function(graph, name)
                body.node_def.add(name="table", op="HashTableV2").attr["shared_name"].s = b"table_3"

        return made

    assert len(hashes(build("f"), build("f", "g"))) == 1


def test_consumers(hashes):
    def build(lowest, *bad):
        def made(graph):
            graph.graph_def.versions.min_consumer = lowest
            graph.graph_def.versions.bad_consumers.extend(bad)

        return made

    assert len(hashes(build(0), build(1), build(0, 5), build(0, 6))) == 4
    assert len(hashes(build(0, 5, 6), build(0, 6, 5))) == 1
