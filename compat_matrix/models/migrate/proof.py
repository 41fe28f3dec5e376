"""The new model against the old one: answers, gradients, everything stored, and the next generation."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compat_matrix.checks import oracle
from compat_matrix.checks.kinds.signatures import compare_signatures
from compat_matrix.common.gist import gist
from compat_matrix.models.migrate.advice import RANDOM, never
from compat_matrix.models.migrate.chance import left_to_chance
from compat_matrix.models.migrate.records import Part, Verdict
from compat_matrix.requests.compare import EXACT, Mismatch, Tolerance, compare_named
from compat_matrix.requests.made_up import examples_of, made_up
from compat_matrix.runtimes.worker import ReplyError, Worker
from compat_matrix.workers import tensors
from compat_matrix.workers.tensors import Tensor
from reference_impl.errors import V1CheckpointError
from reference_impl.inspection.signatures import signature_spec

OLD = "v1_session"
REFERENCE = "reference"  # also saves the new model again
READERS = ("tf2", "c_api")  # the others
DIFFERENTIATED = "tf2"  # what fine-tunes the new model
# The C API fuses nodes, in a session other ones than in functions: rounded once in place of twice, summed in another order.
TOLERANCE = Tolerance(rtol=1e-5, atol=1e-6)
_SHOWN = 3
NOT_LOADED = "does not load"
LOADERS = {OLD: "a session", REFERENCE: "reference_impl.load", DIFFERENTIATED: "tf.saved_model.load"}


@dataclass
class Request:
    """One call of a signature, with what the old model ``answers``."""

    name: str
    signature: str
    inputs: Path
    answers: dict[str, Tensor] = field(default_factory=dict)
    meta_graph: Any = None  # the old one

    @property
    def wire(self) -> dict[str, str]:
        """As a worker is asked."""
        return {"kind": "signature", "signature": self.signature, "inputs": str(self.inputs)}

    def differences(self, got: Mapping[str, Tensor], tolerance: Tolerance, part: Part) -> list[Mismatch]:
        """From the old answer. What the old model leaves to chance is none; it is noted in ``part``."""
        found = compare_named(self.answers, got, tolerance)
        chance = left_to_chance(self.meta_graph, self.signature) if found else {}
        for name in sorted({item.where for item in found} & set(chance)):
            note = (
                f"output {name!r} of signature {self.signature!r} is not compared, the old model leaves it to chance: one call "
            )
            note += f"reads variable {chance[name]!r} and updates it, in no order"
            _note(part, note)
        return [item for item in found if item.where not in chance]


class Asker:
    """One warm worker, asked about one MetaGraph; ``folder`` holds what goes to and fro."""

    def __init__(self, worker: Worker, folder: Path, limit: float) -> None:
        self.worker, self.folder, self.limit = worker, folder, limit
        worker.hello()
        self._generation = worker.generation  # one that took a dead one's place knows nothing of this model
        self._numbers = itertools.count()
        folder.mkdir(parents=True, exist_ok=True)

    def file(self, name: str) -> Path:
        """A new one."""
        return self.folder / f"{next(self._numbers)}.{name}.npz"

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Raises ReplyError, WorkerDied, NotStarted."""
        return self.worker.request(op, self.limit, self._generation, **fields)

    @contextmanager
    def model(self, role: str, directory: Path, tags: Sequence[str]) -> Iterator[int]:
        """A loaded model, by its handle."""
        handle = self.ask("load", role=role, dir=str(directory), tags=list(tags), timeout=self.limit)["handle"]
        try:
            yield handle
        finally:
            if self.worker.alive:
                self.ask("close", role=role, handle=handle)

    def call(self, role: str, handle: int, request: Request) -> dict[str, Tensor]:
        """An answer."""
        outputs = self.file(role)
        self.ask("call", role=role, handle=handle, request=request.wire, io_dir="/", outputs=str(outputs))
        return dict(tensors.load(outputs))

    def gradients(self, role: str, handle: int, request: Request) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """d(sum of floating outputs)/d(variables and floating inputs), and what the old model answers in the same run."""
        outputs, answers = self.file(f"{role}.gradients"), self.file(role)
        fields = {"signature": request.signature, "inputs": str(request.inputs), "outputs": str(outputs)}
        self.ask("gradients", role=role, handle=handle, answers=str(answers), **fields)
        return dict(tensors.load(outputs)), dict(tensors.load(answers)) if role == OLD else {}


