"""Which constraints a reader keeps."""

import copy

import pytest

from reference_impl.errors import SavedModelError
from savedmodel_kit import constraints
from savedmodel_kit.consumer import Answer
from savedmodel_kit.meaning import meaning_of
from savedmodel_kit.score import NOT_REFUSED, difference, levels_of, score

RULES = constraints.read()
LEVELS = ("L0", "L1", "L2")


def answer(folder):
    try:
        return Answer(meaning=meaning_of(folder))
    except SavedModelError as error:
        return Answer(refused=str(error))


@pytest.fixture(scope="module")
def answers(kit):
    """Those of our reader."""
    return {name: answer(folder) for name, folder in kit.models().items()}


def changed(answers, name, change):
    """The answers with one meaning changed in place."""
    meaning = copy.deepcopy(answers[name].meaning)
    change(meaning)
    return {**answers, name: Answer(meaning=meaning)}


def test_our_reader_keeps_all_that_the_kit_shows(kit, answers):
    made = score(kit, answers, RULES, LEVELS)
    assert made.faults() == []
    assert made.broken == []
    assert {"SM-BUNDLE-7", "SM-DIR-4", "SM-OBJ-2", "SM-TABLE-4"} <= set(made.kept)
    assert levels_of(answers) == LEVELS


def test_a_reader_that_skips_slices(kit, answers):
    """As readers do that decode keys as text."""
    name = "artifacts/fixtures_v1/partitioned_variables"
    cut = changed(answers, name, lambda meaning: meaning["checkpoint"]["tensors"].pop())
    made = score(kit, cut, RULES, LEVELS)
    (fault,) = made.faults()
    assert (fault.name, fault.level) == (name, "L1")
    assert fault.fault == "tensors.rows: missing"
    assert set(made.broken) == {"SM-TABLE-4", "SM-BUNDLE-16", "SM-BUNDLE-20"}


def test_a_reader_that_skips_checksums(kit, answers):
    name = "hostile/flipped_value"
    sound = answers["artifacts/fixtures_v1/half_plus_two"]
    made = score(kit, {**answers, name: sound}, RULES, LEVELS)
    assert [(one.name, one.fault) for one in made.faults()] == [(name, NOT_REFUSED)]
    assert made.broken == ["SM-BUNDLE-7"]


def test_a_crash_on_a_hostile_file_is_not_a_refusal(kit, answers):
    name = "hostile/key_bomb"
    made = score(kit, {**answers, name: Answer(failed="exit -9: ")}, RULES, ("L1",))
    assert made.broken == ["SM-BLOCK-5"]


def test_a_level_may_refuse_what_a_lower_level_met(kit, answers):
    name = "hostile/variable_of_no_dtype"
    refused = Answer(meaning={"checkpoint": {"refused": "damaged"}, "objects": []})
    assert score(kit, {**answers, name: refused}, RULES, ("L2",)).broken == []


def test_a_reader_of_checkpoints_alone(kit, answers):
    only = {
        name: Answer(meaning={"checkpoint": one.meaning["checkpoint"]}) if one.meaning else one
        for name, one in answers.items()
    }
    assert levels_of(only) == ("L1",)
    made = score(kit, only, RULES, ("L1",))
    assert made.faults() == []
    (sound, hostile) = made.counts("L1")
    assert sound[0] == sound[1] >= 81
    assert hostile[0] == hostile[1] >= 50
    assert "SM-DIR-7" not in made.kept
    assert "SM-TABLE-8" in made.not_shown
    wider = score(kit, only, RULES, ("L0",))
    assert any("'container'" in one.fault for one in wider.faults())


def test_a_form_that_our_reader_refuses_may_be_read(kit, answers):
    name = "artifacts/fixtures_v1/v1_checkpoint"
    read = changed(answers, name, lambda meaning: meaning.update(checkpoint={"tensors": []}))
    assert score(kit, read, RULES, LEVELS).broken == []


def test_a_model_without_an_answer(kit, answers):
    few = {name: one for name, one in answers.items() if name.startswith("artifacts")}
    made = score(kit, few, RULES, ("L2",))
    assert {one.fault for one in made.faults()} == {"no answer"}


def test_a_refused_artifact(kit, answers):
    name = "artifacts/fixtures_v1/half_plus_two"
    made = score(kit, {**answers, name: Answer(refused="I do not like it")}, RULES, ("L0",))
    assert [one.fault.partition(": ")[0] for one in made.faults()] == ["refused"]
    assert "SM-PRINT-1" in made.broken


@pytest.mark.parametrize(
    ("stated", "given", "text"),
    [
        ({"a": [1, 2]}, {"a": [1, 2]}, None),
        ({"a": [1, 2]}, {"a": [1, 3]}, "a[1]: stated 2, given 3"),
        ({"a": [1, 2]}, {"a": [1]}, "a: stated [1, 2], given [1]"),
        ({"a": 1}, {}, "a: missing"),
        ({}, {"a/b": 1}, "a/b: is not in the model"),
        ({"a": 1}, {"a": True}, "a: stated 1, given true"),
        ({"a": {"b c": 1}}, {"a": {"b c": None}}, "a['b c']: stated 1, given null"),
        ({"t": [{"key": "x"}, {"key": "y"}]}, {"t": [{"key": "y"}, {"key": "x"}]}, None),
        ([{"key": "x", "n": 1}], [{"key": "x", "n": 2}], "x.n: stated 1, given 2"),
        ([{"key": "x"}], [], ': stated [{"key": "x"}], given []'),
        ({"a": 1}, None, ': stated {"a": 1}, given null'),
    ],
)
def test_differences(stated, given, text):
    assert difference(stated, given) == text
