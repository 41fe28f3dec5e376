"""Every published attack of the list has a case here, and every such case is of the list."""

import re
from pathlib import Path

from docs import evidence_tables
from property_tests.attacks import published
from property_tests.attacks.attempt import ATTACKS
from savedmodel_common import toml

ROOT = Path(__file__).parents[1]
LIST = toml.read(Path(published.__file__).with_suffix(".toml"))


def test_every_id_has_a_case():
    for name, entry in LIST.items():
        assert entry["about"] and entry["cases"], name
        for case in entry["cases"]:
            assert case in ATTACKS or (ROOT / case).is_file(), case


def test_every_case_is_of_an_id():
    listed = {case for entry in LIST.values() for case in entry["cases"]}
    assert {name for name in ATTACKS if re.match(r"(cve|tfsa|hf)_", name)} == {
        case for case in listed if "/" not in case
    }


def test_ids_are_in_the_names_and_descriptions_of_their_cases():
    listed = [(name, case) for name, entry in LIST.items() for case in entry["cases"]]
    named = [
        (name, case)
        for name, case in listed
        if name.startswith(("CVE", "TFSA")) and case in ATTACKS
    ]
    assert named
    for name, case in named:
        assert case.startswith(name.lower().replace("-", "_")), case
        assert (ATTACKS[case].__doc__ or "").startswith(f"{name}: "), case


def test_the_ids_are_those_of_the_page():
    page = evidence_tables.attacks_page()
    for name, entry in LIST.items():
        assert all(f"`{case}`" in page for case in entry["cases"]), name
