"""Where requests come from: a mapping in Python, a folder with an ``io.json``, warm-up requests of
the model, inputs of ours.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from compat_matrix.requests.artifact import Artifact, is_recorded
from compat_matrix.requests.digest import digest_of
from compat_matrix.requests.made_up import examples_of, made_up
from compat_matrix.requests.policies import OptionError
from compat_matrix.runtimes.runtime import INSTALL
from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.container import layout
from reference_impl.format.values.shapes import covers
from reference_impl.views.signatures import signature_spec
from savedmodel_common import tensors
from savedmodel_common.printable import like
from savedmodel_common.tensors import CARRIERS, Tensor
from savedmodel_tools import warmup

_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
_SHOWN = 8  # names in a message
RANDOM = "loaded again it answers otherwise: something is drawn at random"
STATEFUL = "its answers depend on earlier requests"
NO_INPUTS = "no input of its dtypes and shapes can be made up"
NOBODY = f"no TensorFlow is here to ask: {INSTALL}"
Spec = Mapping[
    str, Mapping[str, Mapping[str, Any]]
]  # of one signature: side -> name -> dtype and shape


@dataclass(eq=False)
class Question:
    """A request on its way into an artifact."""

    entry: dict[str, Any]  # of ``io.json``; ``outputs`` is None as long as no answer is recorded
    # Gives inputs to try, the first answered one becomes the request's; None where the inputs are
    # given. ``variant``: others.
    candidates: Callable[..., Iterator[dict[str, Tensor]]] | None = None
    instead_of: tuple[
        Question, ...
    ] = ()  # questions; this one is asked only where none of them is answered
    reasons: list[str] = field(default_factory=list)  # what those said who did not answer
    fatal: bool = False  # a process died of it
    stateful: bool = False  # the answer depends on earlier requests
    is_useless: bool = False  # it is answered, but there is nothing to compare another answer with
    # Output that the graph leaves to chance -> the variable; its value does not count.
    chance: dict[str, str] = field(default_factory=dict)
    # Output that is drawn at random -> the node that draws, "" if none is known; its value does not
    # count either.
    random: dict[str, str] = field(default_factory=dict)

    @property
    def target(self) -> tuple[tuple[str, ...], str]:
        """Return the tags of the MetaGraph and the signature, or the path of the function."""
        return tuple(self.entry["tags"]), str(
            self.entry["signature"] if "signature" in self.entry else self.entry["path"]
        )

    @property
    def signature(self) -> str:
        """Return the signature, or the path of the function."""
        return self.target[1]

    @property
    def is_answered(self) -> bool:
        """Return whether an answer is recorded, or the error of a request that must fail."""
        return is_recorded(self.entry)

    @property
    def why(self) -> str:
        """Return why no answer is recorded, or "" if one is. All commands use this text."""
        if self.is_answered:
            return ""
        reason = (
            (self.reasons[-1] if self.is_useless else self.reasons[0]) if self.reasons else NOBODY
        )
        if self.is_useless:
            return f"{reason}: there is nothing to compare with"
        if self.fatal:
            return f"the process ends when it is asked ({reason})"
        if self.candidates:
            return f"no request that was made up for it is answered ({reason})"
        return f"request {self.entry['id']!r} is not answered ({reason})"

    @property
    def is_needless(self) -> bool:
        """Return whether a question for which this one is a substitute has an answer."""
        return any(other.is_answered for other in self.instead_of)

    @property
    def not_compared(self) -> set[str]:
        """Return the outputs that do not count."""
        return {*self.chance, *self.random}

    def leave_out(
        self, chance: Mapping[str, str], random: Mapping[str, str], outputs: Iterable[str]
    ) -> None:
        """Do not count outputs that the graph leaves to chance, and random ones, unless there are
        no others.
        """
        chance, random = {**self.chance, **chance}, {**self.random, **random}
        counted = sorted(set(filter(None, outputs)) - chance.keys() - random.keys())
        if counted and (chance or random):
            self.chance, self.random = chance, random
            self.entry["compared"] = counted


@dataclass
class Asked:
    """The questions about one export.

    ``problems``: sentences about requests that do not fit it, as for a missing signature.
    """

    questions: list[Question] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def chosen_tags(found: layout.Layout, tags: Iterable[str] | str | None) -> tuple[str, ...]:
    """Return the tags of the MetaGraph to ask: those given, else of the only one, else ``serve``.

    Raises OptionError.
    """
    there = list(map(layout.tags_of, found.saved_model.meta_graphs))
    wanted = (
        tuple(sorted({tags} if isinstance(tags, str) else set(tags))) if tags is not None else None
    )
    if wanted is None:
        wanted = there[0] if len(there) == 1 else ("serve",)
    if wanted not in there:
        raise OptionError(_no_meta_graph(wanted, there))
    return wanted


def _no_meta_graph(tags: Iterable[str], there: Iterable[Iterable[str]]) -> str:
    asked, listed = layout.tags_text(tags), list(map(layout.tags_text, there))
    return (
        f"no MetaGraph has the tags {asked}; there are:"
        f" {'; '.join(listed[:_SHOWN])}.{like(asked, listed)}"
    )


def from_python(
    requests: Mapping[str, Any], found: layout.Layout, tags: tuple[str, ...], io: Path
) -> Asked:
    """Signature -> list of ``(inputs, outputs)``, of inputs alone, or one of these; the tensors go
    to files in ``io``.

    Inputs and outputs are mappings name -> value, or a value where the signature has one. A value
    is what NumPy makes an array of; numbers and lists without a dtype get that of the signature.
    Outputs None: nothing is recorded.

    Raises OptionError for anything else.
    """
    if not isinstance(requests, Mapping):
        raise OptionError(
            "requests are a mapping signature -> list of (inputs, outputs), not"
            f" {type(requests).__name__}"
        )
    graph = found.meta_graph(tags)
    spec, asked = signature_spec(graph), Asked()
    for key, listed in requests.items():
        if key not in spec:
            asked.problems.append(_missing(key, spec, tags))
            continue
        for number, (inputs, outputs) in enumerate(_pairs(listed)):
            where = f"request {number} of signature {key!r}"
            name = f"{len(asked.questions)}-{_UNSAFE.sub('_', str(key))[:60]}"
            given = _tensors(inputs, spec[key]["inputs"], f"{where}, inputs")
            recorded = (
                None
                if outputs is None
                else _tensors(outputs, spec[key]["outputs"], f"{where}, outputs")
            )
            problem = _misfit(given, spec[key], graph.signature_def[key]) or _other(
                recorded, spec[key]
            )
            if problem:
                asked.problems.append(f"{where}: {problem}")
                continue
            file = f"{name}.in.npz"
            entry = {
                "id": name,
                "kind": "signature",
                "tags": list(tags),
                "signature": key,
                "inputs": file,
            }
            tensors.save(io / file, given)
            answer = None
            if recorded is not None:
                answer = f"{name}.out.npz"
                tensors.save(io / answer, recorded)
            asked.questions.append(Question({**entry, "outputs": answer}))
    return asked


def _pairs(listed: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (inputs, outputs) of each request: a pair, or inputs alone.

    A single request needs no list.
    """
    for item in listed if isinstance(listed, list) else [listed]:
        if isinstance(item, tuple):
            if len(item) != 2:
                raise OptionError(f"a request is (inputs, outputs), not {len(item)} things")
            yield item
        else:
            yield item, None


