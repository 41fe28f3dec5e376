"""The new model against the old one: answers, gradients, everything stored, and the next generation."""

from __future__ import annotations

import itertools
import json
import shutil
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from compat_matrix.cells.consumers import CONSUMERS
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import ABSENT
from compat_matrix.cells.results import Result
from compat_matrix.checks import CHECKS, oracle
from compat_matrix.checks.kinds.signatures import compare_signatures
from compat_matrix.common.gist import gist
from compat_matrix.engine.loop import run_plan
from compat_matrix.hosts.host import Loaded
from compat_matrix.hosts.pool import Hosts
from compat_matrix.models.migrate.advice import RANDOM, never
from compat_matrix.models.migrate.chance import left_to_chance
from compat_matrix.models.migrate.records import Part, Verdict
from compat_matrix.plan.planning import Axes, expand, fixture_artifact
from compat_matrix.requests.compare import EXACT, compare_named
from compat_matrix.requests.given import sign
from compat_matrix.requests.made_up import examples_of, made_up
from compat_matrix.requests.tolerances import ACROSS_LOADERS
from compat_matrix.runtimes.runtime import LOCAL, local_runtime
from compat_matrix.runtimes.worker import ReplyError
from compat_matrix.verdict import Ledger
from compat_matrix.workers import tensors
from compat_matrix.workers.tensors import Tensor
from reference_impl.errors import V1CheckpointError
from reference_impl.inspection.signatures import signature_spec

PROGRAM = "migration_worker"  # all readers in one process: one for each would import TensorFlow once more for every model
OLD = "v1_session"
REFERENCE = "reference"  # also saves the new model again
READERS = ("tf2", "c_api")  # the others
DIFFERENTIATED = "tf2"  # what fine-tunes the new model
IN_ONE_PROCESS = {name: replace(CONSUMERS[name], program=PROGRAM, role=name) for name in (REFERENCE, *READERS)}
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
    chance: dict[str, str] = field(default_factory=dict)  # output that the old model leaves to chance -> the variable

    @property
    def wire(self) -> dict[str, str]:
        """As a worker is asked."""
        return {"kind": "signature", "signature": self.signature, "inputs": str(self.inputs)}

    def same(self, got: Mapping[str, Tensor], part: Part) -> bool:
        """Whether an answer is the old one, bit for bit. What the old model leaves to chance does not count; it is noted."""
        found = compare_named(self.answers, got, EXACT)
        if found and not self.chance:
            self.chance = left_to_chance(self.meta_graph, self.signature)
        for name in sorted({item.where for item in found} & set(self.chance)):
            _note_chance(part, self, name)
        return all(item.where in self.chance for item in found)


