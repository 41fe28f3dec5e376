"""Measure the evaluator against TensorFlow, for the page `evidence/evaluator.md`; the figures are
kept in `data/evaluator.json`.

    python -m docs.evaluator_measured RUN_FOLDER           # with TensorFlow 2.21
    python -m docs.evaluator_measured RUN_FOLDER --older   # with another one: its kernels alone

RUN_FOLDER is the output folder of ``matrix run``: it holds the artifacts of the cases. Every
request of these and of the fixtures is evaluated. Its answer is compared with the recorded one, and
each node's result with that of TensorFlow's kernel for the same inputs. With ``--older`` only the
nodes are compared; run it in the environments that ``tox -e tests-tf2.12`` and its like make.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

import numpy as np

import reference_eval
from reference_eval import registry
from reference_eval.executor import Ran
from reference_eval.reading import FunctionName, definition_of
from reference_eval.reading import attribute as attribute_of
from reference_impl.errors import SavedModelError
from savedmodel_common import tensors
from savedmodel_common.compare import FLOATS, numbers, ulps
from savedmodel_tools.evaluation import inputs

RECORD = Path(__file__).parent / "data" / "evaluator.json"
FIXTURES = Path(__file__).parents[1] / "fixtures_v1"
NODES = 30  # of one op and dtype that are compared: a loop runs the same node many times
ELEMENTS = 1 << 20
_NO_KERNEL = (
    "Const",
    "Merge",
    "PartitionedCall",
    "Placeholder",
    "StatefulPartitionedCall",
    "Switch",
)


def main() -> int:
    """Measure everything, and write the record."""
    import tensorflow as tf

    parser = argparse.ArgumentParser(prog="python -m docs.evaluator_measured")
    parser.add_argument("run", type=Path, metavar="RUN_FOLDER")
    parser.add_argument("--older", action="store_true", help="compare the nodes alone")
    options = parser.parse_args()
    kernels = Kernels(tf)
    artifacts = []
    for name, folder in folders(options.run):
        signatures = measured(folder, kernels)
        if signatures:
            artifacts.append({"artifact": name, "signatures": signatures})
        print(name, file=sys.stderr)
    for ran in drawn():
        kernels.compare(ran, list(ran.values))
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    if options.older:
        record.setdefault("older", {})[tf.version.VERSION] = kernels.found
    else:
        record |= {"tensorflow": tf.version.VERSION, "artifacts": artifacts, "ops": kernels.found}
    text = json.dumps(record, indent=1, sort_keys=True)
    text = text.replace("Infinity", "null")  # JSON has no infinity
    RECORD.write_text(text + "\n", encoding="utf-8")
    return 0


def folders(run: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the folder of each artifact: of the fixtures, then of the cases."""
    for path in sorted(FIXTURES.glob("*/io/io.json")):
        yield path.parts[-3], path.parents[1]
    for path in sorted((run / "artifacts").glob("*/*/io/io.json")):
        yield f"{path.parts[-4]}/{path.parts[-3].partition('@')[0]}", path.parents[1]


# Answers
# --------------------------------------------------------------------------------------------------


def measured(folder: Path, kernels: Kernels) -> dict[str, dict[str, Any]]:
    """Return the signatures of an artifact that have a recorded answer: signature -> worst ulp and
    absolute error, or the reason why it is not evaluated.
    """
    spec = json.loads((folder / "io" / "io.json").read_text(encoding="utf-8"))
    found: dict[str, dict[str, Any]] = {}
    models: dict[tuple[str, ...], reference_eval.Model] = {}
    for request in spec["requests"]:
        if request["kind"] != "signature" or not request.get("outputs"):
            continue
        key = request["signature"]
        known = found.setdefault(key, {"ulp": 0.0, "absolute": 0.0, "reason": ""})
        try:
            tags = tuple(request["tags"])
            if tags not in models:
                models[tags] = reference_eval.load(folder / "model", tags, watch=kernels)
            ulp, absolute = difference(folder / "io", request, models[tags])
        except (SavedModelError, KeyError) as error:
            known["reason"] = reason_of(error)
        else:
            known["ulp"], known["absolute"] = (
                max(known["ulp"], ulp),
                max(known["absolute"], absolute),
            )
    return found


def reason_of(error: Exception) -> str:
    """Return the last part of an error: without the file and the node."""
    text = str(error).rpartition("): ")[2]
    found = text.rpartition("not evaluated: ")[2].partition(": ")[0]
    return found.partition("; ")[0] or type(error).__name__


