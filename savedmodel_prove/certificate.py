"""The certificate of a proof: one JSON file, which is checked later without TensorFlow.

It holds the answers of all sides, the spread of the original, versions, and the hashes of the files
of both models. `read` judges the answers again. A certificate is untrusted input: of the files that
it names, only plain files of the stated size are read. The digest shows damage. An attacker can
write a new digest into the file, so keep the digest elsewhere too if that matters.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Optional, TypeVar

from savedmodel_common import strict_json
from savedmodel_common.provenance import file_sha256
from savedmodel_common.tensors import Tensor
from savedmodel_common.writing import write_text
from savedmodel_prove import records as parts
from savedmodel_prove.records import Answer, Record
from savedmodel_prove.verdicts import Verdict, judge
from savedmodel_tools.contract import values

SCHEMA = 1
INPUT_ELEMENTS = 4096  # of an input that is kept; of a larger one, its hash
MOST_RECORDS = 10_000
MOST_FOLDERS = 1_000  # of a model
_T = TypeVar("_T")


class CertificateError(ValueError):
    """Raised for a certificate that is damaged or was changed, or whose files were."""


@dataclass(frozen=True)
class Files:
    """The files of a model when it was proved.

    Attributes:
      path: of the model, from the folder of the certificate.
      files: path below it -> (bytes, sha256). A model that is one file has the path "", and the
        files beside it that have its weights are listed by name.
    """

    path: str
    files: Mapping[str, tuple[int, str]]


@dataclass(frozen=True)
class Node:
    """A node at which two sides part, found at one question.

    Attributes:
      node, op: of the original.
      theirs: its name in the converted model, or in TensorFlow's graph of the signature.
      question: the name of the question.
      difference, allowed: how far the values are apart, and how far they may be.
      side: whose value is the wrong one, a name of `records.SIDES`. The evaluator's value is
        compared with that of the converted model (`CONVERTED`), else with TensorFlow's.
    """

    node: str
    op: str
    theirs: str
    question: str
    difference: float
    allowed: float
    side: str = parts.CONVERTED


@dataclass(frozen=True)
class Certificate:
    """All that a proof found.

    Attributes:
      original, converted: the files of the two models.
      tags, signature: what was asked.
      seed: of the made inputs.
      programs: side -> the program that answered.
      versions: side -> package -> version.
      records: the questions with their answers.
      nodes: output -> the nodes at which the models part, the first one first.
      notes: what was not asked, and why.
      digest: of the rest.
    """

    original: Files
    converted: Files
    tags: tuple[str, ...]
    signature: str
    seed: int
    programs: Mapping[str, str]
    versions: Mapping[str, Mapping[str, str]]
    records: Sequence[Record]
    nodes: Mapping[str, Sequence[Node]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    digest: str = ""

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts that the records give."""
        return judge(self.records)


def files_of(model: Path, beside: Path) -> Files:
    """Return the files of a model with their hashes, and its path from the folder ``beside``.

    Raises OSError.
    """
    found = {}
    for name, path in _files(model):
        found[name] = path.stat().st_size, file_sha256(path)
    return Files(os.path.relpath(model, beside), found)


def _files(model: Path) -> Iterator[tuple[str, Path]]:
    if not model.is_dir():
        yield "", model
        for name in _companions(model):
            if (model.parent / name).is_file():
                yield name, model.parent / name
        return
    for number, (folder, inner, names) in enumerate(os.walk(model)):
        if number > MOST_FOLDERS:
            raise OSError(f"{model} has more than {MOST_FOLDERS} folders")
        inner.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_file():  # a pipe would block its reader
                yield path.relative_to(model).as_posix(), path


def _companions(model: Path) -> list[str]:
    """Return the names of files beside a model in which formats keep weights."""
    return [f"{model.name}.data", f"{model.name}_data", f"{model.stem}.bin"]


