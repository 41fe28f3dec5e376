"""The tables of the benchmarks, and the zoo that one of them migrates; what they measure is not a
matter of tests.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import fresh_tensorflow
import pytest

from benchmarks import growth, migrate, models, page, record, run, tables
from benchmarks.models import growing
from reference_impl.format.container import layout
from savedmodel_common import toml
from savedmodel_migration.migrate.plan import plan_of
from savedmodel_tools.canonical.form import canonical
from savedmodel_tools.verify.findings import Severity
from savedmodel_tools.verify.run import verify

pytestmark = [pytest.mark.tensorflow]  # its version is a part of the tables

ROOT = Path(__file__).parents[2]
COMPARISON = (
    "load: a model",
    "ours",
    "theirs",
    (1.0, 2.0, 30.0),
    (10.0, 10.0, 10.0),
    0.5,
    "written by hand",
)


def test_a_goal_that_is_missed_is_said():
    from benchmarks import Comparison
    from benchmarks.memory import Peak

    good, bad = (
        Comparison(*COMPARISON),
        Comparison(*COMPARISON[:3], COMPARISON[4], COMPARISON[3], *COMPARISON[5:]),
    )
    small, large = Peak("small", 2**20, 2**24, 2**25), Peak("large", 2**20, 2**24 + 1, 2**25)
    assert (good.ratio, good.reached, bad.reached, small.reached, large.reached) == (
        0.2,
        True,
        False,
        True,
        False,
    )
    quick, slow = (
        migrate.Rate(migrate.GOAL * 200, 200.0, 300.0, 2**30),
        migrate.Rate(migrate.GOAL * 200, 200.1, 300.0, 2**30),
    )
    lines = tables.markdown([good, bad, small, large, quick, slow], "a machine").split("\n")
    rows = [
        line for line in lines if line.startswith(("| load", "| small", "| large", "| migrate"))
    ]
    assert [line.rsplit("|", 2)[1].strip() for line in rows] == [
        "ok",
        "MISSED",
        "ok",
        "MISSED",
        "ok",
        "MISSED",
    ]


def test_the_tables_of_the_page_are_replaced_and_nothing_else():
    text = page.PAGE.read_text(encoding="utf-8")
    new = page.replaced(text, "THE TABLES")
    assert (
        new.split(page.BEGIN)[0] == text.split(page.BEGIN)[0]
        and new.split(page.END)[1] == text.split(page.END)[1]
    )
    assert page.replaced(new, "THE TABLES") == new
    with pytest.raises(ValueError, match="no lines"):
        page.replaced("a page", "THE TABLES")


def test_a_run_of_a_part_replaces_its_rows_in_the_record(tmp_path):
    """Other benchmarks keep their rows and dates. A reason is said once for all its rows."""
    from benchmarks import Comparison, Figure

    growing = (growth.Point("load", "nodes", 100, 0.5), growth.Point("load", "nodes", 1000, 0.6))
    first = record.Measurement(
        "single", "2026-01-01", "a machine", (Figure("slim", 9.0, "s", 5.0),)
    )
    second = record.Measurement("growth", "2026-01-01", "a machine", growing)
    names = ("verify", "ours", "theirs", (1.0, 2.0, 30.0), (1.0, 1.0, 1.0), 0.5)
    slow = tuple(Comparison(*names, notes) for notes in ("a model (2 MB)", "another"))
    newer = record.Measurement("single", "2026-02-02", "another machine", slow)
    record.write(record.merged([first, second], [newer]), tmp_path / "record.json")
    single, kept = record.read(tmp_path / "record.json")
    assert kept == second and single.measured == "2026-02-02"
    assert [row.ratio for row in single.rows] == [2.0, 2.0]
    text = tables.summary([single, kept])
    assert "| verify, 2 rows | theirs | 2 of its time | < 0.5 | 0 of 2 |" in text
    (reason,) = (
        item["reason"] for item in toml.read(tables.EXPLAINED)["row"] if item["row"] == "verify"
    )
    assert text.count(reason) == 1 and "* **verify (2 models)**: " in text
    assert "| verify (another) | ours | theirs | 2.000 | 1.000 | 2.000 |" in tables.site_page(
        [single, kept]
    )


def test_the_page_is_made_from_the_record():
    assert not page.is_stale()


def test_growth_that_was_not_measured_to_the_end_has_its_reason():
    done = growth.Point("migrate", "nodes", 100, 3.0, 2**30)
    ended = growth.Point("migrate", "nodes", 1000, missing="more than 120 s")
    (entry,) = [one for one in toml.read(tables.EXPLAINED)["row"] if one["row"] == "migrate, nodes"]
    reason = f"**migrate, nodes**: {entry['reason']}"
    assert reason in tables.markdown([done, ended], "a machine")
    assert "not linear" not in tables.markdown([done], "a machine")


def test_every_model_names_a_runtime_that_there_is():
    assert {model.runtime for model in models.MODELS} <= {"", "keras 2", "tf 1"}
    with pytest.raises(ValueError, match="no runtime"):
        models.runtime(models.MODELS[2])  # the model in place of its runtime


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    """A model of every kind, and the folder in which they were migrated."""
    folder = tmp_path_factory.mktemp("zoo")
    migrate.measure(folder, 12)  # raises what is not wholly proved
    return folder


def test_every_kind_of_the_zoo_is_converted(zoo):
    actions = {path.name: plan_of(path).action for path in (zoo / "zoo").iterdir()}
    assert len({name.split("-")[1] for name in actions}) == 12
    assert actions.pop("0008-two_graphs") == "convert into 2, one for each set of tags"
    assert set(actions.values()) == {"convert"}


def test_the_zoo_is_the_same_whoever_makes_it_and_no_two_models_are_alike(zoo, tmp_path):
    fresh_tensorflow.printed(ROOT / "benchmarks/models/zoo.py", tmp_path, "--count", "24")
    again = {path.name: canonical(path).hash for path in sorted(tmp_path.iterdir())}
    kinds = [name.split("-")[1] for name in again]
    assert kinds[:12] == kinds[12:] and len(set(again.values())) == 24
    assert {path.name: canonical(path).hash for path in (zoo / "zoo").iterdir()} == dict(
        list(again.items())[:12]
    )


@pytest.mark.parametrize(
    ("lose", "says"),
    [
        (lambda model: model.update(status="unproved"), "of 12 models 11 were migrated"),
        (lambda model: model["parts"][0].update(not_asked={"y": "no"}), "not proved: y: no"),
        (lambda model: model["parts"][0]["verdicts"].pop(), "not proved: next generation"),
    ],
)
def test_a_run_that_proved_less_gives_no_rate(zoo, tmp_path, lose, says):
    (tmp_path / "models").symlink_to(zoo / "out/models")
    report = json.loads((zoo / "out/report.json").read_text())
    (tmp_path / "report.json").write_text(json.dumps(report))
    migrate.check(tmp_path, 12)
    lose(report["models"][3])
    (tmp_path / "report.json").write_text(json.dumps(report))
    with pytest.raises(RuntimeError, match=says):
        migrate.check(tmp_path, 12)


def line_of(*seconds, missing=""):
    points = [
        growth.Point("load", "nodes", 10 ** (number + 2), value, 2**20)
        for number, value in enumerate(seconds)
    ]
    return [*points, growth.Point("load", "nodes", 10**6, missing=missing)] if missing else points


@pytest.mark.parametrize(
    ("line", "linear"),
    [
        (line_of(1.0, 1.1, 2.0, 11.0), True),
        (line_of(1.0, 1.1, 2.0, 15.0), False),  # 14 times as long
        (line_of(1.0, 1.0, 1.1, 1.3), True),  # too short to say anything
        (line_of(1.0, 1.1, 2.0, missing="more than 120 s"), False),
    ],
)
def test_growth_is_linear_where_ten_times_the_size_takes_ten_times_as_long(line, linear):
    assert growth.is_linear(line) is linear
    text = tables.markdown(line, "a machine")
    assert ("| yes |" in text) is linear and "growth-load.svg" in text
    assert list(run.plots(line)) == ["growth-load.svg"] and run.plots(line)[
        "growth-load.svg"
    ].count("<circle") == 2 * 4 - 2 * bool(line[-1].missing)


def test_what_was_not_measured_and_why_a_goal_is_missed_stand_on_the_page():
    from benchmarks import Comparison, Figure, NotMeasured

    free = Comparison(*COMPARISON[:5], None, "no goal")
    rows = [
        free,
        NotMeasured("weights", "safetensors is not installed"),
        Figure("slim: of a model", 9.0, "CPU s", 5.0),
    ]
    text = tables.markdown([*rows, Figure("another thing", 9.0, "s", 5.0)], "a machine")
    assert "* weights: safetensors " in text and "* **another thing**: not explained yet." in text
    (slim,) = [line for line in text.splitlines() if line.startswith("* **slim: of a model**")]
    assert "Measured floor: " in slim and free.reached
    assert json.loads(run.as_json(rows))["rows"][2]["reached"] is False


@pytest.mark.parametrize("kind", growing.KINDS)
def test_models_that_grow_have_the_wanted_size_and_are_sound(kind, tmp_path):
    fresh_tensorflow.printed(ROOT / "benchmarks/models/growing.py", kind, "150", tmp_path / "m")
    graph = layout.read(tmp_path / "m").meta_graph()
    counts = {
        "nodes": len(graph.graph_def.node) - 2,
        "functions": len(graph.graph_def.library.function),
    }
    nodes = graph.object_graph_def.nodes
    counts["variables"] = sum(node.HasField("variable") for node in nodes)
    counts["children"] = len(nodes) - 1
    counts["assets"] = len(list((tmp_path / "m" / "assets").glob("*")))
    counts["signatures"] = len(graph.signature_def)
    counts["tags"] = len(graph.meta_info_def.tags)
    assert 150 <= counts[kind] < 160
    assert not [item for item in verify(tmp_path / "m").findings if item.severity is Severity.ERROR]


def test_a_model_that_is_refused_is_not_measured(tmp_path, monkeypatch):
    def broken(_kind, _count, model):
        model.mkdir()
        (model / "saved_model.pb").write_bytes(b"not a model")

    monkeypatch.setattr(growth, "_make", broken)
    monkeypatch.setattr(growing, "KINDS", ("functions",))
    points = growth.run(sizes=(100, 1000), largest=0)
    assert {point.command for point in points} == {"inspect", "verify", "diff", "load", "save"}
    assert len(points) == 10 and all(
        "MalformedError: saved_model.pb: " in point.missing for point in points
    )
    assert all(
        point.missing.startswith("refused: ") and point.missing.endswith(" with 100 functions")
        for point in points
    )


def test_a_model_that_cannot_be_made_and_a_program_that_takes_too_long_are_not_measured(
    monkeypatch,
):
    monkeypatch.setattr(growing, "KINDS", ("no such kind",))
    points = growth.run(sizes=(100,), largest=0)
    assert points and all(
        point.missing.startswith("no model with 100 no such kind: ") for point in points
    )
    if shutil.which("timeout"):
        monkeypatch.setattr(growth, "LIMIT", 0.01)
        monkeypatch.setattr(growing, "KINDS", ("nodes",))
        assert {point.missing for point in growth.run(sizes=(100,), largest=0)} == {
            "more than 0.01 s with 100 nodes"
        }


def printing(code, out="", err=""):
    return [
        sys.executable,
        "-c",
        f"import sys; print({out!r}); print({err!r}, file=sys.stderr); sys.exit({code})",
    ]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (
            printing(1, err="LimitError: /tmp/a/saved_model.pb: more than 3 messages"),
            "LimitError: saved_model.pb: more than 3 messages",
        ),
        (
            printing(1, err="Traceback\n  File ...\nreference_impl.errors.LimitError: too large"),
            "LimitError: too large",
        ),
        (
            printing(1, out="/tmp/m\n  error    SMC101  LimitError: no\n1 model: 1 error"),
            "SMC101  LimitError: no",
        ),
        (printing(3), "exit 3"),
        (printing(1, out="a node differs"), ""),
        (printing(0, err="UserError: a warning"), ""),
    ],
)
def test_a_program_is_measured_only_if_it_did_its_work(command, reason):
    """A difference, with which a program exits with 1, is a result."""
    from benchmarks import Refused, measured

    if reason:
        with pytest.raises(Refused, match=f"^{re.escape(reason)}$"):
            measured(command, os.environ, accepted=(0, 1))
    else:
        assert measured(command, os.environ, accepted=(0, 1)).cpu > 0


def end_of_process(_name, _repeats):
    os._exit(1)


def test_a_benchmark_that_fails_or_ends_its_process_is_a_row_of_the_page(monkeypatch, capsys):
    (unknown,) = run.rows_of("no_such_benchmark", 1)
    assert unknown.reason == "ModuleNotFoundError: No module named 'benchmarks.no_such_benchmark'"
    monkeypatch.setattr(run, "_rows", end_of_process)
    (crashed,) = run.rows_of("memory", 1)
    assert crashed.reason.startswith("BrokenProcessPool: ") and not crashed.reached
    text = tables.markdown([unknown, crashed], "a machine")
    assert "* no_such_benchmark: ModuleNotFoundError" in text and "not explained yet" not in text
    assert "Traceback" in capsys.readouterr().err
