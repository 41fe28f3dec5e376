"""Shared by the exporters: an export is a function that builds a model; it becomes an artifact as
our own cases do.

    exporter = Exporter(packages=["keras"], prepare=seed)

    @exporter.export def dense(work):
        model = ... return Built(model, [("serving_default", {"x": X})], save=keras_export,
        answers={"serving_default": model})

    exporter.main()

The builder runs twice (``savedmodel_compat_workers.producing``): the first object answers the
requests, the second is saved.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

import numpy as np

REFUSED = 65  # the exit status of an exporter that does not write such models

KEY = "serving_default"
WORDS = ["tree", "leaf", "root"]
FLOATS = (1e-5, 1e-6, "Products of floats are added in another order by other kernels of one op.")

_numbers: list[np.random.Generator] = []  # one for each build, of one seed


class Built(NamedTuple):
    """The result of a builder.

    ``requests`` as in a case (docs/exporters/artifacts.md, section 4). ``signatures`` go to the
    save; ``answers``, by signature, are what the original object says where the save finds the
    signatures by itself: functions of the inputs, by name or the only one. ``save(root, path)`` in
    place of ``tf.saved_model.save``.
    """

    root: Any
    requests: Sequence[tuple[Any, ...]]
    signatures: Optional[Any] = None
    answers: Mapping[str, Callable[..., Any]] = {}
    save: Optional[Callable[[Any, str], Any]] = None
    tolerance: tuple[float, float, str] = (0.0, 0.0, "bit-exact")
    stateful: bool = False
    tags: Sequence[str] = ("serve",)


class _Case:
    """An export with the names of a case."""

    def __init__(
        self, name: str, build: Callable[[Path], Built], prepare: Callable[[], Any]
    ) -> None:
        self.__name__, self._build, self._prepare = name, build, prepare

    def build(self, tf: Any, work: str) -> tuple[Any, Any, Any]:
        _numbers.append(np.random.default_rng(7))
        self._prepare()
        self.built = self._build(Path(work))
        self.TOLERANCE, self.STATEFUL, self.TAGS = (
            self.built.tolerance,
            self.built.stateful,
            self.built.tags,
        )
        return self.built.root, self.built.signatures, self.built.answers

    def requests(self, np: Any) -> Sequence[tuple[Any, ...]]:
        return self.built.requests

    def save(self, tf: Any, root: Any, path: str, signatures: Any) -> None:
        if self.built.save is not None:
            self.built.save(root, path)
        else:
            tf.saved_model.save(root, path, signatures=signatures)


class Exporter:
    """The exports of one script.

    ``prepare`` is called before each build: seeds. ``packages``: whose versions are told.

    The numbers of :func:`floats` are the same in each build.
    """

    def __init__(self, packages: Sequence[str], prepare: Callable[[], Any] = lambda: None) -> None:
        self.exports: dict = {}
        self._packages, self._prepare = packages, prepare

    def export(self, build: Callable[[Path], Built]) -> Callable[[Path], Built]:
        """Decorator: the function's name is that of the export; it is given a folder that is gone
        after the save.
        """
        self.exports[build.__name__] = build
        return build

    def main(self) -> None:
        """``SCRIPT EXPORT DIRECTORY``: write the artifact, or end with :data:`REFUSED`."""
        import json

        import tensorflow as tf
        from savedmodel_compat_workers import producing

        name, directory = sys.argv[1], Path(sys.argv[2])
        if name not in self.exports:
            print(f"this exporter knows {', '.join(self.exports)}, not {name}", file=sys.stderr)
            sys.exit(REFUSED)
        case = _Case(name, self.exports[name], self._prepare)
        with tempfile.TemporaryDirectory() as scratch:
            producing.produce_case(
                case,
                str(directory),
                scratch,
                lambda root, path, signatures: case.save(tf, root, path, signatures),
                tf=tf,
            )
        versions = {
            "tensorflow": tf.__version__,
            **{package: metadata.version(package) for package in self._packages},
        }
        (directory / "versions.json").write_text(json.dumps(versions))


def named(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` of one tensor or of a mapping of tensors, as a function of a signature's inputs
    by name.
    """

    def answer(**inputs: Any) -> Any:
        return function(*inputs.values()) if len(inputs) == 1 else function(inputs)

    return answer


def floats(*shape: int, dtype: Any = np.float32) -> Any:
    """Random numbers of the normal distribution."""
    return _numbers[-1].standard_normal(shape).astype(dtype)


def strings(*values: Any) -> Any:
    return np.array(values, dtype=object)


def batches(name: str, *shape: int) -> list[dict[str, Any]]:
    """Requests with one input: a batch of three, of one, and an empty one."""
    return [{name: floats(size, *shape)} for size in (3, 1, 0)]
