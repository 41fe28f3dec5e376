"""How much is tried: HYPOTHESIS_PROFILE is `gate` (every commit), `nightly` (two hours) or `debug`
(a few, not shrunk).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings

GATE, NIGHTLY, DEBUG = "gate", "nightly", "debug"
NAME = os.environ.get("HYPOTHESIS_PROFILE", GATE)
FACTOR = {GATE: 1.0, NIGHTLY: 25.0, DEBUG: 0.5}
# One example traces, saves and loads a model: tenths of a second, most of them TensorFlow's, and
# more on a busy machine.
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def register() -> None:
    """Registers the profiles and loads the chosen one.

    The gate is derandomised and keeps no database: a commit is judged by the same examples
    everywhere. Nothing is judged by time.
    """
    common: dict[str, Any] = {"deadline": None, "suppress_health_check": SLOW, "print_blob": False}
    settings.register_profile(GATE, derandomize=True, database=None, **common)
    settings.register_profile(NIGHTLY, max_examples=1000, **common)
    settings.register_profile(DEBUG, derandomize=True, database=None, **common)
    if NAME not in FACTOR:
        raise ValueError(f"HYPOTHESIS_PROFILE is {NAME!r}, not one of {', '.join(sorted(FACTOR))}")
    settings.load_profile(NAME)


def budget(examples: int, **more: Any) -> Callable[[Any], Any]:
    """The settings of a property that may try ``examples`` models in the gate; other profiles scale
    it.

    A failure is not explained (the phase tries hundreds of models more): the script it prints is
    the explanation.
    """
    phases = [
        phase
        for phase in Phase
        if phase != Phase.explain and (NAME != DEBUG or phase != Phase.shrink)
    ]
    return settings(max_examples=max(2, int(examples * FACTOR[NAME])), phases=phases, **more)
