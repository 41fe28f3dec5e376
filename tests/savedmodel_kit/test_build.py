"""The archive of the kit."""

import json
import tarfile

import pytest

from savedmodel_kit import artifacts, build, constraints
from savedmodel_kit.hostile.catalogue import hostile_files


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("built") / "kit.tar.gz"
    return out, build.build(out, artifacts.committed())


def test_built_twice_it_has_the_same_bytes(built, tmp_path):
    build.build(tmp_path / "again.tar.gz", artifacts.committed())
    assert (tmp_path / "again.tar.gz").read_bytes() == built[0].read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["again.tar.gz"]


def test_members_have_no_times_and_no_owners(built):
    with tarfile.open(built[0]) as archive:
        members = archive.getmembers()
    assert {(one.mtime, one.uid, one.gid, one.uname, one.gname) for one in members} == {
        (0, 0, 0, "", "")
    }
    assert [one.name for one in members] == sorted(
        (one.name for one in members), key=lambda name: name.split("/")
    )


def test_what_is_in_it(built, tmp_path):
    folder = build.unpack(built[0], tmp_path)
    index = json.loads((folder / "index.json").read_text())
    assert index == built[1]
    assert {one["name"] for one in index["hostile"]} == set(hostile_files())
    assert len(index["artifacts"]) >= 81
    for one in index["artifacts"]:
        place = folder / one["folder"]
        assert {"model", "meaning.json", "provenance.json"} <= {
            path.name for path in place.iterdir()
        }
        assert one["licence"]
    assert json.loads((folder / "constraints.json").read_text()) == json.loads(
        constraints.FILE.read_text()
    )
    assert "Apache License" in (folder / "LICENSE").read_text()
    assert (folder / "README.md").exists()


def test_a_plain_archive_and_links(tmp_path):
    chosen = [one for one in artifacts.committed() if one.name == "fixtures_v1/half_plus_two"]
    build.build(tmp_path / "kit.tar", chosen)
    folder = build.unpack(tmp_path / "kit.tar", tmp_path / "out")
    (link,) = (folder / "hostile/asset_link_out/model/assets").iterdir()
    assert link.is_symlink() and link.resolve() == (folder / "constraints.json").resolve()


def test_artifacts_of_another_folder(tmp_path):
    case = next(one for one in artifacts.committed() if one.name == "fixtures_v1/half_plus_two")
    (tmp_path / "mine/case").mkdir(parents=True)
    (tmp_path / "mine/case/model").symlink_to(case.folder / "model")
    (found,) = artifacts.below(tmp_path / "mine")
    assert found.name == "mine/case"
    assert found.provenance() == {}


def test_a_failure_leaves_no_archive(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(build, "_pack", fail)
    with pytest.raises(OSError, match="no space left"):
        build.build(tmp_path / "kit.tar", [])
    assert list(tmp_path.iterdir()) == []
