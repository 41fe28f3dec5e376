"""Each hostile file is refused by our reader with the id of the constraint that it breaks."""

import pytest

from reference_impl.errors import SavedModelError
from savedmodel_kit import constraints
from savedmodel_kit.constraints import LEVELS
from savedmodel_kit.hostile import kind, table
from savedmodel_kit.hostile.catalogue import hostile_files
from savedmodel_kit.meaning import meaning_of

FILES = hostile_files()
LARGEST = 200_000  # bytes: the kit stays small
# Rules that every reader keeps by what it refuses, and that no hostile file of the kit shows.
ELSEWHERE = {
    "SM-CONF-1": "fixture dtypes_resource, and every other refusal",
    "SM-TABLE-8": "a reader without Snappy; a block of Snappy is read by others",
    "SM-BUNDLE-22": "fixture v1_checkpoint",
    "SM-META-3": "needs a request for tags",
    "SM-META-4": "needs a request for tags",
    "SM-FN-4": "at the latest when it is called",
    "SM-FN-9": "at the latest when the value is used",
}


def rule_of(folder, level):
    """The id with which our reader refuses a level of a model, or the whole model."""
    try:
        member = meaning_of(folder)[LEVELS[level]]
    except SavedModelError as error:
        assert str(error).endswith(f"{error.rule}]")
        return error.rule
    assert isinstance(member, dict) and "refused" in member, "it was read"
    return member["refused"].rpartition("[")[2].rstrip("]").rpartition(", ")[2]


@pytest.mark.parametrize("name", FILES)
def test_our_reader_refuses_it_with_its_id(name, tmp_path):
    hostile = FILES[name]
    hostile.make(tmp_path / "model")
    assert rule_of(tmp_path / "model", hostile.level) == hostile.rule


@pytest.mark.parametrize("name", FILES)
def test_it_is_small_and_explained(name, tmp_path):
    hostile = FILES[name]
    hostile.make(tmp_path / "model")
    size = sum(path.lstat().st_size for path in tmp_path.rglob("*") if not path.is_dir())
    assert size < LARGEST
    assert hostile.summary.endswith(".")
    assert constraints.read()[hostile.rule].role == "reader"


def test_every_rule_that_says_refuse_has_a_file():
    stated = {
        one.id
        for one in constraints.read().values()
        if one.role == "reader" and "MUST refuse" in one.text
    }
    assert stated - {hostile.rule for hostile in FILES.values()} == set(ELSEWHERE)


def test_the_base_of_the_tables_is_sound(tmp_path):
    """The tables are refused for what is changed in them, not for how they are made."""
    kind.copied("half_plus_two", tmp_path / "model")
    before = meaning_of(tmp_path / "model")
    (tmp_path / "model" / f"{kind.PREFIX}.index").write_bytes(table.sound())
    assert meaning_of(tmp_path / "model") == before
