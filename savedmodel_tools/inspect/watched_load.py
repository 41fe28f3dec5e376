"""Load a model in this process and print each step, for ``inspect --trace``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

import reference_impl

if TYPE_CHECKING:
    from reference_impl.tracing import Step


def is_loaded(path: Path, tags: list[str] | None) -> bool:
    """Load a model and print each step as it happens; return whether the load ends well.

    Raises ModuleNotFoundError without TensorFlow, and the error of a load that told none.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # no greetings of TensorFlow
    stages: list[str] = []

    def tell(step: Step) -> None:
        stages.append(step.stage)
        click.echo(str(step))

    options = reference_impl.LoadOptions(machine_ops="refuse")
    try:
        reference_impl.load(path, tags, options, trace=tell)
    except Exception:
        if stages[-1:] == ["error"]:
            return False
        raise
    return True
