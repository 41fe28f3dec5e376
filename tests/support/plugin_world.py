"""A small world with the plug-ins of docs/exporters/plugins.md in it, and what runs commands of this project
there.
"""

import json
import os
from pathlib import Path

from matrix_world import COMMANDS, small_world

from docs import transcripts

ROOT = Path(__file__).resolve().parents[2]
DOCS, SAMPLES = ROOT / "docs", ROOT / "savedmodel_plugin_kit" / "samples"
PAGE = (DOCS / "exporters/plugins.md").read_text(encoding="utf-8")


def ours(command, cwd, **more):
    """A command of this project as its users run it, from a folder of theirs."""
    paths = os.pathsep.join([str(ROOT), *more.pop("paths", ())])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **more}
    return COMMANDS.run(["-m", "savedmodel_compat"], *command, cwd=cwd, environment=environment)


def page_files(folder):
    """What somebody has who did what docs/exporters/plugins.md says, and nothing else."""
    for name, text in transcripts.files(PAGE):
        (folder / name).write_text(text, encoding="utf-8")
    for sample in ("numpy_exporter.py", "numpy_consumer.py"):
        (folder / sample).write_bytes((SAMPLES / sample).read_bytes())
    return folder


def plugin_world(folder):
    """A world without cases and fixtures of ours, in the folder of the plug-ins."""
    made = small_world(folder)
    (made.cases / "beta.py").unlink()
    made.tensorflow("2.99.0")
    return made


def run(world, *words, out="out", **more):
    place = (
        "--out",
        world.root / out,
        "-n",
        "1",
        "--cases-dir",
        world.cases,
        "--fixtures",
        world.fixtures,
    )
    return ours(["matrix", "run", *place, *words], world.root, paths=[str(world.site)], **more)


def results(world, out="out"):
    lines = (world.root / out / "results.jsonl").read_text().splitlines()
    return {record["cell"]: record for record in map(json.loads, lines)}
