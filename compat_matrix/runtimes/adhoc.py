"""Resolve a requirement that is not in the registry to a Python of this machine and exact
versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from packaging.requirements import Requirement

from compat_matrix.runtimes import interpreters, registry, uv
from compat_matrix.runtimes.places import RuntimeTrouble
from compat_matrix.runtimes.programs import importing
from compat_matrix.runtimes.wanted import Wanted

CONFLICT = "what reference_impl needs cannot be installed beside this TensorFlow"


class NoResolution(RuntimeTrouble):
    """Raised when no Python of this machine supports the requirement."""


@dataclass(frozen=True)
class Resolution:
    """An interpreter and the exact versions for it, as lines of a requirements file."""

    interpreter: str
    pinned: str
    lacks: Mapping[str, str] = field(default_factory=dict)


def resolve(wanted: Wanted, known: registry.Registry) -> Resolution:
    """Return the newest Python that supports the requirement, with reference_impl's dependencies
    where they are compatible.

    The other pins of the nearest runtime of the registry (a compatible protobuf or NumPy) are
    constraints here. Raises :class:`NoResolution`.
    """
    assert wanted.requirement is not None
    pythons = (
        {wanted.python: interpreters.find(wanted.python)} if wanted.python else interpreters.here()
    )
    near = known.nearest(wanted.tensorflow) if wanted.tensorflow else None
    constraints = near.pins if near else ()
    attempts: list[tuple[tuple[str, ...], dict[str, str]]]
    if "reference" in known.lacks(wanted.tensorflow):
        attempts = [((), {})]
    else:
        attempts = [
            (known.reference, {}),
            ((), dict.fromkeys(importing("reference_impl"), CONFLICT)),
        ]
    complaints: dict[str, list[str]] = {}  # uv's message -> the Pythons it is about
    for needs, missing in attempts:
        for version, interpreter in pythons.items():
            try:
                pinned = _compile([wanted.requirement, *needs], constraints, interpreter)
            except uv.UvTrouble as error:
                if error.offline:
                    raise
                complaints.setdefault(str(error), []).append(version)
            else:
                return Resolution(interpreter, pinned, missing)
    told = "\n".join(
        f"Python {', '.join(dict.fromkeys(versions))}: {text}"
        for text, versions in complaints.items()
    )
    raise NoResolution(
        f"{wanted.spec}: no Python here can have it ({', '.join(pythons) or 'none found'})\n{told}"
    )


def _compile(requirements: Iterable[str], constraints: Iterable[str], interpreter: str) -> str:
    """Return exact versions for one interpreter.

    A pin that the requirement contradicts must make the resolution fail.
    """
    lines = list(requirements)
    named = {Requirement(line).name for line in lines}
    lines += [line for line in constraints if Requirement(line).name not in named]
    arguments = [
        "pip",
        "compile",
        "--quiet",
        "--no-header",
        "--no-annotate",
        "--python",
        interpreter,
        "-",
    ]
    return uv.run(arguments, "\n".join(lines))
