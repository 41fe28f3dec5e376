"""A file that is no SavedModel is called that, whatever its bytes would mean as one."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from savedmodel_compat.cli import main


@pytest.mark.parametrize("command", ["inspect", "verify", "compat"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"hello world, I am no model\n", "it begins with b'hello world"),
        (b"<html><body>404</body></html>", "it begins with b'<html>"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a pointer of Git LFS"),
        (b"\x89HDF\r\n\x1a\n" + bytes(40), "it begins with b'\\x89HDF"),
    ],
)
@pytest.mark.parametrize("place", ["model.pb", "model/saved_model.pb"])
def test_it_is_called_no_saved_model(tmp_path, command, content, says, place):
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    done = CliRunner().invoke(main, [command, str(tmp_path / place.split("/")[0])])
    assert done.exit_code in (1, 4)
    assert (
        f"this is not a SavedModel: {'it begins with ' if 'LFS' in says else ''}{says}"
        in done.output
    ), done.output
