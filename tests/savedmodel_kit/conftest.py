"""The kit with all its artifacts, made once for the tests of a process."""

import pytest

from savedmodel_kit import artifacts
from savedmodel_kit.build import write_folder
from savedmodel_kit.score import open_kit


@pytest.fixture(scope="session")
def kit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kit") / "kit"
    write_folder(folder, artifacts.committed())
    return open_kit(folder)
