"""Find the runtime that a text names (see wanted.py).

No TensorFlow is imported; only ``provide`` installs.
"""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from compat_matrix.runtimes import provision, records, registry, wanted
from compat_matrix.runtimes.places import NotInstalled, UnknownRuntime
from compat_matrix.runtimes.programs import importing
from compat_matrix.runtimes.runtime import (
    LABELLED,
    LOCAL,
    Runtime,
    local_runtime,
    same_release,
)
from compat_matrix.runtimes.worker import environment
from savedmodel_common.distributions import DISTRIBUTIONS

ALL, INSTALLED = "all", "installed"  # specs that name several runtimes
ASK_LIMIT = 60.0  # seconds for an interpreter to list the packages installed beside it
# Python 3.6: read the folder names of installed distributions, since its library cannot list them.
_ASK = """
import json, os, re, sys
found = {}
for entry in sys.path:
    for name in sorted(os.listdir(entry)) if os.path.isdir(entry) else ():
        match = re.match(r"([A-Za-z0-9_.]+)-([^-]+)[.](dist|egg)-info$", name)
        if match:
            found.setdefault(re.sub(r"[-_.]+", "-", match.group(1)).lower(), match.group(2))
print(json.dumps({"python": sys.executable, "found": found}))
"""


def resolve(spec: str, known: registry.Registry | None = None) -> Runtime:
    """Return the runtime that a spec names. The local one stands in for a release that is asked by
    its number, if it is that one and no environment of it is installed.

    Raises :class:`UnknownRuntime` when it names none, :class:`NotInstalled` (with the command that
    installs it) when it is not installed, RegistryError.
    """
    known = known or registry.read()
    try:
        return installed(spec, known)
    except NotInstalled:
        if not is_local_release(wanted.parse(spec, known)):
            raise
    return installed(LOCAL, known)


def is_local_release(target: wanted.Wanted | Path) -> bool:
    """Return whether an environment that is wanted by the number of its release would hold the
    TensorFlow that is here.

    A wheel is wanted for its content, extras for the packages they bring, and a Python if it is
    named.
    """
    here = local_runtime().tensorflow_version
    if isinstance(target, Path) or here is None or target.tensorflow is None:
        return False
    if target.lock is None:
        requirement = Requirement(target.requirement or "")
        plain = (
            not (requirement.url or requirement.extras)
            and canonicalize_name(requirement.name) == DISTRIBUTIONS[0]
        )
        if not plain or (
            target.python and target.python != ".".join(platform.python_version_tuple()[:2])
        ):
            return False
    return same_release(here, target.tensorflow)


def installed(spec: str, known: registry.Registry) -> Runtime:
    """Return the runtime that a spec names, if it is installed. Raises as :func:`resolve`."""
    if spec.strip() == LOCAL:
        runtime = local_runtime()
        return replace(runtime, lacks=known.lacks(runtime.tensorflow_version))
    target = wanted.parse(spec, known)
    if isinstance(target, Path):
        return existing(target, known)
    try:
        record = provision.installed(target)
    except records.Untrue as why:
        message = (
            f"the runtime {target.name} cannot be used ({why}); {install_command(target.spec)}"
        )
        raise NotInstalled(message, (target.spec,)) from None
    return of_record(target, record, known)


def provide(spec: str, report: provision.Report) -> Runtime:
    """Return the runtime that a spec names; install it if necessary. Raises RuntimeTrouble."""
    known = registry.read()
    try:
        return installed(spec, known)
    except NotInstalled:
        target = wanted.parse(spec, known)
        assert not isinstance(target, Path)
        return of_record(target, provision.install(target, known, report), known)


def provide_all(specs: Sequence[str], report: Callable[[str, str], None]) -> None:
    """Install what is missing of the runtimes that specs name.

    ``report`` is called with a spec and the step of its installation.

    All are resolved before the first is made: one that cannot be had leaves nothing behind. Raises
    RuntimeTrouble.
    """
    known = registry.read()
    missing = {}
    for spec in dict.fromkeys(specs):
        step = functools.partial(report, spec)
        try:
            installed(spec, known)
        except NotInstalled:
            target = wanted.parse(spec, known)
            assert not isinstance(target, Path)
            missing[spec] = (target, provision.prepare(target, known, step), step)
    for target, prepared, step in missing.values():
        provision.install(target, known, step, prepared=prepared)


