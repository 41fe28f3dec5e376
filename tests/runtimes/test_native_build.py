"""How the C++ loader is built and found: the cache, the wheel's dialect, what is said where it
cannot be. Nothing is compiled.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compat_matrix.cells.consumers import CONSUMERS, CPP
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.hosts.host import Host
from compat_matrix.plan.planning import Axes, make_plan
from compat_matrix.runtimes.native import build, wheel
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.runtimes.worker import NotStarted
from compat_matrix.verdict import Ledger

NEW = b"..._ZN10tensorflow14LoadSavedModelERKNS_14SessionOptionsERKNS_10RunOptionsERKNSt7__cxx1112basic_string..."
OLD = NEW.replace(b"NSt7__cxx1112basic_string", b"Ss")
VIEW = b"_ZN10tensorflow15ParseTensorNameE"
CPP17, CPP14 = VIEW + b"St17basic_string_viewIc", VIEW + b"N4absl12lts_2021032411string_viewE"
HEADER = "include/tensorflow/cc/saved_model/loader.h"


class Machine:
    """A compiler that only notes that it was called, and a Python that only says where its
    TensorFlow is.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.calls = root, root / "calls"
        self.folder = root / "tensorflow"
        (self.folder / HEADER).parent.mkdir(parents=True)
        (self.folder / HEADER).write_text("")
        self.library = self.folder / "libtensorflow_cc.so.2"
        self.library.write_bytes(NEW + CPP17)
        self.libpython: str | None = None
        self.compiler()
        self.runtime = Runtime("fake", root / "python", "2.99.0")
        self.python()

    def compiler(self, version: str = "fake 1.0", body: str = 'touch "$out"') -> None:
        lines = [
            "#!/bin/sh",
            f'case "$*" in *--version) echo "{version}"; exit;; esac',
            f'echo "$@" >> "{self.calls}"',
        ]
        lines += ['while [ $# -gt 0 ]; do [ "$1" = -o ] && out="$2"; shift; done', body]
        (self.root / "g++").write_text("\n".join(lines) + "\n")
        (self.root / "g++").chmod(0o755)
        build._compiler_version.cache_clear()

    def python(self, error: str | None = None) -> None:
        facts = {
            "folder": str(self.folder),
            "libraries": [str(self.library)],
            "python_library": self.libpython,
            "error": error,
        }
        (self.root / "python").write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(facts)}\nEND\n")
        (self.root / "python").chmod(0o755)
        wheel.wheel_of.cache_clear()

    @property
    def compiled(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("SAVEDMODEL_COMPAT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(build, "COMPILERS", ("g++",))
    return Machine(tmp_path)


def test_what_is_built_is_not_built_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    first = build.build(machine.runtime, said.append)
    assert first.is_file() and len(said) == len(machine.compiled) == 1
    assert build.build(machine.runtime, said.append) == first
    assert len(said) == len(machine.compiled) == 1
    assert list(first.parent.parent.glob(".*.tmp")) == []
    # Another source, compiler, library or flag is another program.
    sources = machine.root / "sources"
    shutil.copytree(build.SOURCES, sources)
    (sources / "main.cc").write_text("// changed\n")
    monkeypatch.setattr(build, "SOURCES", sources)
    changed = [build.build(machine.runtime)]
    machine.compiler("fake 2.0")
    changed.append(build.build(machine.runtime))
    machine.library.write_bytes(OLD + CPP17)
    wheel.wheel_of.cache_clear()
    changed.append(build.build(machine.runtime))
    monkeypatch.setenv("CXX", f"{machine.root}/g++ -O3")
    changed.append(build.build(machine.runtime))
    assert len({first, *changed}) == len(machine.compiled) == 5


def test_two_at_once_compile_once(machine: Machine) -> None:
    machine.compiler(body='sleep 1; touch "$out"')
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(build.build, [machine.runtime] * 4))) == 1
    assert len(machine.compiled) == 1


def test_a_compiler_that_fails_is_quoted_with_its_command(machine: Machine) -> None:
    machine.compiler(body="echo 'loader.h:7: error: no such thing' >&2; exit 1")
    with pytest.raises(
        build.BuildError, match=r"(?s)\$ g\+\+ -std=c\+\+17 .*main\.cc.*no such thing"
    ):
        build.build(machine.runtime)
    assert [path.suffix for path in (machine.root / "home" / "native").iterdir()] == [".lock"]
    with (
        Host(machine.root / "out", {"fake": machine.runtime}) as host,
        pytest.raises(NotStarted, match="no such thing"),
    ):
        host.worker("fake", CONSUMERS[CPP].program).hello()
    machine.compiler()
    assert build.build(machine.runtime).is_file()