def from_artifact(artifact: Artifact, found: layout.Layout) -> Asked:
    """Return the requests of an ``io.json``, without those that do not fit the export."""
    asked = Asked()
    for number, given in enumerate(artifact.requests):
        request = {"id": str(number), **given}
        problem = _unfit(request, artifact.io, found)
        if problem:
            asked.problems.append(f"request {request['id']}: {problem}")
        else:
            asked.questions.append(Question(request))
    return asked


def _unfit(request: Mapping[str, Any], io: Path, found: layout.Layout) -> str:
    tags = request["tags"]
    if frozenset(tags) not in found.tag_sets:
        return _no_meta_graph(tags, found.tag_sets)
    if request["kind"] != "signature":
        return ""
    graph = found.meta_graph(tags)
    spec = signature_spec(graph)
    if request["signature"] not in spec:
        return _missing(request["signature"], spec, tags)
    sides, signature = spec[request["signature"]], graph.signature_def[request["signature"]]
    recorded = tensors.load(io / request["outputs"]) if request["outputs"] else None
    return _misfit(tensors.load(io / request["inputs"]), sides, signature) or _other(
        recorded, sides
    )


def invent(
    found: layout.Layout, known: Sequence[Question], count: int, instead: bool = False
) -> list[Question]:
    """Return ``count`` requests for each signature that has none.

    ``instead``: for the other signatures too, to be asked where none of theirs is answered.
    """
    names = _free_names({str(question.entry["id"]) for question in known}, len(known))
    covered: dict[Any, list[Question]] = {}
    for question in known:
        covered.setdefault(question.target, []).append(question)
    out = []
    for graph in found.saved_model.meta_graphs:
        tags = layout.tags_of(graph)
        examples, warming = examples_of(graph), _warming(found, tags)
        for key, sides in signature_spec(graph).items():
            theirs = tuple(covered.get((tags, key), ()))
            if theirs and not instead:
                continue
            seen: set[str] = set()
            warm = functools.partial(_warm, warming.get(key, ()), sides, graph.signature_def[key])
            for variant in range(count):
                candidates = functools.partial(
                    _candidates, warm, sides["inputs"], examples, variant=variant
                )
                first = digest_of(None, next(candidates(), {}))
                if first in seen:
                    continue  # nothing to vary: no inputs, or none but examples
                seen.add(first)
                name = names(key)
                entry = {"id": name, "kind": "signature", "tags": list(tags), "signature": key}
                out.append(
                    Question(
                        {**entry, "inputs": f"{name}.in.npz", "outputs": None}, candidates, theirs
                    )
                )
    return out


