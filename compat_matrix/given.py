"""A SavedModel that somebody gives becomes an artifact: requests made up from its signatures, answered by the local TensorFlow.

An artifact (docs/contracts.md, section 1) is taken as it is. What could not be asked is said, never left out silently.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from compat_matrix.plan import ABSENT, is_complete
from compat_matrix.runtimes.host import Host
from compat_matrix.runtimes.runtime import LOCAL, local_runtime
from compat_matrix.runtimes.worker import NotStarted, ReplyError, WorkerDied
from compat_matrix.workers import provenance, tensors
from compat_matrix.workers.tensors import CARRIERS, Tensor
from reference_impl.format import layout
from reference_impl.format.inspect_signatures import signature_spec

RECORDER = "c_api_worker"  # the loader that servers have
LIMIT = 300.0  # seconds: somebody's model may be large
PRODUCER = "given"
# Sizes of the unknown dimensions, the first and the others, in the order tried: most models take a batch of any size.
SIZES = ((2, 1), (1, 1), (1, 8), (4, 4), (1, 64), (1, 224))
MAX_ELEMENTS = 1 << 24
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")


@dataclass
class Given:
    """The artifact's directory, and what of the model will not be asked, and why."""

    directory: Path
    left_out: list[str] = field(default_factory=list)

    @property
    def case(self) -> str:
        """The name by which a plan knows it."""
        return str(json.loads((self.directory / "provenance.json").read_text(encoding="utf-8"))["case"])


def as_artifact(path: Path, folder: Path, requests: Path | None = None) -> Given:
    """An artifact of the SavedModel at ``path``, made below ``folder`` unless it is one.

    Args:
      path: an artifact, or the directory of a SavedModel.
      folder: where an artifact is made; it is emptied.
      requests: a folder with an ``io.json`` and its tensors, in place of requests of our own.

    Raises:
      reference_impl.format.errors.SavedModelError: there is no SavedModel.
    """
    if is_complete(path) and (path / "model").is_dir() and requests is None:
        return Given(path)
    model = path / "model" if is_complete(path) else path
    found = layout.read(model)
    given = Given(folder / _case_name(path))
    shutil.rmtree(given.directory, ignore_errors=True)
    io = given.directory / "io"
    io.mkdir(parents=True)
    shutil.copytree(model, given.directory / "model", copy_function=_link)
    if requests is not None:
        shutil.copytree(requests, io, dirs_exist_ok=True)
    else:
        asked = list(_recorded(found, given, folder))
        questions = {"schema": 1, "stateful": False, "tolerance": TOLERANCE, "requests": asked}
        (io / "io.json").write_text(json.dumps(questions, indent=1) + "\n", encoding="utf-8")
    versions = {graph.meta_info_def.tensorflow_version for graph in found.saved_model.meta_graphs} - {""}
    version = re.sub(r"[^A-Za-z0-9_.+-]", "_", max(versions, default="")) or ABSENT
    provenance.write(
        given.directory,
        case=given.directory.name,
        title=f"the SavedModel at {path}",
        clauses=(),
        features=(),
        producer={"name": PRODUCER, "versions": {"tensorflow": version}},
        generator=given.directory / "io" / "io.json",
        environment={"runtime": "", "platform": ""},
        command=f"savedmodel-compat serve-check {path}",
    )
    return given


# The same computation by the same kernels, but of another build: a server's may use other instructions.
TOLERANCE = {"rtol": 1e-5, "atol": 1e-6, "reason": "the server may be built with other instructions than the local wheel"}


def _case_name(path: Path) -> str:
    """The name of the directory; that of the one above where it says no more than "model", or is the number of a version."""
    name = path.resolve().name
    name = path.resolve().parent.name if name.isdigit() or name == "model" else name
    return _UNSAFE.sub("_", name).strip("_") or "model"


def _link(source: str, target: str) -> None:
    """A hard link, which costs nothing and is only read; a copy where file systems do not let us, and of what a link leads to."""
    try:
        if Path(source).is_symlink():
            raise OSError
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _recorded(found: layout.Layout, given: Given, folder: Path) -> Iterator[dict[str, Any]]:
    """Requests that the local TensorFlow answers, with its answers, one for each signature."""
    if local_runtime().tensorflow_version is None:
        given.left_out.append(
            'answers: there is no TensorFlow here to record any (pip install "savedmodel-compat[tf]"); or --requests'
        )
        return
    io, model = given.directory / "io", given.directory / "model"
    with Host(folder / "recording") as host:
        for graph in found.saved_model.meta_graphs:
            tags = sorted(graph.meta_info_def.tags)
            worker = host.worker(LOCAL, RECORDER)
            for index, (key, sides) in enumerate(signature_spec(graph).items()):
                request = {"id": f"{index}-{_UNSAFE.sub('_', key)}", "kind": "signature", "tags": tags, "signature": key}
                reason = "no input of its dtypes and shapes can be made up"
                for inputs in _made_up(sides["inputs"]):
                    request |= {"inputs": f"{index}.in.npz", "outputs": f"{index}.out.npz"}
                    tensors.save(io / f"{index}.in.npz", inputs)
                    try:
                        with host.model(worker, model, tags, LIMIT, shared=True) as loaded:
                            loaded.ask("call", LIMIT, request=request, io_dir=str(io), outputs=str(io / f"{index}.out.npz"))
                    except (ReplyError, WorkerDied, NotStarted) as error:
                        reason = str(error).splitlines()[0][:300]
                        continue
                    yield request
                    break
                else:
                    (io / f"{index}.in.npz").unlink(missing_ok=True)
                    given.left_out.append(f"signature {key!r}: the local TensorFlow answers none of our requests ({reason})")


def _made_up(inputs: dict[str, dict[str, Any]]) -> Iterator[dict[str, Tensor]]:
    """Inputs for a signature, in the sizes of ``SIZES``: small numbers that every dtype holds exactly."""
    seen = set()
    for first, other in SIZES:
        shapes = {}
        for name, info in inputs.items():
            dims = [None] if info["shape"] is None else info["shape"]
            sizes = [size if size is not None and size >= 0 else (other if at else first) for at, size in enumerate(dims)]
            shapes[name] = tuple(sizes)
        fits = all(np.prod(shape, dtype=np.float64) <= MAX_ELEMENTS for shape in shapes.values())
        known = all(info["dtype"] == "string" or info["dtype"] in CARRIERS for info in inputs.values())
        if fits and known and tuple(shapes.items()) not in seen:
            seen.add(tuple(shapes.items()))
            yield {name: _tensor(info["dtype"], shapes[name]) for name, info in inputs.items()}


def _tensor(dtype: str, shape: tuple[int, ...]) -> Tensor:
    count = int(np.prod(shape, dtype=np.int64))
    if dtype == "string":
        array = np.empty(count, dtype=object)
        array[:] = [b"%d" % (i % 3) for i in range(count)]
        return Tensor(dtype, array.reshape(shape))
    steps = np.arange(count) % 3
    if dtype.startswith(("float", "complex")) and dtype in ("float16", "float32", "float64", "complex64", "complex128"):
        return tensors.from_numpy((steps / 4).astype(dtype).reshape(shape))
    if dtype == "bool":
        return Tensor(dtype, (steps == 1).reshape(shape))
    if dtype == "bfloat16":  # the upper half of a float32
        bits = (steps / 4).astype(np.float32).view(np.uint32) >> 16
        return Tensor(dtype, bits.astype(np.uint16).reshape(shape))
    return Tensor(dtype, steps.astype(CARRIERS[dtype]).reshape(shape))
