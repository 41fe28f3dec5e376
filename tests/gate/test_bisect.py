"""`bisect`: the first release in which a cell changes."""

import json

import pytest
from click.testing import CliRunner

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.results import Result
from compat_matrix.cli import main
from compat_matrix.gate.bisect import bisect
from compat_matrix.report.gate_words import bisect_command
from compat_matrix.runtimes.places import RuntimeTrouble
from compat_matrix.runtimes.resolve import resolve

RELEASES = [f"2.{minor}" for minor in range(4, 22)]


@pytest.mark.parametrize("first", RELEASES[1:])
def test_few_releases_are_asked(first):
    def ask(release):
        works = RELEASES.index(release) >= RELEASES.index(first)
        return Result("p", "c", Outcome.PASS if works else Outcome.LOAD_ERROR, message_normalised="" if works else "unknown op")

    found = bisect(RELEASES, ask)
    assert (found.before, found.after) == (RELEASES[RELEASES.index(first) - 1], first)
    assert len(found.seen) <= 7
    assert found.seen[found.before] == "LOAD_ERROR unknown op"


def test_nothing_changes():
    found = bisect(["2.4", "2.5", "2.6"], lambda release: Result("p", "c", Outcome.PASS))
    assert (found.before, found.after, list(found.seen)) == ("", "", ["2.4", "2.6"])


def test_a_failure_may_have_other_causes_on_the_way():
    messages = {"2.4": "a", "2.5": "b", "2.6": "b", "2.7": "b"}

    def ask(release):
        message = messages.get(release, "")
        return Result("p", "c", Outcome.LOAD_ERROR if message else Outcome.PASS, message_normalised=message)

    assert bisect(RELEASES, ask).after == "2.8"
    assert bisect(["2.4", "2.5", "2.6"], ask).after == "2.5"


def test_what_a_model_says_does_not_steer_the_terminal(monkeypatch):
    def result(parts, release, *_):
        said = "" if release == "2.4" else "no op \x1b[2J\nreleases: all"
        return Result("p", "c", Outcome.LOAD_ERROR if said else Outcome.PASS, message_normalised=said)

    monkeypatch.setattr("compat_matrix.commands.bisect._result", result)
    done = CliRunner().invoke(main, ["bisect", "a/fixture@1.15.5/tf2@2.21.0/load", "--from", "2.4", "--to", "2.6"])
    assert done.exit_code == 0 and "changes in 2.5" in done.stdout
    assert "\x1b" not in done.output and "\nreleases" not in done.output


@pytest.mark.parametrize(
    ("baseline", "kind", "command"),
    [
        ("2.18.1", "regressed", "savedmodel-compat bisect a/tf2@2.18.1/c_api@2.21.0/values --from 2.18 --to 2.21"),
        ("2.20.0", "regressed", ""),  # nothing lies between
        ("2.18.1", "fixed", ""),
        ("given", "regressed", ""),
    ],
)
def test_a_gate_says_how_to_find_the_release_of_a_regression(baseline, kind, command):
    cause = {"kind": kind, "cause": "CRASH", "blocks": kind == "regressed"}
    fact = {**cause, "role": "reads", "consumer": "c_api", "candidate": {"cell": "a/tf2@2.18.1/c_api@2.21.0/values"}}
    verdict = {"baseline": {"label": baseline}, "candidate": {"label": "2.21.0"}, "facts": [fact]}
    assert bisect_command(verdict, cause) == command


def run(*arguments):
    return CliRunner().invoke(main, ["bisect", *arguments])


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        (("2.21", "2.4"), "--from 2.21 is not older than --to 2.4"),
        (("2.4", "2.4"), "--from 2.4 is not older than --to 2.4"),
        (("2.4", "7.0"), "no release of the op history is called 7.0"),
    ],
)
def test_releases_that_make_no_range_are_refused(ends, reason):
    done = run("half_plus_two/fixture@1.15.5/c_api@2.21.0/values", "--from", ends[0], "--to", ends[1])
    assert done.exit_code != 0
    assert reason in done.output


def installed(*releases):
    for release in releases:
        try:
            resolve(release)
        except RuntimeTrouble as error:
            pytest.skip(f"the runtime of {release} is not installed: {error}")


@pytest.mark.tensorflow
def test_a_check_that_a_plan_of_several_releases_does_not_ask_of_the_cell_is_asked():
    installed("2.15", "2.16")
    cell = "keras_compiled_save/fixture@1.15.5/tf2@2.21.0/load"  # as `gate` names it
    done = run(cell, "--from", "2.15", "--to", "2.16", "--no-install")
    assert done.exit_code == 0, done.output
    assert "changes in 2.16\n  2.15: PASS\n  2.16: LOAD_ERROR" in done.output
    told = json.loads(run(cell, "--from", "2.15", "--to", "2.16", "--no-install", "--json").stdout)
    assert (told["before"], told["after"]) == ("2.15", "2.16")
    assert [(one["release"], one["outcome"]) for one in told["asked"]] == [("2.15", "PASS"), ("2.16", "LOAD_ERROR")]


@pytest.mark.tensorflow
def test_the_release_that_lost_a_kernel_is_found():
    installed("2.2", "2.3", "2.4", "2.5")
    cell = "dtypes_removed_kernels/fixture@1.15.5/c_api@2.21.0/values"
    done = run(cell, "--from", "2.2", "--to", "2.5", "--no-install")
    assert done.exit_code == 0, done.output
    assert "changes in 2.4\n  2.3: PASS\n  2.4: LOAD_ERROR" in done.output
    assert run(cell, "--from", "2.2", "--to", "2.3", "--no-install").exit_code == 3
