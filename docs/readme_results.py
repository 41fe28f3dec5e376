"""The results in the README, from the records of the evidence and the page of the benchmarks."""

from __future__ import annotations

import re
from pathlib import Path

from docs import evidence_index

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BENCHMARKS = ROOT / "docs/evidence/benchmarks.md"
# The benchmark that the README names: its row has what loads and calls real models takes.
_ROW = re.compile(
    r"^\| load and first calls of (\d+) real models .*? \| tf\.saved_model \| ([\d.]+) \| ([\d.]+)",
    re.MULTILINE,
)
_REGION = re.compile(
    r"(?<=<!-- results: python -m docs\.generate -->\n).*?(?=<!-- end -->)", re.DOTALL
)


def filled() -> str:
    """Return the README with its results made anew."""
    return _REGION.sub(lambda _: _results(), README.read_text(encoding="utf-8"))


def is_stale() -> bool:
    """Return whether the results in the README are not those of the records."""
    return filled() != README.read_text(encoding="utf-8")


def write() -> None:
    """Write the README with its results made anew."""
    README.write_text(filled(), encoding="utf-8")


def _results() -> str:
    sentences = [
        evidence_index.zoo_sentence(),
        evidence_index.keras_sentence(),
        evidence_index.grid_sentence(),
        speed_sentence(),
    ]
    lines = "".join(f"- {sentence}\n" for sentence in sentences)
    return f"\n{lines}\n[How each was measured](docs/evidence/index.md).\n\n"


def speed_sentence() -> str:
    """Return the speed of a load in one sentence.

    Raises ValueError if the page of the benchmarks has no row for it.
    """
    found = _ROW.search(BENCHMARKS.read_text(encoding="utf-8"))
    if not found:
        raise ValueError(f"{BENCHMARKS}: no row 'load and first calls of N real models'")
    models, ours, theirs = found[1], float(found[2]), float(found[3])
    return (
        f"`reference_impl` loads {models} real models and calls all their signatures in"
        f" {ours:.1f} s, `tf.saved_model` in {theirs:.1f} s"
        " ([benchmarks](docs/evidence/benchmarks.md))."
    )
