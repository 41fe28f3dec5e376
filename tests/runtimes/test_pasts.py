"""Pasts: drawn from a seed, the same on every machine, and close to the numbers in a file.

Needs no TensorFlow.
"""

from __future__ import annotations

import os

import pytest

from compat_matrix.runtimes import pasts
from compat_matrix.runtimes.pasts import Past, numbers_in


def test_a_past_is_drawn_from_its_seed():
    many = [Past.of_seed(seed) for seed in range(1, 61)]
    assert many == [Past.of_seed(seed) for seed in range(1, 61)]
    assert {one.fresh for one in many} == {pasts.CELL, pasts.ARTIFACT, pasts.RUN}
    assert {one.garbage for one in many} == {pasts.USUAL, pasts.OFTEN, pasts.NEVER}
    for name in ("time_zone", "locale", "umask", "temporary", "plain_productions"):
        assert len({getattr(one, name) for one in many}) > 1, name
    assert len({one.hash_seed for one in many}) > 50 and not any(one.hash_seed == 0 for one in many)
    assert [Past.from_json(one.to_json()) for one in many] == many


def test_the_plain_past_changes_nothing():
    plain = Past.of_seed(pasts.PLAIN)
    assert plain.environment() == {"PYTHONHASHSEED": "0"}
    assert (plain.models, plain.counters, plain.fresh) == ((), False, pasts.CELL)


@pytest.fixture
def model(tmp_path):
    text = (
        b"\x0f CustomGradient-712\x00__inference_f_345\x12__forward_g_h_77 table__load3 a_load_9"
        b" __inference_f_99999999"
    )
    (tmp_path / "saved_model.pb").write_bytes(text)
    return tmp_path


def test_numbers_are_read_from_the_bytes_of_a_model(model):
    assert numbers_in(model) == {"gradients": [712], "functions": [77, 345], "loads": [3, 9]}


def test_a_counter_stands_just_below_a_number_of_the_file(model):
    starts = {Past.of_seed(seed).counter_before(model) for seed in range(1, 100)}
    near = [range(max(0, number - 8), number + 1) for number in (712, 77, 345, 3, 9)]
    assert all(any(start in numbers for numbers in near) for start in starts)
    assert len(starts) > 20
    assert Past.of_seed(5).counter_before(model) == Past.of_seed(5).counter_before(model)


def test_a_model_without_numbers_leaves_the_counter(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"nothing")
    assert Past.of_seed(1).counter_before(tmp_path) is None
    assert Past.of_seed(1).counter_before(tmp_path / "absent") is None


def test_a_process_gets_the_temporary_folder_and_the_environment(tmp_path):
    """The program of the sample consumer, which says what it sees."""
    from compat_matrix.runtimes.programs import Program
    from compat_matrix.runtimes.runtime import local_runtime
    from compat_matrix.runtimes.worker import Worker

    script = tmp_path / "says.py"
    script.write_text(
        "import os\n"
        "from savedmodel_compat_workers import protocol\n\n\n"
        "class Says(protocol.Worker):\n"
        "    name = 'says'\n\n"
        "    def op_seen(self, request):\n"
        "        mask = os.umask(0)\n"
        "        return {'hash': hash('a'), 'mask': mask, 'tmp': os.environ['TMPDIR']}\n\n\n"
        "protocol.serve(Says)\n"
    )
    program = Program("says", ("{python}", "{workers}", str(script)))
    past = Past(1, hash_seed=5, umask=0o027, temporary="another tmp")
    seen = []
    for _ in range(2):
        worker = Worker(local_runtime(), program, tmp_path / "cwd", tmp_path / "log", past)
        seen.append(worker.request("seen", 10.0))
        worker.count_to(10)  # the program has no TensorFlow, and says so without an error
        worker.close()
    assert seen[0]["hash"] == seen[1]["hash"]
    assert seen[0]["mask"] == 0o027
    folder = tmp_path / "cwd" / "another tmp"
    assert seen[0]["tmp"] == os.fspath(folder) and folder.is_dir()
