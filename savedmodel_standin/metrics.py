"""Two of the real server's metrics, as text for Prometheus."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict

REQUESTS = ":tensorflow:serving:request_count"
LOADS = ":tensorflow:cc:saved_model:load_attempt_count"
DEFAULT_PATH = "/monitoring/prometheus/metrics"

_counts: defaultdict[str, Counter[tuple[tuple[str, str], ...]]] = defaultdict(
    Counter, {REQUESTS: Counter(), LOADS: Counter()}
)
_lock = threading.Lock()


def count(metric: str, **labels: str) -> None:
    """Count one more of these labels."""
    with _lock:
        _counts[metric][tuple(labels.items())] += 1


def page() -> str:
    """Return the metrics in the text format of Prometheus."""
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
