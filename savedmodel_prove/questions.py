"""The inputs that both models are asked: those of the user, of the model, and made ones.

Made inputs are random ones and edges: zeros, constants, large numbers, an empty batch, a batch of
one and of four. They vary one base, which is the first made input that the original answers: it
settles the dimensions that the signature leaves open.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

import numpy as np

from compat_matrix.requests.artifact import ArtifactError, read_artifact
from compat_matrix.requests.made_up import examples_of, made_up
from reference_impl.errors import SavedModelError
from reference_impl.format.container.layout import Layout
from reference_impl.views.signatures import signature_spec
from savedmodel_common import tensors
from savedmodel_common.compare import FLOATS
from savedmodel_common.tensors import Tensor
from savedmodel_prove.records import Answer
from savedmodel_tools import warmup
from savedmodel_tools.contract import file as contract_file

Inputs = Mapping[str, Tensor]
TRIED = 12  # made inputs, until the original answers one
LARGE = 1000.0
_SPARSE = ("/indices", "/dense_shape")
_INTEGERS = "iu"


class NoQuestion(ValueError):
    """Raised when no input of the signature can be read or made."""


@dataclass(frozen=True)
class Question:
    """Inputs with a name, e.g. ``random 0``."""

    name: str
    inputs: Inputs


@dataclass(frozen=True)
class Target:
    """The signature that is asked.

    Attributes:
      found: the files of the original.
      tags: of the MetaGraph.
      key: of the signature.
    """

    found: Layout
    tags: tuple[str, ...]
    key: str
    requests: Optional[Path] = None  # a folder with an io.json
    contract: Optional[Path] = None
    spec: Mapping[str, Mapping[str, Mapping[str, object]]] = field(default_factory=dict)

    @property
    def inputs(self) -> Mapping[str, Mapping[str, object]]:
        """Name -> ``{"dtype", "shape"}``."""
        return self.spec["inputs"]

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs."""
        return list(self.spec["outputs"])


def target_of(
    found: Layout,
    tags: tuple[str, ...],
    key: str,
    requests: Optional[Path] = None,
    contract: Optional[Path] = None,
) -> Target:
    """Return the signature to ask, with its inputs and outputs. Raises KeyError."""
    spec = signature_spec(found.meta_graph(tags))[key]
    return Target(found, tags, key, requests, contract, spec)


def recorded(target: Target) -> Iterator[Question]:
    """Yield the inputs of the requests folder, the contract and the model's warm-up requests.

    Raises NoQuestion: a file that the user named cannot be read.
    """
    for number, inputs in enumerate(_of_requests(target)):
        yield Question(f"request {number}", inputs)
    for number, inputs in enumerate(_of_contract(target)):
        yield Question(f"contract {number}", inputs)
    for number, inputs in enumerate(_of_warmup(target)):
        yield Question(f"warm-up {number}", inputs)


def _of_requests(target: Target) -> Iterator[Inputs]:
    if target.requests is None:
        return
    folder = target.requests.parent if target.requests.is_file() else target.requests
    # An artifact has the folder under the name io.
    if not (folder / "io.json").is_file() and (folder / "io" / "io.json").is_file():
        folder = folder / "io"
    try:
        entries = _entries(folder)
        for entry in entries:
            if _asks(entry, target):
                yield tensors.load(folder / str(entry["inputs"]), plain=True)
    except (ArtifactError, OSError, ValueError) as error:
        raise NoQuestion(f"{target.requests}: {error}") from error


def _entries(folder: Path) -> Sequence[Mapping[str, object]]:
    """Return the entries of an ``io.json``; the reader wants it in a folder called io."""
    with tempfile.TemporaryDirectory(prefix="savedmodel-prove-") as scratch:
        io = Path(scratch, "io")
        io.mkdir()
        shutil.copyfile(folder / "io.json", io / "io.json")
        return read_artifact(Path(scratch)).requests


