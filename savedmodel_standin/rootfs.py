"""The root file system of the stand-in's image, gathered from this machine's files without a
registry or root rights.

The interpreter and its standard library, the shared libraries of all that is in it, the C API of a
TensorFlow wheel, what every TensorFlow depends on (grpcio, protobuf, NumPy), our packages, a shell
for the entry point.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_matrix.runtimes.places import RuntimeTrouble
from savedmodel_common.provenance import file_sha256
from savedmodel_standin import executable, libraries

LIBRARIES = "/usr/lib/standin"  # everything that the loader is told about by LD_LIBRARY_PATH
PROJECT = "/usr/local/lib/savedmodel-compat"
ENTRYPOINT = "/usr/bin/tf_serving_entrypoint.sh"
SERVER = "/usr/bin/tensorflow_model_server"
# Our modules that the server imports, and nothing that changes more often.
_OURS = (
    "reference_impl/__init__.py",
    "reference_impl/errors.py",
    "reference_impl/format",
    "savedmodel_common/__init__.py",
    "savedmodel_common/provenance.py",
    "savedmodel_common/tensors.py",
    "savedmodel_common/serving/__init__.py",
    "compat_matrix/__init__.py",
    "savedmodel_servers/__init__.py",
    "savedmodel_common/serving/messages.py",
    "savedmodel_common/serving/schema",
    "savedmodel_common/serving/warmup_records.py",
    "savedmodel_standin",
    "compat_matrix/workers",
)
_SUFFIXES = (".py", ".binpb")
_NOT_STDLIB = frozenset(
    {
        "__pycache__",
        "test",
        "tests",
        "idlelib",
        "idle_test",
        "tkinter",
        "turtledemo",
        "ensurepip",
        "lib2to3",
        "pydoc_data",
    }
    | {"site-packages", "dist-packages"}
)
_NOT_SITE = frozenset({"tests", "test", "_tests", "include"})
# The contract of the official image: the shell stays the first process, and the server is its
# child.
_ENTRY = """\
#!/bin/sh
tensorflow_model_server --port=8500 --rest_api_port=8501 \\
  --model_name="${MODEL_NAME}" --model_base_path="${MODEL_BASE_PATH}/${MODEL_NAME}" "$@"
