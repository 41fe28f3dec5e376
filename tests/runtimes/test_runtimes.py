"""The registry of runtimes, and from the text that names a runtime to the runtime.

Nothing is installed here.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_runtime
import tomlkit
from packaging.requirements import Requirement

from compat_matrix.cells.consumers import CONSUMERS
from compat_matrix.cells.producers import PRODUCERS
from compat_matrix.runtimes import (
    interpreters,
    isolation,
    locking,
    places,
    provision,
    records,
    registry,
    resolve,
    runtime,
    wanted,
)
from compat_matrix.runtimes.programs import importing
from reference_impl.remembering import found_once

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("SAVEDMODEL_COMPAT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def known():
    return registry.read()


def environment(place: Path, record: records.Record, installed: str | None = None) -> None:
    """Something that looks like an environment: an interpreter, a distribution, a record."""
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").symlink_to(sys.executable)
    (
        place
        / f"lib/python3.11/site-packages/tensorflow_cpu-{installed or record.tensorflow}.dist-info"
    ).mkdir(parents=True)
    records.write(place, record)


def record_of(target: wanted.Wanted, **changed) -> records.Record:
    fields = {
        "name": target.name,
        "spec": target.spec,
        "tensorflow": target.tensorflow,
        "python": f"{target.python}.1",
    }
    return records.Record(**{**fields, "locked": "0" * 64 if target.lock else None, **changed})


# Our registry
# --------------------------------------------------------------------------------------------------


def test_the_registry_has_every_minor_release_of_tf_2_and_six_of_tf_1(known):
    wanted_names = [f"tf1.{minor}" for minor in (4, 8, 12, 13, 14, 15)] + [
        f"tf2.{minor}" for minor in range(22)
    ]
    assert list(known.stanzas) == wanted_names


def test_every_lock_pins_what_its_requirements_ask_for_with_hashes_and_names_no_index(known):
    for stanza in known.stanzas.values():
        text = stanza.lock.read_text(encoding="utf-8")
        assert "://" not in text and "--index" not in text, stanza.lock
        pins = dict(
            re.findall(
                r"^([a-z0-9-]+)==([^ ;]+)(?: ;[^\\]*)? \\\n    --hash=sha256:", text, re.MULTILINE
            )
        )
        assert len(pins) == len(re.findall(r"^[a-z]", text, re.MULTILINE)), stanza.lock
        for requirement in map(Requirement, known.locked_requirements(stanza)):
            assert requirement.specifier.contains(pins[requirement.name]), (
                stanza.lock,
                str(requirement),
            )


def test_what_reference_impl_needs_is_what_the_project_declares(known):
    project = tomlkit.parse((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = map(
        Requirement, [*project["dependencies"], *project["optional-dependencies"]["matrix"]]
    )
    by_name = {one.name: one.specifier for one in declared}
    assert known.reference
    for requirement in map(Requirement, known.reference):
        assert by_name[requirement.name] == requirement.specifier, requirement.name


def test_what_runtimes_lack_are_consumers_and_producers(known):
    assert {name for lack in known.lacking for name in lack.programs} <= {*CONSUMERS, *PRODUCERS}
    assert set(importing("reference_impl")) <= set(known.lacks("2.11.1"))
    for version in ("2.12.0rc0", "2.12.1", "2.22.0.dev20260101"):
        assert not set(importing("reference_impl")) & set(known.lacks(version))
    assert known.lacks("2.11.1+candidate") == known.lacks("2.11.1")
    assert known.lacks(None) == {}


def _changed(**fields) -> str:
    """The tiny registry with fields of its only runtime replaced, or with None removed."""
    document = tomlkit.parse(tiny_runtime.TEXT)
    stanza = document["runtime"]["tf9.9"]
    for name, value in fields.items():
        if value is None:
            del stanza[name]
        else:
            stanza[name] = value
    return tomlkit.dumps(document)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("schema = 2\n", "schema: is 2, this program reads 1"),
        ("schema = ", "at line 1"),
        (_changed(tensorflow=None), "runtime tf9.9: has no tensorflow"),
        (_changed(lock=7), "runtime tf9.9: lock is not of type str"),
        (_changed(colour="red"), "runtime tf9.9: unknown colour"),
        (
            _changed(tensorflow="9.8.0", requirements=["tensorflow==9.8.0"]),
            "the name of TensorFlow 9.8.0 is tf9.8",
        ),
        (_changed(tensorflow="9.9"), "tensorflow is '9.9', not like 2.12.1"),
        (_changed(tensorflow="nine"), "runtime tf9.9: Invalid version"),
        (_changed(python="3"), "python is '3', not like 3.11"),
        (
            _changed(requirements=["tensorflow>=9.9.9"]),
            "requirements pin TensorFlow >=9.9.9, tensorflow is 9.9.9",
        ),
        (_changed(requirements=["numpy"]), "requirements pin TensorFlow not at all"),
        (_changed(requirements=["tensorflow=9.9.9"]), "runtime tf9.9: 'tensorflow=9.9.9': "),
        (
            _changed(requirements=[]),
            "runtime tf9.9: requirements: is not a list of strings, or is empty",
        ),
        (_changed(lock="/etc/lock.txt"), "lock is an absolute path"),
        (tiny_runtime.TEXT.replace("<10", ">10"), "lacks 1: no runtime is in the range >10"),
        (tiny_runtime.TEXT.replace("<10", "about 9"), "lacks 1: Invalid specifier"),
        (tiny_runtime.TEXT.replace("none of the tests needs it", " "), "lacks 1: has no reason"),
    ],
)
def test_a_registry_with_a_fault_is_refused_with_its_place(tmp_path, text, complaint):
    path = tiny_runtime.registry(tmp_path, text)
    with pytest.raises(registry.RegistryError, match=re.escape(complaint)) as caught:
        registry.read(path)
    assert str(path) in str(caught.value)


def test_a_runtime_without_a_lock_says_how_to_make_one(tmp_path):
    known = registry.read(tiny_runtime.registry(tmp_path))
    with pytest.raises(registry.RegistryError, match=r"lock tf9\.9"):
        resolve.resolve("9.9", known)


def test_the_locks_that_fixtures_cite_are_not_rewritten(known):
    before = known.stanzas["tf1.15"].lock.read_bytes()
    with pytest.raises(locking.LockRefused, match="committed fixtures"):
        locking.lock(known.stanzas["tf1.15"], known)
    assert known.stanzas["tf1.15"].lock.read_bytes() == before


# Specs
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["tf2.12", "2.12", "2.12.1", "tf2.12.1", " 2.12 "])
def test_every_spelling_of_a_runtime_of_the_registry(known, spec):
    target = wanted.parse(spec, known)
    assert (target.name, target.spec, target.tensorflow, target.python) == (
        "tf2.12",
        "tf2.12",
        "2.12.1",
        "3.11",
    )


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        (
            "2.99",
            (
                r"no runtime is called 2\.99\. Did you mean tf2\.9.* Any other release:"
                r" tensorflow==2\.99\.\*"
            ),
        ),
        ("2.12.0", r"tf2\.12 is TensorFlow 2\.12\.1; any other by tensorflow==2\.12\.0"),
        ("nonsense here", "is not a runtime: give a name of"),
        ("keras==3.0", "installs no TensorFlow"),
        ("tensorflow @ https://example.org/t.whl", "URLs are not understood"),
        ("/no/such/folder", "no such file or folder"),
        ("dist/tensorflow-2.21.0-cp313-cp313-linux_x86_64.whl", "no such wheel"),
    ],
)
def test_what_is_no_runtime_is_refused_with_what_would_be_one(known, spec, complaint):
    with pytest.raises(places.UnknownRuntime, match=complaint):
        resolve.resolve(spec, known)


def test_a_missing_runtime_names_the_command_that_installs_it(known):
    with pytest.raises(places.NotInstalled, match=r"runtimes install tf2\.12$"):
        resolve.resolve("2.12", known)
    with pytest.raises(
        places.NotInstalled, match=re.escape("runtimes install 'tensorflow==2.21.0rc1 @3.12'")
    ):
        resolve.resolve("tensorflow==2.21.0rc1@3.12", known)
    with pytest.raises(
        places.NotInstalled, match=r"runtimes install tf2\.0 'tensorflow<2\.21,>=2\.20' tf2\.4$"
    ) as caught:
        resolve.resolve_all("local, 2.0, tensorflow>=2.20,<2.21, tf2.4", known)
    assert caught.value.specs == ("tf2.0", "tensorflow<2.21,>=2.20", "tf2.4")


def test_an_installed_runtime_is_found_with_what_it_lacks(known):
    target = wanted.parse("2.4", known)
    environment(target.place, record_of(target, lacks={"cpp": "not built"}))
    found = resolve.resolve("2.4.4", known)
    assert (found.name, found.tensorflow_version, found.spec) == ("tf2.4", "2.4.4", "tf2.4")
    assert found.python == target.place / "bin" / "python"
    assert found.lacks["cpp"] == "not built" and "private modules" in found.lacks["reference"]
    assert [one.name for one in resolve.resolve_all("installed,2.4", known)] == ["tf2.4"]


def test_an_ad_hoc_runtime_is_found_by_its_requirement_and_by_its_name(known):
    target = wanted.parse("tensorflow-cpu==2.19.0", known)
    environment(target.place, record_of(target, python="3.12.1"))
    assert (
        resolve.resolve("tensorflow_cpu == 2.19.0".replace("_", "-"), known).tensorflow_version
        == "2.19.0"
    )
    assert resolve.resolve(target.name, known).spec == "tensorflow-cpu==2.19.0"
    with pytest.raises(places.NotInstalled):
        resolve.resolve("tensorflow-cpu==2.19.0 @3.11", known)


@pytest.mark.parametrize(
    ("changed", "installed", "why"),
    [
        ({"tensorflow": "2.4.3"}, None, r"holds TensorFlow 2\.4\.3, not 2\.4\.4"),
        ({"python": "3.9.1"}, None, r"holds Python 3\.9\.1, not 3\.8"),
        ({}, "2.4.3", r"says TensorFlow 2\.4\.4, installed is 2\.4\.3"),
        ({"schema": 2}, None, "not of schema 1"),
        ({"tensorflow": "new"}, None, "Invalid version"),
    ],
)
def test_a_record_that_lies_is_refused(known, changed, installed, why):
    target = wanted.parse("2.4", known)
    environment(target.place, record_of(target, **changed), installed)
    with pytest.raises(places.NotInstalled, match=why):
        resolve.resolve("2.4", known)


def test_an_environment_without_record_or_interpreter_does_not_count(known):
    target = wanted.parse("2.4", known)
    environment(target.place, record_of(target))
    (target.place / "bin" / "python").unlink()
    with pytest.raises(places.NotInstalled, match="interpreter is gone"):
        resolve.resolve("2.4", known)
    (target.place / records.NAME).write_text("{", encoding="utf-8")
    with pytest.raises(places.NotInstalled, match=records.NAME):
        resolve.resolve("2.4", known)
    (target.place / records.NAME).unlink()
    with pytest.raises(places.NotInstalled, match="not finished"):
        resolve.resolve("2.4", known)


def test_an_interpreter_that_exists_is_asked_for_its_tensorflow(known, tmp_path):
    """Without importing it: the module of this one would end the process."""
    packages = tmp_path / "venv/lib/python3/site-packages"
    (packages / "tensorflow_cpu-2.13.1.dist-info").mkdir(parents=True)
    (packages / "cramjam-2.8.0.dist-info").mkdir()
    (packages / "tensorflow.py").write_text("raise SystemExit(9)", encoding="utf-8")
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir()
    command = (
        f"import sys; sys.path[:] = [{str(packages)!r}] + [p for p in sys.path if 'site-packages'"
        " not in p]; exec(sys.argv[1])"
    )
    python.write_text(
        f'#!/bin/sh\nexec {sys.executable} -S -c "{command}" "$2"\n', encoding="utf-8"
    )
    python.chmod(0o755)
    for spec in (str(python), str(tmp_path / "venv")):
        found = resolve.resolve(spec, known)
        assert (found.tensorflow_version, found.python, found.spec) == (
            "2.13.1",
            python,
            str(python),
        )
        assert (
            "google-crc32c, ml-dtypes" in found.lacks["reference"]
            and "cramjam" not in found.lacks["reference"]
        )
    (packages / "tensorflow_cpu-2.13.1.dist-info").rename(packages / "other-1.dist-info")
    with pytest.raises(places.UnknownRuntime, match="no TensorFlow"):
        resolve.resolve(str(python), known)
    python.write_text("#!/bin/sh\necho broken >&2\nexit 3\n", encoding="utf-8")
    with pytest.raises(places.UnknownRuntime, match="broken"):
        resolve.resolve(str(python), known)


def test_the_local_runtime_has_the_facts_of_its_version(known, monkeypatch):
    monkeypatch.setattr(
        resolve,
        "local_runtime",
        lambda: runtime.Runtime("local", Path(sys.executable), "2.9.0", spec="local"),
    )
    assert set(importing("reference_impl")) <= set(resolve.resolve("local", known).lacks)


@pytest.mark.parametrize(
    ("spec", "is_local"),
    [
        *(
            ("2.12", True),
            ("2.12.1", True),
            ("tf2.12", True),
            ("tensorflow==2.12.1", True),
            ("tensorflow==2.12.1+label", True),
        ),
        *(
            (f"tensorflow==2.12.1 @3.{sys.version_info.minor}", True),
            ("tensorflow==2.12.1 @3.7", False),
        ),
        *(
            ("tensorflow==2.12.0", False),
            ("2.13", False),
            ("tensorflow[and-cuda]==2.12.1", False),
            ("tf-nightly==2.12.1", False),
        ),
    ],
)
def test_the_local_runtime_answers_for_its_release(known, monkeypatch, spec, is_local):
    """Whoever asks a release by its number need not install what is here."""
    here = runtime.Runtime("local", Path(sys.executable), "2.12.1", spec="local")
    monkeypatch.setattr(resolve, "local_runtime", lambda: here)
    if not is_local:
        with pytest.raises(places.NotInstalled):
            resolve.resolve(spec, known)
        return
    assert (resolve.resolve(spec, known).name, resolve.resolve(spec, known).python) == (
        "local",
        here.python,
    )
    assert [one.name for one in resolve.resolve_all(f"local,{spec}", known)] == ["local"]
    with pytest.raises(places.NotInstalled):  # the words mean environments
        resolve.resolve_all("all", known)
    target = wanted.parse(spec, known)
    environment(target.place, record_of(target, python=f"{target.python or '3.11'}.1"))
    assert resolve.resolve(spec, known).name == target.name != "local"


def test_the_nearest_runtime_lends_its_pins_to_an_ad_hoc_one(known):
    assert known.nearest("2.4.0").pins == ("protobuf<3.21",)
    assert known.nearest("2.22.0rc1").name == "tf2.21"
    assert known.nearest("1.2.0") is None


def test_a_locked_runtime_on_another_platform_points_to_a_requirement(known, monkeypatch):
    monkeypatch.setattr(provision.platform, "machine", lambda: "arm64")
    monkeypatch.setattr(interpreters, "find", lambda version: sys.executable)
    with pytest.raises(provision.InstallFailed, match=r"Linux x86_64, .* tensorflow==2\.4\.4"):
        provision.install(wanted.parse("2.4", known), known, lambda what: None)


def test_a_python_that_is_not_here_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    monkeypatch.setattr(interpreters, "_managed", dict)
    monkeypatch.setattr(interpreters, "_pyenv", lambda: "")
    shim = tmp_path / "python3.17"
    shim.write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    shim.chmod(0o755)
    with pytest.raises(
        interpreters.NoInterpreter, match=rf"no Python 3\.17 \({re.escape(str(shim))}\)"
    ):
        interpreters.find("3.17")


def test_the_newest_micro_of_pyenv_is_taken(monkeypatch, tmp_path):
    for version in ("3.17.2", "3.17.10"):
        python = tmp_path / "versions" / version / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text("#!/bin/sh\necho 3.17\n", encoding="utf-8")
        python.chmod(0o755)
    monkeypatch.setattr(interpreters, "_pyenv", lambda: str(tmp_path))
    interpreters.find.cache_clear()
    assert interpreters.find("3.17") == str(tmp_path / "versions/3.17.10/bin/python")
    interpreters.find.cache_clear()


def test_a_python_that_is_installed_meanwhile_is_found(monkeypatch, tmp_path):
    """What a machine lacks is not remembered: the process that asked may have told its user to
    install it.
    """
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    monkeypatch.setattr(interpreters.uv, "run", lambda arguments, given=None: "[]")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    with pytest.raises(interpreters.NoInterpreter):
        interpreters.find("3.17")
    python = tmp_path / "versions" / "3.17.2" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho 3.17\n", encoding="utf-8")
    python.chmod(0o755)
    assert interpreters.find("3.17") == str(python)
    interpreters.find.cache_clear()


def test_a_network_that_could_not_be_denied_once_is_denied_later(monkeypatch):
    """For want of processes `unshare` may fail once; the models after it are as untrusted."""
    usual = isolation.without_network()
    if not usual:
        pytest.skip("this platform gives no process another network")
    monkeypatch.setattr(isolation, "_means", found_once(isolation._means.__wrapped__))
    with monkeypatch.context() as busy:
        busy.setattr(isolation, "_WAYS", (("false",),))
        assert isolation.without_network() == ()
    assert isolation.without_network() == usual


# The command
# --------------------------------------------------------------------------------------------------


def command(*arguments: str) -> subprocess.CompletedProcess:
    words = ("runtimes", *arguments)
    whole = [sys.executable, "-X", "importtime", "-m", "savedmodel_compat", *words]
    return subprocess.run(
        whole, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ
    )


def test_the_list_as_json_is_complete_and_imports_nothing_heavy(known):
    target = wanted.parse("tensorflow-cpu==2.19.0", known)
    environment(target.place, record_of(target, python="3.12.1", bytes={"own": 5, "shared": 7}))
    done = command("list", "--json")
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert (
        listed["schema"] == 1
        and set(listed["consumers"]) == set(CONSUMERS)
        and set(listed["producers"]) == set(PRODUCERS)
    )
    rows = {row["name"]: row for row in listed["runtimes"]}
    assert list(rows) == ["local", *known.stanzas, "tensorflow-cpu-2.19.0"]
    assert (rows["tf2.4"]["installed"], rows["tf2.4"]["why_not"]) == (False, "not installed")
    assert (
        rows["tensorflow-cpu-2.19.0"]["installed"],
        rows["tensorflow-cpu-2.19.0"]["locked"],
    ) == (True, False)
    imported = {
        line.rsplit("|", 1)[1].strip()
        for line in done.stderr.splitlines()
        if line.startswith("import time:")
    }
    assert not imported & {"numpy", "rich", "jinja2", "pytest", "tensorflow", "google.protobuf"}


def test_usage_errors_of_the_command():
    for arguments in (
        ("install",),
        ("remove",),
        ("install", "2.99"),
        ("doctor", "x y"),
    ):
        assert command(*arguments).returncode == 64, arguments
    assert command("install", sys.prefix).returncode == 64  # exists already
    assert command("remove", sys.prefix).returncode == 64  # was not installed by us


def test_remove_and_remove_stale(known):
    target = wanted.parse("2.4", known)
    environment(target.place, record_of(target))
    (places.environments() / "tf2.4-0123456789ab").mkdir()
    done = command("remove", "--stale")
    assert (done.returncode, done.stdout) == (0, "tf2.4-0123456789ab: removed\n")
    done = command("remove", "2.4")
    assert (done.returncode, done.stdout) == (0, "tf2.4: removed\n")
    assert list(places.environments().iterdir()) == []
    assert command("remove", "2.4").stdout == "tf2.4: was not installed\n"


def test_the_doctor_of_a_runtime_that_is_not_installed_says_first_what_to_do():
    done = command("doctor", "2.4")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith("missing: tf2.4: ")
