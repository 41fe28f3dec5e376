"""The page of other people's exporters and consumers: made of runs, true to them.

Needs no TensorFlow.
"""

import json
import sys

import pytest
from plugin_world import ROOT, page_files, plugin_world, run


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two runs with the plug-ins of docs/exporters/plugins.md: of all, and of one that passes, without the
    ledger of the first.
    """
    world = plugin_world(page_files(tmp_path_factory.mktemp("page")))
    words = (
        "--plugins",
        "plugins.toml",
        "--consumer",
        f"numpy_sample={sys.executable} numpy_consumer.py",
    )
    for out, more in (
        ("out", ("--consumer", "mine", "--producer", "mytrainer")),
        ("again", ("--case", "scaled", "--check", "load")),
    ):
        done = run(world, *words, *more, out=out)
        assert done.returncode == 0, done.stdout + done.stderr
    return world.root / "out", world.root / "again"


@pytest.fixture
def third_party(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT))
    from docs import third_party

    monkeypatch.setattr(third_party, "RECORD", tmp_path / "third_party.json")
    return third_party


def page(third_party):
    """The page, and below it those of the consumers."""
    return "".join([third_party.page(), *third_party.pages_of_consumers().values()])


def test_the_page_says_what_the_runs_saw(folders, third_party):
    assert third_party.main(list(map(str, folders))) == 0
    text = page(third_party)
    assert "| [`mytrainer` 1.0](#written-by-mytrainer-10) |" in text
    assert (
        "| [`mine` 0.1](third_party/mine.md) | 0/2 |" in text
        and "| `numpy_sample` 1.0 | 2/2 |" in text
    )
    assert "| `linear`: A linear model | 1/2 | REJECTED: `mine` |" in text
    assert (
        "- **by_design**: This consumer knows two ops. (REJECTED of values)\n    - `mytrainer` 1.0:"
        " `linear`, `scaled`" in text
    )
    assert "numpy_exporter 1.0" in text  # what the exporter itself said
    for title in (
        "### Written by `mytrainer` 1.0",
        "# Read by `mine`",
    ):
        assert title in text.splitlines()
    runs = json.loads(third_party.RECORD.read_text())["runs"]
    assert runs[0]["cells"] > runs[1]["cells"] >= 1


def test_what_nobody_explains_is_shown_and_refused(folders, third_party, tmp_path, capsys):
    """A cell that failed against the ledger, or was lost with its production."""
    out, _ = folders
    lines = (out / "results.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    (other,) = (
        record
        for record in records
        if record["cell"] == "linear/mytrainer@1.0/numpy_sample@1.0/values"
    )
    other.update(
        outcome="NOT_RUN", expected=None, message_normalised="its artifact could not be made"
    )
    changed = tmp_path / "changed"
    changed.mkdir()
    for name in ("plan.json", "plugins.json", "run.json"):
        (changed / name).write_bytes((out / name).read_bytes())
    (changed / "expectations.toml").write_text("schema = 1\n")
    (changed / "results.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert third_party.main([str(changed)]) == 1
    assert "unexplained: Refused request" in capsys.readouterr().err
    text = page(third_party)
    assert (
        "| [`mine` 0.1](third_party/mine.md) | 0/2 |" in text
        and "| [`numpy_sample` 1.0](third_party/numpy_sample.md) | 1/2 |" in text
    )
    assert (
        "- **unexplained**: its artifact could not be made (NOT_RUN of values)\n    - `mytrainer`"
        " 1.0: `linear`\n" in text
    )
