"""Lines on stderr in the form that TensorFlow's own have: time, severity, place, text."""

from __future__ import annotations

import sys
import time

SEVERITIES = ("I", "W", "E")


def info(place: str, text: str) -> None:
    _line("I", place, text)


def warning(place: str, text: str) -> None:
    _line("W", place, text)


def error(place: str, text: str) -> None:
    _line("E", place, text)


def _line(severity: str, place: str, text: str) -> None:
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1e6):06d}"
    # One write: threads and the C++ library write here too.
    sys.stderr.write(f"{stamp}: {severity} standin/{place}] {text}\n")
    sys.stderr.flush()