class Asker:
    """One warm worker that holds every reader, asked about one MetaGraph; ``folder`` holds what goes to and fro."""

    def __init__(self, hosts: Hosts, folder: Path, limit: float, program: str = PROGRAM) -> None:
        self.hosts, self.host, self.folder, self.limit = hosts, hosts.of(LOCAL), folder, limit
        self.worker = self.host.worker(LOCAL, program)
        self.worker.hello()
        self._generation = self.worker.generation  # one that took a dead one's place knows nothing of this model
        self._numbers = itertools.count()
        folder.mkdir(parents=True, exist_ok=True)

    def place(self, name: str) -> Path:
        """The path of a new file or folder."""
        return self.folder / f"{next(self._numbers)}.{name}"

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Raises ReplyError, WorkerDied, NotStarted."""
        return self.worker.request(op, self.limit, self._generation, **fields)

    def model(self, role: str, directory: Path, tags: Sequence[str], shared: bool = False) -> AbstractContextManager[Loaded]:
        """A loaded model. ``shared``: the one that a cell asks too, as long as it runs."""
        return self.host.model(self.worker, directory, tags, self.limit, shared, role)

    def call(self, loaded: Loaded, request: Request) -> dict[str, Tensor]:
        """An answer."""
        outputs = self.place(f"{loaded.role}.npz")
        loaded.ask("call", self.limit, request=request.wire, io_dir="/", outputs=str(outputs))
        return dict(tensors.load(outputs))

    def gradients(self, loaded: Loaded, request: Request) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """d(sum of floating outputs)/d(variables and floating inputs), and what the old model answers in the same run."""
        outputs, answers = self.place(f"{loaded.role}.gradients.npz"), self.place(f"{loaded.role}.npz")
        fields = {"signature": request.signature, "inputs": str(request.inputs), "outputs": str(outputs)}
        loaded.ask("gradients", self.limit, answers=str(answers), **fields)
        return dict(tensors.load(outputs)), dict(tensors.load(answers)) if loaded.role == OLD else {}

    def cells(self, role: str, artifact: Path) -> Iterator[Result]:
        """The result of the cell in which a reader is asked about an artifact; its model is freed when this is closed."""
        planned = replace(fixture_artifact(artifact), timeout=self.limit)
        here = replace(local_runtime(), tensorflow_version=local_runtime().tensorflow_version or ABSENT)  # the worker has started
        plan = expand([planned], {role: IN_ONE_PROCESS[role]}, CHECKS, Axes((here,)), Ledger())
        return run_plan(self.hosts, artifact.parent, plan)


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
        with asker.model(role, model, part.tags) as loaded:
            for request in given:
                request.meta_graph = graph
                found += [request] if _given_answers(asker, loaded, request, part) else []
            examples = examples_of(graph)
            for key, sides in signature_spec(graph).items():
                if key not in {request.signature for request in found}:
                    tried = _first(asker, loaded, part, graph, key, made_up(sides["inputs"], examples))
                    (dead if key in part.not_asked else found).extend(tried)
        with asker.model(role, model, part.tags) as loaded:  # afresh: what they said is what they say from the start
            if role == OLD and any("HashTable" in node.op for node in graph.graph_def.node):
                tables = loaded.ask("tables", asker.limit)["tables"]
            found = [request for request in found if _again(asker, loaded, request, part)]
            for request in found if role == OLD else ():
                _differentiate(asker, loaded, request, part, gradients)
    except ReplyError as error:
        return Old([], {}, f"{LOADERS[role]} does not load it: {_line(error)}")
    part.asked = sorted({request.signature for request in found})
    return Old(found, gradients, tables=tables, dead=[request for request in dead if never(part.not_asked[request.signature])])


def _differentiate(asker: Asker, loaded: Loaded, request: Request, part: Part, into: dict[str, dict[str, Tensor]]) -> None:
    """The old gradients of one request, where the state that others left changes nothing."""
    try:
        gradients, answers = asker.gradients(loaded, request)
        if not request.same(answers, part) or left_to_chance(request.meta_graph, request.signature):
            _note(part, f"signature {request.signature!r} depends on state: its gradients are not compared")
            return
        into[request.name] = gradients
    except ReplyError as error:
        _note(part, f"TensorFlow makes no gradients of the old signature {request.signature!r}: {_line(error)}")


def _given_answers(asker: Asker, loaded: Loaded, request: Request, part: Part) -> bool:
    try:
        request.answers = asker.call(loaded, request)
    except ReplyError as error:
        _note(part, f"signature {request.signature!r}: the given request {request.name!r} fails: {_line(error)}")
        return False
    return True


def _first(asker: Asker, loaded: Loaded, part: Part, graph: Any, key: str, inputs: Iterator[dict[str, Tensor]]) -> list[Request]:
    """Return the first of ``inputs`` that is answered; where none is, the first, and note why."""
    first: list[Request] = []
    reason = ""
    for tried in inputs:
        request = Request(f"made up for {key}", key, asker.place("in.npz"), meta_graph=graph)
        tensors.save(request.inputs, tried)
        try:
            request.answers = asker.call(loaded, request)
            return [request]
        except ReplyError as error:
            reason = reason or _line(error)
            first = first or [request]
    part.not_asked[key] = f"the old model answers none of our requests ({reason or 'no inputs can be made up'})"
    return first


def _again(asker: Asker, loaded: Loaded, request: Request, part: Part) -> bool:
    """Whether the old model, loaded again, answers the same: else there is nothing to compare with."""
    try:
        again = asker.call(loaded, request)
    except ReplyError as error:
        part.not_asked[request.signature] = f"loaded again it fails: {_line(error)}"
        return False
    if not request.same(again, part):
        part.not_asked[request.signature] = RANDOM
        return False
    return True


class Unanswered(Exception):
    """The process of the readers died of a cell, or the machine failed: that says nothing of the new model."""

    def __init__(self, cell: Result, stderr: str) -> None:
        super().__init__(f"{cell.cell}: {cell.outcome} {cell.message}\n{stderr}".strip())
        self.died = cell.outcome in (Outcome.CRASH, Outcome.TIMEOUT)
        self.error_class = cell.error_class


def ask_new(
    asker: Asker,
    new: Path,
    tags: Sequence[str],
    old: Old,
    part: Part,
    roles: Sequence[str],
    first: Mapping[str, Callable[[Loaded], object]] | None = None,
) -> Iterator[Verdict]:
    """Each of ``roles`` of the new model against the old answers, tables and gradients.

    ``first``: role -> what is done with the model before anything is asked of it. Raises Unanswered, and what ``first`` raises.
    """
    artifact, todo = _artifact(asker, new, tags, old), dict(first or {})
    for role in roles:
        verdicts = list(_asked(asker, role, artifact, tags, old, part, todo.pop(role, None)))
        differing = any(verdict.state == "differs" for verdict in verdicts)
        if differing and _leave_out_chance(old, part):
            artifact = _artifact(asker, new, tags, old)
            verdicts = list(_asked(asker, role, artifact, tags, old, part))
        yield from verdicts


def _artifact(asker: Asker, new: Path, tags: Sequence[str], old: Old) -> Path:
    """The new model with the requests and answers of the old one (docs/contracts.md, section 1)."""
    directory = asker.place("cells") / "new"
    io, entries = directory / "io", []
    io.mkdir(parents=True)
    (directory / "model").symlink_to(new)
    for number, request in enumerate(old.requests):
        names = {"inputs": f"{number}.in.npz", "outputs": f"{number}.out.npz"}
        shutil.copyfile(request.inputs, io / names["inputs"])
        tensors.save(io / names["outputs"], request.answers)
        fields = {"id": str(number), "kind": "signature", "tags": list(tags), "signature": request.signature, **names}
        entries.append(
            {**fields, "compared": sorted(request.answers.keys() - request.chance.keys())} if request.chance else fields
        )
    document = {"schema": 1, "stateful": False, "tolerance": ACROSS_LOADERS._asdict(), "requests": entries}
    (io / "io.json").write_text(json.dumps(document), encoding="utf-8")
    sign(directory, oracle.layout_of(new), "a model that was converted", "savedmodel-compat migrate")
    return directory


def _leave_out_chance(old: Old, part: Part) -> bool:
    """Note outputs that the old model leaves to chance, which were not looked for before; whether there are any."""
    found = False
    for request in old.requests:
        chance = left_to_chance(request.meta_graph, request.signature)
        found = found or chance != request.chance
        request.chance = chance
        for name in sorted(chance):
            _note_chance(part, request, name)
    return found


def _asked(
    asker: Asker,
    role: str,
    artifact: Path,
    tags: Sequence[str],
    old: Old,
    part: Part,
    first: Callable[[Loaded], object] | None = None,
) -> Iterator[Verdict]:
    """One reader: tables before anything is asked, the cell with the answers, then gradients, all of the model as loaded once."""
    model = artifact / "model"
    with closing(cast("Generator[Result]", asker.cells(role, artifact))) as cells:
        if first:
            with asker.model(role, model, tags, shared=True) as loaded:
                first(loaded)
        if role == DIFFERENTIATED and old.tables:
            with suppress(ReplyError), asker.model(role, model, tags, shared=True) as loaded:
                yield _tables(asker, loaded, old.tables)
        result = next(cells)
        verdict = _of_result(result, role, artifact, old)
        yield verdict
        if verdict.detail.startswith(NOT_LOADED):
            return
        with asker.model(role, model, tags, shared=True) as loaded:
            for request in old.dead:
                with suppress(ReplyError):
                    asker.call(loaded, request)
                    said = f"signature {request.signature!r} answers now, where the old model fails whatever it is asked"
                    _note(part, said)
            if role == DIFFERENTIATED and any(old.gradients.values()):
                yield _gradients(asker, loaded, old)


def _of_result(result: Result, role: str, artifact: Path, old: Old) -> Verdict:
    """What a cell says of the answers of a reader."""
    what = f"answers, {role}"
    if result.outcome in (Outcome.CRASH, Outcome.TIMEOUT, Outcome.SETUP_ERROR, Outcome.ENV_ERROR, Outcome.NOT_RUN):
        stderr = artifact.parent / result.evidence.get("stderr", "no such file")
        raise Unanswered(result, stderr.read_text(encoding="utf-8", errors="replace") if stderr.is_file() else "")
    if result.outcome is not Outcome.PASS and "call" not in result.timings:
        return Verdict(what, "differs", f"{NOT_LOADED}: {gist(result.message) or result.error_class}")
    failed = result.details.get("failed", {})
    differences = [
        f"{old.requests[int(name)].signature}: {gist(one['message'].removeprefix(f'request {name}: '))}"
        for name, one in failed.items()
    ]
    return _verdict(what, differences, bool(result.details.get("inexact")), len(old.requests))


def _tables(asker: Asker, loaded: Loaded, tables: list[list[str]]) -> Verdict:
    """Every entry of every table, before anything is asked of the model."""
    types = sorted({(key, value) for key, value, _ in tables})
    after = loaded.ask("tables", asker.limit, types=types)["tables"]
    before = Counter(text for _, _, text in tables)
    lost = before - Counter(text for _, _, text in after)
    return _verdict("tables", [f"{count} x {text} is lost or changed" for text, count in lost.items()], False, len(tables))


def _gradients(asker: Asker, loaded: Loaded, old: Old) -> Verdict:
    differences, close, count = [], False, 0
    for request in old.requests:
        expected = old.gradients.get(request.name)
        if not expected:
            continue
        count += 1
        try:
            got, _ = asker.gradients(loaded, request)
        except ReplyError as error:
            differences.append(f"{request.signature}: {_line(error)}")
            continue
        kept = {name: got[name] for name in expected if name in got}  # what only the new one has is no loss
        found = compare_named(expected, kept, ACROSS_LOADERS.bounds)
        differences += [f"{request.signature}: {item}" for item in found]
        close = close or (not found and bool(compare_named(expected, kept, EXACT)))
    return _verdict(f"gradients, {loaded.role}", differences, close, count)


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


def _note_chance(part: Part, request: Request, name: str) -> None:
    note = f"output {name!r} of signature {request.signature!r} is not compared, the old model leaves it to chance: one call "
    _note(part, note + f"reads variable {request.chance[name]!r} and updates it, in no order")


def _note(part: Part, text: str) -> None:
    part.notes += [text] if text not in part.notes else []


def _line(error: ReplyError) -> str:
    return gist(str(error)) or error.error_class or error.status
