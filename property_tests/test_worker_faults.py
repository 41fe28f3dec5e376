"""A whole `matrix run` whose workers are killed, frozen, flood, lie: one cell is lost each time,
the others are as ever.

The harness of these tests is `property_tests/faults/faulty_world.py`; single requests are in
`tests/workers/test_workers_protocol.py`.
"""

import random
import re
import signal
import sys
import time

import pytest

from property_tests import profiles
from property_tests.faults.faulty_world import PROGRAMS, FaultyWorld, Killer, cell_of, evidence
from property_tests.faults.workers import HARMLESS, LATER, LOST

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="workers are found in /proc"
)

FACTOR = 1 if profiles.NAME != profiles.NIGHTLY else 20
SLOW = "close_channel"  # the harness waits five seconds for the end
NEXT = {"load": "signatures", "signatures": "call"}
OPS = ("produce", "load", "signatures", "call")
SAME_CELL = {"call_in_threads": "call"}  # further requests of a check, by what they are asked for
CASES = [f"case_{letter}" for letter in "abcdefghij"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What a run observes to which nothing happens."""
    world = FaultyWorld(tmp_path_factory.mktemp("undisturbed") / "world", CASES)
    assert world.go() == 0, (world.root / "log").read_text()[-3000:]
    assert world.left() == []
    found = world.observed()
    assert len(found) == len(CASES) * 7 and {record["outcome"] for record in found.values()} == {
        "PASS"
    }
    return found


def schedule(rng):
    """``consumer, case, op, fault``: every fault once, at most one for each pair of a consumer and
    a case.
    """
    places = [
        (consumer, case) for consumer in PROGRAMS for case in CASES[2:]
    ]  # of two cases nothing happens to
    faults = [fault for fault in (*LOST, *HARMLESS, *LATER) if FACTOR > 1 or fault != SLOW]
    rng.shuffle(faults)
    rng.shuffle(places)
    found = []
    used = [case for _, case in places[: len(faults)]]
    for fault, (consumer, case) in zip(faults, places):
        alone = (
            consumer == "tf2" and used.count(case) == 1
        )  # a lost production would keep the other fault from happening
        ops = list(NEXT) if fault in LATER else OPS if alone and fault != "SIGSTOP" else OPS[1:]
        found.append((consumer, case, rng.choice(ops), fault))
    return found


@pytest.mark.parametrize("seed", range(FACTOR))
def test_every_fault_costs_the_cell_it_happens_in(tmp_path, undisturbed, seed):
    """The others are as in an undisturbed run, what depends on a lost production is not run, and a
    resumed run asks that.
    """
    faults = schedule(random.Random(seed))
    frozen = [case for _, case, _, fault in faults if fault == "SIGSTOP"]
    world = FaultyWorld(tmp_path / "world", CASES, frozen)
    world.schedule(faults)
    assert world.go() == 1, (world.root / "log").read_text()[-3000:]
    observed = world.observed()
    assert len(list(world.faults.glob("done-*"))) == len(faults)
    concerned = {cell_of(*where): (where[1], where[2], fault) for *where, fault in faults}
    before = {
        cell_of(who, case, NEXT[op]): cell_of(who, case, op)
        for who, case, op, fault in faults
        if fault in LATER
    }
    for cell, record in observed.items():
        case, op, fault = concerned.get(cell, ("", "", ""))
        if fault in LOST:
            due = LOST[fault][1]
            seen = (record["outcome"], record["error_class"])
            assert seen == (due.outcome, due.error_class), (cell, record)
            assert re.search(due.says, record["message"]), (cell, record["message"])
            said = evidence(world, record)
            assert re.findall(r"last words of (\w+) in (\w+)", said) == [(case, op)], cell
        elif fault in LATER and record["outcome"] == "CRASH":
            assert re.search(f"last words of {case} in {op}", evidence(world, record)), cell
        elif record["outcome"] in ("CRASH", "TIMEOUT"):
            assert observed[before[cell]]["outcome"] == "PASS", cell
        elif record["outcome"] == "NOT_RUN":
            lost = concerned[cell_of("tf2", cell.partition("/")[0], "produce")][2]
            assert lost in LOST and "producer failed: CRASH " in record["message"], (cell, record)
        else:
            same(record, undisturbed[cell], cell)
    assert set(observed) == set(undisturbed)
    assert world.left() == []
    kept = {cell: record for cell, record in observed.items() if record["outcome"] != "NOT_RUN"}
    assert world.go("--resume") == 1
    for cell, record in world.observed().items():
        made_again = (
            cell.endswith("/produce")
            and kept[cell]["outcome"] != "PASS"
            and record["outcome"] == "PASS"
        )
        same(record, undisturbed[cell] if made_again else kept.get(cell, undisturbed[cell]), cell)
    assert world.left() == []


def same(record, other, cell):
    """Two records of a cell say the same. A step's limit makes another plan of it."""
    mine, theirs = (
        {key: value for key, value in one.items() if key != "plan_id"} for one in (record, other)
    )
    assert mine == theirs, cell


def charge(kills, lost):
    """Each kill cost a cell of its own: that of the request, or a later check's, for which the
    model was loaded again.

    ``kills``: (consumer, case, op, signal); ``lost``: cell -> error class.
    """
    rest = dict(lost)
    asked = [(who, case, SAME_CELL.get(op, op), how) for who, case, op, how in kills]
    # The one with the least choice first.
    for who, case, op, how in sorted(asked, key=lambda kill: -OPS.index(kill[2])):
        ops = (op,) if op == "produce" else OPS[: OPS.index(op) - 1 : -1]
        cells = [
            cell for cell in (cell_of(who, case, later) for later in ops) if rest.get(cell) == how
        ]
        assert cells, (who, case, op, how, rest)
        del rest[cells[0]]


@pytest.mark.parametrize("seed", range(FACTOR))
def test_workers_killed_at_random_moments(tmp_path, undisturbed, seed):
    rng = random.Random(seed)
    world = FaultyWorld(tmp_path / "world", CASES)
    world.pause = 0.02
    killer = Killer(world, rng, 10)
    run = world.start("-n", "2")
    killer.watch(run)
    assert run.returncode in (0, 1), (world.root / "log").read_text()[-3000:]
    assert len(killer.killed) >= 3
    observed = world.observed()
    lost = {cell: record for cell, record in observed.items() if record["outcome"] == "CRASH"}
    charge(killer.asked(), {cell: record["error_class"] for cell, record in lost.items()})
    # A model whose load was killed twice is believed to be deadly: the third check is not asked.
    believed = [
        (who, case)
        for who in PROGRAMS
        for case in CASES
        if all(cell_of(who, case, op) in lost for op in (*NEXT, "call"))
    ]
    assert len(lost) <= len(killer.killed) + len(believed)
    for cell, record in observed.items():
        if record["outcome"] == "NOT_RUN":
            assert cell_of("tf2", cell.partition("/")[0], "produce") in lost
        elif cell not in lost:
            same(record, undisturbed[cell], cell)
    assert {record["error_class"] for record in lost.values()} <= {
        how.name for how in killer.killed.values()
    }
    assert world.left() == []


@pytest.mark.parametrize("seed", range(FACTOR))
def test_a_harness_killed_at_random_moments_is_resumed(tmp_path, undisturbed, seed):
    """Its workers end, what it has left goes, what it has observed is not asked again."""
    rng = random.Random(seed)
    world = FaultyWorld(tmp_path / "world", CASES)
    world.pause = 0.02
    seen = 0
    for _ in range(1 if FACTOR == 1 else 5):
        run = world.start("--resume")
        while not (world.observed_so_far() > seen or run.poll() is not None):
            time.sleep(0.01)
        time.sleep(rng.random() * 0.4)
        run.send_signal(signal.SIGKILL)
        run.wait()
        assert world.settled()
        assert world.observed_so_far() >= seen
        seen = world.observed_so_far()
        assert not (world.out / "summary.json").exists()
    assert world.go("--resume") == 0, (world.root / "log").read_text()[-3000:]
    assert world.observed() == undisturbed
    assert world.left() == []
