"""The ids of the rules of `verify`, which scanners and lists of exceptions hold on to."""

from pathlib import Path

from savedmodel_tools.verify.rules import all_rules

KNOWN = dict(
    line.split()
    for line in Path(__file__).with_name("rule_ids.txt").read_text(encoding="utf-8").splitlines()
)


def test_no_id_goes():
    """A name may become better: then it changes in the list too."""
    assert {rule.id: rule.name for rule in all_rules() if rule.id in KNOWN} == KNOWN


def test_new_ids_are_in_the_list():
    assert {rule.id for rule in all_rules()} == set(KNOWN)
