"""The axis "written by" of a report."""

from __future__ import annotations

from compat_matrix.report import written_by


def cell(case, release, consumer="tf2 2.21.0", outcome="PASS", expected=True, producer="fixture"):
    return {
        "case": case,
        "producer": producer,
        "producer_version": release,
        "consumer_label": consumer,
        "outcome": outcome,
        "expected": expected,
    }


RELEASES = ("2.10.1", "1.15.5", "2.9.3", "2.0.4")
PASSING = [cell("alpha", release) for release in RELEASES]


def test_releases_are_in_order_and_count_artifacts_not_cells():
    found = written_by.writers([*PASSING, *PASSING, cell("beta", "2.0.4")])
    assert [writer.release for writer in found] == ["1.15.5", "2.0.4", "2.9.3", "2.10.1"]
    assert [writer.whole.passed for writer in found] == [1, 2, 1, 1]
    assert written_by.line(found) == (
        "written by 4 TensorFlow releases, 1.15.5 to 2.10.1: 5 of 5 artifacts pass everything"
    )


def test_a_failure_is_counted_once_for_its_consumer_and_for_the_release():
    failing = cell("alpha", "2.0.4", outcome="LOAD_ERROR", expected=False)
    known = cell("beta", "2.0.4", "cpp 2.21.0", outcome="CALL_ERROR")
    oldest = next(
        writer
        for writer in written_by.writers([*PASSING, failing, failing, known])
        if writer.release == "2.0.4"
    )
    assert oldest.reads["tf2 2.21.0"].unexpected == oldest.whole.unexpected == {"alpha"}
    assert oldest.reads["cpp 2.21.0"].known == {"beta"}
    assert (oldest.reads["tf2 2.21.0"].state, oldest.reads["cpp 2.21.0"].state) == (
        "unexpected",
        "known",
    )
    assert oldest.whole.passed == 0


def test_what_was_not_asked_and_what_this_run_made_do_not_count():
    others = [
        cell("alpha", "2.21.0", outcome="NOT_RUN"),
        cell("alpha", "2.20.0", outcome="NOT_APPLICABLE"),
        cell("alpha", "2.19.0", producer="tf2"),
    ]
    assert len(written_by.writers([*PASSING, *others])) == len(RELEASES)


def test_a_run_about_few_releases_has_no_such_table():
    assert written_by.writers(PASSING[: written_by.FEW]) == []
    assert written_by.line([]) == ""


def test_any_version_has_a_place():
    versions = ["2.10.0+local", "unknown", "2.9.1", "2.10.0rc1"]
    assert sorted(versions, key=written_by.release_order)[1:] == [
        "2.9.1",
        "2.10.0+local",
        "2.10.0rc1",
    ]
