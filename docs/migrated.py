"""The results of `migrate` on the fixtures and on a public zoo, for the page
`evidence/public_zoo.md`; kept in `data/migrated.json`.

    python -m docs.migrated fixtures=REPORT.json zoo=REPORT.json

A report is the ``report.json`` of a run. Its paths stay where they are. A run that is not given
stays as it was recorded.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from docs.markdown import table

RECORD = Path(__file__).parent / "data" / "migrated.json"
TITLES = {
    "fixtures": "The TF 1.x fixtures",
    "zoo": "A public zoo",
}
ABOUT = {
    "fixtures": (
        "Models made by genuine TF 1.x for this project: [what each holds](../../fixtures_v1)."
    ),
    "zoo": (
        "Models that people committed to public repositories, of TF 1.0 to 2.19, the broken ones"
        " among them too."
    ),
}
HEAD = """# What was migrated

Two runs of [`migrate`](../zoo/migrate_tf1.md) with TensorFlow {tensorflow}, without `--partial`. A model of TF 1.x is converted and
proved. A model of TF 2 is copied if this TensorFlow loads it; otherwise it is saved again and proved (`repaired`). The others
are refused or not proved, with advice. No model in the output lost a weight, a signature, an asset or an entry of a
table.

"""  # noqa: E501
PROVED = (
    "loads, tf2", "answers, reference", "answers, tf2", "answers, c_api", "gradients, tf2",
    "weights", "tables", "assets", "assets.extra", "signatures", "next generation",
)  # fmt: skip
STATES = ("equal", "close", "differs", "absent")
GOOD = ("migrated", "repaired", "copied")
_REASON = 300


def page() -> str:
    """Return the page."""
    facts = json.loads(RECORD.read_text(encoding="utf-8"))
    out = [HEAD.format(tensorflow=facts["tensorflow"])]
    for key, title in TITLES.items():
        run = facts["runs"][key]
        out += [f"## {title}\n\n{ABOUT[key]} {run['models']} models, {run['bytes']:,} bytes.\n\n"]
        statuses = sorted(set(itertools.chain.from_iterable(run["statuses"].values())))
        rows = [
            (kind or "unreadable", *_fields(by_status, statuses))
            for kind, by_status in sorted(run["statuses"].items())
        ]
        out += [
            table(("models of", *statuses), rows),
            f"\nProved, MetaGraph by MetaGraph ({run['signatures']}):\n\n",
        ]
        header = (
            "what",
            "equal in every bit",
            "within the tolerance",
            "differs",
            "nothing to compare with",
        )
        out += [table(header, [(what, *_fields(run["proved"][what], STATES)) for what in PROVED])]
        others = {
            version: count
            for version, count in run.get("answered_by", {}).items()
            if version != facts["tensorflow"]
        }
        if others:
            said = ", ".join(
                f"{count} in TensorFlow {version}" for version, count in sorted(others.items())
            )
            out += [
                "\nOld models that this TensorFlow does not run were asked in another release"
                f" (`--runtime`): {said}.\n"
            ]
        out += ["\n### Refused or not proved, and what would help\n\n"]
        out += [
            table(
                ("models", "why", "what would help"),
                [(f"{len(n)}: {', '.join(n)}", w, h) for n, w, h in run["refused"]],
            )
        ]
        if run["not_compared"]:
            out += [
                "\n### In the output, and not compared\n\n",
                table(("model", "what"), [tuple(row) for row in run["not_compared"]]),
            ]
        out += ["\n"]
    return "".join(out).rstrip("\n") + "\n"


def _fields(counts: Mapping[str, int], keys: Iterable[str]) -> list[str]:
    """Return the fields of a row: "" for a key without a count."""
    return [str(counts.get(key, "")) for key in keys]


def run_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of one run."""
    models = report["models"]
    statuses: dict[str, Counter[str]] = {}
    proved: dict[str, Counter[str]] = {}
    refused: dict[tuple[str, str], list[str]] = {}
    not_compared = []
    for model in models:
        name = model["relative"].removesuffix("/model")
        statuses.setdefault(model["kind"], Counter())[model["status"]] += 1
        if model["status"] not in GOOD:
            refused.setdefault((_reason(model), model["fix"]), []).append(name)
        for part in model["parts"] if model["status"] in GOOD else ():
            for verdict in part["verdicts"]:
                proved.setdefault(verdict["what"], Counter())[verdict["state"]] += 1
            not_compared += [[name, text] for text in dict.fromkeys(_left_out(part))]
    good = [model["parts"] for model in models if model["status"] in GOOD]
    parts = list(itertools.chain.from_iterable(good))
    asked = sum(len(part["asked"]) for part in parts)
    there = sum(len(part["signatures"]) for part in parts)
    return {
        "models": len(models),
        "bytes": sum(model["bytes_before"] for model in models),
        "signatures": f"{len(parts)} MetaGraphs, {asked} of their {there} signatures answer",
        "answered_by": Counter(part["answered_by"] for part in parts if part.get("answered_by")),
        "statuses": statuses,
        "proved": proved,
        "refused": [
            [names, *words]
            for words, names in sorted(refused.items(), key=lambda item: (-len(item[1]), item[1]))
        ],
        "not_compared": not_compared,
    }


def _reason(model: Mapping[str, Any]) -> str:
    """The first line, without where the model lay when it was migrated, and without names of
    nodes.
    """
    text = re.sub(
        rf"\S*{re.escape(Path(model['relative']).name)}/", "", model["reason"].splitlines()[0]
    )
    head, found, _ = text.partition(": node '")
    text = head if found else text
    return text if len(text) <= _REASON else text[:_REASON] + "..."


def _left_out(part: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{key}: {why}" for key, why in part["not_asked"].items())
    yield from (text for text in part["notes"] if "to chance" in text)


def main(arguments: list[str]) -> int:
    reports = dict(argument.split("=", 1) for argument in arguments)
    read = {
        key: json.loads(Path(reports[key]).read_text(encoding="utf-8"))
        for key in TITLES
        if key in reports
    }
    for model in itertools.chain.from_iterable(report["models"] for report in read.values()):
        if model["status"] not in GOOD and not (
            model["status"] in ("refused", "unproved") and model["fix"]
        ):
            print(
                f"the page would not be true: {model['name']}: {model['status']},"
                f" {model['fix'] or 'nothing would help'}"
            )
            return 1
    recorded = (
        json.loads(RECORD.read_text(encoding="utf-8"))["runs"] if len(read) < len(TITLES) else {}
    )
    runs = {key: run_of(read[key]) if key in read else recorded[key] for key in TITLES}
    installed = {
        name.lower().replace("_", "-")
        for item in importlib.metadata.distributions()
        if (name := item.metadata["Name"])
    }
    package = next(name for name in ("tensorflow", "tensorflow-cpu") if name in installed)
    facts = {"tensorflow": importlib.metadata.version(package), "runs": runs}
    RECORD.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
