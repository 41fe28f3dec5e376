"""The parsers under attack: where seeds come from, how they are changed, what is called, which
errors are ours.
"""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from property_tests.fuzz import (
    archives,
    live,
    mutation,
    parsers,
    serving,
    standin,
    tables,
    trees,
    zoo,
)
from property_tests.fuzz.guard import MEMORY
from property_tests.fuzz.wire import Mutator

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
SEEDS = Path(__file__).parent / "seeds"
LEDGER = Path(__file__).parents[2] / "compat_matrix" / "verdict"
_SMALL = 20_000  # bytes of a seed

Mutate = Callable[[Random, bytes], bytes]


@dataclass(frozen=True)
class Target:
    """One parser.

    Attributes:
      name: of the target.
      file: where the bytes are put, below a folder of their own.
      seeds: makes the inputs that all others come from.
      mutator: makes, out of the seeds, the function that changes an input once.
      parse: reads the folder; checks of its result what can be checked.
      named: the errors that are an answer.
    """

    name: str
    file: str
    seeds: Callable[[], list[bytes]]
    mutator: Callable[[list[bytes]], Mutate]
    parse: Callable[[Path], object]
    named: Callable[[], tuple[type[Exception], ...]]
    beside: tuple[tuple[str, Path], ...] = ()  # sound files that belong there too
    placer: Callable[[Path, bytes], None] | None = (
        None  # puts an input there where it is more than one file
    )
    memory: int = MEMORY  # that it may need more than the process has
    # inputs that ended as none before become seeds; else an input depends on nothing but its number
    learns: bool = True

    def place(self, folder: Path, data: bytes) -> None:
        """Put an input where the parser looks.

        Files are made anew: an old one may still be mapped.
        """
        if self.placer is not None:
            self.placer(folder, data)
            return
        parts = (
            tables.unpack(data)
            if self.file.endswith(".index") and self.name != "sstable"
            else (data,)
        )
        names = (self.file, self.file.replace(".index", ".data-00000-of-00001"))
        for name, source in self.beside:
            if not (beside := folder / name).exists():
                beside.parent.mkdir(parents=True, exist_ok=True)
                beside.write_bytes(source.read_bytes())
        for name, part in zip(names, parts):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.write_bytes(part)


def _plain(seeds: list[bytes]) -> Mutate:
    return functools.partial(mutation.mutate, others=seeds)


def _with(change: Callable[..., bytes]) -> Callable[[list[bytes]], Mutate]:
    return lambda seeds: functools.partial(change, others=seeds)


def _messages(
    name: str, module: str = "reference_impl.format.schema"
) -> Callable[[list[bytes]], Mutate]:
    def make(seeds: list[bytes]) -> Mutate:
        messages = Mutator(getattr(importlib.import_module(module), name), seeds)
        return lambda rng, data: (
            messages.mutate(rng, data) if rng.random() < 0.85 else mutation.mutate(rng, data, seeds)
        )

    return make


def _files(pattern: str, limit: int = _SMALL, step: int = 1) -> Callable[[], list[bytes]]:
    return lambda: [
        data for path in sorted(FIXTURES.glob(pattern)) if len(data := path.read_bytes()) <= limit
    ][::step]


# SavedModels


def _models() -> list[bytes]:
    """Small models of TensorFlow 1, and exports of cases with objects, functions, structures,
    signatures.
    """
    return [
        *_files("*/model/saved_model.pb", 5500)(),
        *(path.read_bytes() for path in sorted(SEEDS.glob("*.pb"))),
    ]


def _texts() -> list[bytes]:
    from reference_impl.format import schema

    models = [
        schema.parse(schema.SavedModel, data) for data in _files("*/model/saved_model.pb", 2500)()
    ]
    return [schema.to_text(model).encode() for model in models]


def _split_seeds() -> list[bytes]:
    from property_tests.fuzz import records

    return [records.forged(chunks, metadata) for chunks, metadata in records.seeds()]


def _split_mutator(seeds: list[bytes]) -> Mutate:
    from property_tests.fuzz import records

    return records.SplitMutator().mutate


# Checkpoints


def _bundles() -> list[bytes]:
    found = []
    for index in sorted(FIXTURES.glob("*/model/variables/variables.index")):
        shard = index.with_name("variables.data-00000-of-00001")
        if shard.is_file() and shard.stat().st_size <= _SMALL:
            found.append(tables.pack(index.read_bytes(), shard.read_bytes()))
    return found


def _fingerprints() -> list[bytes]:
    from reference_impl.format import schema

    full = schema.FingerprintDef(
        saved_model_checksum=2**63, graph_def_program_hash=1, signature_def_hash=2, uuid="1" * 32
    )
    full.saved_object_graph_hash, full.checkpoint_hash, full.version.producer = 3, 4, 1
    return [schema.serialize(full), schema.serialize(schema.FingerprintDef(saved_model_checksum=7))]


# Values