def _asks(entry: Mapping[str, object], target: Target) -> bool:
    return (
        entry.get("kind") == "signature"
        and entry.get("signature") == target.key
        and entry.get("tags") == list(target.tags)
    )


def _of_contract(target: Target) -> Iterator[Inputs]:
    if target.contract is None:
        return
    try:
        answers = contract_file.read(target.contract).answers
    except contract_file.ContractError as error:
        raise NoQuestion(str(error)) from error
    for request in answers.requests if answers is not None else ():
        if request.signature == target.key and tuple(request.tags) == target.tags:
            yield request.inputs


def _of_warmup(target: Target) -> Iterator[Inputs]:
    try:
        asked = warmup.requests_of(target.found).get(target.key, [])
        for request in asked if "serve" in target.tags else ():
            inputs = warmup.inputs_of(request, target.inputs)
            if inputs is not None and set(inputs) == set(target.inputs):
                yield inputs
    except SavedModelError:
        return


def made(
    target: Target,
    answer: Callable[[Inputs], Answer],
    seed: int,
    count: int,
    fixed: Optional[Mapping[str, Sequence[int]]] = None,
) -> Iterator[Question]:
    """Yield ``count`` random inputs and the edges.

    Args:
      target: the signature.
      answer: asks the original.
      seed: of the random numbers.
      count: of random inputs.
      fixed: shapes of inputs in the converted model, -1 for an open dimension. Most questions have
        its sizes where the original leaves them open.

    Raises NoQuestion: the original answers no made input.
    """
    if not target.inputs:
        yield Question("no inputs", {})
        return
    base = _base(target, answer, fixed or {})
    random = np.random.default_rng(seed)
    for number in range(count):
        yield Question(f"random {number}", _varied(base, _random, random))
    yield Question("counting", base)
    for name, fill in EDGES.items():
        yield Question(name, _varied(base, fill, random))
    if has_batch(target.inputs, base):
        for size in (1, 4, 0):
            rows = _varied(resized(base, size), _random, random)
            yield Question(f"batch {size}" if size else "empty batch", rows)


def _base(
    target: Target, answer: Callable[[Inputs], Answer], fixed: Mapping[str, Sequence[int]]
) -> Inputs:
    examples = examples_of(target.found.meta_graph(target.tags))
    reason = "no input of its dtypes and shapes can be made"
    spec = {name: _with_sizes(info, fixed.get(name)) for name, info in target.inputs.items()}
    for inputs in itertools.islice(made_up(spec, examples), TRIED):
        reason = answer(inputs).error
        if not reason:
            return inputs
    raise NoQuestion(f"the original answers no made input ({reason}); pass requests")


def _with_sizes(info: Mapping[str, object], fixed: Optional[Sequence[int]]) -> Mapping[str, object]:
    """Return an input with the sizes of the converted model where its own are open."""
    shape = info["shape"]
    if fixed is None or (isinstance(shape, Sequence) and len(shape) != len(fixed)):
        return info
    own = shape if isinstance(shape, Sequence) else [None] * len(fixed)
    return {**info, "shape": list(map(_fixed, own, fixed))}


def _fixed(size: Optional[int], converted: int) -> Optional[int]:
    is_open = size is None or size < 0
    return converted if is_open and converted >= 0 else size


Fill = Callable[[Tensor, np.random.Generator], Tensor]


def _varied(base: Inputs, fill: Fill, random: np.random.Generator) -> dict[str, Tensor]:
    """Return inputs of the shapes of ``base`` with other values, without those that repeat it."""
    parts = {name for name in base if name.endswith(_SPARSE) and f"{_stem(name)}/values" in base}
    return {
        name: tensor if name in parts else fill(tensor, random) for name, tensor in base.items()
    }


def _stem(name: str) -> str:
    return name.rpartition("/")[0]


