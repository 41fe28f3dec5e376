"""The pytest fixture ``savedmodel_compat``, which checks an export of a test suite with every
installed consumer.

    def test_export(savedmodel_compat, tmp_path):
        my_exporter.save(model, tmp_path / "export")
        savedmodel_compat.check(tmp_path / "export", {"serving_default": [({"x": x}, {"y": y})]})

pytest loads this module in every suite of every environment in which we are installed (entry point
``pytest11``), so it imports only pytest until a test asks for the fixture. It never imports
TensorFlow, which runs in worker processes: the first test that needs them starts them, later tests
use them again, and they end with the session.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from compat_matrix.exports.options import Options
    from compat_matrix.exports.report import Report
    from compat_matrix.exports.session import Session
    from compat_matrix.requests.given import Requests

NAME = PROPERTY = "savedmodel_compat"
MARKER = (
    f"{NAME}(**options): options of the checks that the fixture {NAME} makes in this test; the same"
    " as keywords of its `check`"
)
# Name of an option -> type in the ini file, help. The names are those of the options of
# `savedmodel-compat check`. The defaults are those of compat_matrix.exports.options.
INI = {
    "consumer": (
        "args",
        "consumers to ask (default: tf2 v1_session c_api reference and those of plugins)",
    ),
    "plugins": (
        "string",
        "a TOML file with consumers of other people, relative to the root of the suite",
    ),
    "runtime": ("args", "installed TensorFlows to ask beside the local one: 2.15 1.15"),
    "server": ("args", "model servers to ask too"),
    "check": ("args", "the only checks to make"),
    "tolerance": ("string", "RTOL ATOL REASON: how far answers may be apart, and why"),
    "make_up": ("string", "requests to generate for each signature without one"),
    "fail_on": (
        "string",
        "findings of verify of at least this severity fail: info, warning, error, never",
    ),
    "limit": ("string", "seconds for one step of a consumer"),
    "require": ("bool", "a check that is not run fails the test"),
    "expectations": ("string", "a ledger of known failures, relative to the root of the suite"),
}
# The fields of compat_matrix.exports.options.Options that have other names.
FIELDS = {"consumer": "consumers", "runtime": "tensorflow", "server": "servers", "check": "checks"}
OUT = "savedmodel_compat_out"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_LONG = 100  # characters of the name of a folder
_PARSED: dict[str, Callable[[Any], Any]] = {"make_up": int, "limit": float}


def _unknown_option(name: str) -> str:
    from reference_impl.format.error_text import like

    if f"{NAME}_{name}" == OUT:
        return f"{name!r} is an option of the test run: set {OUT} in the ini file"
    return f"no option {name!r}; there are {', '.join(INI)}.{like(name, INI)}"


class CheckFailed(AssertionError):
    """An export did not pass; the message says why.

    ``report``: the full report; None if there is no SavedModel.
    """

    def __init__(self, message: str, report: Report | None = None) -> None:
        super().__init__(message)
        self.report = report


class SavedModelCompat:
    """The fixture of one test."""

    def __init__(self, request: pytest.FixtureRequest, engine: _Engine) -> None:
        self._node = request.node
        self._engine = engine
        self._engine.find_folder(request)

    def check(
        self,
        path: str | Path,
        requests: Requests | str = None,
        *,
        tags: Any = None,
        stateful: bool = False,
        **options: Any,
    ) -> Report:
        """Check the SavedModel at ``path`` and return the report.

        Raises :class:`CheckFailed` with the evidence.

        Args:
          requests: signature -> list of ``(inputs, outputs)``; each a mapping name -> array, or a
            single array. If outputs are None or missing, the consumers are compared with each
            other. Or a folder with an ``io.json``. None: the ``io/`` beside the model, else
            requests are made up.
          tags: of the MetaGraph for the requests, if there are several.
          stateful: an answer depends on earlier requests.
          options: as in the ini file, without the prefix ``savedmodel_compat_``.

        Raises:
          CheckFailed: a check did not end as expected, or nothing was compared.
          ValueError: an option or a request is not valid.
        """
        __tracebackhide__ = True
        report = self.run(path, requests, tags=tags, stateful=stateful, **options)
        if not report.ok:
            raise CheckFailed(report.text(), report) from None
        return report

    def run(
        self,
        path: str | Path,
        requests: Requests | str = None,
        *,
        tags: Any = None,
        stateful: bool = False,
        **options: Any,
    ) -> Report:
        """Check like :meth:`check`, but return the report of a failure too: the test must look at
        it itself.
        """
        __tracebackhide__ = True
        report, problem = self._checked(Path(path), requests, tags, stateful, options)
        if report is None:
            raise CheckFailed(problem) from None
        facts = {
            "export": report.headline(),
            "counts": report.counts,
            "not_run": report.not_run_lines(),
        }
        self._node.user_properties.append((PROPERTY, json.dumps(facts)))
        return report

    def _checked(
        self, path: Path, requests: Any, tags: Any, stateful: bool, options: dict[str, Any]
    ) -> tuple[Report | None, str]:
        """Return the report, or the reason why there is none."""
        with _quiet():
            from compat_matrix.requests.given import Export
            from compat_matrix.runtimes.places import RuntimeTrouble
            from reference_impl.errors import SavedModelError
            from savedmodel_common.staging import Unstageable

            marks = [mark.kwargs for mark in self._node.iter_markers(NAME)]  # the closest first
            chosen = self._engine.options([options, *marks])
            export = Export(
                path, Path(requests) if isinstance(requests, str) else requests, tags, stateful
            )
            try:
                return self._engine.check(export, chosen, self._node.nodeid), ""
            except (SavedModelError, Unstageable, RuntimeTrouble) as error:
                return None, f"{path}: {type(error).__name__}: {error}"


class _Engine:
    """The state that the tests of one process share: the workers, and the folder of the
    evidence.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.folder: Path | None = None
        self.keeps = bool(config.getini(OUT))  # keep folders of passing checks too
        self._session: Session | None = None
        self._numbers: dict[str, int] = {}

    def find_folder(self, request: pytest.FixtureRequest) -> None:
        """Choose the folder for logs and evidence: that of the ini file, else one that pytest keeps
        for some sessions.
        """
        if self.folder is not None:
            return
        if self.keeps:
            self.folder = self.config.rootpath / self.config.getini(OUT)
        elif self.config.pluginmanager.has_plugin("tmpdir"):
            self.folder = request.getfixturevalue("tmp_path_factory").mktemp(NAME)
        else:
            import tempfile

            self.folder = Path(tempfile.mkdtemp(prefix=f"{NAME}-"))

    def options(self, given: list[dict[str, Any]]) -> Options:
        """Return the options of a check. The first mapping in ``given`` has priority, the ini file
        the lowest. Raises OptionError."""
        from compat_matrix.exports import options
        from compat_matrix.requests.policies import OptionError

        found = {
            name: value
            for name in INI
            if (value := self.config.getini(f"{NAME}_{name}")) not in ("", [], None, False)
        }
        for one in reversed(given):
            found.update(one)
        unknown = sorted(set(found) - set(INI))
        if unknown:
            raise OptionError(_unknown_option(unknown[0]))
        for name, value in found.items():
            try:
                found[name] = (
                    _PARSED[name](value) if name in _PARSED and value is not None else value
                )
            except ValueError:
                raise OptionError(f"{name}: {value!r} is not a number") from None
        for name in FIELDS:
            if found.get(name) is not None:
                found[name] = (found[name],) if isinstance(found[name], str) else tuple(found[name])
        if found.get("tolerance") is not None:
            found["tolerance"] = options.tolerance(found["tolerance"])
        for name in ("expectations", "plugins"):
            if found.get(name) is not None:
                found[name] = self.config.rootpath / found[name]
        return options.Options(**{FIELDS.get(name, name): value for name, value in found.items()})

    def check(self, export: Any, options: Options, nodeid: str) -> Report:
        """Check one export. The folder of a passing export is removed unless it is to be kept."""
        import shutil

        from compat_matrix.exports.session import Session

        assert self.folder is not None
        if self._session is None:
            self._session = Session(self.folder / "workers", warm=True, home=self.config.rootpath)
        self._numbers[nodeid] = self._numbers.get(nodeid, 0) + 1
        number = f"-{self._numbers[nodeid]}" if self._numbers[nodeid] > 1 else ""
        out = self.folder / f"{_folder_name(nodeid)}{number}"
        shutil.rmtree(out, ignore_errors=True)
        report = self._session.check([export], options, out)
        if report.ok and not self.keeps:
            shutil.rmtree(out, ignore_errors=True)
        return report

    def close(self) -> None:
        """End the workers."""
        if self._session is not None:
            session, self._session = self._session, None
            session.close()


