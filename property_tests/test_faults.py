"""Writers under kill -9, on a full or read-only disk, beside others: the old files or the new ones,
never a mixture.
"""

import errno
import os
import random
import resource
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from kill_points import Killer, content, leftovers, write

from compat_matrix.cells.plan import LEDGER_FILE
from compat_matrix.verdict import Ledger
from property_tests.faults import finished_runs
from property_tests.faults.disks import KILLED_WHOLE_SAVE
from property_tests.faults.stage import Stage
from reference_impl import errors
from reference_impl.format.container import layout
from reference_impl.views.model import inspect

pytestmark = [
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="processes are forked, killed and limited"
    ),
    pytest.mark.filterwarnings(
        "ignore:This process .* is multi-threaded:DeprecationWarning"
    ),  # the child starts no thread
]
SLOW = (
    "SLOW_FILES" in os.environ
)  # a run of test_slow_files.py: a kill hits a write more often, and takes longer
FILES = ("expectations.toml", "junit.xml", "report.html", "summary.json")


def forked(action):
    """The process id of a child that does something, quietly."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            action()
            status = 0
        finally:
            os._exit(status)
    return pid


def ends(pid):
    return os.waitpid(pid, 0)[1]


def files(out):
    found = {}
    for name in FILES:
        with suppress(FileNotFoundError):
            found[name] = (out / name).read_bytes()
    return found


def alike(now, states):
    """Numbers of the states of which the files are; a set of reports with its seal, the summary, is
    of one of them.
    """
    found = {
        name: {number for number, state in enumerate(states) if data == state[name]}
        for name, data in now.items()
    }
    assert all(found.values()), found
    if "summary.json" in now:
        assert set(now) == set(states[0]) and set.intersection(*found.values()), found
    return set.union(*found.values())


def temporary(out):
    return [path.name for path in out.iterdir() if path.suffix == ".tmp"]


@pytest.fixture(scope="module", params=["report", "expect_update"])
def act(request):
    return getattr(finished_runs, request.param)


@pytest.fixture
def states(act, tmp_path):
    """What the files are before and after; the second run of a folder is the one that is
    disturbed.
    """
    found = []
    for failing in (2, 5):
        out = tmp_path / f"state{failing}" / "out"
        finished_runs.finished_run(out, 2)
        act(out)
        if failing == 5:
            finished_runs.finished_run(out, 5)
            act(out)
        found.append(files(out))
    assert found[0] != found[1]
    return found


def prepared(tmp_path, act, name):
    """A folder in which everything was done for two failures, and five are now to be told of."""
    out = tmp_path / name / "out"
    finished_runs.finished_run(out, 2)
    act(out)
    finished_runs.finished_run(out, 5)
    return out


def test_the_harness_killed_at_every_moment(act, states, tmp_path):
    seen, unsealed, point, status = set(), 0, 0, -1
    while status != 0:
        point += 1
        out = prepared(tmp_path, act, str(point))

        def killed(out=out, point=point):
            killer = Killer(out, point)
            killer.armed = True
            act(out)

        status = ends(forked(killed))
        assert status in (0, signal.SIGKILL)
        now = files(out)
        seen |= alike(now, states)
        unsealed += act is finished_runs.report and "summary.json" not in now
        act(out)
        assert temporary(out) == [] and set(files(out)) == set(states[0])
    assert seen == {0, 1} and point > 5
    assert (act is finished_runs.report) == (unsealed > 1)


def test_the_harness_killed_at_any_time(act, states, tmp_path):
    """Fifty kills after a random time, one after the other in one folder, as somebody does who is
    in a hurry.
    """
    rng = random.Random(7)
    out = prepared(tmp_path, act, "hurry")
    start = time.monotonic()
    assert ends(forked(lambda: act(out))) == 0
    usual = time.monotonic() - start
    killed = 0
    for _ in range(12 if SLOW else 50):
        finished_runs.finished_run(out, rng.choice((2, 5)))
        pid = forked(lambda: act(out))
        time.sleep(rng.random() * usual)
        os.kill(pid, signal.SIGKILL)
        killed += ends(pid) == signal.SIGKILL
        if act is finished_runs.report:
            alike(files(out), states)
        else:
            Ledger.read(out / LEDGER_FILE)
    assert killed > (2 if SLOW else 10)
    act(out)
    assert temporary(out) == []


def test_the_harness_on_a_full_disk(act, states, tmp_path):
    out = prepared(tmp_path, act, "full")
    before = files(out)

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        try:
            act(out)
        except OSError as error:
            os._exit(42 if error.errno == errno.EFBIG else 43)

    assert os.waitstatus_to_exitcode(ends(forked(limited))) == 42
    assert files(out) == before and temporary(out) == []


def test_a_save_on_a_full_disk(tmp_path):
    target = tmp_path / "model"
    write(target, "old")
    for limit in (0, 10, 60, 200):

        def limited(limit=limit):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            try:
                write(target, "new")
            except errors.FileAccessError as error:
                os._exit(42 if error.file else 43)

        status = os.waitstatus_to_exitcode(ends(forked(limited)))
        assert status == (42 if limit < 200 else 0)
        assert (content(target), leftovers(target)) == ("old" if limit < 200 else "new", 0)


def test_a_save_where_nothing_may_be_written(tmp_path):
    target = tmp_path / "there" / "model"
    write(target, "old")
    target.parent.chmod(0o555)

    def unprivileged():
        if os.geteuid() == 0:
            for folder in (tmp_path, *tmp_path.parents):
                if folder.stat().st_uid == 0 and folder != Path("/"):
                    folder.chmod(folder.stat().st_mode | 0o055)
            os.setegid(65534)
            os.seteuid(65534)
        try:
            write(target, "new")
        except errors.FileAccessError:
            os._exit(42)

    status = os.waitstatus_to_exitcode(ends(forked(unprivileged)))
    target.parent.chmod(0o755)
    assert status == 42
    assert (content(target), leftovers(target)) == ("old", 0)


def test_two_writers_of_one_directory(tmp_path):
    """Both are done, or one is told why not; what is there is of one of them."""
    target = tmp_path / "model"
    write(target, "next")

    def busy(text):
        for _ in range(15):
            try:
                write(target, text)
            except errors.SavedModelError:
                pass

    children = [forked(lambda text=text: busy(text)) for text in ("old", "new")]
    while children:
        assert layout.read(target).tag_sets[0] <= {"old", "new", "next"}
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended:
            children.remove(ended)
            assert status == 0
    assert content(target) in ("old", "new")
    write(target, "next")
    assert (content(target), leftovers(target)) == ("next", 0)


def test_a_directory_that_changes_while_it_is_read(tmp_path):
    target = tmp_path / "model"
    write(target, "old")

    def busy():
        for number in range(40):
            write(target, ("old", "new")[number % 2])

    child = forked(busy)
    looked = seen = 0
    while not os.waitpid(child, os.WNOHANG)[0]:
        with suppress(errors.SavedModelError):
            assert inspect(target).meta_graphs[0].tags in (("old",), ("new",))
            looked += 1
        handle = os.open(target, os.O_RDONLY)
        with suppress(FileNotFoundError):
            found = content(Path(f"/proc/self/fd/{handle}"))
            if os.path.samestat(os.fstat(handle), target.stat()):  # it was there all the time
                assert found in ("old", "new")
                seen += 1
        os.close(handle)
    assert looked > 0 and seen > 0


def test_reports_that_change_while_they_are_read(tmp_path):
    """A summary that is the same before and after the other files were read is of their set."""
    states, outs = [], [tmp_path / name / "out" for name in ("two", "five", "changing")]
    for out, failing in zip(outs, (2, 5, 2)):
        finished_runs.finished_run(out, 2)  # whose ledger is the same
        finished_runs.finished_run(out, failing)
        finished_runs.report(out)
        states.append(files(out))
    states.pop()

    def busy():
        for number in range(12):
            finished_runs.finished_run(outs[2], (5, 2)[number % 2])
            finished_runs.report(outs[2])

    child = forked(busy)
    seen = 0
    while not os.waitpid(child, os.WNOHANG)[0]:
        before, now, after = files(outs[2]), files(outs[2]), files(outs[2])
        if before == after and "summary.json" in before:
            alike(now, states)
            seen += 1
    assert seen > 0


def test_a_save_killed_at_any_time(tmp_path):
    """Thirty kills after a random time, one after the other at one target; `test_save_atomic.py`
    has every moment.
    """
    rng = random.Random(8)
    target = tmp_path / "model"
    write(target, "old")
    start = time.monotonic()
    assert ends(forked(lambda: write(target, "old"))) == 0
    usual = time.monotonic() - start
    killed = number = 0
    while killed < (5 if SLOW else 30):
        pid = forked(lambda number=number: write(target, ("old", "new")[number % 2]))
        time.sleep(rng.random() * usual)
        os.kill(pid, signal.SIGKILL)
        was_killed = ends(pid) == signal.SIGKILL
        usual *= (
            1.05 if was_killed else 0.9
        )  # a busy machine may have been slow when it was measured
        killed, number = killed + was_killed, number + 1
        assert content(target) in ("old", "new")
        assert leftovers(target) <= 1  # the next one has removed what was left before
    write(target, "next")
    assert (content(target), leftovers(target)) == ("next", 0)


@pytest.mark.tensorflow
@pytest.mark.clause("API-04")
def test_a_whole_save_killed_a_hundred_times(tmp_path):
    """Variables, functions and assets are of one export, and at most one stage is left beside
    it.
    """
    pytest.importorskip("tensorflow")
    with Stage(tmp_path) as stage:
        seen = KILLED_WHOLE_SAVE.found_by.look(KILLED_WHOLE_SAVE, stage)
    assert seen.defect == ""
