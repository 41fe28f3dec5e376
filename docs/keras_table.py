"""The page of the layers that ``migrate --to keras`` rebuilds, by the release that saved them; kept
in ``data/keras.json``.

    python -m docs.keras_table OUT

OUT is the folder of a run of ``python -m savedmodel_migration.keras_models.table``.
"""

from __future__ import annotations

import fnmatch
import functools
import importlib.metadata
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from savedmodel_common import toml
from savedmodel_migration.keras_models import groups, outcome

RECORD = Path(__file__).parent / "data" / "keras.json"
REASONS = Path(__file__).parents[1] / "savedmodel_migration" / "keras_models" / "reasons.toml"
BACKENDS = ("jax", "torch")
MARKS = {
    "equal": "=",  # every bit
    "close": "~",
    "step": "s",
    "refused": "r",
    "answers": "x",
    "weights": "x",
    "error": "x",
    "absent": ".",
    "missing": "?",
}
PREDICTS = "=~s"
BITS = {"optimizer": "o", "kernel": "k", "both": "b"}  # of outcome.SAME_BITS
NEVER, NOT_ASKED = "-", "."
HEAD = """# Keras layers, by the release that saved them

This page shows what `migrate --to keras` [rebuilds](../zoo/migrate_keras.md). It is about {models} models that genuine TensorFlow
releases saved: one or more for each layer and way to use it, and whole models. Each was rebuilt with Keras {keras} on TensorFlow
{tensorflow}. Its answers to the same inputs were compared with those of the original and those of the release itself, then its
weights after one training step. `python -m savedmodel_migration.keras_models` makes the models, `python -m savedmodel_migration.keras_models.table` compares them.

Each field counts ways to use the layer: **rebuilt / saved by this release**. Rebuilt models give the predictions of the original, bit for
bit, or within 1e-5 if the field ends with `~`. An `s` after the numbers means that a training step of one of them differs. A field is
empty if the release does not have the layer, or cannot save it. `?` means not compared yet. The reasons are
[below](#what-is-not-equal).

The columns `jax` and `torch` count rebuilt files that another process, without TensorFlow, loaded on that backend and that
predicted the same within 1e-5. Keras itself computes some layers with TensorFlow: they are not counted there (`TF`).

"""  # noqa: E501


CLOSE = """The largest difference from the original in the same TensorFlow, as a part of the largest number of the answer. Both
models were then asked again, until the answers had the same bits:

- *without the graph optimizer*: TensorFlow's graph optimizer is off for both models
  (`tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})`). It joins other ops of Keras 3 than of
  Keras 2 into one kernel, which rounds otherwise.
- *with the normalization of Keras 2*: `BatchNormalization` and `LayerNormalization` of the rebuilt model call
  `tf.nn.fused_batch_norm`, as Keras 2 did. It computes `(x - mean) * f + beta`. Keras 3 computes `x * f + (beta - mean * f)`,
  with the same `f`, and no layer of it calls this kernel outside of training.

Nothing else is changed. If the bits are then the same, every other layer computes the same as in the original.

"""  # noqa: E501


def page(table: Any) -> str:
    """Markdown; ``table(header, rows)`` makes a table."""
    facts = json.loads(RECORD.read_text(encoding="utf-8"))
    releases, models = facts["releases"], facts["models"]
    marks, _ = counts()
    asked = sum(marks.values())
    out = [HEAD.format(models=f"{asked:,}", keras=facts["keras"], tensorflow=facts["tensorflow"])]
    out += [
        table(
            (
                "release",
                "models",
                "equal in every bit",
                "close",
                "another step",
                "refused",
                "differs",
            ),
            _totals(facts),
        ),
        "\n",
    ]
    for title, layers in groups.by_group(models):
        rows = [
            (f"`{layer}`", *_fields(members, len(releases))) for layer, members in layers.items()
        ]
        out += [f"## {title}\n\n", table(("layer", *releases, *BACKENDS), rows), "\n"]
    out += [
        "## What is close\n\n",
        _close(facts, table),
        "\n## What is not equal\n\n",
        table(("models", "saved by", "why"), _others(facts)),
    ]
    return "".join(out)


def counts() -> tuple[Counter[str], int]:
    """Return how many models that a release saved have each mark of `MARKS`, and how many of them
    predict the same when they are rebuilt.
    """
    models = json.loads(RECORD.read_text(encoding="utf-8"))["models"]
    marks = Counter("".join(row["made"] for row in models.values()))
    asked = Counter({mark: marks[mark] for mark in PREDICTS + "rx"})
    return asked, sum(asked[mark] for mark in PREDICTS)


def _totals(facts: Mapping[str, Any]) -> list[tuple[str, ...]]:
    rows = []
    for number, release in enumerate(facts["releases"]):
        counted = Counter(row["made"][number] for row in facts["models"].values())
        known = sum(counted[mark] for mark in "=~srx")
        rows.append((release, str(known), *(str(counted[mark]) for mark in "=~srx")))
    return rows