def write(certificate: Certificate, path: Path) -> str:
    """Write a certificate and return its digest.

    Raises CertificateError: it would be larger than a reader accepts; OSError.
    """
    document = _document(certificate)
    digest = _digest(document)
    text = json.dumps({**document, "digest": digest}, indent=1, ensure_ascii=False) + "\n"
    size = len(text.encode())
    if size > strict_json.MAX_BYTES:
        raise CertificateError(
            f"{path}: the certificate would have {size} bytes, more than {strict_json.MAX_BYTES};"
            " ask fewer inputs (--make-up 0), or a smaller batch by --requests"
        )
    write_text(path, text)
    return digest


def _digest(document: Mapping[str, object]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _document(certificate: Certificate) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "what": "certificate of savedmodel-compat prove",
        "original": asdict(certificate.original),
        "converted": asdict(certificate.converted),
        "tags": list(certificate.tags),
        "signature": certificate.signature,
        "seed": certificate.seed,
        "programs": dict(certificate.programs),
        "versions": {side: dict(found) for side, found in certificate.versions.items()},
        "records": [_record(record) for record in certificate.records],
        "verdicts": [verdict_json(verdict) for verdict in certificate.verdicts],
        "nodes": {name: list(map(asdict, found)) for name, found in certificate.nodes.items()},
        "notes": list(certificate.notes),
    }


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as JSON."""
    return {**asdict(verdict), "kind": verdict.kind.value}


def _record(record: Record) -> dict[str, Any]:
    answers = {}
    for side, answer in record.answers.items():
        outputs = {name: values.to_json(tensor) for name, tensor in answer.outputs.items()}
        answers[side] = {"outputs": outputs, "error": answer.error}
    return {
        "name": record.name,
        "inputs": {name: _input(tensor) for name, tensor in record.inputs.items()},
        "answers": answers,
        "spread": {name: dict(found) for name, found in record.spread.items()},
    }


def _input(tensor: Tensor) -> dict[str, Any]:
    if tensor.array.size <= INPUT_ELEMENTS:
        return values.to_json(tensor)
    digest = hashlib.sha256(repr(values.to_json(tensor)["values"]).encode()).hexdigest()
    return {"dtype": tensor.dtype, "shape": list(tensor.array.shape), "sha256": digest}


def read(path: Path) -> Certificate:
    """Return a certificate whose digest, form and verdicts are right.

    Large inputs are left out: only their hashes are on record. Raises CertificateError.
    """
    try:
        document = strict_json.document(path, SCHEMA)
        digest = document.pop("digest", None)
        if digest != _digest(document):
            raise CertificateError(
                f"{path}: it was changed after it was written: its digest does not fit"
            )
        certificate = replace(_certificate(document), digest=digest)
        # Another release may word a verdict otherwise: kinds count, and readers see the new words.
        stated = [(item["output"], item["kind"]) for item in _list(document["verdicts"])]
        if stated != [(verdict.output, verdict.kind.value) for verdict in certificate.verdicts]:
            raise CertificateError(f"{path}: its verdicts do not follow from its answers")
        return certificate
    except CertificateError:
        raise
    except KeyError as error:
        raise CertificateError(f"{path}: there is no {error}") from error
    except (ValueError, TypeError, OverflowError, RecursionError, MemoryError) as error:
        raise CertificateError(str(error) if str(path) in str(error) else f"{path}: {error}") from (
            error
        )


def _certificate(document: Mapping[str, Any]) -> Certificate:
    listed = _list(document["records"])
    if len(listed) > MOST_RECORDS:
        raise ValueError(f"it has more than {MOST_RECORDS} records")
    return Certificate(
        _files_from(document["original"]),
        _files_from(document["converted"]),
        tuple(_text(tag) for tag in _list(document["tags"])),
        _text(document["signature"]),
        _whole(document["seed"]),
        _map(document["programs"], _text),
        _map(document["versions"], lambda found: _map(found, _text)),
        [_record_from(item) for item in listed],
        _map(document["nodes"], _nodes_from),
        [_text(note) for note in _list(document["notes"])],
    )


def _files_from(item: Any) -> Files:
    found = {}
    for name, entry in _map(item["files"], _list).items():
        if name.startswith("/") or ".." in name.split("/") or "\0" in name:
            raise ValueError(f"{name!r} is not a file of the model")
        size, digest = entry
        found[name] = _whole(size), _text(digest)
    return Files(_text(item["path"]), found)


def _record_from(item: Any) -> Record:
    answers = _map(item["answers"], _answer_from)
    for side in sorted(answers):
        _side(side)
    kept = {name: found for name, found in _map(item["inputs"], dict).items() if "values" in found}
    inputs = {name: values.from_json(found) for name, found in kept.items()}
    spread = _map(item["spread"], lambda found: _map(found, _distance))
    return Record(_text(item["name"]), inputs, answers, spread)


def _answer_from(item: Any) -> Answer:
    return Answer(_map(item["outputs"], values.from_json), _text(item["error"]))


def _nodes_from(item: Any) -> list[Node]:
    found = [_node_from(one) for one in _list(item)]
    if not found:
        raise ValueError("an output that differs first at no node")
    return found


def _node_from(item: Any) -> Node:
    node, op, theirs, question = (
        _text(item[name]) for name in ("node", "op", "theirs", "question")
    )
    difference, allowed = _distance(item["difference"]), _distance(item["allowed"])
    side = _side(item.get("side", parts.CONVERTED))  # older certificates name no side
    return Node(node, op, theirs, question, difference, allowed, side)


def _side(item: Any) -> str:
    if item not in parts.SIDES:
        raise ValueError(f"{str(item)[:40]!r} is not a side of a proof")
    return _text(item)


def _map(item: Any, read_one: Callable[[Any], _T]) -> dict[str, _T]:
    if not isinstance(item, dict):
        raise ValueError(f"{str(item)[:40]!r} is not an object")
    return {name: read_one(value) for name, value in item.items()}


def _list(item: Any) -> list[Any]:
    if not isinstance(item, list):
        raise ValueError(f"{str(item)[:40]!r} is not a list")
    return item


def _text(item: Any) -> str:
    if not isinstance(item, str):
        raise ValueError(f"{str(item)[:40]!r} is not a text")
    return item


def _whole(item: Any) -> int:
    if type(item) is not int or item < 0:
        raise ValueError(f"{str(item)[:40]!r} is not a number of 0 or more")
    return item


def _distance(item: Any) -> float:
    if isinstance(item, bool) or not isinstance(item, (int, float)) or item < 0:
        raise ValueError(f"{str(item)[:40]!r} is not a distance")
    return float(item)


def changed(certificate: Certificate, beside: Path) -> Optional[str]:
    """Return how the files of the two models differ from those that were proved; None if they do
    not.

    Args:
      certificate: names the files.
      beside: the folder from which relative paths count.
    """
    for model in (certificate.original, certificate.converted):
        reason = _changed(model, beside)
        if reason is not None:
            return f"{model.path}: {reason}"
    return None


def _changed(model: Files, beside: Path) -> Optional[str]:
    place = beside / model.path
    try:
        added = next((name for name, _ in _files(place) if name not in model.files), None)
    except OSError as error:
        return str(error)
    if added is not None:
        return f"the file {added!r} was added after the proof"
    for name, (size, digest) in model.files.items():
        folder = place if place.is_dir() else place.parent
        path = folder / name if name else place
        what = f"the file {name!r}" if name else "the file"
        try:
            found = path.stat()
            if not stat.S_ISREG(found.st_mode):
                return f"{what} is not a plain file"
            if found.st_size != size or file_sha256(path) != digest:
                return f"{what} was changed after the proof"
        except (OSError, ValueError) as error:
            return f"{what} cannot be read ({error})"
    return None