def _free_names(taken: Collection[str], start: int) -> Callable[[str], str]:
    """Return a function that gives a request of a signature a name that no other has."""
    numbers = itertools.count(start)

    def name(key: str) -> str:
        names = (f"{number}-{_UNSAFE.sub('_', key)[:60]}" for number in numbers)
        return next(name for name in names if name not in taken)

    return name


def _warming(found: layout.Layout, tags: Sequence[str]) -> Mapping[str, Sequence[Any]]:
    """Return the model's own warm-up requests by signature; none of other tags than a server asks,
    none that cannot be read.
    """
    try:
        return warmup.requests_of(found) if "serve" in tags else {}
    except SavedModelError:
        return {}


def _warm(
    requests: Sequence[Any], spec: Spec, signature: schema.SignatureDef
) -> Iterator[dict[str, Tensor]]:
    """Yield the inputs of those warm-up requests that fit the signature."""
    for request in requests:
        try:
            inputs = warmup.inputs_of(request, spec["inputs"])
        except SavedModelError:
            continue
        if inputs is not None and not _misfit(inputs, spec, signature):
            yield inputs


def _candidates(
    warm: Callable[[], Iterator[dict[str, Tensor]]],
    inputs: Mapping[str, Any],
    examples: Sequence[bytes],
    variant: int,
) -> Iterator[dict[str, Tensor]]:
    yield from itertools.islice(warm(), variant, None)
    yield from made_up(inputs, examples, variant)


def unasked(found: layout.Layout, known: Sequence[Question]) -> list[str]:
    """Return a sentence for each signature without a request."""
    covered = {question.target for question in known}
    out = []
    for graph in found.saved_model.meta_graphs:
        tags = layout.tags_of(graph)
        out += [
            f"{about(key, tags)}: no request asks it"
            for key in signature_spec(graph)
            if (tags, key) not in covered
        ]
    return out


def left_out(questions: Iterable[Question]) -> list[str]:
    """Return a sentence for each reason why questions are not asked, with their signatures."""
    found: dict[str, list[str]] = {}
    for question in questions:
        tags, name = question.target
        what = about(name, tags) if question.entry["kind"] == "signature" else f"function {name!r}"
        found.setdefault(question.why, []).append(what)
    return [f"{', '.join(dict.fromkeys(names))}: {why}" for why, names in found.items()]