@dataclass
class Old:
    """What the old model says: the requests that it answers, in their order, and gradients by request.

    Loaded afresh and asked in the same order it says the same, state or not; what is drawn at random is left out.
    """

    requests: list[Request]
    gradients: dict[str, dict[str, Tensor]]
    problem: str = ""
    tables: list[list[str]] = field(default_factory=list)  # dtypes of keys and values, and what each holds in words
    dead: list[Request] = field(default_factory=list)  # of signatures that fail whatever they are asked


def ask_first(asker: Asker, model: Path, part: Part, given: Sequence[Request], roles: Sequence[str]) -> Old:
    """Ask the old model through the first of ``roles`` that loads it; the answer of the last, where none does."""
    for role in roles:
        old = ask_old(asker, model, part, given, role)
        if not old.problem:
            break
    return old


def ask_old(asker: Asker, model: Path, part: Part, given: Sequence[Request], role: str = OLD) -> Old:
    """Ask the old model: the ``given`` requests, and of every other signature the first of ours that it answers.

    What cannot be asked is noted in ``part.not_asked``. ``problem``: ``role`` does not load the model. Only a session is asked
    for gradients and tables.
    """
    graph = oracle.meta_graph(model, part.tags)
    found: list[Request] = []
    dead: list[Request] = []
    gradients: dict[str, dict[str, Tensor]] = {}
    tables = []
    part.not_asked = {}
    try:
        with asker.model(role, model, part.tags) as handle:
            for request in given:
                request.meta_graph = graph
                found += [request] if _given_answers(asker, role, handle, request, part) else []
            examples = examples_of(graph)
            for key, sides in signature_spec(graph).items():
                if key not in {request.signature for request in found}:
                    tried = _first(asker, role, handle, part, graph, key, made_up(sides["inputs"], examples))
                    (dead if key in part.not_asked else found).extend(tried)
        with asker.model(role, model, part.tags) as handle:  # afresh: what they said is what they say from the start
            if role == OLD and any("HashTable" in node.op for node in graph.graph_def.node):
                tables = asker.ask("tables", role=OLD, handle=handle)["tables"]
            found = [request for request in found if _again(asker, role, handle, request, part)]
            for request in found if role == OLD else ():
                _differentiate(asker, handle, request, part, gradients)
    except ReplyError as error:
        return Old([], {}, f"{LOADERS[role]} does not load it: {_line(error)}")
    part.asked = sorted({request.signature for request in found})
    return Old(found, gradients, tables=tables, dead=[request for request in dead if never(part.not_asked[request.signature])])


def _differentiate(asker: Asker, handle: int, request: Request, part: Part, into: dict[str, dict[str, Tensor]]) -> None:
    """The old gradients of one request, where the state that others left changes nothing."""
    try:
        gradients, answers = asker.gradients(OLD, handle, request)
        if request.differences(answers, EXACT, part) or left_to_chance(request.meta_graph, request.signature):
            _note(part, f"signature {request.signature!r} depends on state: its gradients are not compared")
            return
        into[request.name] = gradients
    except ReplyError as error:
        _note(part, f"TensorFlow makes no gradients of the old signature {request.signature!r}: {_line(error)}")


def _given_answers(asker: Asker, role: str, handle: int, request: Request, part: Part) -> bool:
    try:
        request.answers = asker.call(role, handle, request)
    except ReplyError as error:
        _note(part, f"signature {request.signature!r}: the given request {request.name!r} fails: {_line(error)}")
        return False
    return True


def _first(
    asker: Asker, role: str, handle: int, part: Part, graph: Any, key: str, inputs: Iterator[dict[str, Tensor]]
) -> list[Request]:
    """Return the first of ``inputs`` that is answered; where none is, the first, and note why."""
    first: list[Request] = []
    reason = ""
    for tried in inputs:
        request = Request(f"made up for {key}", key, asker.file("in"), meta_graph=graph)
        tensors.save(request.inputs, tried)
        try:
            request.answers = asker.call(role, handle, request)
            return [request]
        except ReplyError as error:
            reason = reason or _line(error)
            first = first or [request]
    part.not_asked[key] = f"the old model answers none of our requests ({reason or 'no inputs can be made up'})"
    return first


def _again(asker: Asker, role: str, handle: int, request: Request, part: Part) -> bool:
    """Whether the old model, loaded again, answers the same: else there is nothing to compare with."""
    try:
        again = asker.call(role, handle, request)
    except ReplyError as error:
        part.not_asked[request.signature] = f"loaded again it fails: {_line(error)}"
        return False
    if request.differences(again, EXACT, part):
        part.not_asked[request.signature] = RANDOM
        return False
    return True


