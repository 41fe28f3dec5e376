"""Where all this stands in the file, and the page about it."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest
from extensions import extension_of, rewrite

import reference_impl
from reference_impl import errors
from reference_impl.format import extension, schema
from reference_impl.format.container import layout
from reference_impl.graph.restore_plan import restore_plan
from savedmodel_tools.canonical.form import canonical

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parents[2]


def test_extension_is_untrusted(tf, net_export, tmp_path):
    reference_impl.save(reference_impl.load(net_export), tmp_path / "m")
    good = extension_of(tmp_path / "m")

    def put(change):
        changed = schema.Extension()
        changed.CopyFrom(good)
        change(changed)
        data = base64.b64encode(schema.serialize(changed))
        rewrite(
            tmp_path / "m",
            lambda graph: graph.collection_def[extension.KEY].bytes_list.value.__setitem__(0, data),
        )

    first = lambda e: e.initial_values[0]  # noqa: E731
    for change, text in [
        (lambda e: setattr(first(e), "node_id", 10**6), "refers to node 1000000"),
        (lambda e: setattr(first(e), "node_id", -1), "refers to node -1"),
        (lambda e: setattr(first(e), "node_id", 0), "not a variable"),
        (lambda e: setattr(first(e), "function", "nobody"), "no function 'nobody'"),
        (lambda e: first(e).inputs.add(argument=3), "are described"),
        (
            lambda e: e.optimizers.add(node_id=0).slots.add(variable=0, name="m", value=0),
            "is not a variable",
        ),
        (lambda e: e.optimizers.add(node_id=0).shared.append(99999), "refers to node 99999"),
    ]:
        put(change)
        for read in (reference_impl.load, canonical):
            with pytest.raises(errors.MalformedError, match=text):
                read(tmp_path / "m")
        assert any(text in problem for problem in reference_impl.inspect(tmp_path / "m").problems)
    rewrite(
        tmp_path / "m",
        lambda graph: graph.collection_def[extension.KEY].bytes_list.value.__setitem__(0, b"\xff*"),
    )
    with pytest.raises(errors.MalformedError, match="base64"):
        reference_impl.load(tmp_path / "m")
    put(lambda e: setattr(e, "min_consumer", 2))
    with pytest.warns(UserWarning, match="version 2"):
        loaded = reference_impl.load(tmp_path / "m")
    assert loaded.net.do(tf.constant(1.0)).numpy().tolist() == [2.0, 3.0, 4.0, 5.0, 6.0]
    put(lambda e: setattr(first(e).inputs[0], "argument", 40))
    with pytest.raises(errors.SavedModelError):
        type(reference_impl.load(tmp_path / "m"))().net.do(tf.constant(1.0))


def test_extension_is_only_there_when_it_says_something(tf, net_export, tmp_path):
    root = tf.Module()
    root.v = tf.Variable(1.0)
    reference_impl.save(root, tmp_path / "m")
    assert (
        extension.KEY not in layout.read(tmp_path / "m").saved_model.meta_graphs[0].collection_def
    )
    details = [node.details for node in reference_impl.inspect(net_export).meta_graphs[0].objects]
    assert sum("initial_value" in item for item in details) == 3


def test_session_readers_do_not_notice(tf, net_export):
    v1 = tf.compat.v1
    plan = restore_plan(layout.read(net_export).saved_model.meta_graphs[0])
    (fetch,) = [item.fetch for item in plan if item.key.endswith("/var/.ATTRIBUTES/VARIABLE_VALUE")]
    for scope in (None, "imported"):
        with v1.Session(graph=tf.Graph()) as session:
            v1.saved_model.loader.load(session, ["serve"], str(net_export), import_scope=scope)
            name = "/".join(filter(None, (scope, fetch)))
            assert session.run(name).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def blocks():
    """(first line, text) of the Python blocks of the page."""
    parts = (ROOT / "docs/format/beyond_tensorflow.md").read_text().split("```python\n")
    return [part.split("```")[0] for part in parts[1:]]


def test_examples_of_the_documentation_run(tf, tmp_path):
    program = "\n".join(blocks())
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", program],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_examples_exist():
    assert len(blocks()) >= 4
