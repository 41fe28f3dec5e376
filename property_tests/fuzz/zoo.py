"""What models at rest go through: `verify`, `diff`, contracts, `compat`, and edits as dry runs,
since nothing may be written.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from property_tests.fuzz.parsers import Wrong

if TYPE_CHECKING:
    from reference_impl.views.types import SignatureArgument

OTHER = "other"  # folder of the sound model that is beside


def _printable(text: str) -> None:
    if not text.replace("\n", "").isprintable():
        raise Wrong("a control character is printed")


def run_verify(folder: Path) -> None:
    """Text, JSON, SARIF and JUnit of a report.

    A model that cannot be read is a finding; then the reader's error is raised.
    """
    from reference_impl.format.container import layout
    from savedmodel_common.printable import printable
    from savedmodel_tools.verify import junit, sarif
    from savedmodel_tools.verify.findings import Severity
    from savedmodel_tools.verify.rules import all_rules
    from savedmodel_tools.verify.run import verify
    from savedmodel_tools.verify.text import report_lines

    report = verify(folder, name="model")
    if report.error is not None:
        raise Wrong(f"the machine is blamed: {report.error}")
    json.dumps([report.to_json(), sarif.log([report], all_rules(), "0")], allow_nan=False)
    junit.document([report], [], Severity.ERROR)
    _printable(printable("\n".join(report_lines(report, set()))))
    if [finding.rule for finding in report.findings] == ["SMC101"]:
        layout.read(folder)


def run_diff(folder: Path) -> None:
    """With itself, and with another model in both directions."""
    import click

    from savedmodel_tools.comparison.text import lines
    from savedmodel_tools.diff import diff

    if not diff(folder, folder).equal:
        raise Wrong("different from itself")
    there, back = diff(folder, folder / OTHER), diff(folder / OTHER, folder)
    if there.verdict != back.verdict or there.equal != (there.verdict == "equal"):
        raise Wrong("the verdict contradicts the hashes or the other direction")
    for result in (there, back):
        json.dumps(result.to_json(), allow_nan=False)
        _printable(click.unstyle("\n".join(lines(result, True))))


def run_contract(folder: Path) -> None:
    """The contract of a model, as the text of its file; broken by nothing but another model."""
    from savedmodel_common import strict_json
    from savedmodel_tools.contract import file, rules, values  # noqa: F401
    from savedmodel_tools.contract.form import contract_of

    contract = contract_of(folder)
    if list(rules.compare(contract, contract_of(folder))):
        raise Wrong("a model breaks its own contract")
    list(rules.compare(contract, contract_of(folder / OTHER)))
    strict_json.loads(file._text(file._document(contract, {}), 0))


def run_compat(folder: Path) -> None:
    """In some releases, old and new."""
    from savedmodel_tools.compat import compat
    from savedmodel_tools.skew.history import history

    count = len(history().releases)
    for graph in compat(folder, sorted({*range(0, count, 7), count - 1})):
        graph.loads(count - 1)


def run_slim(folder: Path) -> None:
    """All that may go goes, and what is left is proved."""
    from savedmodel_tools.edits.run import edit
    from savedmodel_tools.edits.slim import slim

    json.dumps(edit(folder, None, slim).to_json(), allow_nan=False)


def run_signatures(folder: Path) -> None:
    """Each signature is renamed, copied and dropped, its arguments put in the opposite order."""
    from reference_impl.format.container import layout
    from reference_impl.views.signatures import signatures as signatures_of
    from savedmodel_tools.edits import signatures
    from savedmodel_tools.edits.arguments import rename_arguments
    from savedmodel_tools.edits.run import edit

    for graph in layout.read(folder).saved_model.meta_graphs:
        for signature in signatures_of(graph):
            key, tags = signature.key, ",".join(layout.tags_of(graph))
            inputs, outputs = _opposite(signature.inputs), _opposite(signature.outputs)

            def change(
                draft: Any,
                key: str = key,
                tags: str = tags,
                inputs: dict[str, str] = inputs,
                outputs: dict[str, str] = outputs,
            ) -> None:
                rename_arguments(draft, key, inputs, outputs, tags)
                signatures.copy(draft, key, "another", tags)
                signatures.rename(draft, key, "renamed", tags)
                signatures.drop(draft, ("another",), tags)

            edit(folder, None, change)


def _opposite(arguments: Sequence[SignatureArgument]) -> dict[str, str]:
    """Return new names for arguments, whose order is the opposite of theirs."""
    return {item.name: f"x_{len(arguments) - number:03}" for number, item in enumerate(arguments)}


def contract_file(folder: Path) -> None:
    """A contract that somebody edited."""
    from savedmodel_tools.contract import file, rules

    contract = file.read(folder / "m.contract.json")
    if list(rules.compare(contract, contract)):
        raise Wrong("it breaks itself")
    strict = file._text(file._document(contract, {}), 0)
    json.loads(strict)


def contracts() -> list[bytes]:
    """Contracts of fixtures: several signatures, defaults, order, answers."""
    from savedmodel_tools.contract import file
    from savedmodel_tools.contract.form import contract_of

    fixtures = Path(__file__).parents[2] / "fixtures_v1"
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name in (
            "half_plus_two",
            "module_functions",
            "classify_regress_kinds",
            "estimator_all_modes",
        ):
            path = Path(folder) / f"{name}.contract.json"
            file.write(path, contract_of(fixtures / name / "model"))
            found.append(path.read_bytes())
    value = {"dtype": "float32", "shape": [2], "values": [1.0, "nan"]}
    request = {"tags": ["serve"], "signature": "s", "inputs": {"x": value}, "outputs": {"y": value}}
    tolerance = {"rtol": 0.1, "atol": 0, "reason": "r"}
    signature = {
        "method": "m",
        "inputs": {"x": "float32[?]", "s": "sparse int64[2,?]"},
        "order": ["s", "x"],
        "outputs": {},
    }
    graphs = [{"tags": ["serve"], "signatures": {"s": {**signature, "defaults": {"x": value}}}}]
    whole = {
        "contract": 1,
        "meta_graphs": graphs,
        "answers": {"tolerance": tolerance, "requests": [request]},
    }
    return [json.dumps(whole).encode(), *found]


def contract_errors() -> tuple[type[Exception], ...]:
    from savedmodel_tools.contract.file import ContractError

    return (ContractError,)