def _structures() -> list[bytes]:
    import numpy as np

    from reference_impl.format.schema import serialize
    from reference_impl.format.values import dtypes, structure, tensor_proto

    shape = structure.TensorShape((None, 3))
    spec = structure.TensorSpec(shape, dtypes.by_number(1), "x")
    tensor = structure.Tensor.of(np.arange(6, dtype=np.float32).reshape(2, 3), is_numpy=True)
    words = structure.Tensor(serialize(tensor_proto.encode(np.array([b"a", b"bc"], object))))
    nest: list[Any] = [
        ((spec, {"training": True, "n": None}), {}),
        [1, -1, 2.5, "text", tensor, words, structure.TensorShape(None)],
        structure.NamedTuple("P", (("a", spec), ("b", [dtypes.by_number(7)]))),
        structure.TypeSpec(
            3, "RaggedTensorSpec", (shape, dtypes.by_number(1), 1, dtypes.by_number(9)), 2
        ),
        structure.BoundedTensorSpec(shape, dtypes.by_number(1), tensor, tensor, "b"),
    ]
    return [serialize(structure.encode(item)) for item in [*nest, nest]]


# The harness


def _result_seeds() -> list[bytes]:
    from compat_matrix.cells.outcomes import Outcome
    from compat_matrix.cells.results import Observation, Result

    failed = Observation(
        Outcome.CALL_ERROR,
        "x.Error",
        "no op Foo",
        {"skew": {"text": "t"}},
        {"log": "evidence/a"},
        {"load": 0.5},
    )
    lines = [
        Result.observed("p", f"case/tf2@2.99.0/tf2@2.99.0/{check}", failed).to_line()
        for check in ("load", "values")
    ]
    return ["\n".join([*lines, ""]).encode(), (lines[0] + "\n").encode()]


def _plan_seeds() -> list[bytes]:
    from compat_matrix.cells.outcomes import Outcome
    from compat_matrix.cells.plan import Cell, Decision, Plan

    decided = Decision(Outcome.NOT_APPLICABLE, "no functions")
    cells = (
        Cell("c", "tf2", "2.99.0", "-", "", "produce", "local", "artifacts/c/tf2@2.99.0", "local"),
        Cell(
            "c",
            "tf2",
            "2.99.0",
            "reference",
            "2.99.0",
            "load",
            "local",
            "artifacts/c/tf2@2.99.0",
            "local",
            5.0,
        ),
        Cell(
            "d",
            "fixture",
            "1.15.5",
            "c_api",
            "2.99.0",
            "values",
            "local",
            "/fixtures/d",
            decided=decided,
        ),
    )
    return [
        json.dumps(Plan(cells).to_json()).encode(),
        json.dumps(Plan(cells[:1], True).to_json()).encode(),
    ]


def _plan_mutator(seeds: list[bytes]) -> Mutate:
    def change(rng: Random, data: bytes) -> bytes:
        changed = trees.mutate_json(rng, data, seeds)
        return _with_plan_id(changed) if rng.random() < 0.8 else changed

    return change