def difference(
    io: Path, request: dict[str, Any], model: reference_eval.Model
) -> tuple[float, float]:
    """Return the largest ulp and absolute error of an answer; an output that is not a float and
    differs is infinitely far.
    """
    call = model.signatures[request["signature"]]
    given = {
        name: inputs.fitted(name, tensor, *call.inputs[name])
        for name, tensor in tensors.load(io / request["inputs"]).items()
    }
    answer = call(**given)
    compared = request.get("compared")
    worst = (0.0, 0.0)
    for name, expected in tensors.load(io / request["outputs"]).items():
        if compared is None or name in compared:
            found = tensors.from_numpy(np.asarray(answer[name]), stated(expected))
            ulp, absolute = apart(expected, found)
            worst = max(worst[0], ulp), max(worst[1], absolute)
    return worst


def stated(expected: tensors.Tensor) -> Optional[str]:
    """Return the dtype of an output if NumPy has no type of its own for it."""
    return expected.dtype if expected.dtype.lstrip("u").startswith(("q", "int4", "int2")) else None


def apart(expected: tensors.Tensor, found: tensors.Tensor) -> tuple[float, float]:
    """Return the largest distance of two tensors, in ulp and absolute."""
    if expected.dtype != found.dtype or expected.array.shape != found.array.shape:
        return np.inf, np.inf
    if expected.dtype not in FLOATS:
        if expected.dtype.startswith("complex"):
            return apart_complex(expected.array, found.array)
        same = np.array_equal(expected.array, found.array)
        return (0.0, 0.0) if same else (np.inf, np.inf)
    left, right = numbers(expected), numbers(found)
    finite = np.isfinite(left) & np.isfinite(right)
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True):
        return np.inf, np.inf
    # Kernels may flush subnormal numbers to 0.
    tiny = np.finfo(left.dtype).tiny
    finite &= (np.abs(left) >= tiny) | (np.abs(right) >= tiny)
    if not finite.any():
        return 0.0, 0.0
    pair = [tensors.Tensor(one.dtype, one.array[finite]) for one in (expected, found)]
    absolute = np.abs(left[finite].astype(np.float64) - right[finite].astype(np.float64))
    return float(np.max(ulps(*pair))), float(np.max(absolute))


def apart_complex(expected: Any, found: Any) -> tuple[float, float]:
    """Return the distance of complex numbers, in units of the last place of their size."""
    finite = np.isfinite(expected) & np.isfinite(found)
    if not np.array_equal(np.isfinite(expected), np.isfinite(found)):
        return np.inf, np.inf
    if not finite.any():
        return 0.0, 0.0
    absolute = np.abs(expected[finite] - found[finite])
    unit = np.spacing(np.maximum(np.abs(expected[finite]), np.finfo(expected.dtype).tiny))
    return float(np.max(np.ceil(absolute / unit))), float(np.max(absolute))


# Nodes
# --------------------------------------------------------------------------------------------------


class Kernels:
    """Compares each node that runs with TensorFlow's kernel.

    Attributes:
      found: op -> dtype of its first result -> worst ulp and absolute error.
    """

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        self._count: Counter[tuple[str, str]] = Counter()
        self.found: dict[str, dict[str, list[float]]] = {}

    def __call__(self, ran: Ran) -> None:
        """Compare one node, if its kernel computes tensors from tensors."""
        values = [value for value in ran.values if isinstance(value, np.ndarray)]
        if ran.op in _NO_KERNEL or len(values) != len(ran.values) or not values:
            return
        self.compare(ran, values)

    def compare(self, ran: Ran, values: list[Any]) -> None:
        """Compare the results of one op, unless this was done often enough for its dtype."""
        kind = "string" if values[0].dtype.kind == "O" else values[0].dtype.name
        self._count[ran.op, kind] += 1
        if self._count[ran.op, kind] > NODES or sum(value.size for value in values) > ELEMENTS:
            return
        wanted = self._kernel(ran)
        if wanted is None or len(wanted) != len(values):
            return
        worst = self.found.setdefault(ran.op, {}).setdefault(kind, [0.0, 0.0])
        for expected, value in zip(wanted, values):
            ulp, absolute = apart(expected, tensors.from_numpy(value))
            worst[:] = max(worst[0], ulp), max(worst[1], absolute)

    def _kernel(self, ran: Ran) -> Optional[list[tensors.Tensor]]:
        """Return what TensorFlow computes from the same inputs; None if the op needs a graph."""
        call = getattr(self._tf.raw_ops, ran.op, None)
        if call is None or not all(map(is_tensor, ran.inputs)):
            return None
        if any(isinstance(value, FunctionName) for value in ran.attributes.values()):
            return None
        names = [name for name in inspect.signature(call).parameters if name != "name"]
        if not set(names[len(ran.inputs) :]) <= set(ran.attributes):
            return None  # it has another name there
        arguments = {name: self._given(value) for name, value in zip(names, ran.inputs)}
        for name in names[len(ran.inputs) :]:
            arguments[name] = attribute(self._tf, ran.attributes[name])
        try:
            results = self._tf.nest.flatten(call(**arguments))
            return [tensors.from_numpy(result.numpy()) for result in results]
        except (self._tf.errors.OpError, TypeError, ValueError, AttributeError, RuntimeError):
            return None

    def _given(self, value: Any) -> Any:
        """Return an input as a tensor of its own dtype."""
        if isinstance(value, list):
            return [self._given(item) for item in value]
        return self._tf.constant(value, self._tf.string if value.dtype.kind == "O" else value.dtype)


