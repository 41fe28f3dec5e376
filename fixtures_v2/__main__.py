"""Add a TensorFlow release to the frozen artifacts, or check that they still come out.

    python -m fixtures_v2 add RELEASE... [CASE...]    # make them in the runtime of the release
    python -m fixtures_v2 --check [NAME...]           # make them elsewhere, compare by meaning
    python -m fixtures_v2 --verify [NAME...]          # only hashes and completeness

A NAME is a case or a release; without one, everything is meant, the TF 1.x artifacts of fixtures_v1
included.
Exit status: 0 all well, 1 an artifact differs, is missing or cannot be made, 4 no environment
(interpreter, uv, network), 64 usage, or a broken absent.toml.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence

import click

from compat_matrix.runtimes.places import RuntimeTrouble
from compat_matrix.runtimes.worker import NotStarted
from fixtures_v1 import regenerate
from fixtures_v2 import collection

ADD = "add"


def divide(names: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the releases, the cases and the unknown names among ``names``.

    Without a release all of them are meant, without a case all of them.
    """
    releases = [name for name in collection.releases() if name in names]
    cases = [name for name in collection.cases() if name in names]
    unknown = sorted(set(names) - set(releases) - set(cases))
    return releases or list(collection.releases()), cases or collection.cases(), unknown


def make_all(releases: Sequence[str], cases: Sequence[str], check: bool) -> dict[str, list[str]]:
    """Add or check the cases of the releases. Returns the problems of each artifact.

    Raises RuntimeTrouble and NotStarted.
    """
    from fixtures_v2 import making  # late: --verify needs none of this

    found = {}
    make = making.check if check else making.add
    for release in releases:
        made = make(release, cases, functools.partial(_report, release))
        _report(release, f"{len(made)} cases")
        found.update({f"{case}/{release}": lines for case, lines in made.items()})
    return found


def _report(release: str, step: str) -> None:
    click.echo(f"{release}: {step}", err=True)


def verify_all(releases: Sequence[str], cases: Sequence[str]) -> dict[str, list[str]]:
    """Compare artifacts with their provenance. Returns the problems of each artifact."""
    found = {"the collection": collection.problems()}
    for release in releases:
        for case, _ in collection.wanted(release):
            folder = collection.artifact(case, release)
            if case in cases:
                found[f"{case}/{release}"] = collection.verify(folder)
    return found


@click.command(help=__doc__)
@click.argument("names", metavar="[add RELEASE | NAME]...", nargs=-1)
@click.option("--check", is_flag=True, help="Make artifacts elsewhere and compare them.")
@click.option("--verify", "only_verify", is_flag=True, help="Only compare recorded hashes.")
def main(names: tuple[str, ...], check: bool, only_verify: bool) -> None:
    adding = names[:1] == (ADD,)
    if adding + check + only_verify != 1:
        click.echo(f"Say one of {ADD}, --check and --verify.", err=True)
        sys.exit(64)
    releases, cases, unknown = divide(names[1:] if adding else names)
    if unknown or (adding and not set(names) & set(releases)):
        words = f"No such case or release: {', '.join(unknown)}." if unknown else "Name a release."
        click.echo(f"{words} Releases: {', '.join(collection.releases())}", err=True)
        sys.exit(64)
    try:
        found = verify_all(releases, cases) if only_verify else make_all(releases, cases, check)
    except collection.TableError as error:
        click.echo(str(error), err=True)
        sys.exit(64)
    except (RuntimeTrouble, NotStarted) as error:
        click.echo(f"environment: {error}", err=True)
        sys.exit(4)
    failed = say(found)
    # Without names, the artifacts of TF 1.x are meant too.
    theirs = 0 if names else of_tensorflow_1("--verify" if only_verify else "--check")
    sys.exit(1 if failed else theirs)


def say(found: Mapping[str, Sequence[str]]) -> bool:
    """Print the problems of each artifact; return whether there are any."""
    for name, lines in found.items():
        for line in lines:
            click.echo(f"{name}: {line}")
    failed = sum(bool(lines) for lines in found.values())
    click.echo(f"{len(found) - failed} of {len(found)} are as they should be")
    return failed > 0


def of_tensorflow_1(flag: str) -> int:
    """Run the same check of the artifacts in fixtures_v1. Returns its exit status."""
    try:
        regenerate.main([flag], standalone_mode=False)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


if __name__ == "__main__":
    main()