def about(key: str, tags: Sequence[str]) -> str:
    """Return the words for a signature in a message."""
    return f"signature {key!r}" + (
        "" if tuple(tags) == ("serve",) else f" of the MetaGraph {layout.tags_text(tags)}"
    )


def _missing(key: Any, spec: Mapping[str, Any], tags: Sequence[str]) -> str:
    there = ", ".join(map(repr, list(spec)[:_SHOWN])) or "none"
    return f"the export has no {about(key, tags)}; it has {there}.{like(str(key), spec)}"


def _tensors(values: Any, sides: Mapping[str, Mapping[str, Any]], where: str) -> dict[str, Tensor]:
    if not isinstance(values, Mapping):
        if len(sides) != 1:
            names = ", ".join(map(repr, list(sides)[:_SHOWN]))
            raise OptionError(
                f"{where}: the signature has {len(sides)} ({names}): a mapping says which is which"
            )
        values = {next(iter(sides)): values}
    return {
        str(name): _tensor(value, sides.get(name), f"{where}, {name!r}")
        for name, value in values.items()
    }


def _tensor(value: Any, info: Mapping[str, Any] | None, where: str) -> Tensor:
    """Return a value as a tensor.

    Values without a dtype (Python numbers, lists) get that of the signature.
    """
    try:
        if isinstance(value, Tensor):
            return value
        if callable(getattr(value, "numpy", None)):  # of TensorFlow, of torch
            value = value.numpy()
        if hasattr(value, "dtype") or isinstance(value, (str, bytes)) or info is None:
            return tensors.from_numpy(value)
        dtype = info["dtype"]
        if dtype == "string":
            return tensors.from_numpy(np.asarray(value, dtype=object))
        if dtype in CARRIERS:
            return tensors.from_numpy(
                np.asarray(value, dtype=getattr(ml_dtypes, dtype, None) or CARRIERS[dtype]), dtype
            )
        return tensors.from_numpy(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise OptionError(f"{where}: no tensor: {error}") from error


def _misfit(given: Mapping[str, Tensor], spec: Spec, signature: schema.SignatureDef) -> str:
    """Return why a signature cannot be asked with these inputs, or ""."""
    wanted = spec["inputs"]
    optional = set(signature.defaults)
    extra, missing = sorted(set(given) - set(wanted)), sorted(set(wanted) - set(given) - optional)
    if extra or missing:
        parts = [f"it has no input {', '.join(map(repr, extra))}"] if extra else []
        parts += [f"the request lacks {', '.join(map(repr, missing))}"] if missing else []
        return (
            f"{'; '.join(parts)} (inputs of the signature:"
            f" {', '.join(map(repr, list(wanted)[:_SHOWN])) or 'none'})"
        )
    for name, tensor in given.items():
        info = wanted[name]
        if tensor.dtype != info["dtype"].removesuffix("_ref"):
            return (
                f"input {name!r} is {info['dtype']} in the signature, the request gives"
                f" {tensor.dtype}"
            )
        if not covers(info["shape"], np.shape(tensor.array)):
            got = list(np.shape(tensor.array))
            return (
                f"input {name!r} has the shape {info['shape']} in the signature, the request gives"
                f" {got}"
            )
    return ""


def _other(recorded: Mapping[str, Tensor] | None, spec: Spec) -> str:
    """Return how a recorded answer differs from what the signature promises, or ""."""
    if recorded is None:
        return ""
    promised = spec["outputs"]
    missing, extra = sorted(set(promised) - set(recorded)), sorted(set(recorded) - set(promised))
    if missing or extra:
        parts = [f"the signature has no output {', '.join(map(repr, extra))}"] if extra else []
        parts += [f"the recorded answer lacks {', '.join(map(repr, missing))}"] if missing else []
        return (
            f"{'; '.join(parts)} (outputs of the signature:"
            f" {', '.join(map(repr, list(promised)[:_SHOWN])) or 'none'})"
        )
    for name, tensor in recorded.items():
        if tensor.dtype != promised[name]["dtype"].removesuffix("_ref"):
            return (
                f"output {name!r} is {promised[name]['dtype']} in the signature, the recorded"
                f" answer is {tensor.dtype}"
            )
    return ""
