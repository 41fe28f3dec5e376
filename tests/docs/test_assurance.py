"""The assurance case: each claim names tests, and each of them exists."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/evidence/assurance.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def claims():
    """The rows of the table of claims."""
    section = PAGE.partition("## Claims")[2].partition("\n## ")[0]
    return [
        line
        for line in section.splitlines()
        if line.startswith("| ") and not line.startswith(("| claim", "| ---"))
    ]


def test_every_claim_names_a_test():
    assert len(claims()) > 10
    assert [line for line in claims() if not NAMED.search(line)] == []


def test_every_named_test_exists():
    named = NAMED.findall(PAGE)
    assert named
    for file, name in named:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (
            f"{file}::{name}"
        )


def test_every_named_attack_exists():
    from property_tests.attacks.attempt import ATTACKS

    named = set(re.findall(r"`(hf_\w+)`", PAGE))
    assert named and named <= set(ATTACKS)
