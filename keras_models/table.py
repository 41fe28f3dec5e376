"""Rebuild every model of the cache, compare it, and keep the outcomes: the table "layer x Keras release".

    python -m keras_models.table [--release 2.4]... [--out FOLDER] [--backend jax] [NAME]...

Outcomes go into FOLDER/outcomes.json, rebuilt models into FOLDER/RELEASE/NAME.keras. With ``--backend`` the models of an earlier
run are loaded on another backend, in a process without this project's code but for the comparison.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

import click

from keras_models import material, recorder


@click.command(help=__doc__)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--release", "releases", multiple=True, type=click.Choice(material.RELEASES))
@click.option("--out", type=click.Path(path_type=Path), required=True)
@click.option("--backend", type=click.Choice(["jax", "torch"]), help="Compare the models of an earlier run on this backend.")
@click.option("--again", is_flag=True, help="Also those that were equal in an earlier run.")
def main(names: tuple[str, ...], releases: tuple[str, ...], out: Path, backend: str | None, again: bool) -> None:
    os.environ["KERAS_BACKEND"] = backend or "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    file = out / "outcomes.json"
    outcomes = json.loads(file.read_text()) if file.exists() else {}
    out.mkdir(parents=True, exist_ok=True)
    for made in material.material(releases or material.RELEASES, names):
        place = f"{made.release}/{made.name}"
        target = out / made.release / f"{recorder.folder(made.name)}.keras"
        if backend:
            if not target.exists() or outcomes[place].get("state") != "equal":
                continue
            if again or outcomes[place].get(backend) != "equal":
                outcomes[place][backend] = on_backend(made, target)
                click.echo(f"{place}: {backend}: {outcomes[place][backend]}")
        elif again or outcomes.get(place, {}).get("state") != "equal":
            from keras_models.outcome import examine

            outcomes[place] = examine(made, target)
            click.echo(f"{place}: {outcomes[place]['state']} {outcomes[place]['why']}")
        file.write_text(json.dumps(outcomes, indent=1, sort_keys=True))
    click.echo(str(Counter(outcome.get(backend or "state", "not asked") for outcome in outcomes.values())))
    sys.exit(0)


def on_backend(made: material.Made, target: Path) -> str:
    """``equal``, or words for what another backend does otherwise."""
    import keras

    from keras_models.outcome import compare_answers

    try:
        return compare_answers(made, keras.saving.load_model(target, safe_mode=False)) or "equal"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]


if __name__ == "__main__":
    main()
