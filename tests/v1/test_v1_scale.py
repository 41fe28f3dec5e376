"""Loading TF 1.x models of many things of one kind: the number of steps grows as the model does,
never as its square.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from v1_tensorflow import tensorflow_1  # noqa: F401

import reference_impl

pytestmark = pytest.mark.tensorflow

SIZES = 16, 32, 64


def tables(tf, x, count):
    """Each has an initialiser of its own, and a dozen nodes that use what it says."""
    results = []
    for number in range(count):
        table = tf.raw_ops.HashTableV2(
            key_dtype=tf.string, value_dtype=tf.float32, shared_name=f"table{number}"
        )
        fill = tf.raw_ops.LookupTableImportV2(table_handle=table, keys=["a"], values=[1.0])
        tf.compat.v1.add_to_collection("table_initializer", fill)
        found = tf.raw_ops.LookupTableFindV2(
            table_handle=table, keys=["a", "b", "c"], default_value=0.0
        )
        for _ in range(12):
            found = tf.raw_ops.AddV2(x=found, y=x)
        results.append(found)
    return {"y": tf.add_n(results)}


def signatures(tf, x, count):
    return {f"y{number}": tf.raw_ops.AddV2(x=x, y=float(number)) for number in range(count)}


def conditions_of_one_chain(tf, x, count):
    """A branch for each of a chain of Identities, which are all one predicate."""
    predicate, results = x[0] > 0.0, []
    for _ in range(count):
        predicate = tf.identity(predicate)
        switch = tf.raw_ops.Switch(data=x, pred=predicate)
        results.append(
            tf.raw_ops.Merge(
                inputs=[tf.raw_ops.Neg(x=switch.output_false), switch.output_true]
            ).output
        )
    return {"y": tf.add_n(results)}


def loops(tf, x, count):
    less = tf.compat.v1.less
    made = [
        tf.compat.v1.while_loop(lambda i, y: less(i, 3), lambda i, y: (i + 1, y * 2.0), (0, x))
        for _ in range(count)
    ]
    return {"y": tf.add_n([y for _, y in made])}


def arrays(tf, x, count):
    results = []
    for _ in range(count):
        array = tf.TensorArray(tf.float32, 2, element_shape=[3]).write(0, x).write(1, x)
        results.append(array.read(0))
    return {"y": tf.add_n(results)}


def conditions(tf, x, count):
    made = [
        tf.compat.v1.cond(x[0] > float(number), lambda: x * 2.0, lambda: -x)
        for number in range(count)
    ]
    return {"y": tf.add_n(made), "dy": tf.compat.v1.gradients(made, x)[0]}


def variables(tf, x, count):
    made = [
        tf.compat.v1.get_variable(f"v{number}", initializer=float(number), use_resource=False)
        for number in range(count)
    ]
    return {"y": tf.add_n([variable * x for variable in made])}


def chained_tables(tf, x, count):
    """Each table is filled with what the one before says."""
    value = tf.constant([1.0])
    for number in range(count):
        table = tf.raw_ops.HashTableV2(
            key_dtype=tf.string, value_dtype=tf.float32, shared_name=f"chained{number}"
        )
        fill = tf.raw_ops.LookupTableImportV2(table_handle=table, keys=["a"], values=value)
        tf.compat.v1.add_to_collection("table_initializer", fill)
        with tf.control_dependencies([fill]):
            value = tf.raw_ops.LookupTableFindV2(table_handle=table, keys=["a"], default_value=0.0)
    return {"y": value + x, "x": x + 1.0}


def chained_variables(tf, x, count):
    """The main op gives each variable the value of the one before, in any order."""
    made = [
        tf.compat.v1.get_variable(f"v{number}", initializer=float(number), use_resource=True)
        for number in range(count)
    ]
    copied = [
        variable.assign(before.read_value(), read_value=False)
        for before, variable in zip(made, made[1:])
    ]
    tf.compat.v1.add_to_collection("saved_model_main_op", tf.group(*copied))
    return {"y": made[-1] * x}


def model(tf, folder, kind, count):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [3], "x")
        results = kind(tf, x, count)
        session.run(tf.compat.v1.global_variables_initializer())
        predict = tf.compat.v1.saved_model.predict_signature_def
        definitions = {key: predict({"x": x}, {"y": result}) for key, result in results.items()}
        builder = tf.compat.v1.saved_model.Builder(str(folder / f"m{count}"))
        builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map=definitions)
        builder.save()
    return folder / f"m{count}"


def steps(path, **options) -> int:
    """Return how many lines of `reference_impl` a load executes."""
    chosen = reference_impl.LoadOptions(**options)
    count = 0
    ours = str(Path(reference_impl.__file__).parent)

    def line(frame, event, argument):
        nonlocal count
        count += 1
        return line

    before = sys.gettrace()
    sys.settrace(
        lambda frame, event, argument: line if frame.f_code.co_filename.startswith(ours) else None
    )
    try:
        assert reference_impl.load(path, options=chosen).signatures
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "kind", [tables, signatures, conditions_of_one_chain, loops, arrays, conditions, variables]
)
def test_steps_grow_as_the_model_does(tf, tmp_path, kind):
    steps(model(tf, tmp_path, kind, 3))  # what is imported and cached once
    found = [steps(model(tf, tmp_path, kind, count)) for count in SIZES]
    assert found[2] - found[1] < 1.05 * 2 * (found[1] - found[0]), found


def test_steps_of_a_part_grow_as_the_model_does(tf, tmp_path):
    steps(model(tf, tmp_path, chained_variables, 3), only="signatures.y")
    found = [
        steps(model(tf, tmp_path, chained_variables, count), only="signatures.y") for count in SIZES
    ]
    assert found[2] - found[1] < 1.05 * 2 * (found[1] - found[0]), found


def test_a_part_has_the_whole_chain_that_fills_its_table_and_no_more(tf, tmp_path):
    path = model(tf, tmp_path, chained_tables, 5)
    part = reference_impl.load(path, options=reference_impl.LoadOptions(only="signatures.y"))
    assert (
        part.signatures["y"](tf.zeros([3]))["y"].numpy().tolist() == [1.0, 1.0, 1.0]
        and len(part.resources) == 5
    )
    assert not reference_impl.load(
        path, options=reference_impl.LoadOptions(only="signatures.x")
    ).resources
