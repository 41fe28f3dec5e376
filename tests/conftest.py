"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import signal
import sys

import pytest

from compat_matrix.runtimes import forks
from compat_matrix.workers.protocol import COLLECT_AFTER

# In a process that a shell has put in the background SIGINT is ignored, and would be in those that
# tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The objects of TensorFlow and of its models stay; visiting them again and again took a fifth of
# the time of a test.
gc.set_threshold(COLLECT_AFTER)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Without TensorFlow many tests wait for processes, sockets and limits: twice as many processes
    as CPUs, at most eight.
    """
    if config.option.markexpr == "not tensorflow":
        cpus = (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
        return max(cpus, min(2 * cpus, 8))
    return None


@pytest.fixture(scope="session", autouse=True)
def one_import():
    """All workers of a process of the tests are forks of one that has imported TensorFlow."""
    with forks.kept():
        yield


@pytest.fixture(autouse=True)
def no_seed_of_another_test():
    """A seed set for the whole process is traced into every function that draws, so a later test
    would draw no new numbers.
    """
    _forget_the_seed()
    yield
    _forget_the_seed()


def _forget_the_seed():
    random = getattr(sys.modules.get("tensorflow"), "random", None)
    if random is not None:  # TensorFlow is imported, and its import is over
        random.set_seed(None)


@pytest.fixture(scope="session")
def warm_host(tmp_path_factory):
    """The workers of this Python's TensorFlow, started once for all tests of a process."""
    from compat_matrix.hosts.host import Host

    with Host(tmp_path_factory.mktemp("warm")) as host:
        yield host
