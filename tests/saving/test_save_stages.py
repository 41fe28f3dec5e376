"""The stages of a save: what each returns cannot be changed, and no object joins an export after it
was frozen.
"""

from __future__ import annotations

import dataclasses

import pytest

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def frozen(tf):
    """The frozen export of a module with a variable and a function that captures a constant, and
    the tree it was made of.
    """
    from reference_impl.saving.collect import collect
    from reference_impl.saving.freeze import freeze
    from reference_impl.saving.reach import reach

    from reference_impl.saving.options import SaveOptions
    from reference_impl.saving.signatures import choose
    from reference_impl.saving.tree import GrowingTree

    root, constant = tf.Module(), tf.constant([3.0])
    root.v = tf.Variable(2.0)
    root.f = tf.function(
        lambda x: x * root.v + constant, input_signature=[tf.TensorSpec([], tf.float32)]
    )
    options = SaveOptions()
    reached = reach(root, options)
    signatures = choose(reached, None)
    tree = GrowingTree(reached, signatures)
    before = len(tree.nodes)
    out = freeze(collect(tree, signatures, options), options)
    assert len(out.tree.nodes) > before  # the constant joined while the export was collected
    return out, tree


def test_no_object_joins_a_frozen_export(tf, frozen):
    export, tree = frozen
    count = len(export.tree.nodes)
    with pytest.raises(
        RuntimeError, match=r"root\.w: no object can join an export after it was frozen"
    ):
        tree.add(tf.Variable(1.0), "root.w")
    assert len(tree.nodes) == len(export.tree.nodes) == count
    assert tree.add(export.tree.root, "root") == 0  # what is there has its number


def test_a_frozen_export_cannot_be_changed(frozen):
    export, _ = frozen
    for value in (
        export,
        export.tree,
        export.tree.nodes[0],
        export.collected,
        export.collected.functions,
        export.tree.reached,
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, dataclasses.fields(value)[0].name, None)
    with pytest.raises(TypeError):
        export.tree.nodes[0].children["w"] = 1
    with pytest.raises(TypeError):
        export.tree.numbers[1] = 2
    assert isinstance(export.tree.nodes, tuple)