"""


class NoImage(RuntimeTrouble):
    """Raised when the root file system cannot be gathered from this runtime."""


@dataclass(frozen=True)
class Entry:
    """A file of the image: a copy of ``source``, or ``text``; a folder when neither is given."""

    mode: int
    source: Path | None = None
    text: str | None = None
    derived: bool = False  # follows from other files: not part of the digest

    def digest(self) -> str:
        return (
            file_sha256(self.source)
            if self.source
            else hashlib.sha256((self.text or "").encode("utf-8")).hexdigest()
        )


@dataclass(frozen=True)
class Tree:
    """``{path in the image: entry}`` in order, and the version of the TensorFlow inside."""

    entries: Mapping[str, Entry]
    tensorflow: str

    def digest(self) -> str:
        """Return the digest of the paths, modes and contents of all files that are not derived from
        others.
        """
        out = hashlib.sha256()
        for path, entry in self.entries.items():
            if not entry.derived:
                out.update(f"{path}\0{entry.mode:o}\0{entry.digest()}\n".encode())
        return out.hexdigest()


def gather(python: Path, compiled: Path) -> Tree:
    """Return the tree for the TensorFlow of this interpreter; ``compiled`` is an empty folder to
    work in.

    Raises :class:`NoImage`: no TensorFlow with a C API that needs no Python (2.12 is the first), or
    a library is missing.
    """
    facts = _facts(python, compiled)
    if not any("libtensorflow_cc" in path for path in facts["libraries"]):
        raise NoImage(
            f"TensorFlow {facts['tensorflow']} has no libtensorflow_cc: the image needs 2.12 or"
            " later"
        )
    home = f"/usr/local/lib/{facts['python']}"
    shell = Path("/bin/sh").resolve()
    entries = {
        "/bin/sh": Entry(0o755, shell),
        f"/usr/local/bin/{facts['python']}": Entry(0o755, Path(facts["executable"])),
        ENTRYPOINT: Entry(0o755, text=_ENTRY),
        SERVER: Entry(0o755, text=executable.script(f"/usr/local/bin/{facts['python']}", PROJECT)),
        **dict.fromkeys(("/models", "/root", "/proc", "/sys", "/dev", "/etc"), Entry(0o755)),
        "/tmp": Entry(0o1777),
        "/etc/passwd": Entry(0o644, text="root:x:0:0:root:/root:/bin/sh\n"),
        "/etc/hosts": Entry(0o644, text="127.0.0.1 localhost\n"),
    }
    stdlib = dict(_stdlib(Path(facts["stdlib"]), home))
    site = dict(_site(Path(facts["site"]), f"{home}/site-packages", facts))
    entries |= {**stdlib, **site, **dict(_ours())}
    for library, source in _libraries(entries, stdlib, Path(facts["site"])).items():
        entries[library if library.startswith("/") else f"{LIBRARIES}/{library}"] = Entry(
            0o755, source
        )
    entries |= {
        path: Entry(0o644, Path(source), derived=True)
        for path, source in facts["compiled"].items()
        if _parent(path, entries)
    }
    return Tree(dict(sorted(entries.items())), facts["tensorflow"])


def _facts(python: Path, compiled: Path) -> dict[str, Any]:
    ours = {str(executable.PROJECT): PROJECT}
    program = (
        executable.opening(str(executable.PROJECT))
        + "from savedmodel_standin import probe\nprobe.main()\n"
    )
    command = [str(python), "-I", "-c", program, str(compiled), json.dumps(ours)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise NoImage(f"{python} cannot run the stand-in: {reason[0][-2000:]}")
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


def _parent(path: str, entries: Mapping[str, Entry]) -> bool:
    """Return whether the source of a compiled module is in the image."""
    folder, _, name = path.rpartition("/__pycache__/")
    return f"{folder}/{name.split('.')[0]}.py" in entries


def _stdlib(folder: Path, home: str) -> Iterator[tuple[str, Entry]]:
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        wanted = (
            not _NOT_STDLIB & set(parts)
            and not parts[0].startswith("config-")
            and path.suffix not in (".a", ".pyc")
        )
        if wanted and path.is_file() and not path.name.startswith(("_test", "_tkinter")):
            yield f"{home}/{'/'.join(parts)}", Entry(0o755 if path.suffix == ".so" else 0o644, path)


def _site(folder: Path, home: str, facts: Mapping[str, Any]) -> Iterator[tuple[str, Entry]]:
    for name in facts["files"]:
        if not _NOT_SITE & set(Path(name).parts) and not name.endswith(
            (".pyi", ".h", ".a", ".pyx", ".pxd")
        ):
            yield f"{home}/{name}", Entry(0o755 if ".so" in name else 0o644, folder / name)
    # The package is only looked for, never imported.
    yield f"{home}/tensorflow/__init__.py", Entry(0o644, text="")
    yield f"{home}/tensorflow/python", Entry(0o755)
    for library in facts["libraries"]:
        yield f"{home}/tensorflow/{Path(library).name}", Entry(0o755, Path(library))


def _ours() -> Iterator[tuple[str, Entry]]:
    for name in _OURS:
        top = executable.PROJECT / name
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.is_file() and path.suffix in _SUFFIXES:
                yield f"{PROJECT}/{path.relative_to(executable.PROJECT)}", Entry(0o644, path)


def _libraries(
    entries: dict[str, Entry], stdlib: Mapping[str, Entry], site: Path
) -> dict[str, Path]:
    """Return the libraries that the binaries need.

    A standard library module that lacks one is left out: it is not needed here either.
    """
    while True:
        sources = [
            entry.source for entry in entries.values() if entry.source and entry.mode == 0o755
        ]
        try:
            return libraries.needed(list(filter(libraries.is_elf, sources)), [site])
        except OSError as error:
            raise NoImage(str(error)) from None
        except libraries.Missing as error:
            path = next(
                (path for path, entry in stdlib.items() if entry.source == error.path), None
            )
            if path is None:
                raise NoImage(str(error)) from None
            del entries[path]