# Random inputs
# --------------------------------------------------------------------------------------------------

_OF_ROWS = ("LogSoftmax", "Softmax")  # one NaN decides a whole row
EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, np.nan, np.inf, -np.inf)
DTYPES = ("float32", "float64", "int32", "int64", "complex64")
SIZE = 4096


def drawn() -> Iterator[Ran]:
    """Yield ops of one or two tensors of one dtype, evaluated for random numbers and edges."""
    random = np.random.default_rng(0)
    for name, evaluator in registry.known().items():
        definition = definition_of(name)
        if definition is None or not is_elementwise(definition) or evaluator.wants_call:
            continue
        for dtype in DTYPES:
            given = [numbers_of(dtype, random) for _ in definition.input_arg]
            attributes = {
                attr.name: attribute_of(attr.default_value)
                for attr in definition.attr
                if attr.HasField("default_value")
            }
            passed = {key: attributes[key] for key in evaluator.attributes & attributes.keys()}
            try:
                with np.errstate(all="ignore"):
                    result = np.asarray(evaluator.evaluate(*given, **passed))
            except (ArithmeticError, LookupError, TypeError, ValueError):
                continue
            yield Ran("", name, name, attributes, given, [result])


def is_elementwise(definition: Any) -> bool:
    """Return whether an op takes one or two tensors of one dtype, and needs no attribute."""
    kinds = {argument.type_attr for argument in definition.input_arg}
    listed = any(arg.number_attr or arg.type_list_attr for arg in definition.input_arg)
    required = {attr.name for attr in definition.attr if not attr.HasField("default_value")}
    few = len(definition.input_arg) in (1, 2) and len(definition.output_arg) == 1
    if definition.name in _OF_ROWS:
        return False
    return few and not listed and len(kinds) == 1 and required <= kinds and "" not in kinds


def numbers_of(dtype: str, random: np.random.Generator) -> Any:
    """Return numbers of several magnitudes, and the edges of a dtype."""
    if dtype.startswith("int"):
        ends = np.iinfo(dtype)
        edges = [0, 1, -1, 7, ends.max, ends.min]
        return np.concatenate([edges, random.integers(-100, 100, SIZE)]).astype(dtype)
    scale = 10.0 ** random.integers(-6, 4, SIZE)
    plain = random.normal(size=SIZE) * scale
    if dtype.startswith("complex"):
        plain = plain + 1j * random.normal(size=SIZE) * scale
        return plain.astype(dtype)
    return np.concatenate([EDGES, plain]).astype(dtype)


def is_tensor(value: Any) -> bool:
    """Return whether an input is an array, or a list of arrays."""
    parts = value if isinstance(value, list) else [value]
    return all(isinstance(part, np.ndarray) for part in parts)


def attribute(tf: Any, value: Any) -> Any:
    """Return an attribute as `tf.raw_ops` takes it."""
    if isinstance(value, np.dtype):
        return tf.string if value.kind == "O" else tf.as_dtype(value)
    if isinstance(value, list):
        return [attribute(tf, item) for item in value]
    if isinstance(value, tuple):
        return tf.TensorShape([None if size < 0 else size for size in value])
    return value


if __name__ == "__main__":
    sys.exit(main())
