"""Records, places and reports of ``migrate``: no TensorFlow is asked."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import shutil

import model_edits as edits
import pytest
from click.testing import CliRunner

from savedmodel_compat.cli import main
from savedmodel_migration.migrate import records, report, run
from savedmodel_migration.migrate.records import Status


def record(name, status=Status.REFUSED, **more):
    return records.Record(name, name, status=status, **more)


def test_the_worst_part_is_what_becomes_of_the_model():
    assert records.worst([Status.MIGRATED, Status.DIFFERS, Status.UNPROVED]) is Status.DIFFERS
    assert [status for status in Status if status.good] == [
        Status.COPIED,
        Status.MIGRATED,
        Status.REPAIRED,
        Status.REBUILT,
        Status.PARTIAL,
        Status.WRAPPED,
    ]


def test_a_record_survives_the_disk_and_a_strange_one_is_none(tmp_path):
    part = records.Part(
        ["serve"], Status.MIGRATED, verdicts=[records.Verdict("weights", "equal")], names={"a": "k"}
    )
    kept = record("x", Status.MIGRATED, parts=[part])
    records.save(kept, tmp_path / "x.json", tmp_path)
    assert records.load(tmp_path / "x.json") == kept
    for text in ("", "[]", '{"schema": 99}', json.dumps({**kept.to_json(), "status": "splendid"})):
        (tmp_path / "y.json").write_text(text)
        assert records.load(tmp_path / "y.json") is None


def test_reports_are_no_way_into_a_browser_or_a_spreadsheet():
    bad = [
        record("<script>alert(1)</script>", reason="=cmd()"),
        record("b", reason="=cmd()", fix="f"),
    ]
    assert "<script>alert" not in report.as_html(bad)
    rows = list(csv.DictReader(report.as_csv(bad).splitlines()))
    assert {row["reason"] for row in rows} == {"'=cmd()"}


def test_two_models_of_one_name_get_two_places(tmp_path):
    class Model:
        def __init__(self, name, relative):
            self.name, self.relative = name, relative

    jobs = run.jobs_of([Model("a/M", "M"), Model("b/m", "m"), Model("c", "../x/.hid den")])
    places = [job.relative for job in jobs]
    assert len({place.lower() for place in places}) == 3
    assert places[0] == "M"
    assert places[2] == "_../x/_.hid_den"


def test_no_place_is_inside_of_another_or_too_long_for_a_file_system():
    class Model:
        def __init__(self, name, relative):
            self.name, self.relative = name, relative

    names = [
        "a",
        "a/b",
        "x/y",
        "X",
        "a.json",
        "a.json/c",
        "é" * 300,
        "e" * 300,
        "e" * 301,
        "~",
        "..",
        "",
    ]
    jobs = run.jobs_of([Model(f"{number}/{name}", name) for number, name in enumerate(names)])
    places = [job.relative for job in jobs]
    assert len({place.lower() for place in places}) == len(names)
    for place in places:
        assert not [other for other in places if other.lower().startswith(f"{place.lower()}/")]
        assert all(
            len(part) <= 120 and not part.startswith(".") and not part.endswith(".json")
            for part in place.split("/")
        )


def test_many_models_get_a_page_each(tmp_path, monkeypatch):
    hostile = "<img src=x>/../" + "n" * 300
    bad = [
        records.Record(
            hostile, "d/" + "n" * 200, reason="<script>", fix="f", parts=[records.Part(["<b>"])]
        ),
        record("x/y"),
    ]
    report.write(bad, tmp_path)
    assert not list((tmp_path / "pages").glob("*")), "few are on one page"
    monkeypatch.setattr(report, "ON_ONE_PAGE", 1)
    for reason in ("reason one", "reason two"):
        bad[1].reason = reason
        report.write(bad, tmp_path)
        page, ours, _ = (tmp_path / "report.html").read_text().partition("<script>\n(function")
        assert ours
        links = sorted(set(re.findall(r'href="(pages/[^"]*)"', page)))
        assert (
            sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("pages/*/*"))
            == links
        )
        assert len(links) == 2
        texts = [(tmp_path / link).read_text() for link in links]
        assert sum(reason in text for text in texts) == 1
        assert all('href="../../report.html"' in text for text in texts)
        assert not [
            text for text in (*texts, page) if "<script>" in text or "<img" in text or "<b>" in text
        ]


def test_a_disk_that_is_full_leaves_the_old_report(tmp_path, monkeypatch):
    def full(folder, texts):
        raise OSError("No space left on device")

    monkeypatch.setattr(report, "ON_ONE_PAGE", 0)
    report.write([record("a")], tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert len(before) == 4
    monkeypatch.setattr(report, "write_set", full)
    with pytest.raises(OSError, match="No space"):
        report.write([record("b")], tmp_path)
    assert {path: path.read_bytes() for path in before} == before


class _Refusing:
    """A migrator that refuses every model, without TensorFlow."""

    def __init__(self, work):
        self.work = work

    def migrate(self, name, relative, folder, target, digest):
        return records.Record(
            name, relative, digest, "1 partial=False", status=Status.REFUSED, reason="no such op"
        )


@pytest.mark.tensorflow
def test_a_refusal_is_told_once_with_its_reason_and_what_to_do(tmp_path, monkeypatch):
    class Refusing(_Refusing):
        def migrate(self, *arguments):
            found = super().migrate(*arguments)
            found.fix = "rename the op"
            return found

    monkeypatch.setattr(
        run, "migrator_for", lambda work, settings: contextlib.nullcontext(Refusing(work))
    )
    shutil.copytree(edits.fixture("half_plus_two"), tmp_path / "zoo" / "half")
    done = CliRunner().invoke(
        main, ["migrate", str(tmp_path / "zoo"), "--out", str(tmp_path / "out")]
    )
    said = [
        line
        for line in (done.stdout + done.stderr).splitlines()
        if "no such op" in line or "rename the op" in line
    ]
    assert len(said) == 1 and said[0].startswith("refused 1: half: ")


@pytest.mark.tensorflow
def test_the_speed_is_told_by_the_models_of_this_run_alone(tmp_path, monkeypatch):
    """Three of four models were done by an earlier run: they say nothing about how long the fourth
    takes.

    In the first minute no run says what is left.
    """
    monkeypatch.setattr(
        run, "migrator_for", lambda work, settings: contextlib.nullcontext(_Refusing(work))
    )
    monkeypatch.chdir(tmp_path)

    def migrate(*cases):
        for case in cases:
            shutil.copytree(edits.fixture(case), tmp_path / "zoo" / case)
        return CliRunner().invoke(main, ["migrate", "zoo", "--out", "out"])

    first = migrate("half_plus_two", "simple_save", "string_ops")
    assert re.search(r"3/3 models, 3 not migrated, [\d.]+/s$", first.stderr, re.MULTILINE), (
        first.stderr
    )
    assert "kept" not in first.stderr
    again = migrate()
    assert re.search(r"3/3 models, 3 not migrated, 3 kept$", again.stderr, re.MULTILINE), (
        again.stderr
    )
    assert first.stderr.startswith("3 models to run\n")
    assert re.match("3 models: 3 done .* 0 to run\n", again.stderr), again.stderr
    more = migrate("while_loop")
    assert re.match("4 models: 3 done .* 1 to run\n", more.stderr), more.stderr
    assert re.search(r"4/4 models, 4 not migrated, 3 kept, [\d.]+/s$", more.stderr, re.MULTILINE), (
        more.stderr
    )
    assert "done_before" not in (tmp_path / "out" / "report.json").read_text()
