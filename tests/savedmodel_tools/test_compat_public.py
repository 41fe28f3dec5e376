"""What `compat` foretells of public models, held against what TensorFlow 2.21 did with them (a
collection beside the project).
"""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from savedmodel_compat.cli import main

COLLECTION = Path(__file__).parents[3] / "shared" / "zoo"
COLUMNS = {"objects": "v2_status", "session": "v1_status"}
UNREADABLE = 3  # models of the collection that nobody can read, at most


@pytest.mark.skipif(
    not COLLECTION.is_dir(), reason=f"the collection of public models is not here: {COLLECTION}"
)
def test_no_public_model_is_foretold_wrongly():
    with (COLLECTION / "baseline_tf221.csv").open(encoding="utf-8", newline="") as file:
        seen = {
            (row["id"], *sorted(filter(None, row["tags"].replace("<empty>", "").split("+")))): row
            for row in csv.DictReader(file)
        }
    done = CliRunner().invoke(
        main,
        ["compat", "--target", "2.21", "--json", str(COLLECTION / "models")],
        standalone_mode=False,
    )
    models = json.loads(done.output)["models"]
    counts, wrong = Counter(), []
    for model in models:
        for graph in model.get("meta_graphs", ()):
            row = seen.get((Path(model["path"]).name, *graph["tags"]))
            for use in (
                use for use in graph["uses"] if use["part"] == "load" and use["loader"] in COLUMNS
            ):
                if row is None:
                    counts["not observed"] += 1
                    continue
                foretold, loaded = bool(use["releases"]), row[COLUMNS[use["loader"]]] == "ok"
                if foretold and "unknown" in use:
                    counts["unknown"] += 1
                elif foretold == loaded:
                    counts["right"] += 1
                else:
                    wrong.append((model["path"], use["loader"], foretold, use["fails"]))
    assert wrong == []
    assert sum("error" in model for model in models) <= UNREADABLE
    assert counts["right"] > 5 * counts["unknown"] > 0
    assert counts["not observed"] < len(models) / 10
