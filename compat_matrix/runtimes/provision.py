"""Make an environment: staged in a sibling folder, started once for proof, then renamed. Killed at
any moment, it leaves either the environment or a folder that does not count and that the next
installation removes.
"""

from __future__ import annotations

import hashlib
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from compat_matrix.runtimes import adhoc, interpreters, places, records, registry, uv
from compat_matrix.runtimes.places import RuntimeTrouble
from compat_matrix.runtimes.records import Record
from compat_matrix.runtimes.runtime import Runtime, same_release
from compat_matrix.runtimes.wanted import Wanted
from compat_matrix.runtimes.worker import NotStarted, Worker
from savedmodel_common.alone import alone
from savedmodel_common.writing import new_folder

Report = Callable[[str], None]  # is called with the current step, in a few words
Step = Callable[[Runtime, Report], None]  # runs after the installation; raises RuntimeTrouble
PROOF = "v1_session_worker"  # starts on every TensorFlow and imports it
LOCKED_FOR = ("Linux", "x86_64")
PACKAGES = (
    "numpy",
    "protobuf",
    "keras",
    "h5py",
    "ml-dtypes",
    "google-crc32c",
    "cramjam",
)  # packages listed in the record


class InstallFailed(RuntimeTrouble):
    """Raised when no environment was made; an existing one is untouched."""


@dataclass(frozen=True)
class Prepared:
    """The facts about an installation that are known before anything is made: a Python, and exact
    versions.
    """

    python: str  # the interpreter; "" leaves the choice to uv
    arguments: Sequence[str]  # of the installer
    given: str | None = None  # the requirements that the installer reads, where no lock has them
    lacks: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0  # that this took


def prepare(wanted: Wanted, known: registry.Registry, report: Report) -> Prepared:
    """Find out whether an environment can be made, and make nothing.

    Raises :class:`RuntimeTrouble`: no uv, no interpreter, no network, no such release.
    """
    began = time.monotonic()
    python = interpreters.find(wanted.python) if wanted.python else ""
    if wanted.lock is not None:
        if (platform.system(), platform.machine()) != LOCKED_FOR:
            raise InstallFailed(
                f"{wanted.name}: its lock is for {' '.join(LOCKED_FOR)}, this is"
                f" {platform.system()} {platform.machine()}; install a requirement instead:"
                f" tensorflow=={wanted.tensorflow}"
            )
        return Prepared(python, ("--require-hashes", "-r", str(wanted.lock)))
    report("resolving")
    found = adhoc.resolve(wanted, known)
    return Prepared(
        found.interpreter,
        ("-r", "-"),
        found.pinned,
        found.lacks,
        round(time.monotonic() - began, 1),
    )


def install(
    wanted: Wanted,
    known: registry.Registry,
    report: Report,
    again: bool = False,
    prepared: Prepared | None = None,
) -> Record:
    """Make an environment unless it exists, and return its record; ``again`` makes it anew;
    ``prepared``: where it is known.

    Raises :class:`RuntimeTrouble`: no uv, no interpreter, no network, no space, a TensorFlow that
    does not start or has the wrong version.
    """
    with _alone(wanted, report):
        if not again:
            try:
                return installed(wanted)
            except records.Untrue:
                pass
        try:
            with new_folder(wanted.place) as staging:
                record = _make(wanted, staging, prepared or prepare(wanted, known, report), report)
                records.write(staging, record)
        except OSError as error:
            raise InstallFailed(f"{wanted.name}: {error}") from error
    return record


def installed(wanted: Wanted) -> Record:
    """Return the record of an environment that is complete and has the right content.

    Raises :class:`records.Untrue`.
    """
    record = records.read(wanted.place)
    if wanted.tensorflow is not None and not same_release(record.tensorflow, wanted.tensorflow):
        raise records.Untrue(f"holds TensorFlow {record.tensorflow}, not {wanted.tensorflow}")
    if wanted.python is not None and record.python.split(".")[:2] != wanted.python.split("."):
        raise records.Untrue(f"holds Python {record.python}, not {wanted.python}")
    return record


def _make(wanted: Wanted, staging: Path, prepared: Prepared, report: Report) -> Record:
    began = time.monotonic()
    seconds: dict[str, float] = {} if prepared.given is None else {"resolve": prepared.seconds}

    def timed(phase: str) -> None:
        nonlocal began
        now = time.monotonic()
        seconds[phase] = round(now - began, 1)
        began = now

    report("creating the environment")
    uv.make(staging, prepared.python)
    timed("venv")
    report("installing")
    uv.install(staging, wanted.python, prepared.arguments, prepared.given)
    timed("install")
    report("starting it")
    versions = _proof(wanted, staging)
    timed("start")
    found = records.distributions(staging)
    return Record(
        name=wanted.name,
        spec=wanted.spec,
        tensorflow=found["tensorflow"],
        python=versions["python"],
        locked=hashlib.sha256(wanted.lock.read_bytes()).hexdigest() if wanted.lock else None,
        versions={name: found[name] for name in PACKAGES if name in found},
        seconds=seconds,
        bytes=records.disk(staging),
        lacks=prepared.lacks,
    )


def _proof(wanted: Wanted, staging: Path) -> dict[str, str]:
    """Start a real worker in a new environment and return the versions it reports.

    Raises :class:`InstallFailed`.

    A worker that reports a TensorFlow other than the installed one does not count as started.
    """
    found = records.distributions(staging).get("tensorflow", "of no version")
    if not same_release(found, wanted.tensorflow or found):
        raise InstallFailed(
            f"{wanted.name}: is to be TensorFlow {wanted.tensorflow}, installed was {found}"
        )
    runtime = Runtime(wanted.name, records.interpreter(staging), found)
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker(runtime, PROOF, Path(folder) / "cwd", Path(folder) / "log")
        try:
            versions: dict[str, str] = worker.hello()["versions"]
        except NotStarted as error:
            raise InstallFailed(f"{wanted.name}: {error}") from error
        finally:
            worker.close()
    return versions


@contextmanager
def _alone(wanted: Wanted, report: Report) -> Iterator[None]:
    """Allow one installation of an environment at a time."""
    locks = places.home() / "locks"
    with ExitStack() as held:
        try:
            locks.mkdir(parents=True, exist_ok=True)
            places.environments().mkdir(exist_ok=True)
            held.enter_context(
                alone(
                    locks / wanted.folder, lambda: report("waiting for another installation of it")
                )
            )
        except OSError as error:
            raise InstallFailed(f"{wanted.name}: {error}") from error
        yield