def _fields(members: list[Mapping[str, Any]], releases: int) -> Iterator[str]:
    for number in range(releases):
        marks = [row["made"][number] for row in members]
        made = [mark for mark in marks if mark in "=~srx"]
        good = sum(mark in PREDICTS for mark in made)
        suffix = "".join(mark for mark in "~s" if mark in made)
        if made:
            yield f"{good}/{len(made)}{suffix}"
        else:
            yield "?" if "?" in marks else ""
    for backend in BACKENDS:
        marks = "".join(row.get(backend, "") for row in members)
        known = [mark for mark in marks if mark in "=x"]
        if known:
            yield f"{known.count('=')}/{len(known)}"
        else:
            yield "TF" if "T" in marks else ""


def _close(facts: Mapping[str, Any], table: Any) -> str:
    """The models whose answers have other bits than the original's in the same TensorFlow, and what
    gives them the same bits.
    """
    rows = []
    for name, row in facts["models"].items():
        found: dict[str, list[str]] = {}
        for release, mark, bits in zip(
            facts["releases"], row["made"], row.get("bits", NOT_ASKED * len(row["made"]))
        ):
            if mark == MARKS["close"] or bits != NOT_ASKED:
                found.setdefault(bits, []).append(release)
        for bits, releases in found.items():
            equal = next(
                (outcome.SAME_BITS[key] for key, letter in BITS.items() if letter == bits), ""
            )
            off = f"{row['off']:.1g}" if row.get("off") else ""
            rows.append((f"`{name}`", ", ".join(releases), off, equal or reason(name, "close")))
    return CLOSE + table(
        ("model", "saved by", "largest difference", "equal in every bit, or why not"), rows
    )


def _others(facts: Mapping[str, Any]) -> list[tuple[str, ...]]:
    found: dict[tuple[str, str], list[str]] = {}
    for release, name, state, text in facts["why"]:
        found.setdefault((name, reason(name, state) or text), []).append(release)
    return [
        (f"`{name}`", ", ".join(releases), why) for (name, why), releases in sorted(found.items())
    ]


@functools.cache
def reasons() -> list[dict[str, Any]]:
    """The entries of ``reasons.toml``."""
    found: list[dict[str, Any]] = toml.read(REASONS)["reason"]
    return found


def reason(name: str, state: str) -> str:
    """The reason that ``reasons.toml`` has for a model, ``""`` if there is none."""
    for entry in reasons():
        if state in entry["states"] and any(
            fnmatch.fnmatchcase(name, pattern) for pattern in entry["models"]
        ):
            return " ".join(entry["why"].split())
    return ""


def record(out: Path) -> dict[str, Any]:
    """The facts of a run."""
    from savedmodel_migration.keras_models import material, recorder, table

    models: dict[str, dict[str, Any]] = {}
    why = []
    for name in recorder.names():
        row: dict[str, Any] = {"made": "", "bits": ""}
        for release in material.RELEASES:
            found = table.read(out, release).get(name)
            if found and found.get("key") != material.key(name):
                found = None  # of another model with this name
            row["made"] += _mark(release, name, found)
            row["bits"] += (
                BITS.get(found["bits"], NEVER) if found and "bits" in found else NOT_ASKED
            )
            if found and found.get("off"):
                row["off"] = max(row.get("off", 0.0), found["off"])
            if found and found["state"] not in table.GOOD:
                why.append([release, name, found["state"], _first_line(found["why"])])
            elif found and found.get("file"):
                why.append([release, name, "file", _first_line(found["file"])])
            for backend in BACKENDS:
                if found and (told := table.read(out, release, backend).get(name)):
                    mark = _mark_of_backend(told)
                    row[backend] = row.get(backend, "") + mark
                    if mark == "x":
                        why.append(
                            [release, name, backend, f"{backend}: {_first_line(told['why'])}"]
                        )
        models[name] = row
    return {
        "tensorflow": importlib.metadata.version("tensorflow-cpu"),
        "keras": importlib.metadata.version("keras"),
        "releases": list(material.RELEASES),
        "models": models,
        "why": why,
    }


def _mark(release: str, name: str, found: Mapping[str, Any] | None) -> str:
    from savedmodel_migration.keras_models import material

    if found:
        return MARKS[found["state"]]
    made = material.stored(release, name)
    return MARKS["absent" if made is not None and not made.usable else "missing"]


def _mark_of_backend(told: Mapping[str, Any]) -> str:
    from savedmodel_migration.keras_models import table

    if told["state"] == "equal":
        return "="
    return "T" if table.NEEDS_TENSORFLOW in told["why"] else "x"


def _first_line(text: str) -> str:
    return next(iter(text.strip().splitlines()), "")[:200]


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(__doc__)
        return 64
    facts = record(Path(arguments[0]))
    empty = NOT_ASKED * len(facts["releases"])
    lines = []
    for name, row in facts["models"].items():
        told = {key: value for key, value in row.items() if value and value != empty}
        lines.append(f"  {json.dumps(name)}: {json.dumps(told)}")
    rest = json.dumps({key: value for key, value in facts.items() if key != "models"}, indent=1)
    text = rest[:-2] + ',\n "models": {\n' + ",\n".join(lines) + "\n }\n}\n"
    RECORD.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
