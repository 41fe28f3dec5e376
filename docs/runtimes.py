"""The time and disk space of the runtimes, for the page `releases/runtimes.md`; kept in
`data/runtimes.json`.

python -m docs.runtimes                      # of what is installed, where nothing is known of
                                             today's lock
python -m docs.runtimes --measure [NAME]...  # install twice in a scratch folder, first with an
                                             empty cache of uv
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from compat_matrix.runtimes import places, provision, records, registry, wanted

MEASURED = Path(__file__).parent / "data" / "runtimes.json"
COSTS = (
    "runtime",
    "TensorFlow",
    "Python",
    "NumPy",
    "protobuf",
    "Keras",
    "disk MB",
    "install s",
    "first install",
)
HEAD = """# The {count} runtimes

A runtime is an environment with a Python and a TensorFlow. `savedmodel-compat runtimes install NAME` makes one from a lock with hashes. The locks are for
Linux on x86_64 with glibc. For another system, or another TensorFlow, name a requirement, a wheel or an interpreter.

Every command that takes a runtime takes these:

"""  # noqa: E501
MORE = """
`savedmodel-compat runtimes list` shows which runtimes are installed, and `runtimes doctor NAME` what a runtime can run. Some programs do not work in some
releases; their cells are NOT_APPLICABLE. [Versions, costs, and what each runtime lacks](../data/runtimes.json).

To add a runtime, write a stanza in [`runtimes.toml`](../../compat_matrix/runtimes/runtimes.toml) and run `python -m compat_matrix.commands.lock NAME`.
"""  # noqa: E501
COSTS_HEAD = """# Runtimes: versions, costs, and what they lack

The costs come from `python -m docs.runtimes [--measure]`, run on a busy machine with two cores, so the seconds are upper bounds.

- *disk*: what an environment needs of its own, and what it shares with uv's cache by hard links.
- *install*: the time until a worker has started in it, with its packages in uv's cache.
- *first install*: the same with an empty cache, and the size of the cache then.

"""  # noqa: E501
LACKS_HEAD = """
## What they lack

These cells of a plan are NOT_APPLICABLE, with the reason.

"""
FORMS = [
    ("`local`", "the interpreter that runs the harness"),
    ("`tf2.12`, `2.12`, `2.12.1`", "a runtime of the registry"),
    (
        "`tensorflow==2.21.0rc1`",
        (
            "a requirement, in an environment of its own, with the newest Python that has it; not"
            " locked"
        ),
    ),
    ("`tensorflow-cpu==2.20.0 @3.12`", "the same with a certain Python"),
    (
        "`dist/tensorflow-2.22.0-cp313-….whl`",
        "a wheel, likewise; after a rebuild it is another runtime",
    ),
    (
        "`path/to/venv`, `path/to/bin/python`",
        "what exists; it is asked for its TensorFlow and nothing is installed",
    ),
]


def read_measured() -> dict[str, Any]:
    """``{runtime: what was measured}``."""
    if not MEASURED.exists():
        return {}
    measured: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))["runtimes"]
    return measured


def cost_rows(known: registry.Registry, measured: dict[str, Any]) -> list[tuple[str, ...]]:
    """One row per runtime; a dash for what was measured with another lock, or not at all."""
    rows = []
    for stanza in known.stanzas.values():
        found = measured.get(stanza.name, {})
        row = ["-"] * 6
        if found.get("lock") == lock_digest(stanza):
            sizes, seconds = found["bytes"], found["seconds"]
            row = [found["versions"].get(name, "-") for name in ("numpy", "protobuf", "keras")]
            row += [
                f"{sizes['own'] / 1e6:.0f} + {sizes['shared'] / 1e6:.0f}",
                f"{seconds['repeat']:.0f}",
            ]
            row += [
                (
                    f"{seconds['first']:.0f}, {sizes['cache'] / 1e6:.0f} MB"
                    if "first" in seconds
                    else "-"
                )
            ]
        rows.append((f"`{stanza.name}`", stanza.tensorflow, stanza.python, *row))
    return rows


def lack_rows(known: registry.Registry) -> list[tuple[str, ...]]:
    """One row per entry of what runtimes lack."""
    rows = []
    for lack in known.lacking:
        programs = ", ".join(f"`{name}`" for name in lack.programs)
        within = (
            name for name, one in known.stanzas.items() if lack.versions.contains(one.tensorflow)
        )
        rows.append((programs, str(lack.versions), " ".join(within), lack.reason))
    return rows


def lock_digest(stanza: registry.Stanza) -> str:
    """The sha256 of a lock."""
    return hashlib.sha256(wanted.lock_bytes(stanza)).hexdigest()


def measure(stanza: registry.Stanza, known: registry.Registry) -> dict[str, Any]:
    """Install a runtime twice in a scratch folder beside the usual one. Raises RuntimeTrouble."""
    seconds = {}
    usual = places.home()
    usual.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="measure-", dir=usual) as scratch:
        cache = Path(scratch) / "cache"
        os.environ.update(SAVEDMODEL_COMPAT_HOME=f"{scratch}/home", UV_CACHE_DIR=str(cache))
        try:
            for phase in ("first", "repeat"):
                began = time.monotonic()
                record = provision.install(
                    wanted.of_stanza(stanza), known, lambda _: None, again=True
                )
                seconds[phase] = round(time.monotonic() - began, 1)
        finally:
            del os.environ["SAVEDMODEL_COMPAT_HOME"], os.environ["UV_CACHE_DIR"]
        size = {**record.bytes, "cache": sum(records.disk(cache).values())}
    return {
        "lock": record.locked,
        "versions": dict(record.versions),
        "bytes": size,
        "seconds": seconds,
    }


def collect(stanza: registry.Stanza) -> dict[str, Any]:
    """Return the facts in the record of the installed environment.

    Raises Untrue if it is not installed.
    """
    record = provision.installed(wanted.of_stanza(stanza))
    seconds = {"repeat": round(sum(record.seconds.values()), 1)}
    return {
        "lock": record.locked,
        "versions": dict(record.versions),
        "bytes": dict(record.bytes),
        "seconds": seconds,
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--measure", nargs="*", metavar="NAME", help="install these twice, all without a name"
    )
    asked = parser.parse_args(arguments).measure
    known, found = registry.read(), read_measured()
    for stanza in known.stanzas.values():
        old = found.get(stanza.name, {})
        if asked is not None and (stanza.name in asked or not asked):
            found[stanza.name] = measure(stanza, known)
            print(stanza.name, found[stanza.name]["seconds"], flush=True)
        elif old.get("lock") != lock_digest(stanza):
            found[stanza.name] = collect(stanza)
        text = json.dumps({"schema": 1, "runtimes": found}, indent=1, sort_keys=True)
        temporary = MEASURED.with_suffix(".tmp")
        temporary.write_text(text + "\n", encoding="utf-8")
        temporary.replace(MEASURED)


if __name__ == "__main__":
    main()
