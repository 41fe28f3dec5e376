"""The file of a contract: sorted JSON with one argument per line, so that one change of a signature
changes one line.

Grammar in docs/zoo/client_contract.md. Tensors that are too large to read stand in an ``.npz``
file beside it, known by its hash.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, TypeVar

from reference_impl.format.container.files import refuse_name
from savedmodel_common import strict_json
from savedmodel_common.writing import write_text
from savedmodel_tools.contract.form import (
    Answers,
    Contract,
    Request,
    Signature,
    Type,
    parse_type,
)

if TYPE_CHECKING:
    from savedmodel_common.tensors import Tensor

VERSION = 1
MAX_BYTES = 1 << 26
MAX_TENSORS = 1 << 30  # bytes of the file beside it

V = TypeVar("V")


class ContractError(ValueError):
    """The file of a contract cannot be used: it is missing, damaged, or of a version that this
    program does not know.
    """


# Writing
# --------------------------------------------------------------------------------------------------


def write(path: Path, contract: Contract) -> None:
    """Write a contract, first under other names, and remove the tensors of the one that it
    replaces. Raises OSError.
    """
    large: dict[str, Tensor] = {}
    document = _document(contract, large)
    old = _tensor_file(path)
    if large:
        from savedmodel_common import tensors

        temporary = path.with_name(f"{path.name}.{os.getpid()}.npz")
        try:
            tensors.save(temporary, large)
            digest = hashlib.sha256(temporary.read_bytes()).hexdigest()
            name = f"{path.name.removesuffix('.json')}-{digest[:16]}.npz"
            temporary.replace(path.with_name(name))
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        document["tensors"] = {"file": name, "sha256": digest}
    write_text(path, _text(document, 0) + "\n")
    if old is not None and old != document.get("tensors", {}).get("file"):
        path.with_name(old).unlink(missing_ok=True)


def _tensor_file(path: Path) -> Optional[str]:
    """Return the name of the tensors' file of the contract at ``path``, if it has one."""
    try:
        name = read_document(path).get("tensors", {}).get("file")
    except (ContractError, AttributeError):
        return None
    return (
        name
        if isinstance(name, str)
        and name.startswith(f"{path.name.removesuffix('.json')}-")
        and not _refused(name)
        else None
    )


def _document(contract: Contract, large: dict[str, Tensor]) -> dict[str, Any]:
    def value(name: str, tensor: Tensor) -> dict[str, Any]:
        from savedmodel_tools.contract import values

        if values.is_small(tensor):
            return values.to_json(tensor)
        large[name] = tensor
        return {"dtype": tensor.dtype, "shape": list(tensor.array.shape), "tensor": name}

    graphs = []
    for tags, signatures in sorted(contract.meta_graphs.items()):
        shown = {
            key: _signature(f"{' '.join(tags)}: {key}", signatures[key], value)
            for key in sorted(signatures)
        }
        graphs.append({"tags": list(tags), "signatures": shown})
    document: dict[str, Any] = {"contract": VERSION, "meta_graphs": graphs}
    if contract.answers is not None:
        asked = []
        for number, item in enumerate(contract.answers.requests):
            inputs = {
                name: value(f"{number} input {name}", item.inputs[name])
                for name in sorted(item.inputs)
            }
            outputs = {
                name: value(f"{number} output {name}", item.outputs[name])
                for name in sorted(item.outputs)
            }
            asked.append(
                {
                    "tags": list(item.tags),
                    "signature": item.signature,
                    "inputs": inputs,
                    "outputs": outputs,
                }
            )
        tolerance = {
            "rtol": contract.answers.rtol,
            "atol": contract.answers.atol,
            "reason": contract.answers.reason,
        }
        document["answers"] = {"tolerance": tolerance, "requests": asked}
    return document


