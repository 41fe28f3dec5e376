"""The changelog keeps the form of Keep a Changelog, and agrees with the version of the package."""

import re
from pathlib import Path

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[2]
SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
# The first release has nothing to be compared with, so it is told by area.
AREAS = (
    "The program", "Exporters", "TF 1.x models", "Keras 2 models", "Models at rest",
    "TensorFlow releases", "Model servers", "The format", "Safety",
)  # fmt: skip
FIRST = "0.1.0"
MOST_ENTRIES = 10  # of an area
RELEASE = re.compile(r"(\d+\.\d+\.\d+) - (\d{4}-\d{2}-\d{2})")


def faults(text):
    """Return what is wrong with a changelog, a line each."""
    found = []
    head, *releases = re.split(r"^## ", text, flags=re.MULTILINE)
    found += [] if head.startswith("# Changelog\n") else ["it does not begin with its title"]
    names = [release.partition("\n")[0] for release in releases]
    dated = [RELEASE.fullmatch(name) for name in names if name != "Unreleased"]
    found += [
        f"heading {name!r}"
        for name in names
        if name != "Unreleased" and not RELEASE.fullmatch(name)
    ]
    found += [] if names[:1] == ["Unreleased"] or dated else ["it has no release"]
    found += ["Unreleased is not the first heading"] if "Unreleased" in names[1:] else []
    versions = [(Version(match[1]), match[2]) for match in dated if match]
    found += (
        []
        if versions == sorted(versions, reverse=True)
        else ["the newest release is not the first"]
    )
    for release in releases:
        found += _faults_of_release(release)
    return found


def _faults_of_release(text):
    name, _, body = text.partition("\n")
    known = AREAS if name.startswith(f"{FIRST} - ") else SECTIONS
    before, *sections = re.split(r"^### ", body, flags=re.MULTILINE)
    titles = [section.partition("\n")[0] for section in sections]
    lines = [line for line in before.splitlines() if line and line != "The first release."]
    yield from (f"{name}: {line!r} is in no section" for line in lines)
    yield from (f"{name}: section {title!r}" for title in titles if title not in known)
    if sorted(titles, key=known.index) != titles if set(titles) <= set(known) else False:
        yield f"{name}: the order of its sections"
    yield from (f"{name}: {title} occurs twice" for title in set(titles) if titles.count(title) > 1)
    entries = []
    for section in sections:
        title, _, listed = section.partition("\n")
        found = [entry.strip() for entry in re.split(r"^- ", listed, flags=re.MULTILINE)]
        yield from [f"{name}: {title}: {found[0]!r} is not an entry"] if found[0] else []
        yield from [f"{name}: {title} is empty"] if not found[1:] else []
        if known is AREAS and len(found) > MOST_ENTRIES + 1:
            yield f"{name}: {title} has more than {MOST_ENTRIES} entries"
        yield from (
            f"{name}: {title}: no full stop: {entry[-40:]!r}"
            for entry in found[1:]
            if not entry.endswith(".")
        )
        entries += found[1:]
    yield from (
        f"{name}: twice: {entry[:40]!r}"
        for entry in sorted(set(entries))
        if entries.count(entry) > 1
    )


def test_the_changelog_has_the_form():
    assert faults((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")) == []


def test_a_released_version_is_the_one_of_the_package():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (version,) = re.findall(
        r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    released = [match[1] for match in re.finditer(rf"^## {RELEASE.pattern}$", text, re.MULTILINE)]
    assert not released or Version(released[0]) <= Version(version)
    assert "\n## Unreleased\n" in text or released[:1] == [version]


GOOD = """\
# Changelog

## Unreleased

### Added

- A.

### Fixed

- B.

## 0.2.0 - 2026-01-02

### Changed

- C,
  D.
"""


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("", "", None),
        ("# Changelog", "# Changes", "it does not begin with its title"),
        ("## Unreleased", "## 0.3.0 (soon)", "heading '0.3.0 (soon)'"),
        ("## Unreleased", "## 0.0.9 - 2026-02-01", "the newest release is not the first"),
        ("### Added", "### New", "Unreleased: section 'New'"),
        ("### Added", "### Security", "Unreleased: the order of its sections"),
        ("### Fixed", "### Added", "Unreleased: Added occurs twice"),
        ("- A.", "", "Unreleased: Added is empty"),
        ("- A.", "A.", "Unreleased: Added: 'A.' is not an entry"),
        ("- A.", "- A", "Unreleased: Added: no full stop: 'A'"),
        ("- B.", "- A.", "Unreleased: twice: 'A.'"),
        (
            "## Unreleased\n",
            "## Unreleased\n\n- A line.\n",
            "Unreleased: '- A line.' is in no section",
        ),
    ],
)
def test_another_form_is_noticed(old, new, fault):
    found = faults(GOOD.replace(old, new, 1))
    assert fault in found if fault else found == []
