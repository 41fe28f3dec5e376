"""The results in the README, from the records of the evidence and of the benchmarks."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks import Summary, record
from docs import evidence_index

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
# The benchmark that the README names: the time to load and call real models.
_NAME = re.compile(r"load and first calls of (\d+) real models")
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

    Raises ValueError if the record of the benchmarks has no row for it.
    """
    for row in record.rows(record.read()):
        found = _NAME.fullmatch(row.name) if isinstance(row, Summary) else None
        if found and isinstance(row, Summary):
            return (
                f"`reference_impl` loads {found[1]} real models and calls all their signatures in"
                f" {row.ours_seconds:.1f} s, `{row.theirs}` in {row.theirs_seconds:.1f} s"
                " ([benchmarks](docs/evidence/benchmarks.md))."
            )
    raise ValueError(f"{record.FILE}: no row 'load and first calls of N real models'")
