"""`compat` of a model with many signatures: what they have in common is asked once."""

from property_tests.attacks import forge
from savedmodel_tools import compat
from savedmodel_tools.skew.history import history
from savedmodel_tools.skew.needs import Walk


def with_signatures(count):
    """The MetaGraph of a model whose signature has a number of copies."""
    graph = forge.seed("table_static").meta_graphs[0]
    copied = graph.signature_def["serving_default"]
    for number in range(count):
        graph.signature_def[f"copy_{number}"].CopyFrom(copied)
    return graph


def questions(count, monkeypatch):
    """Return how often the releases are asked what they lack, and the answer."""
    asked = []
    part = Walk.part
    monkeypatch.setattr(
        Walk, "part", lambda *given, **named: asked.append(given[1]) or part(*given, **named)
    )
    table = history()
    found = compat.of_graph(with_signatures(count), range(len(table.releases)), table)
    monkeypatch.undo()
    return len(asked), found


def test_signatures_that_run_the_same_are_asked_once(monkeypatch):
    few, _ = questions(2, monkeypatch)
    many, found = questions(60, monkeypatch)
    assert many == few
    parts = {use.part: use.verdicts for use in found.uses if use.loader == compat.SESSION}
    assert len(parts) >= 61
    assert parts["signature copy_59"] == parts["signature serving_default"]