def of_record(target: wanted.Wanted, record: records.Record, known: registry.Registry) -> Runtime:
    """Return the runtime in an installed environment."""
    lacks = {**known.lacks(record.tensorflow), **record.lacks}
    return Runtime(
        target.name, records.interpreter(target.place), record.tensorflow, lacks, target.spec
    )


def install_command(*specs: str) -> str:
    """Return the command that installs the runtime."""
    return f"run: savedmodel-compat runtimes install {' '.join(map(shlex.quote, specs))}"


def resolve_all(specs: str, known: registry.Registry | None = None) -> list[Runtime]:
    """Return several runtimes, each once: ``all`` of the registry, all ``installed``, or specs
    separated by commas.

    Raises what :func:`resolve` raises; :class:`NotInstalled` names all missing runtimes at once.
    """
    known = known or registry.read()
    runtimes: dict[str, Runtime] = {}
    missing: list[str] = []
    for spec in split(specs):
        of_registry = spec in (
            ALL,
            INSTALLED,
        )  # means the environments, whatever is here beside them
        for one in named(spec, known):
            try:
                runtime = installed(one, known) if of_registry else resolve(one, known)
            except NotInstalled as error:
                if spec != INSTALLED:
                    missing.extend(error.specs)
                continue
            runtimes.setdefault(runtime.name, runtime)
    if missing:
        raise NotInstalled(
            f"not installed: {', '.join(missing)}; {install_command(*missing)}", tuple(missing)
        )
    if not runtimes:
        raise UnknownRuntime(f"{specs!r} names no runtime")
    return list(runtimes.values())


def named(specs: str, known: registry.Registry | None = None) -> list[str]:
    """Return the specs of single runtimes in a list at commas: ``all`` and ``installed`` stand for
    those of the registry.
    """
    out = []
    for spec in split(specs):
        out += list((known or registry.read()).stanzas) if spec in (ALL, INSTALLED) else [spec]
    return out


def resolve_labelled(spec: str) -> list[Runtime]:
    """Do the same as :func:`resolve_all` for a command line: ``LABEL=SPECS`` tells two runtimes of
    one version apart.
    """
    label = LABELLED.fullmatch(spec.strip())
    return (
        [runtime.labelled(label[1]) for runtime in resolve_all(label[2])]
        if label
        else resolve_all(spec)
    )


def split(specs: str) -> list[str]:
    """Split a list at its commas into specs; ``tensorflow>=2.20,<2.21`` is one spec."""
    out: list[str] = []
    for part in (piece.strip() for piece in specs.split(",")):
        if out and re.match(r"[<>=!~]", part):
            out[-1] += f",{part}"
        elif part:
            out.append(part)
    return out


def existing(python: Path, known: registry.Registry) -> Runtime:
    """Return the runtime of an existing interpreter, which lists its distributions. Missing needs
    of reference_impl go into ``lacks``.

    Raises :class:`UnknownRuntime` when it does not start or has no TensorFlow.
    """
    found = _ask(python)
    version = next((found[name] for name in DISTRIBUTIONS if name in found), None)
    if version is None:
        raise UnknownRuntime(f"{python}: no TensorFlow is installed there")
    lacks = known.lacks(version)
    needed = [canonicalize_name(Requirement(line).name) for line in known.reference]
    absent = [name for name in needed if name not in found]
    if absent:
        reason = f"{', '.join(absent)} not installed in this environment; reference_impl needs it"
        lacks = {**dict.fromkeys(importing("reference_impl"), reason), **lacks}
    # The path tells two environments of one version apart.
    mark = hashlib.sha256(str(python).encode()).hexdigest()[:6]
    return Runtime(f"tf{version}-{mark}", python, version, lacks, str(python))


def _ask(python: Path) -> Mapping[str, str]:
    command = [str(python), "-c", _ASK]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=ASK_LIMIT,
            check=True,
            stdin=subprocess.DEVNULL,
            env=environment("tf2_worker"),
        )
        found: Mapping[str, str] = json.loads(done.stdout.splitlines()[-1])["found"]
    except subprocess.CalledProcessError as error:
        raise UnknownRuntime(
            f"{python}: is no Python that starts: {error.stderr.strip()[-500:]}"
        ) from error
    except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
        raise UnknownRuntime(f"{python}: is no Python that starts: {error}") from error
    return found
