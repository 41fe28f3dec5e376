"""The specification: its generated regions are fresh, and its constraints are shown and read."""

import pytest

from docs import spec_pages

PAGE = """# 1 Things

## A thing

### Constraints

- **SM-THING-1** A reader MUST refuse a thing without a name.
- **SM-THING-2** A writer MAY leave
  it out.

### Shown by

- SM-THING-1: fixture `half_plus_two`, attack `snappy_bomb`, case `asset_missing`,
  test `tests/docs/test_spec.py::test_the_specification_holds`

### Read by

- `reference_impl/format/bundle/table.py`
"""


def test_the_specification_holds():
    assert len(spec_pages.pages()) == 13
    assert not spec_pages.faults()


def test_the_generated_regions_are_fresh():
    assert not spec_pages.stale()


def test_a_page_without_faults():
    assert not spec_pages.faults_of_pages({"1.md": PAGE})


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("- SM-THING-1:", "- Others:", "a MUST without an artifact"),
        ("- SM-THING-1:", "- Others:", "an artifact without a constraint: Others: fixture `half"),
        ("`half_plus_two`,", "`half_plus_two`, hostile `nobody`,", "there is no hostile nobody"),
        ("`half_plus_two`", "`half_plus_three`", "there is no fixture half_plus_three"),
        ("`snappy_bomb`", "`snappy_bombs`", "there is no attack snappy_bombs"),
        ("`asset_missing`", "`asset_gone`", "there is no case asset_gone"),
        ("::test_the_spec", "::test_no_spec", "there is no test tests/docs/test_spec.py"),
        ("bundle/table.py", "bundle/tables.py", "bundle/tables.py does not exist"),
        ("- `reference_impl/format/bundle/table.py`", "", "no module or test reads it"),
        ("**SM-THING-2**", "**SM-THING-1**", "two constraints have the id SM-THING-1"),
        ("**SM-THING-2**", "**SM-thing-02**", "SM-thing-02: the id is malformed"),
        ("A writer MAY", "Everybody MAY", "a constraint names one role once"),
        ("# 1 Things", "# 1 Things, see SM-THING-9", "the id SM-THING-9 has no constraint"),
    ],
)
def test_a_fault_is_found(old, new, fault):
    found = spec_pages.faults_of_pages({"1.md": PAGE.replace(old, new, 1)})
    assert any(fault in line for line in found), found


def test_an_id_that_code_cites_must_exist(tmp_path, monkeypatch):
    (tmp_path / "reference_impl").mkdir()
    (tmp_path / "reference_impl/a.py").write_text("# SM-THING-1, SM-THING-7\n")
    monkeypatch.setattr(spec_pages, "ROOT", tmp_path)
    found = spec_pages.faults_of_citations({"SM-THING-1"})
    (line,) = found
    assert line.startswith("reference_impl/a.py: ") and "SM-THING-7" in line


def test_an_artifact_has_a_constraint():
    shown = spec_pages.artifacts_of({"1.md": PAGE})
    assert shown["attack", "snappy_bomb"] == {"SM-THING-1"}
    found = spec_pages.faults_of_artifacts(shown)
    assert any(line.startswith("fixtures_v1/pbtxt ") for line in found)
    assert not any(line.startswith("fixtures_v1/half_plus_two ") for line in found)
    missing = "hostile flipped_value breaks SM-BUNDLE-7, and the pages name no constraint"
    assert missing in found


def test_a_hostile_file_is_listed_under_the_constraint_that_it_breaks():
    found = spec_pages.faults_of_artifacts({("hostile", "flipped_value"): {"SM-BUNDLE-6"}})
    assert any(
        {"flipped_value", "SM-BUNDLE-7,", "SM-BUNDLE-6"} <= set(line.split()) for line in found
    )


def test_regions_are_made_of_the_schema_and_of_fixtures():
    text = (
        "<!-- fields: RegisteredSaver -->\n<!-- end -->\n"
        "<!-- bytes: half_plus_two/model/variables/variables.data-00000-of-00001 0 8 -->\n"
        "<!-- end -->\n"
    )
    made = spec_pages.filled(text)
    assert "| 1 | `name` | string |" in made
    assert "00000000  00 00 00 3f 00 00 00 40" in made
    assert spec_pages.filled(made) == made
