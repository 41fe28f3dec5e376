"""Shared by the checks: the plug-in under test, and the questions that many checks ask."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from compat_matrix.runtimes.worker import RECORDED
from savedmodel_common import tensors
from savedmodel_common.tensors import Tensor
from savedmodel_plugin_kit import explain, models
from savedmodel_plugin_kit.session import Mistake, Session

TAGS = ["serve"]
X = Tensor("float32", np.array([1, 2, 5], np.float32))


class NotAsked(Exception):
    """Raised by a check that does not apply to this plug-in; the message says why."""


@dataclass(frozen=True)
class Candidate:
    """A model, one of its signatures, and inputs with the correct outputs."""

    directory: Path
    signature: str
    inputs: dict[str, Tensor]
    wanted: dict[str, Tensor]


@dataclass
class Exam:
    """The state shared by the checks.

    ``large``: mebibytes of the large tensor; ``grace``: seconds allowed for ending.
    """

    session: Session
    folder: Path
    large: int
    grace: float
    notes: list[str] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)  # models that gave an answer
    numbers: Any = field(default_factory=itertools.count)

    def new(self, stem: str) -> Path:
        return self.folder / f"{stem}-{next(self.numbers)}"

    def load(self, directory: Path, tags: Sequence[str] = TAGS) -> int:
        """Load a model that the plug-in may refuse, and return its handle.

        Raises :class:`NotAsked` for a refusal.
        """
        reply = self.session.say(
            "load", dir=str(directory), tags=list(tags), timeout=self.session.limit
        )
        if reply["status"] != "ok":
            raise NotAsked(
                f"the model is not understood: {reply['status']}:"
                f" {reply['message'].splitlines()[0][:200]}"
            )
        return int(reply["handle"])

    def candidates(self) -> Iterator[Candidate]:
        """Yield models with their questions, the least demanding last except for TensorFlow's own
        models.
        """
        yield Candidate(models.signs(self.new("signs")), "same", {"x": X}, {"y": X})
        yield Candidate(
            models.plain(self.new("plain")),
            "serving_default",
            {"x": X},
            {"y": Tensor("float32", -X.array)},
        )
        for artifact in (models.half_plus_two(), models.functions()):
            request, io = requests_of(artifact)[0], artifact / "io"
            given, wanted = (
                tensors.load(io / request["inputs"]),
                tensors.load(io / request["outputs"]),
            )
            yield Candidate(artifact / "model", request["signature"], dict(given), dict(wanted))

    def load_any(self) -> tuple[int, Candidate]:
        """Load the first candidate that the plug-in understands.

        Raises :class:`NotAsked` when it understands none.
        """
        why = NotAsked("there is no model")
        for one in self.candidates():
            try:
                return self.load(one.directory), one
            except NotAsked as refusal:
                why = refusal
        raise why

    def call(
        self,
        handle: int,
        signature: str,
        inputs: Mapping[str, Tensor],
        io: Path | None = None,
        recorded: Mapping[str, Any] | None = None,
        op: str = "call",
        **more: Any,
    ) -> tuple[dict[str, Any], Path]:
        """Make a call; return the reply and the file for its outputs.

        ``recorded``: more members of the entry of io.json.

        Raises :class:`Mistake`.
        """
        io, outputs = io or self.folder / "io", self.new("answer").with_suffix(".npz")
        name = models.written(io, dict(inputs))
        if "stored" in self.session.capabilities:
            _store(io / name)
        request = {
            "id": name,
            "kind": "signature",
            "tags": TAGS,
            "signature": signature,
            "inputs": name,
        }
        request |= recorded or {}
        fields = {
            "handle": handle,
            "request": request,
            "io_dir": str(io),
            "outputs": str(outputs),
            **more,
        }
        return self.session.say(op, **fields), outputs

    def answer(
        self,
        handle: int,
        signature: str,
        inputs: Mapping[str, Tensor],
        wanted: Mapping[str, Tensor],
        others: Mapping[str, Tensor] | None = None,
        **more: Any,
    ) -> None:
        """Make a call that must return ``wanted``, bit for bit.

        Raises :class:`Mistake`; for a refusal :class:`NotAsked`.
        """
        reply, outputs = self.call(handle, signature, inputs, **more)
        if reply["status"] == "rejected":
            raise NotAsked(
                f"a call of {signature!r} is refused: {reply['message'].splitlines()[0][:200]}"
            )
        if reply["status"] != "ok":
            raise Mistake(
                f"a call of {signature!r} is answered with {reply['status']}:"
                f" {reply['error_class']}: {reply['message']}"
            )
        got, why = explain.read(outputs)
        why = why or explain.outputs(wanted, got, others)
        if why:
            raise Mistake(why, "P-11")

    def refusal(self, what: str, reply: Mapping[str, Any]) -> None:
        """Require a reply that is not ok. Raises :class:`Mistake`."""
        if reply["status"] == "ok":
            raise Mistake(f"{what} is answered with ok: an error must be reported, not swallowed")
        self.session.quiet()


def _store(path: Path) -> None:
    from compat_matrix.workers import stored

    stored.rewrite(str(path), str(path))  # type: ignore[no-untyped-call]


def requests_of(artifact: Path, kind: str = "signature") -> list[dict[str, Any]]:
    entries = json.loads((artifact / "io" / "io.json").read_text(encoding="utf-8"))["requests"]
    signatures = ("serving_default",) if kind == "signature" else None
    return [
        e
        for e in entries
        if e["kind"] == kind and (signatures is None or e["signature"] in signatures)
    ]


def call_recorded(exam: Exam, handle: int, request: dict[str, Any], io: Path) -> None:
    asked = exam.new("asked")
    asked.mkdir()
    shutil.copyfile(io / request["inputs"], asked / request["inputs"])
    if "stored" in exam.session.capabilities:
        _store(asked / request["inputs"])
    question = {key: value for key, value in request.items() if key not in RECORDED}
    outputs = exam.new("answer").with_suffix(".npz")
    reply = exam.session.say(
        "call", handle=handle, request=question, io_dir=str(asked), outputs=str(outputs)
    )
    if reply["status"] == "rejected":
        raise NotAsked(f"the model is not understood: {reply['message'].splitlines()[0][:200]}")
    if reply["status"] == "unsupported" and request["kind"] == "function":
        raise Mistake(
            f"hello claims functions, and request {request['id']} is unsupported:"
            f" {reply['message']}",
            "P-15",
        )
    if reply["status"] != "ok":
        raise Mistake(
            f"request {request['id']}: {reply['status']}: {reply['error_class']}:"
            f" {reply['message']}"
        )
    got, why = explain.read(outputs)
    wanted = tensors.load(io / request["outputs"])
    close = (
        not why
        and set(got) == set(wanted)
        and all(_close(wanted[name], got[name]) for name in wanted)
    )
    if not close and (why or explain.outputs(wanted, got)):
        raise Mistake(f"request {request['id']}: {why or explain.outputs(wanted, got)}", "P-11")
    if request["kind"] == "function" and _shape(reply.get("structure")) != _shape(
        request["structure"]
    ):
        raise Mistake(
            f"request {request['id']}: structure is {reply.get('structure')!r}, recorded was"
            f" {request['structure']!r}"
        )


def _close(wanted: Tensor, got: Tensor) -> bool:
    same = (
        wanted.dtype == got.dtype
        and wanted.array.shape == got.array.shape
        and wanted.array.dtype.kind in "fc"
    )
    return bool(same and np.allclose(wanted.array, got.array, rtol=1e-6, atol=1e-6, equal_nan=True))


def _shape(nest: Any) -> Any:
    """Return a nest without the names of its tensors."""
    if isinstance(nest, dict):
        return {key: None if key == "$tensor" else _shape(value) for key, value in nest.items()}
    return [_shape(item) for item in nest] if isinstance(nest, list) else nest


def unsupported(reply: Mapping[str, Any], capability: str, what: str) -> None:
    if reply["status"] != "unsupported":
        raise Mistake(
            f"it does not claim {capability}: {what} must be unsupported, and is {reply['status']}"
        )