def _with_plan_id(data: bytes) -> bytes:
    """With the id that the cells have now, where they are cells: a wrong id hides everything behind
    it.
    """
    from compat_matrix.cells.plan import Cell, Plan, PlanError

    try:
        tree = json.loads(data)
        tree["plan_id"] = Plan(tuple(Cell.from_json(cell) for cell in tree["cells"])).plan_id
        return json.dumps(tree).encode()
    except (PlanError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return data


def _ledger_seeds() -> list[bytes]:
    text = (LEDGER / "expectations.toml").read_text(encoding="utf-8")
    head, *entries = text.split("[[expect]]")
    return [
        (head + "".join("[[expect]]" + entry for entry in entries[at : at + 2])).encode()
        for at in (0, 30, 60, 90)
    ]


def _io_seeds() -> list[bytes]:
    return _files("*/io/io.json", 6000)()


def _provenances() -> list[bytes]:
    return _files("*/provenance.json", 6000)()


_MODEL_MUTATOR = _messages("SavedModel")
_REQUEST_MUTATOR = _messages("PredictRequest", "savedmodel_common.serving.schema")
_RESPONSE_MUTATOR = _messages("PredictResponse", "savedmodel_common.serving.schema")

_NPZ = _files("*/io/*.npz", 2000, 12)
_INDEXES = _files("*/model/variables/variables.index")
_TOKENS, _JSON = _with(mutation.mutate_tokens), _with(trees.mutate_json)

_READERS = (  # of what a SavedModel and a checkpoint hold
    ("saved_model_pb", "saved_model.pb", _models, _MODEL_MUTATOR, parsers.read_layout),
    ("inspect", "saved_model.pb", _models, _MODEL_MUTATOR, parsers.read_inspect),
    ("inspect_tree", "saved_model.pb", _models, _MODEL_MUTATOR, parsers.tree),
    ("canonical", "saved_model.pb", _models, _MODEL_MUTATOR, parsers.read_canonical),
    ("ops_needs", "saved_model.pb", _models, _MODEL_MUTATOR, parsers.read_needs),
    ("saved_model_pbtxt", "saved_model.pbtxt", _texts, _TOKENS, parsers.read_layout),
    ("saved_model_cpb", "saved_model.cpb", _split_seeds, _split_mutator, parsers.read_layout),
    ("sstable", "t.index", _INDEXES, lambda _: tables.mutate_table, parsers.sstable),
    (
        "bundle",
        "variables.index",
        _bundles,
        lambda seeds: tables.BundleMutator(seeds).mutate,
        parsers.bundle,
    ),
    (
        "fingerprint",
        "fingerprint.pb",
        _fingerprints,
        _messages("FingerprintDef"),
        parsers.fingerprint,
    ),
    (
        "structured_value",
        "value",
        _structures,
        _messages("StructuredValue"),
        parsers.read_structure,
    ),
)
_HARNESS = (  # of the files between the parts of the harness
    ("results", "results.jsonl", _result_seeds, _with(trees.mutate_lines), parsers.results_file),
    ("plan", "plan.json", _plan_seeds, _plan_mutator, parsers.plan_file),
    ("expectations", "expectations.toml", _ledger_seeds, _TOKENS, parsers.ledger_file),
    ("io_json", "a/io/io.json", _io_seeds, _JSON, parsers.artifact),
    ("provenance", "a/provenance.json", _provenances, _JSON, parsers.artifact),
)
_SERVING = (  # of what a server answers
    ("rest_predict", "answer.json", serving.predict_answers, _JSON, serving.rest_predict),
    ("rest_other", "answer.json", serving.other_answers, _JSON, serving.rest_other),
    ("grpc_predict", "answer.pb", serving.responses, _RESPONSE_MUTATOR, serving.grpc_predict),
    ("grpc_other", "answer.pb", serving.other_responses, serving.mutate_other, serving.grpc_other),
)
_STANDIN = (  # of what the stand-in server is asked
    ("standin_grpc", "request.pb", standin.requests, _REQUEST_MUTATOR, standin.grpc_predict),
    ("standin_rest", "request.json", standin.bodies, _JSON, standin.rest_predict),
    ("standin_examples", "request.json", standin.example_bodies, _JSON, standin.rest_examples),
)
_ZOO = (  # of models at rest
    ("verify", "saved_model.pb", _models, _MODEL_MUTATOR, zoo.run_verify),
    ("diff", "saved_model.pb", _models, _MODEL_MUTATOR, zoo.run_diff),
    ("contract", "saved_model.pb", _models, _MODEL_MUTATOR, zoo.run_contract),
    ("compat", "saved_model.pb", _models, _MODEL_MUTATOR, zoo.run_compat),
    ("slim", "saved_model.pb", _models, _MODEL_MUTATOR, zoo.run_slim),
    ("signatures", "saved_model.pb", _models, _MODEL_MUTATOR, zoo.run_signatures),
)
_BESIDE = {
    "io_json": (("a/provenance.json", FIXTURES / "half_plus_two" / "provenance.json"),),
    "provenance": (("a/io/io.json", FIXTURES / "half_plus_two" / "io" / "io.json"),),
}
_SOUND = FIXTURES / "half_plus_two" / "model"  # its graph is one of the seeds
_CHECKPOINT = [path.relative_to(_SOUND).as_posix() for path in sorted(_SOUND.glob("variables/*"))]
_AT_REST = tuple((name, _SOUND / name) for name in _CHECKPOINT) + tuple(
    (f"{zoo.OTHER}/{name}", _SOUND / name) for name in ("saved_model.pb", *_CHECKPOINT)
)
TARGETS: dict[str, Target] = {
    **{row[0]: Target(*row, parsers.ours) for row in _READERS},
    "tensor_file": Target(
        "tensor_file",
        "x.npz",
        _NPZ,
        _with(archives.mutate_npz),
        parsers.read_tensors,
        lambda: (ValueError,),
    ),
    **{row[0]: Target(*row, serving.serving_errors) for row in _SERVING},
    **{row[0]: Target(*row, standin.refusals) for row in _STANDIN},
    **{row[0]: Target(*row, parsers.ours, _AT_REST) for row in _ZOO},
    "contract_file": Target(
        "contract_file",
        "m.contract.json",
        zoo.contracts,
        _JSON,
        zoo.contract_file,
        zoo.contract_errors,
    ),
    **{row[0]: Target(*row, parsers.harness_errors, _BESIDE.get(row[0], ())) for row in _HARNESS},
}
# With TensorFlow, whose threads and buffers need room.
LIVE = Target(
    "live_load",
    "model",
    live.seeds,
    live.mutator,
    live.load,
    live.named,
    placer=live.place,
    memory=6 << 30,
    learns=False,
)
