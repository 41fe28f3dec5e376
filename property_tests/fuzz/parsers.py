"""What is called with the bytes, what of the result is checked, and which errors are an answer."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path


class Wrong(Exception):
    """A parser gave a result that contradicts itself."""


def read_inspect(folder: Path) -> None:
    from reference_impl.views.model import inspect

    json.dumps(inspect(folder).to_json(), allow_nan=False)


def tree(folder: Path) -> None:
    from reference_impl.views.model import inspect
    from savedmodel_tools.commands.inspect import SECTIONS
    from savedmodel_tools.inspect.tree import show

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        show(inspect(folder), SECTIONS, True)
    if not out.getvalue().replace("\n", "").isprintable():
        raise Wrong("a control character is printed")


def read_canonical(folder: Path) -> None:
    from savedmodel_tools.canonical.form import canonical
    from savedmodel_tools.comparison import form_changes

    first, again = canonical(folder), canonical(folder)
    if [*form_changes(first, again)] or first.hash != again.hash:
        raise Wrong("two readings differ")


def read_needs(folder: Path) -> None:
    from savedmodel_tools.skew.history import history
    from savedmodel_tools.skew.needs import needs, to_json

    json.dumps(to_json(needs(folder), history()), allow_nan=False)


def read_layout(folder: Path) -> None:
    from reference_impl.format import schema
    from reference_impl.format.container import layout

    model = layout.read(folder)
    for graph in model.saved_model.meta_graphs:
        model.assets(graph)
    data = schema.serialize(model.saved_model)
    if schema.serialize(schema.parse(schema.SavedModel, data)) != data:
        raise Wrong("written and read again it is another model")


def sstable(folder: Path) -> None:
    from reference_impl.format.bundle.table import TableReader

    data = (folder / "t.index").read_bytes()
    reader = TableReader(data, folder / "t.index")
    pairs = list(reader)
    if any(reader.get(key) != value for key, value in pairs[:3] + pairs[-3:]):
        raise Wrong("looked up, a key has another value")


def bundle(folder: Path) -> None:
    from reference_impl.errors import SavedModelError
    from reference_impl.format.bundle.reader import BundleReader
    from reference_impl.format.names import OBJECT_GRAPH_KEY

    with BundleReader(folder / "variables") as reader:
        entries = reader.entries()
        for key in entries:
            with contextlib.suppress(SavedModelError):
                array = reader.read(key)
                if array.shape != entries[key].shape:
                    raise Wrong(f"{key} has another shape")
                reader.verify(key)
        if OBJECT_GRAPH_KEY in reader:
            with contextlib.suppress(SavedModelError):
                reader.object_graph()
        reader.verify_all()


def fingerprint(folder: Path) -> None:
    from reference_impl.format import schema
    from reference_impl.format.container import layout

    schema.parse(
        schema.FingerprintDef,
        (folder / layout.FINGERPRINT).read_bytes(),
        folder / layout.FINGERPRINT,
    )


def read_structure(folder: Path) -> None:
    from reference_impl.errors import SavedModelError
    from reference_impl.format import schema
    from reference_impl.format.values import structure

    path = folder / "value"
    value = structure.decode(schema.parse(schema.StructuredValue, path.read_bytes(), path), path)
    again = structure.encode(value)
    if repr(structure.decode(again)) != repr(value):  # NaN is not equal to itself
        raise Wrong("encoded and decoded again it is another value")
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, structure.Tensor):
            with contextlib.suppress(SavedModelError):
                item.array()
        elif isinstance(item, (list, tuple)):
            pending.extend(item)
        elif isinstance(item, dict):
            pending.extend(item.values())


def read_tensors(folder: Path) -> None:
    from savedmodel_common import tensors

    for tensor in tensors.load(folder / "x.npz").values():
        if tensor.dtype != "string" and str(tensor.array.dtype) != tensors.CARRIERS[tensor.dtype]:
            raise Wrong("an array of another type")


def results_file(folder: Path) -> None:
    from compat_matrix.cells.results import read_results

    results = read_results(folder / "results.jsonl")
    for result in results:
        if result.from_line(result.to_line()) != result:
            raise Wrong("written and read again it is another result")


def plan_file(folder: Path) -> None:
    from compat_matrix.cells.plan import Cell, Plan

    plan = Plan.read(folder / "plan.json")
    again = Plan(
        tuple(Cell.from_json(json.loads(json.dumps(cell.to_json()))) for cell in plan),
        plan.narrowed,
    )
    if again.plan_id != plan.plan_id:
        raise Wrong("written and read again it is another plan")
    for cell in plan:
        cell.artifact_dir(folder)


def ledger_file(folder: Path) -> None:
    import datetime

    from compat_matrix.cells.plan import Cell
    from compat_matrix.verdict import Ledger

    ledger = Ledger.read(folder / "expectations.toml")
    cell = Cell("c", "tf2", "2.9.0", "reference", "2.9.0", "load", "local", "x", "local")
    for entry in ledger.entries:
        entry.selects(cell)
        entry.title()
        entry.expired(datetime.date(2025, 1, 1), None)


def artifact(folder: Path) -> None:
    from compat_matrix.plan.planning import fixture_artifacts
    from compat_matrix.requests.artifact import altered_files, read_artifact

    refused: list[Exception] = []
    for read in (
        lambda: fixture_artifacts(folder),
        lambda: altered_files(folder / "a"),
        lambda: read_artifact(folder / "a"),
    ):
        try:
            read()
        except harness_errors() as error:
            refused.append(error)
    if refused:
        raise refused[-1]


def harness_errors() -> tuple[type[Exception], ...]:
    from compat_matrix.cells.plan import PlanError
    from compat_matrix.cells.results import ResultsError
    from compat_matrix.requests.artifact import ArtifactError
    from compat_matrix.verdict import LedgerError

    return ArtifactError, LedgerError, PlanError, ResultsError


def ours() -> tuple[type[Exception], ...]:
    from reference_impl.errors import SavedModelError

    return (SavedModelError,)
