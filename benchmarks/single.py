"""Figures that nothing of TensorFlow's can be set beside: a steady call, `run` of a small model,
`slim` of thousands of functions, a large `migrate`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import timeit
from pathlib import Path

from benchmarks import Figure, attempt, environment, measured, migrate, models
from compat_matrix.cells.generators import fixtures_root
from reference_impl.format import schema

CALL_GOAL, SLIM_GOAL, MIGRATE_GOAL = 60.0, 5.0, 12.0  # microseconds; seconds of the processor
RUN_GOAL = 0.4  # seconds of the processor
_BLOCKS = 3025  # of three functions

_SAVE = """
import sys
import reference_impl
from benchmarks.models import functions
functions.COUNT = int(sys.argv[2])
reference_impl.save(*[functions.build()[0]], sys.argv[1])
"""


def run(repeats: int) -> list[Figure]:
    """All figures; the programs first, since this process must not have imported TensorFlow by
    then.
    """
    return [
        *attempt("run", answer, repeats),
        *attempt("slim", slim),
        *attempt("migrate", two_meta_graphs),
        *attempt("call of a signature", call, repeats),
    ]


def answer(repeats: int) -> Figure:
    """``savedmodel-compat run`` of a model of one multiplication, from its start to its answer."""
    model = fixtures_root() / "half_plus_two" / "model"
    program = [sys.executable, "-m", "savedmodel_compat", "run", str(model)]
    command = [*program, "--tags", "serve", "--input", "x=[[2.0]]"]
    times = [measured(command, environment()).cpu for _ in range(repeats + 1)]
    return Figure("run: half_plus_two, start to answer", min(times), "CPU s", RUN_GOAL)


def slim() -> Figure:
    """``savedmodel-compat edit slim`` of a model with 9,076 functions."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        model, out = Path(folder, "model"), Path(folder, "out")
        make = [sys.executable, "-c", _SAVE, str(model), str(_BLOCKS)]
        subprocess.run(
            make,
            env=environment(),
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        program = [sys.executable, "-m", "savedmodel_compat", "edit", "slim"]
        usage = measured(
            [*program, str(model), "--out", str(out)],
            environment(),
        )
    return Figure(f"slim: {3 * _BLOCKS:,} functions", usage.cpu, "CPU s", SLIM_GOAL)


def two_meta_graphs() -> Figure:
    """``savedmodel-compat migrate`` of a TF 1.x model of 96 MB, whose graph is there twice with
    other tags.
    """
    inception = next(model for model in models.MODELS if model.name == "inception")
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        model, out = Path(folder, "model"), Path(folder, "out")
        shutil.copytree(models.provide(inception), model)
        saved = schema.parse(schema.SavedModel, (model / "saved_model.pb").read_bytes())
        second = saved.meta_graphs.add()
        second.CopyFrom(saved.meta_graphs[0])
        second.meta_info_def.tags[:] = ["serve", "gpu"]
        (model / "saved_model.pb").write_bytes(saved.SerializeToString())
        size = sum(file.stat().st_size for file in model.rglob("*") if file.is_file())
        usage = measured(
            [sys.executable, "-m", "savedmodel_compat", "migrate", str(model), "--out", str(out)],
            environment(),
        )
        migrate.check(out, 1)
    return Figure(
        f"migrate: {inception.title}, two MetaGraphs, {size / 1e6:.0f} MB",
        usage.cpu,
        "CPU s",
        MIGRATE_GOAL,
    )


def call(repeats: int) -> Figure:
    """A signature of the smallest model, called again and again."""
    import tensorflow as tf

    import reference_impl

    model = next(model for model in models.MODELS if model.name == "functions")
    function = reference_impl.load(models.provide(model)).signatures["serving_default"]
    (name,) = function.structured_input_signature[1]
    value = tf.zeros(model.shape, model.dtype)
    function(**{name: value})
    times = timeit.repeat(lambda: function(**{name: value}), number=1000, repeat=max(repeats, 5))
    return Figure(
        "call of a signature, steady: 300 functions, 300 variables",
        min(times) * 1000,
        "us",
        CALL_GOAL,
    )
