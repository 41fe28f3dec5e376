"""The workflow for real images runs what tox and the documentation have, with pinned images."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "serving.yml"
IMAGE = re.compile(r"tensorflow/serving[:@][\w.:-]+")


def test_two_images_are_pinned_and_are_those_of_the_documentation() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    images = dict(re.findall(r"^  (\w+_IMAGE): (\S+)$", text, re.MULTILINE))
    assert sorted(images) == ["NEW_IMAGE", "OLD_IMAGE"]
    assert set(IMAGE.findall(text)) == set(images.values()), "an image that is not one of the two"
    versions = [Version(image.partition(":")[2]) for image in images.values()]
    assert all(len(version.release) == 3 for version in versions), "a tag that moves"
    page = (ROOT / "docs/servers/serving.md").read_text(encoding="utf-8")
    section = page.partition("## Real images in CI")[2].partition("\n## ")[0]
    assert set(images.values()) <= set(IMAGE.findall(section))


def test_the_environment_and_the_commands_exist() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    for name in re.findall(r"tox -e ([\w-]+)", text):
        assert f"testenv:{name}" in tox
    assert "tox -e serving -- " in text
    from compat_matrix.commands.matrix import matrix as group
    from savedmodel_servers.commands.serving import serving

    matrix = {name for parameter in group.commands["run"].params for name in parameter.opts}
    assert (
        set(re.findall(r"(--[a-z-]+)", text.partition("tox -e serving -- ")[2].partition("\n")[0]))
        <= matrix
    )
    commands = re.findall(r"savedmodel-compat serving (\w+)", text)
    assert commands == ["upgrade"]
    options = {name for parameter in serving.commands["upgrade"].params for name in parameter.opts}
    assert (
        set(re.findall(r"(--[a-z-]+)", text.partition("serving upgrade")[2].partition("- uses")[0]))
        <= options
    )
