"""Equal content hash if and only if equal meaning."""

from __future__ import annotations

import random
import shutil

import model_edits
import neutral_edits
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from property_tests import implementations, world
from property_tests.implementations import BOTH
from property_tests.profiles import budget
from property_tests.strategies.edits import edits
from property_tests.strategies.models import models
from reference_impl.format.container import layout
from savedmodel_tools.canonical.form import canonical
from savedmodel_tools.diff import diff

pytestmark = pytest.mark.tensorflow

NEUTRAL = [
    edit for edit in neutral_edits.NEUTRAL if edit.__name__ != "leave_saver"
]  # TF 1.x leaves those


@budget(20)
@given(
    models(),
    st.sampled_from(BOTH),
    st.lists(edits, min_size=3, max_size=6, unique=True),
    st.randoms(use_true_random=False),
)
def test_any_single_change_of_what_a_model_means_changes_its_hash(tf, model, writer, changes, rng):
    with world.folder() as folder:
        built = world.build(model.script(), folder)
        source = implementations.save(writer, built.root, folder / "model", built.signatures)
        before = canonical(source)
        copies = [folder / str(number) for number, _ in enumerate(changes)]
        done = [
            check_change(source, copy, before, edit, rng) for copy, edit in zip(copies, changes)
        ]
        assume(any(done))
        changed = [copy for copy, what in zip(copies, done) if what is not None]
        assert all(canonical(copy).hash != before.hash for copy in changed)


def check_change(source, target, before, edit, rng):
    shutil.copytree(source, target)
    what = edit(target, lambda items: items[rng.randrange(len(items))])
    if what is not None:
        event(edit.__name__)
        after = canonical(target)
        assert after.hash != before.hash, what
        assert diff(source, target).verdict == "different", what
    return what


@budget(20)
@given(
    models(),
    st.sampled_from(BOTH),
    st.lists(st.sampled_from(NEUTRAL), min_size=1, max_size=6, unique=True),
    st.integers(0, 2**32),
)
def test_no_renaming_or_renumbering_changes_the_hash(tf, model, writer, changes, seed):
    with world.folder() as folder:
        built = world.build(model.script(), folder)
        source = implementations.save(writer, built.root, folder / "model", built.signatures)
        before, rng = canonical(source), random.Random(seed)
        shutil.copytree(source, folder / "changed")
        message = layout.read(source).saved_model
        for edit in changes:
            edit(message.meta_graphs[0], rng)
        model_edits.write(message, folder / "changed")
        after = canonical(folder / "changed")
        assert [
            str(change) for change in diff(source, folder / "changed").changes if change.counts
        ] == []
        assert before.hash == after.hash


@budget(15)
@given(models(), st.sampled_from(BOTH))
def test_two_exports_of_one_program_have_one_hash(tf, model, writer):
    """The same program run twice, the second time with other things done in between."""
    with world.folder() as folder:
        hashes = []
        for name in ("one", "two"):
            built = world.build(model.script(), folder / name)
            made = implementations.save(
                writer, built.root, folder / name / "model", built.signatures
            )
            hashes.append(canonical(made).hash)
        assert hashes[0] == hashes[1]


# of a script and chance: what fails becomes a test in
# tests/savedmodel_tools/test_canonical_changes.py
CHECKS = {}
