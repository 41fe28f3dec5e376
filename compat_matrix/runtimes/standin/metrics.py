"""A few of the real server's metrics, as text for Prometheus."""

from __future__ import annotations

import threading
from collections import Counter

REQUESTS = ":tensorflow:serving:request_count"
LOADS = ":tensorflow:cc:saved_model:load_attempt_count"
DEFAULT_PATH = "/monitoring/prometheus/metrics"

_counts: dict[str, Counter[tuple[tuple[str, str], ...]]] = {REQUESTS: Counter(), LOADS: Counter()}
_lock = threading.Lock()


def count(metric: str, **labels: str) -> None:
    with _lock:
        _counts[metric][tuple(labels.items())] += 1


def page() -> str:
    lines = []
    with _lock:
        for metric, points in _counts.items():
            lines.append(f"# TYPE {metric} counter")
            for labels, value in points.items():
                shown = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels)
                lines.append(f"{metric}{{{shown}}} {value}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
