"""Folders that are deleted in the background."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from compat_matrix.hosts.host import Host
from savedmodel_common import deleting


def filled(folder):
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "file").write_text("text")
    return folder


@pytest.fixture
def slow(monkeypatch):
    """A disk that deletes nothing until the event is set."""
    event, rmtree = threading.Event(), deleting.shutil.rmtree

    def wait(*args, **kwargs):
        assert event.wait(30)
        rmtree(*args, **kwargs)

    monkeypatch.setattr(deleting.shutil, "rmtree", wait)
    return event


def test_a_path_is_free_before_its_files_are_deleted(tmp_path, slow):
    deleter = deleting.Deleter(tmp_path / "deleted")
    for _ in range(3):
        deleter.delete(filled(tmp_path / "folder"))
        assert not (tmp_path / "folder").exists()
    slow.set()
    deleter._threads.shutdown()
    assert list((tmp_path / "deleted").iterdir()) == []


def test_few_folders_wait(tmp_path, slow, monkeypatch):
    monkeypatch.setattr(deleting, "WAITING", 2)
    deleter = deleting.Deleter(tmp_path / "deleted")
    threading.Timer(0.2, slow.set).start()
    for _ in range(4):
        deleter.delete(filled(tmp_path / "folder"))
    assert slow.is_set()
    deleter.close()


def test_a_folder_that_cannot_be_moved_is_deleted_at_once(tmp_path, monkeypatch):
    def refused(self, target):
        raise OSError(errno.EXDEV, "another file system")

    monkeypatch.setattr(Path, "rename", refused)
    deleter = deleting.Deleter(tmp_path / "deleted")
    deleter.delete(filled(tmp_path / "folder"))
    assert not (tmp_path / "folder").exists()
    deleter.close()


def test_a_folder_that_is_not_there(tmp_path):
    deleter = deleting.Deleter(tmp_path / "deleted")
    deleter.delete(tmp_path / "folder")
    assert list((tmp_path / "deleted").iterdir()) == []
    deleter.close()


def test_a_host_leaves_nothing(tmp_path, slow):
    with Host(tmp_path / "out") as host:
        for _ in range(3):
            host.delete(filled(host.scratch / "cell"))
        assert not (host.scratch / "cell").exists()
        slow.set()
    assert not host.scratch.exists()
