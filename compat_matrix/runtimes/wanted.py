"""The intended content of an environment: a locked runtime of the registry, or the resolution of a
requirement or wheel.

The text of a request is its *spec*:

    local                                  the interpreter that runs the harness
    tf2.12, 2.12, 2.12.1                   a runtime of the registry
    tensorflow==2.21.0rc1                  a requirement, installed into an environment of its own;
                                           not locked
    tensorflow-cpu==2.20.0 @3.12           the same with a Python that is named
    dist/tensorflow-2.22.0-….whl           a wheel, likewise
    tensorflow-2.21.0rc1                   what `runtimes list` calls one of these that is installed
    path/to/venv, path/to/bin/python       an environment or interpreter that exists; nothing is
                                           installed
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from compat_matrix.runtimes import places, records, registry
from compat_matrix.runtimes.places import UnknownRuntime
from compat_matrix.runtimes.runtime import LOCAL
from savedmodel_common.distributions import DISTRIBUTIONS
from savedmodel_common.printable import like
from savedmodel_common.provenance import file_sha256

PYTHON = re.compile(r"\s*@\s*(3\.\d+)\s*$")
FORMS = (
    "a name of `savedmodel-compat runtimes list`, a requirement (tensorflow==2.20.0), a wheel, or"
    " an interpreter's path"
)
WORDS = (LOCAL, "installed", "all", *DISTRIBUTIONS)


@dataclass(frozen=True)
class Wanted:
    """An environment that can be installed.

    ``requirement`` is None for a runtime of the registry, which has a ``lock``; ``python`` None
    leaves the choice to the installation; ``tensorflow`` None, where only the resolution will tell.
    """

    name: str
    spec: str
    folder: str
    python: str | None
    tensorflow: str | None
    lock: Path | None = None
    requirement: str | None = None

    @property
    def place(self) -> Path:
        """Return the place of the environment, whether or not it exists."""
        return places.environments() / self.folder


def of_stanza(stanza: registry.Stanza) -> Wanted:
    """Return the environment of a runtime of the registry.

    Raises RegistryError when it has no lock yet.
    """
    digest = _digest(stanza.python.encode() + lock_bytes(stanza))
    return Wanted(
        stanza.name,
        stanza.name,
        f"{stanza.name}-{digest}",
        stanza.python,
        stanza.tensorflow,
        lock=stanza.lock,
    )


def lock_bytes(stanza: registry.Stanza) -> bytes:
    """Return the content of a lock. Raises RegistryError."""
    try:
        return stanza.lock.read_bytes()
    except OSError as error:
        raise registry.RegistryError(
            f"{stanza.name} has no lock ({error});"
            f" `python -m compat_matrix.commands.lock {stanza.name}`"
            " makes it"
        ) from error


def parse(spec: str, known: registry.Registry) -> Wanted | Path:
    """Return the environment that a spec means, or the path of an existing interpreter; ``local``
    is not handled here.

    Raises :class:`UnknownRuntime`.
    """
    stanza = known.find(spec)
    if stanza is not None:
        return of_stanza(stanza)
    python = PYTHON.search(spec)
    text, version = (spec[: python.start()], python.group(1)) if python else (spec, None)
    text = text.strip()
    for place, record in records.ad_hoc(places.environments()).items():
        if spec.strip() == record.name:
            return Wanted(record.name, record.spec, place.name, None, record.tensorflow)
    if "://" in text:
        raise UnknownRuntime(f"{text!r}: URLs are not understood here; give {FORMS}")
    path = Path(text).expanduser()
    if text.endswith(".whl"):
        return _wheel(path, version)
    if path.exists() and ("/" in text or (path / "bin").is_dir()):
        return _interpreter(path)
    if "/" in text:
        raise UnknownRuntime(f"{text}: there is no such file or folder")
    return _requirement(text, version)


def _interpreter(path: Path) -> Path:
    if path.is_file():
        return path.absolute()
    for name in ("python", "python3"):
        if (path / "bin" / name).is_file():
            return (path / "bin" / name).absolute()
    raise UnknownRuntime(f"{path}: a folder without bin/python is no Python environment")


def _wheel(path: Path, python: str | None) -> Wanted:
    if not path.is_file():
        raise UnknownRuntime(f"{path}: there is no such wheel")
    try:
        name, version, _, tags = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise UnknownRuntime(str(error)) from error
    if name not in DISTRIBUTIONS:
        raise UnknownRuntime(f"{path.name} is no TensorFlow ({', '.join(DISTRIBUTIONS)})")
    pythons = {
        f"{tag.interpreter[2]}.{tag.interpreter[3:]}"
        for tag in tags
        if re.fullmatch(r"cp3\d+", tag.interpreter)
    }
    given = python is not None
    if python is None and len(pythons) == 1:
        python = next(iter(pythons))
    digest = _digest(
        f"{file_sha256(path)} {python}".encode()
    )  # a rebuilt wheel is a different wheel
    folder, requirement = f"{name}-{version}-{digest}", f"{name} @ {path.absolute().as_uri()}"
    spec = f"{path.absolute()}" + (f" @{python}" if given else "")
    return Wanted(
        f"{name}-{version}-{digest[:6]}",
        spec,
        folder,
        python,
        str(version),
        requirement=requirement,
    )


def _requirement(text: str, python: str | None) -> Wanted:
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        raise UnknownRuntime(
            f"{text!r} is not a runtime: give {FORMS}.{like(text, WORDS)}"
        ) from None
    if canonicalize_name(requirement.name) not in DISTRIBUTIONS:
        raise UnknownRuntime(f"{text!r} installs no TensorFlow: give {FORMS}.{like(text, WORDS)}")
    if requirement.marker:
        raise UnknownRuntime(f"{text!r}: markers are not understood here; give {FORMS}")
    spec = str(requirement) + (f" @{python}" if python else "")
    digest = _digest(spec.encode())
    version = exact(requirement)
    label = f"{canonicalize_name(requirement.name)}-{version or digest[:6]}" + (
        f"-py{python}" if python else ""
    )
    if requirement.extras:
        label += f"-{digest[:6]}"
    return Wanted(label, spec, f"{label}-{digest}", python, version, requirement=str(requirement))


def exact(requirement: Requirement) -> str | None:
    """Return the version that a requirement pins, None when it leaves a choice."""
    specifiers = list(requirement.specifier)
    if (
        len(specifiers) == 1
        and specifiers[0].operator in ("==", "===")
        and not specifiers[0].version.endswith(".*")
    ):
        return specifiers[0].version
    return None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]
