"""A folder that is made beside its place: whole or not at all, and without the leftovers of makers
that were killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from savedmodel_common.writing import discard, new_folder

KILLED = """
import os, pathlib, signal, sys
from savedmodel_common.writing import new_folder
with new_folder(pathlib.Path(sys.argv[1])) as folder:
    (folder / "half").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_takes_its_place_when_it_is_complete(tmp_path):
    place = tmp_path / "made"
    for content in ("first", "second"):
        with new_folder(place) as folder:
            (folder / content).touch()
            assert sorted(path.name for path in place.glob("*")) == (
                [] if content == "first" else ["first"]
            )
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == [
        "made",
        "made/second",
    ]


def test_an_error_leaves_what_was_there(tmp_path):
    place = tmp_path / "made"
    with new_folder(place) as folder:
        (folder / "first").touch()
    with pytest.raises(KeyboardInterrupt), new_folder(place) as folder:
        raise KeyboardInterrupt
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == [
        "made",
        "made/first",
    ]


def test_what_a_killed_maker_left_goes_with_the_next(tmp_path):
    place = tmp_path / "made[1]"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(place)], check=False, env=os.environ)
    assert killed.returncode == -signal.SIGKILL
    (other,) = tmp_path.iterdir()
    assert other != place and not place.exists()
    with new_folder(place):
        pass
    assert list(tmp_path.iterdir()) == [place]


def test_a_discarded_folder_is_gone(tmp_path):
    (tmp_path / "made" / "below").mkdir(parents=True)
    discard(tmp_path / "made")
    discard(tmp_path / "made")
    assert list(tmp_path.iterdir()) == []