def _random(tensor: Tensor, random: np.random.Generator) -> Tensor:
    shape = tensor.array.shape
    if tensor.dtype in FLOATS:
        return _floats(tensor.dtype, random.standard_normal(shape))
    if tensor.dtype in ("complex64", "complex128"):
        parts = random.standard_normal(shape) + 1j * random.standard_normal(shape)
        return Tensor(tensor.dtype, np.asarray(parts, tensor.dtype))
    if tensor.dtype == "bool":
        return Tensor("bool", random.integers(0, 2, shape).astype(bool))
    if tensor.array.dtype.kind in _INTEGERS:
        return Tensor(tensor.dtype, random.integers(0, 3, shape).astype(tensor.array.dtype))
    return Tensor(tensor.dtype, random.permutation(tensor.array.ravel()).reshape(shape))


def _floats(dtype: str, values: object) -> Tensor:
    array = np.asarray(values)
    if dtype in ("float16", "float32", "float64"):
        return Tensor(dtype, array.astype(dtype))
    import ml_dtypes

    return tensors.from_numpy(array.astype(getattr(ml_dtypes, dtype)))


def _constant(value: float) -> Fill:
    def fill(tensor: Tensor, random: np.random.Generator) -> Tensor:
        shape = tensor.array.shape
        if tensor.dtype in FLOATS:
            return _floats(tensor.dtype, np.full(shape, value))
        if tensor.dtype == "bool" or tensor.array.dtype.kind in _INTEGERS:
            whole = np.full(shape, min(max(int(value), 0), 2))
            return Tensor(tensor.dtype, whole.astype(tensor.array.dtype))
        return tensor

    return fill


def _large(tensor: Tensor, random: np.random.Generator) -> Tensor:
    """Return floats of both signs up to `LARGE`."""
    if tensor.dtype not in FLOATS:
        return tensor
    return _floats(tensor.dtype, random.uniform(-LARGE, LARGE, tensor.array.shape))


def _small(tensor: Tensor, random: np.random.Generator) -> Tensor:
    """Return floats of both signs below 1e-6."""
    if tensor.dtype not in FLOATS:
        return tensor
    return _floats(tensor.dtype, random.uniform(-1e-6, 1e-6, tensor.array.shape))


EDGES: Mapping[str, Fill] = {
    "zeros": _constant(0.0),
    "ones": _constant(1.0),
    "minus ones": _constant(-1.0),
    "large": _large,
    "small": _small,
}


def has_batch(spec: Mapping[str, Mapping[str, object]], inputs: Inputs) -> bool:
    """Return whether all inputs have one open leading dimension of the same size."""
    if not inputs or set(inputs) != set(spec):
        return False
    sizes = {tensor.array.shape[0] if tensor.array.ndim else -1 for tensor in inputs.values()}
    parts = any(name.endswith(_SPARSE) for name in inputs)
    return len(sizes) == 1 and -1 not in sizes and not parts and all(map(_is_open, spec.values()))


def _is_open(info: Mapping[str, object]) -> bool:
    shape = info["shape"]
    if not isinstance(shape, Sequence):
        return True
    return bool(shape) and (shape[0] is None or shape[0] < 0)


def resized(inputs: Inputs, size: int) -> dict[str, Tensor]:
    """Return the inputs with ``size`` rows: the first ones, repeated where there are fewer."""
    found = {}
    for name, tensor in inputs.items():
        rows = np.arange(size) % max(tensor.array.shape[0], 1)
        found[name] = Tensor(tensor.dtype, tensor.array[rows])
    return found


def one_ulp_away(inputs: Inputs, random: np.random.Generator) -> dict[str, Tensor]:
    """Return the inputs with each float moved to a neighbour, up or down at random."""
    found = {}
    for name, tensor in inputs.items():
        if tensor.dtype in ("float32", "float64", "float16"):
            up = np.where(random.integers(0, 2, tensor.array.shape) == 1, np.inf, -np.inf)
            with np.errstate(all="ignore"):
                moved = np.nextafter(tensor.array, up.astype(tensor.array.dtype))
            found[name] = Tensor(tensor.dtype, np.asarray(moved))
        else:
            found[name] = tensor
    return found