class _Summary:
    """Report at the end which checks were not run, also in tests that pass; with xdist, in the
    controlling process.
    """

    def __init__(self) -> None:
        self.facts: list[tuple[str, dict[str, Any]]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.facts += [
                (report.nodeid, json.loads(str(value)))
                for name, value in report.user_properties
                if name == PROPERTY
            ]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.facts:
            return
        counts: dict[str, int] = {}
        for _, facts in self.facts:
            for outcome, count in facts["counts"].items():
                counts[outcome] = counts.get(outcome, 0) + count
        from savedmodel_common.printable import (
            counted,  # pytest loads this module wherever we are installed
        )

        words = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
        terminalreporter.section("savedmodel-compat", sep="-")
        terminalreporter.write_line(f"{counted(len(self.facts), 'export')} checked: {words}")
        for nodeid, facts in self.facts:
            for line in facts["not_run"]:
                terminalreporter.write_line(f"{nodeid}: {line}", yellow=True)


ENGINE = pytest.StashKey[_Engine]()


def pytest_addoption(parser: pytest.Parser) -> None:
    for name, (kind, text) in INI.items():
        parser.addini(f"{NAME}_{name}", text, type=kind, default=False if kind == "bool" else None)  # type: ignore[arg-type]
    parser.addini(
        OUT,
        "folder that keeps the evidence of all checks (default: failures, in pytest's temporary"
        " folder)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    config.pluginmanager.register(_Summary(), f"{NAME}_summary")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the workers, however the session ended."""
    if ENGINE in config.stash:
        config.stash[ENGINE].close()


@pytest.fixture
def savedmodel_compat(request: pytest.FixtureRequest) -> SavedModelCompat:
    """Check exports: ``savedmodel_compat.check(path, requests)`` fails with the evidence
    (docs/exporters/check_exports.md).
    """
    config = request.config
    if ENGINE not in config.stash:
        config.stash[ENGINE] = _Engine(config)
    return SavedModelCompat(request, config.stash[ENGINE])


def _folder_name(nodeid: str) -> str:
    """Return a unique folder name for a test."""
    name = _UNSAFE.sub("_", nodeid).strip("_")
    if len(name) <= _LONG:
        return name
    import hashlib

    return f"{name[-_LONG:].strip('_')}-{hashlib.sha256(nodeid.encode()).hexdigest()[:8]}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress warnings of the packages that we import, so that they do not fail a suite under ``-W
    error``.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
