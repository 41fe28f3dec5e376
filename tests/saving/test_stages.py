"""The stages of a save: one list, which the code runs and the trace prints; what a stage makes cannot
be changed, and no later stage adds to it.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from pathlib import Path

import pytest

import reference_impl
from reference_impl import saving
from reference_impl.saving.stages import STAGES

pytestmark = pytest.mark.tensorflow
PAGE = Path(__file__).parents[2] / "docs/format/watching.md"


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def root(tf):
    """A module with a variable, a table and a function that captures a constant."""
    root, constant = tf.Module(), tf.constant([3.0])
    root.v = tf.Variable(2.0)
    root.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)

    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def f(x):
        return tf.cast(root.table.lookup(x), tf.float32) * root.v + constant

    root.f = f
    return root


@pytest.fixture
def made(root, monkeypatch, tmp_path):
    """What each stage of a save of `root` made, by its name."""
    from reference_impl.saving.stages import StageRunner

    found = {}
    run = StageRunner.run

    def recorded(self, make, *values):
        result = run(self, make, *values)
        found[make.__name__] = result
        return result

    monkeypatch.setattr(StageRunner, "run", recorded)
    reference_impl.save(root, tmp_path / "m")
    return {stage.name: found[stage.function] for stage in STAGES}


def test_the_stages_are_one_list(root, tmp_path):
    steps = []
    options = reference_impl.SaveOptions(trace=steps.append)
    reference_impl.save(root, tmp_path / "m", options=options)
    assert [step.stage for step in steps] == [stage.name for stage in STAGES]
    lines = inspect.getdoc(saving).splitlines()
    for stage in STAGES:
        module = importlib.import_module(f"reference_impl.saving.{stage.module}")
        assert callable(getattr(module, stage.function))
        assert f"    {stage.name:<12}{stage.makes}" in lines


def test_the_page_has_the_stages_in_their_order():
    section = PAGE.read_text(encoding="utf-8").partition("## Watching a save")[2]
    rows = re.findall(r"^\| `([a-z]+)` \| (.+) \|$", section.partition("\n## ")[0], re.MULTILINE)
    assert rows == [(stage.name, stage.makes) for stage in STAGES]


def test_a_trace_says_what_came_of_each_stage(root, tmp_path):
    lines = []
    options = reference_impl.SaveOptions(trace=lambda step: lines.append(str(step)))
    reference_impl.save(root, tmp_path / "m", options=options)
    said = {line.split()[0]: " ".join(line.split()[1:]) for line in lines}
    assert said["signatures"] == "serving_default"
    assert said["contents"].startswith("objects: ") and "variables: 1," in said["contents"]
    assert said["files"] == "written"


def test_a_trace_ends_with_the_error_of_a_save(tf, tmp_path):
    root, steps = tf.Module(), []
    root.f = tf.function(lambda x: x)
    with pytest.raises(reference_impl.errors.UntracedFunctionError):
        reference_impl.save(
            root, tmp_path / "m", options=reference_impl.SaveOptions(trace=steps.append)
        )
    assert [step.stage for step in steps] == ["error"]
    assert steps[0].result.startswith("UntracedFunctionError: ")


def test_what_a_stage_made_cannot_be_changed(made):
    contents = made["contents"]
    values = (
        made["walk"],
        next(iter(made["walk"].objects.values())),
        made["tree"],
        made["tree"].nodes[0],
        made["signatures"]["serving_default"],
        made["signatures"]["serving_default"].trace,
        contents,
        contents.tree,
        contents.functions,
        contents.functions.library,
        next(iter(contents.functions.by_number.values())),
        contents.checkpoint,
        contents.saver,
        made["plan"],
        made["plan"].assets,
    )
    for value in values:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, dataclasses.fields(value)[0].name, None)
    for mapping in (
        made["signatures"],
        contents.tree.nodes[0].children,
        contents.tree.numbers,
        contents.functions.library.definitions,
    ):
        with pytest.raises(TypeError):
            mapping[next(iter(mapping))] = None


def test_later_stages_change_no_function_and_no_object(made):
    """The contents have their functions, those of the saver too, before anything is written."""
    library = made["contents"].functions.library
    saver = made["contents"].saver
    assert {saver.save.name, saver.restore.name} <= library.definitions.keys()
    (meta_graph,) = made["messages"].meta_graphs
    assert [function.signature.name for function in meta_graph.graph_def.library.function] == [
        function.signature.name for function in library.sorted()
    ]
    assert len(made["tree"].nodes) < len(made["contents"].tree.nodes)  # the constant joined
    assert [node.path for node in made["tree"].nodes] == [
        node.path for node in made["contents"].tree.nodes[: len(made["tree"].nodes)]
    ]


def test_no_object_joins_a_closed_tree(tf, made):
    from reference_impl.saving.tree import TreeBuilder

    builder = TreeBuilder(made["tree"])
    number = builder.add(tf.Variable(1.0), "root.w")
    assert number == len(made["tree"].nodes)
    assert builder.add(made["tree"].root, "root") == 0  # what is there has its number
    closed = builder.close()
    with pytest.raises(RuntimeError, match=r"root\.x: "):
        builder.add(tf.Variable(1.0), "root.x")
    assert len(closed.nodes) == number + 1
