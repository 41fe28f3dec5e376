"""The writer of JUnit XML for CI systems.

Pure functions.

The dialect is the common one: ``testsuites/testsuite/testcase`` with ``failure``, ``error`` or
``skipped``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from reference_impl.errors import printable

FAILURE, ERROR, SKIPPED = "failure", "error", "skipped"
MAX_MESSAGE, MAX_TEXT = 300, 4000  # characters
Record = Mapping[str, Any]


@dataclass(frozen=True)
class TestCase:
    """One test case.

    ``state``: failure, error, skipped, or None for one that passed; ``message`` and ``text`` say
    why.
    """

    group: str
    name: str
    seconds: float = 0.0
    state: str | None = None
    message: str = ""
    text: str = ""


def render(
    suite: str, cases: Iterable[TestCase], properties: Mapping[str, str] | None = None
) -> str:
    """Return the document of one suite."""
    cases = list(cases)
    states = Counter(case.state for case in cases)
    counts = {
        "failures": states[FAILURE],
        "errors": states[ERROR],
        "skipped": states[SKIPPED],
        "tests": len(cases),
    }
    facts = {"name": suite, **{name: str(count) for name, count in counts.items()}}
    facts["time"] = _seconds(sum(case.seconds for case in cases))
    root = ElementTree.Element("testsuites", facts)
    element = ElementTree.SubElement(root, "testsuite", facts)
    if properties:
        listed = ElementTree.SubElement(element, "properties")
        for name, value in properties.items():
            ElementTree.SubElement(
                listed, "property", {"name": name, "value": _clean(value, MAX_MESSAGE)}
            )
    for case in cases:
        one = {"classname": _clean(case.group, MAX_MESSAGE), "name": _clean(case.name, MAX_MESSAGE)}
        child = ElementTree.SubElement(element, "testcase", {**one, "time": _seconds(case.seconds)})
        if case.state:
            why = ElementTree.SubElement(
                child, case.state, {"message": _clean(case.message, MAX_MESSAGE)}
            )
            why.text = _clean(case.text, MAX_TEXT)
    ElementTree.indent(root)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        + ElementTree.tostring(root, encoding="unicode")
        + "\n"
    )


def _seconds(value: float) -> str:
    return f"{value:.3f}"


def _clean(text: str, limit: int) -> str:
    # XML cannot hold most control characters, not even escaped; the others must not control a CI
    # page.
    text = printable(text, "\n\t")
    return (
        text if len(text) <= limit else f"{text[:limit]}... ({len(text) - limit} characters more)"
    )