def ask_new(asker: Asker, new: Path, tags: Sequence[str], old: Old, part: Part) -> Iterator[Verdict]:
    """Each of ``READERS`` of the new model against the old answers and gradients."""
    for role in READERS:
        try:
            with asker.model(role, new, tags) as handle:
                if role == DIFFERENTIATED and old.tables:
                    yield _tables(asker, role, handle, old.tables)
                yield ask_loaded(asker, role, handle, old, part)
                if role == DIFFERENTIATED and any(old.gradients.values()):
                    yield _gradients(asker, role, handle, old)
        except ReplyError as error:
            yield Verdict(f"answers, {role}", "differs", f"{NOT_LOADED}: {_line(error)}")


def ask_loaded(asker: Asker, role: str, handle: int, old: Old, part: Part) -> Verdict:
    """A new model that nothing was asked of since it was loaded, against the old answers."""
    differences, close = [], False
    for request in old.requests:
        try:
            got = asker.call(role, handle, request)
        except ReplyError as error:
            differences.append(f"{request.signature}: {_line(error)}")
            continue
        found = request.differences(got, TOLERANCE, part)
        differences += [f"{request.signature}: {item}" for item in found]
        close = close or (not found and bool(request.differences(got, EXACT, part)))
    for request in old.dead:
        with suppress(ReplyError):
            asker.call(role, handle, request)
            _note(part, f"signature {request.signature!r} answers now, where the old model fails whatever it is asked")
    return _verdict(f"answers, {role}", differences, close, len(old.requests))


def _tables(asker: Asker, role: str, handle: int, tables: list[list[str]]) -> Verdict:
    """Every entry of every table, before anything is asked of the model."""
    types = sorted({(key, value) for key, value, _ in tables})
    after = asker.ask("tables", role=role, handle=handle, types=types)["tables"]
    before = Counter(text for _, _, text in tables)
    lost = before - Counter(text for _, _, text in after)
    return _verdict("tables", [f"{count} x {text} is lost or changed" for text, count in lost.items()], False, len(tables))


def _gradients(asker: Asker, role: str, handle: int, old: Old) -> Verdict:
    differences, close, count = [], False, 0
    for request in old.requests:
        expected = old.gradients.get(request.name)
        if not expected:
            continue
        count += 1
        try:
            got, _ = asker.gradients(role, handle, request)
        except ReplyError as error:
            differences.append(f"{request.signature}: {_line(error)}")
            continue
        kept = {name: got[name] for name in expected if name in got}  # what only the new one has is no loss
        found = compare_named(expected, kept, TOLERANCE)
        differences += [f"{request.signature}: {item}" for item in found]
        close = close or (not found and bool(compare_named(expected, kept, EXACT)))
    return _verdict(f"gradients, {role}", differences, close, count)


def _verdict(what: str, differences: list[str], close: bool, count: int) -> Verdict:
    if differences:
        more = f"; and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
        return Verdict(what, "differs", "; ".join(differences[:_SHOWN]) + more)
    if not count:
        return Verdict(what, "absent", "nothing to compare with")
    return Verdict(what, "close" if close else "equal", f"{count} compared")


def stored(old: Path, new: Path, tags: Sequence[str], new_tags: Sequence[str]) -> Iterator[Verdict]:
    """Signatures, weights, assets: nothing is lost. What a TF 1 model initialises at load the new one stores."""
    differences = compare_signatures(oracle.signatures(old, tags), oracle.signatures(new, new_tags))
    methods = [oracle.method_names(old, tags), oracle.method_names(new, new_tags)]
    differences += [f"the method of {key!r} changed" for key in methods[0] if methods[0][key] != methods[1].get(key)]
    yield _verdict("signatures", differences, False, len(methods[0]))
    try:
        before, after = oracle.inventory(old, tags), oracle.inventory(new, new_tags)
        differences = [f"{count} x {name} is lost or changed" for name, count in (before - after).items()]
        yield _verdict("weights", differences, False, sum(before.values()))
    except V1CheckpointError as error:  # TensorFlow itself has restored it; the answers say whether rightly
        yield Verdict("weights", "absent", str(error))
    for what, read in (("assets", oracle.assets), ("assets.extra", lambda model, _: oracle.extra_assets(model))):
        before, after = read(old, tags), read(new, new_tags)
        yield _verdict(what, [f"{name} is lost" for name in (before - after)], False, sum(before.values()))


def _note(part: Part, text: str) -> None:
    part.notes += [text] if text not in part.notes else []


def _line(error: ReplyError) -> str:
    return gist(str(error)) or error.error_class or error.status
