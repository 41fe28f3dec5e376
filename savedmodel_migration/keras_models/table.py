"""Rebuild every model of the cache, compare it, and keep the outcomes: the table "layer x Keras
release".

    python -m savedmodel_migration.keras_models.table [--release 2.4]... --out FOLDER [--backend jax] [NAME]...

Outcomes go into FOLDER/RELEASE-BACKEND.json, rebuilt models into FOLDER/RELEASE/NAME.keras. A
second run goes on where one was stopped. With ``--backend`` the models of an earlier run are loaded
on another backend, in a process that has no TensorFlow, and must predict what the release itself
answered, within 1e-5. Models with a layer that Keras computes with TensorFlow are counted apart.
The exit code is 1 if a model differs, and 3 if none was equal.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from savedmodel_migration.keras_models import material, recorder

GOOD = ("equal", "close")  # rebuilt, with the answers and the training step of the original
BACKENDS = ("jax", "torch")
NEEDS_TENSORFLOW = "requires TensorFlow"  # how Keras says so of a layer


@click.command(help=__doc__)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--release", "releases", multiple=True, type=click.Choice(material.RELEASES))
@click.option("--out", type=click.Path(path_type=Path), required=True)
@click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    help="Compare the models of an earlier run on this backend.",
)
@click.option("--small", is_flag=True, help="The small set of CI.")
@click.option(
    "--again", type=click.Choice(["failed", "unequal", "all"]), help="Also these of an earlier run."
)
def main(
    names: tuple[str, ...],
    releases: tuple[str, ...],
    out: Path,
    backend: str | None,
    small: bool,
    again: str | None,
) -> None:
    os.environ["KERAS_BACKEND"] = backend or "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if backend:
        sys.meta_path[:] = map(WithoutTensorFlow, sys.meta_path)
    counted: Counter[str] = Counter()
    for release in releases or material.RELEASES:
        for name, found in outcomes(
            release, (*names, *(material.SMALL if small else ())), out, backend, again
        ):
            counted[NEEDS_TENSORFLOW if found["why"] == NEEDS_TENSORFLOW else found["state"]] += 1
            if found["state"] not in GOOD:
                click.echo(f"{release}/{name}: {found['state']}: {found['why']}")
    click.echo(
        ", ".join(f"{number} {state}" for state, number in sorted(counted.items()))
        or "nothing was compared"
    )
    sys.exit(
        3
        if not counted.keys() & {*GOOD}
        else 1
        if counted.keys() - {*GOOD, "refused", NEEDS_TENSORFLOW}
        else 0
    )


class WithoutTensorFlow:
    """A finder of modules that finds all but TensorFlow: a user of another backend need not have
    it.
    """

    def __init__(self, finder: Any) -> None:
        self._finder = finder

    def find_spec(self, name: str, *arguments: Any) -> Any:
        return (
            None
            if name.partition(".")[0] == "tensorflow"
            else self._finder.find_spec(name, *arguments)
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)


def outcomes(
    release: str, names: tuple[str, ...], out: Path, backend: str | None, again: str | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each model of a release and its outcome, which is kept as soon as it is
    known.
    """
    out.mkdir(parents=True, exist_ok=True)
    kept = read(out, release, backend)
    for made in material.material([release], names):
        target = out / release / f"{recorder.folder(made.name)}.keras"
        found = kept.get(made.name, {})
        known = found.get("key") == made.facts["key"]
        if backend and not target.exists():
            continue  # refused, or the predictions differ
        asked = {
            "failed": found.get("state") not in GOOD,
            "unequal": found.get("state") != "equal",
            "all": True,
        }
        if not known or asked.get(again or "", False):
            kept[made.name] = {**_outcome(made, target, backend), "key": made.facts["key"]}
            write(out, release, backend, kept)
        yield made.name, kept[made.name]


def read(out: Path, release: str, backend: str | None = None) -> dict[str, Any]:
    """The outcomes of a release, by the name of the model."""
    file = _file(out, release, backend)
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


def write(out: Path, release: str, backend: str | None, found: dict[str, Any]) -> None:
    file = _file(out, release, backend)
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps(found, indent=1, sort_keys=True))
    temporary.replace(file)


def _file(out: Path, release: str, backend: str | None) -> Path:
    return out / f"{release}-{backend or 'tensorflow'}.json"


def _outcome(made: material.Made, target: Path, backend: str | None) -> dict[str, Any]:
    if backend:
        return on_backend(made, target)
    from savedmodel_migration.keras_models.outcome import examine

    target.unlink(missing_ok=True)
    return examine(made, target)


def _cause(error: Exception) -> str:
    """Return the last error in the words of Keras, which quotes the configuration of the model
    before it.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    found = next(
        (line for line in reversed(lines) if line.startswith("Exception encountered:")), ""
    )
    return f"{type(error).__name__}: {found or ' '.join(lines)}"[:500]


def on_backend(made: material.Made, target: Path) -> dict[str, Any]:
    """The predictions of a rebuilt model on the backend of this process: ``equal`` (within 1e-5),
    ``answers`` or ``error``.
    """
    import keras

    from savedmodel_migration.keras_models import outcome

    keras.utils.clear_session(free_memory=True)
    try:
        found = outcome.answers(made, keras.saving.load_model(target, safe_mode=False))
    except Exception as error:
        return {
            "state": "error",
            "why": NEEDS_TENSORFLOW if NEEDS_TENSORFLOW in str(error) else _cause(error),
        }
    recorded = made.arrays("io.npz", "y")
    why = outcome.compare(recorded, found, outcome.tolerance_of(made))
    return {
        "state": "answers" if why else "equal",
        "why": why,
        "off": None if why else outcome.distance(recorded, found),
    }


if __name__ == "__main__":
    main()