@pytest.mark.parametrize(
    ("content", "flags"),
    [
        (NEW + CPP17, ["-std=c++17", "-D_GLIBCXX_USE_CXX11_ABI=1"]),
        (OLD + CPP14, ["-std=c++14", "-D_GLIBCXX_USE_CXX11_ABI=0"]),
        (NEW + CPP14, ["-std=c++14", "-D_GLIBCXX_USE_CXX11_ABI=1"]),
    ],
)
def test_the_dialect_is_read_from_the_wheel(
    machine: Machine, content: bytes, flags: list[str]
) -> None:
    machine.library.write_bytes(content)
    machine.python()
    build.build(machine.runtime)
    assert set(flags) < set(machine.compiled[0].split())
    assert f"-Wl,-rpath,{machine.folder}" in machine.compiled[0]


def test_an_extension_module_is_linked_with_the_python_it_needs(machine: Machine) -> None:
    machine.library = machine.folder / "_pywrap_tensorflow_internal.so"
    machine.library.write_bytes(OLD + CPP14)
    machine.python()
    assert "needs libpython" in str(build.unsupported(machine.runtime))
    machine.libpython = str(machine.root / "libpython3.8.so")
    Path(machine.libpython).write_bytes(b"")
    machine.python()
    build.build(machine.runtime)
    assert machine.libpython in machine.compiled[0].split()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda m: (m.folder / HEADER).unlink(), "no header tensorflow/cc/saved_model/loader.h"),
        (lambda m: m.library.write_bytes(b"nothing"), "exports no tensorflow::LoadSavedModel"),
        (lambda m: m.python("no package called tensorflow"), "no package called tensorflow"),
        (
            lambda m: (m.root / "python").write_text("#!/bin/sh\necho wrong >&2; exit 3\n"),
            "does not say where its TensorFlow is",
        ),
    ],
)
def test_a_wheel_that_allows_none_says_why(machine: Machine, damage, reason: str) -> None:
    damage(machine)
    assert reason in str(build.unsupported(machine.runtime))
    assert reason in build.examined(machine.runtime, CPP).lacks[CPP]
    with pytest.raises(build.BuildError, match=r"C\+\+ loader"):
        build.build(machine.runtime)
    build.provide(machine.runtime, print)  # `runtimes install --native`: nothing to be done
    assert machine.compiled == []


def test_without_a_compiler_the_cells_are_not_run(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine.root / "g++").unlink()
    monkeypatch.setattr(build, "COMPILERS", ("no-such-compiler",))
    monkeypatch.setattr("compat_matrix.plan.planning.all_cases", lambda *_: [])
    plan = make_plan(Ledger(), axes=Axes((machine.runtime,), home=("fake",)))
    cells = [cell for cell in plan if cell.consumer == CPP]
    assert cells
    for cell in cells:
        assert cell.decided is not None
        if cell.decided.outcome is not Outcome.NOT_APPLICABLE:
            assert cell.decided.outcome is Outcome.NOT_RUN
            assert "(no-such-compiler)" in cell.decided.reason
    assert all(
        not cell.decided or cell.decided.outcome is Outcome.NOT_APPLICABLE
        for cell in plan
        if cell.consumer == "c_api"
    )
    monkeypatch.setenv("CXX", "nowhere/g++")
    assert "CXX is 'nowhere/g++'" in str(build.why_not(machine.runtime))


def test_sources_are_shipped_and_small() -> None:
    sources = [*build.SOURCES.glob("*.cc"), *build.SOURCES.glob("*.h")]
    assert {"main.cc", "loader.cc", "loader.h"} <= {path.name for path in sources}
    for path in sources:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) < 400, path
        assert max(map(len, lines)) <= 130, path


def test_this_interpreter_is_asked_without_tensorflow() -> None:
    """Whatever is installed here: an answer, or a reason."""
    wheel.wheel_of.cache_clear()
    why = build.unsupported(Runtime("here", Path(sys.executable), "2.99.0"))
    assert why is None or why
