"""Plots of growth as SVG: two panels with logarithmic axes, CPU seconds and memory by size, a line
for each kind of model.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from benchmarks.growth import Point

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 330, 210, 60, 34, 70
_COLOURS = {
    "nodes": "#1f77b4",
    "functions": "#d95f02",
    "variables": "#2a9d3a",
    "children": "#9467bd",
    "assets": "#8c564b",
    "signatures": "#e377c2",
    "tags": "#7f7f7f",
}


def svg(command: str, lines: Mapping[str, Sequence[Point]]) -> str:
    """Return the plot of one command; ``lines``: kind of model -> its points."""
    width, height = 2 * (_WIDTH + _GAP) + 10, _HEIGHT + _TOP + 62
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
            ' font-family="sans-serif" font-size="12">'
        ),
        f"<title>{command}: time and memory by size of the model</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    seconds, memory = {}, {}
    for kind, line in lines.items():
        there = [point for point in line if not point.missing]
        seconds[kind] = [(point.count, point.seconds) for point in there]
        memory[kind] = [(point.count, point.peak / 2**20) for point in there]
    parts += _panel(_LEFT, f"{command}: CPU seconds", seconds)
    parts += _panel(_LEFT + _WIDTH + _GAP, f"{command}: MiB", memory)
    for number, kind in enumerate(lines):
        x, y = _LEFT + 105 * number, height - 10
        parts.append(
            f'<rect x="{x}" y="{y - 9}" width="18" height="4"'
            f' fill="{_COLOURS.get(kind, "#555555")}"/>'
        )
        parts.append(f'<text x="{x + 24}" y="{y - 3}">{kind}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(left: int, title: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> list[str]:
    points = list(itertools.chain.from_iterable(lines.values()))
    x_low, x_high = _decades([x for x, _ in points])
    y_low, y_high = _decades([y for _, y in points])

    def place(x: float, y: float) -> str:
        across = (math.log10(x) - x_low) / (x_high - x_low) * _WIDTH
        up = (math.log10(max(y, 10.0**y_low)) - y_low) / (y_high - y_low) * _HEIGHT
        return f"{left + across:.1f},{_TOP + _HEIGHT - up:.1f}"

    parts = [f'<text x="{left}" y="{_TOP - 14}" font-weight="bold">{title}</text>']
    for power in range(x_low, x_high + 1):
        x, y = place(10.0**power, 10.0**y_low).split(",")
        parts.append(f'<line x1="{x}" y1="{_TOP}" x2="{x}" y2="{y}" stroke="#dddddd"/>')
        parts.append(
            f'<text x="{x}" y="{_TOP + _HEIGHT + 16}" text-anchor="middle">{_number(power)}</text>'
        )
    for power in range(y_low, y_high + 1):
        x, y = place(10.0**x_low, 10.0**power).split(",")
        parts.append(f'<line x1="{x}" y1="{y}" x2="{left + _WIDTH}" y2="{y}" stroke="#dddddd"/>')
        parts.append(
            f'<text x="{left - 6}" y="{float(y) + 4:.1f}" text-anchor="end">{_number(power)}</text>'
        )
    for kind, line in lines.items():
        colour, places = _COLOURS.get(kind, "#555555"), [place(*point) for point in line]
        parts.append(
            f'<polyline points="{" ".join(places)}" fill="none" stroke="{colour}"'
            ' stroke-width="2"/>'
        )
        for text in places:
            x, y = text.split(",")
            parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>')
    return parts


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Return the powers of ten around some values, at least one apart."""
    positive = [math.log10(value) for value in values if value > 0] or [0.0]
    low = math.floor(min(positive))
    return low, max(math.ceil(max(positive)), low + 1)


def _number(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