def _signature(where: str, item: Signature, value: Callable[[str, Tensor], Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"method": item.method}
    out["inputs"] = {name: str(item.inputs[name]) for name in sorted(item.inputs)}
    if item.order:
        out["order"] = list(item.order)
    if item.defaults:
        out["defaults"] = {
            name: value(f"{where} default {name}", item.defaults[name])
            for name in sorted(item.defaults)
        }
    out["outputs"] = {name: str(item.outputs[name]) for name in sorted(item.outputs)}
    return out


def _text(value: Any, depth: int) -> str:
    """JSON with objects over several lines, and tensors and lists of plain values in one."""
    deeper = isinstance(value, dict) and value and "dtype" not in value
    if deeper or (isinstance(value, list) and any(isinstance(item, dict) for item in value)):
        opening, closing = "{}" if deeper else "[]"
        items = (
            [f"{json.dumps(key)}: {_text(item, depth + 1)}" for key, item in value.items()]
            if deeper
            else None
        )
        items = items if items is not None else [_text(item, depth + 1) for item in value]
        indent = "  " * (depth + 1)
        return f"{opening}\n{indent}" + f",\n{indent}".join(items) + f"\n{'  ' * depth}{closing}"
    return json.dumps(value, allow_nan=False)


# Reading
# --------------------------------------------------------------------------------------------------


def read_document(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises ContractError."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ContractError(f"{path}: larger than {MAX_BYTES} bytes")
        document = strict_json.loads(data.decode("utf-8"))
    except ContractError:
        raise
    except (OSError, ValueError) as error:
        raise ContractError(f"{path}: no contract: {error}") from error
    if not isinstance(document, dict) or "contract" not in document:
        raise ContractError(f"{path}: no contract: the key 'contract' with its version is missing")
    if document["contract"] != VERSION:
        raise ContractError(
            f"{path}: a contract of version {document['contract']!r}; this program reads version"
            f" {VERSION}"
        )
    return document


def read(path: Path, *, answers: bool = True) -> Contract:
    """Read a contract, without ``answers`` no large tensor but a default. Raises ContractError."""
    document = read_document(path)
    try:
        _keys(document, "the contract", {"contract", "meta_graphs"}, {"answers", "tensors"})
        stored = _Tensors(path, document.get("tensors"))
        graphs: dict[tuple[str, ...], dict[str, Signature]] = {}
        for graph in _list(document["meta_graphs"], "meta_graphs"):
            _keys(graph, "a MetaGraph", {"tags", "signatures"})
            tags = tuple(sorted(_strings(graph["tags"], "tags")))
            if tags in graphs:
                raise ContractError(f"two MetaGraphs have the tags {list(tags)}")
            graphs[tags] = _map(
                graph["signatures"], "signatures", lambda item: _read_signature(item, stored)
            )
        if not graphs:
            raise ContractError("it has no MetaGraph")
        found = document.get("answers") if answers else None
        return Contract(graphs, None if found is None else _read_answers(found, stored))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ContractError(f"{path}: {error}") from error


class _Tensors:
    """The file of large tensors, opened on first use."""

    def __init__(self, path: Path, entry: Any) -> None:
        self._path, self._entry = path, entry
        self._loaded: Optional[Mapping[str, Tensor]] = None

    def value(self, item: Any) -> Tensor:
        """A tensor of the contract, wherever it is. Raises ValueError."""
        if not isinstance(item, dict) or "tensor" not in item:
            from savedmodel_tools.contract import values

            return values.from_json(item)
        _keys(item, "a tensor", {"dtype", "shape", "tensor"})
        found = self._load().get(item["tensor"]) if isinstance(item["tensor"], str) else None
        if (
            found is None
            or found.dtype != item["dtype"]
            or list(found.array.shape) != item["shape"]
        ):
            raise ContractError(
                f"the tensor {item['tensor']!r} is not in its file, or of another type"
            )
        return found

    def _load(self) -> Mapping[str, Tensor]:
        if self._loaded is None:
            _keys(self._entry, "tensors", {"file", "sha256"})
            name = self._entry["file"]
            if not isinstance(name, str) or _refused(name):
                raise ContractError(
                    f"tensors: {name!r} is not a name of a file beside the contract"
                )
            path = self._path.with_name(name)
            try:
                if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_TENSORS:
                    raise ContractError(f"{name} is missing, no regular file, or too large")
                if hashlib.sha256(path.read_bytes()).hexdigest() != self._entry["sha256"]:
                    raise ContractError(
                        f"{name} is not the file that the contract was written with (sha256)"
                    )
                from savedmodel_common import tensors

                self._loaded = tensors.load(path)
            except OSError as error:
                raise ContractError(f"{name}: {error.strerror}") from error
        return self._loaded


def _refused(name: str) -> bool:
    return bool(refuse_name(name)) or "/" in name or "\\" in name


def _read_signature(item: Any, stored: _Tensors) -> Signature:
    _keys(item, "a signature", {"method", "inputs", "outputs"}, {"order", "defaults"})
    inputs = _map(item["inputs"], "inputs", _read_type)
    defaults = _map(item.get("defaults", {}), "defaults", stored.value)
    order = tuple(_strings(item.get("order", []), "order"))
    if not defaults.keys() <= inputs.keys() or (order and sorted(order) != sorted(inputs)):
        raise ContractError("defaults and order are about inputs")
    return Signature(
        _string(item["method"], "method"),
        inputs,
        _map(item["outputs"], "outputs", _read_type),
        order,
        defaults,
    )


def _read_type(text: Any) -> Type:
    return parse_type(_string(text, "a type"))


def _read_answers(item: Any, stored: _Tensors) -> Answers:
    _keys(item, "answers", {"tolerance", "requests"})
    tolerance = item["tolerance"]
    _keys(tolerance, "tolerance", {"rtol", "atol", "reason"})
    limits = [tolerance["rtol"], tolerance["atol"]]
    if any(
        isinstance(number, bool)
        or not isinstance(number, (int, float))
        or not 0 <= number < math.inf
        for number in limits
    ):
        raise ContractError(f"tolerance: {limits} are not distances")
    requests = []
    for request in _list(item["requests"], "requests"):
        _keys(request, "a request", {"tags", "signature", "inputs", "outputs"})
        sides = [_map(request[side], side, stored.value) for side in ("inputs", "outputs")]
        tags = tuple(sorted(_strings(request["tags"], "tags")))
        requests.append(
            Request(tags, _string(request["signature"], "signature"), sides[0], sides[1])
        )
    return Answers(
        tuple(requests), float(limits[0]), float(limits[1]), _string(tolerance["reason"], "reason")
    )


def _keys(
    item: Any, what: str, required: set[str], optional: frozenset[str] | set[str] = frozenset()
) -> None:
    if not isinstance(item, dict):
        raise ContractError(f"{what} is not an object")
    missing, unknown = required - item.keys(), item.keys() - required - optional
    if missing or unknown:
        raise ContractError(
            f"{what} "
            + "; ".join(
                [f"lacks {name!r}" for name in sorted(missing)]
                + [f"has {name!r}" for name in sorted(unknown)]
            )
        )


def _map(item: Any, what: str, read_one: Callable[[Any], V]) -> dict[str, V]:
    if not isinstance(item, dict):
        raise ContractError(f"{what} is not an object")
    return {name: read_one(value) for name, value in item.items()}


def _list(item: Any, what: str) -> list[Any]:
    if not isinstance(item, list):
        raise ContractError(f"{what} is not a list")
    return item


def _strings(item: Any, what: str) -> list[str]:
    return [_string(part, what) for part in _list(item, what)]


def _string(item: Any, what: str) -> str:
    if not isinstance(item, str):
        raise ContractError(f"{what}: {item!r} is not a string")
    return item
