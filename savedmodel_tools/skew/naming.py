"""Turn a consumer's error into a named version skew: what is unknown, where it is, since when it
exists, what would help.

>>> name(None, "Op type not registered 'DisableCopyOnRead' in binary running on host", "2.8.4").since
'2.10'
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from savedmodel_tools.skew import advice, contrib
from savedmodel_tools.skew.history import History, OpHistory, history
from savedmodel_tools.skew.locate import Place, Wanted, locate
from savedmodel_tools.skew.protos import dtype_name, plain_value
from savedmodel_tools.skew.texts import Complaint, complaints

KINDS = {
    "unknown_op": "the release does not know the op",
    "removed_op": "an earlier release knew the op, this one does not",
    "renamed_contrib_op": "an op of tensorflow.contrib, which lives on under another name",
    "deprecated_op": "the op may not be used in graphs as new as this one",
    "unknown_attr": "the release knows the op, but not the attr",
    "missing_attr": "the model leaves out an attr that has a default only in other releases",
    "attr_value": "the release does not allow the attr this value",
    "changed_inputs": "the op has other inputs in this release",
    "missing_kernel": "the release knows the op, but has no CPU kernel for these dtypes",
    "unknown_dtype": "the release does not know the dtype",
    "op_version": "the op's own format is newer than the release",
    "min_consumer": "the graph asks for a newer reader (GraphDef versions)",
    "bad_consumer": "the graph refuses this very release (GraphDef versions)",
    "forward_window": "the graph is newer than the release; the text does not say what is unknown",
    "newer_checkpoint": "the checkpoint asks for a newer reader",
}


class Skew(NamedTuple):
    """A named version skew, as results carry it (docs/releases/results.md).

    Attributes:
      kind: one of :data:`KINDS`.
      op, attr, value: what the release lacks; "" where not applicable.
      tags, node, function, paths, signatures: where it is in the model
        (:class:`~savedmodel_tools.skew.locate.Place`).
      since, until: the first and the last release of the table that have it; None where there is no
          such release or the newest has it.
      advice: what would help.
      cause: the kind of skew and what would help, in one line that is the same for all models.
      text: all of it in one line.
    """

    kind: str
    op: str
    attr: str
    value: str
    tags: tuple[str, ...]
    node: str
    function: str
    chain: tuple[str, ...]
    paths: tuple[str, ...]
    signatures: Optional[tuple[str, ...]]
    since: Optional[str]
    until: Optional[str]
    advice: str
    cause: str
    text: str

    def to_json(self) -> dict[str, Any]:
        """Return the fields that have a value."""
        return {key: value for key, value in self._asdict().items() if value not in ("", None, ())}


class _Found(NamedTuple):
    """The facts about a complaint: which releases have the missing thing, and the words for it."""

    what: str
    members: Sequence[int] = ()
    advice: str = ""
    kind: str = ""
    value: str = ""


class _Case:
    """A complaint of one release about one model."""

    def __init__(
        self, said: Complaint, version: str, model: Optional[Path], table: History
    ) -> None:
        self.said, self.version, self.model, self.table = said, version, model, table
        self.here = table.nearest(version)
        self.place = self._locate(model) if model is not None else None
        self.op = said.op or (self.place.node.op if self.place else "")
        self.known: Optional[OpHistory] = table.op(self.op)

    def _locate(self, model: Path) -> Optional[Place]:
        try:
            return locate(model, self._wanted(), node=self.said.node, function=self.said.function)
        except SavedModelError:
            return None  # other checks report an unreadable model

    def _wanted(self) -> Wanted:
        said = self.said
        if said.kind == "unknown_dtype":
            known = self.table.releases[self.here].dtypes if self.here is not None else ()
            return lambda node: (
                (not said.op or node.op == said.op)
                and any(
                    dtype == said.value or (not said.value and dtype not in known)
                    for dtype in dtypes_of(node.attr.values())
                )
            )
        if said.kind in ("min_consumer", "bad_consumer", "newer_checkpoint", "forward_window"):
            return lambda node: False
        if said.kind in ("missing_attr", "changed_inputs"):
            return lambda node: (
                (not said.attr or said.attr not in node.attr)
                and (
                    node.op == said.op
                    or (
                        not said.op
                        and (said.node == node.name or said.node.endswith("/" + node.name))
                    )
                )
            )
        if said.kind == "missing_kernel":
            return lambda node: (
                node.op == said.op
                and all(
                    plain_value(node.attr[attr]) in ([*dtypes], *dtypes)
                    for attr, dtypes in said.types.items()
                    if attr in node.attr
                )
            )
        return lambda node: (
            node.op == said.op and (said.kind != "unknown_attr" or said.attr in node.attr)
        )

    def having(self, has: Callable[[int], bool]) -> list[int]:
        """Return the releases for which ``has`` holds."""
        return [index for index in range(len(self.table.releases)) if has(index)]


def name(
    error_class: Optional[str], message: str, version: str, model: Optional[Path] = None
) -> Optional[Skew]:
    """Return the version skew that an error shows; None when it shows none.

    Args:
      error_class: the class of the error; may be None.
      message: the message of the error, as a worker or a user sees it.
      version: the version of the TensorFlow that raised it.
      model: the SavedModel in which to locate the op. If it cannot be read, only the location is
        missing.

    Raises:
      TableError: the op history cannot be used.
    """
    for said in complaints(error_class, message):
        case = _Case(said, version, model, history())
        found = None if said.guess and case.place is None else _READ[said.kind](case)
        if found is not None:
            return _skew(case, found)
    return None


def _skew(case: _Case, found: _Found) -> Skew:
    said, place, members = case.said, case.place, list(found.members)
    exists = advice.existence(case.table, members, said.kind == "missing_kernel")
    parts = [exists, f"here {case.version}", place.text if place else "", found.advice]
    cause, text = (f"{found.what}: {'; '.join(filter(None, some))}" for some in (parts[::3], parts))
    return Skew(
        found.kind or said.kind,
        case.op,
        said.attr,
        found.value or said.value,
        place.tags if place else (),
        place.node.name if place else said.node,
        place.function if place else said.function,
        place.chain if place else (),
        place.paths if place else (),
        place.signatures if place else None,
        case.table.since(members) if members else None,
        case.table.until(members) if members else None,
        found.advice,
        cause,
        text,
    )


def _unknown_op(case: _Case) -> Optional[_Found]:
    what = f"unknown op '{case.op}'"
    if case.known is None:
        return _Found(what, (), advice.custom_op(case.op))
    members, here = case.known.members, case.here
    if here is not None and here in members:
        library = case.known.library(here)
        return _Found(what, members, advice.not_loaded(library))
    earlier = [index for index in members if here is not None and index < here]
    if not earlier:
        return _Found(what, members, advice.newer_op(case.op, case.table, members))
    library = case.known.library(earlier[-1])
    instead = contrib.replacement(case.op, library)
    kind = (
        "renamed_contrib_op"
        if library.startswith("contrib/") and instead and instead.op
        else "removed_op"
    )
    origin = (
        f"op '{case.op}' of tensorflow.{'.'.join(library.split('/')[:2])}"
        if library
        else f"removed op '{case.op}'"
    )
    return _Found(
        origin, members, instead.text if instead else advice.removed(case.table, members), kind
    )


def _unknown_attr(case: _Case) -> Optional[_Found]:
    what = f"unknown attr '{case.said.attr}' of op '{case.op}'"
    if case.known is None:
        return _Found(what, (), advice.custom_op(case.op))
    members = case.known.attr_members(case.said.attr)
    value = plain_value(case.place.node.attr[case.said.attr]) if case.place else None
    newest = case.known.attr(members[-1], case.said.attr) if members else None
    default = newest.default if newest else None
    return _Found(
        what, members, advice.attr(case.op, case.said.attr, value, default, case.table, members)
    )


def _missing_attr(case: _Case) -> Optional[_Found]:
    """Name a skew only if some release has a default for the attr or lacks the attr; otherwise the
    model is malformed.
    """
    if case.known is None:
        return None
    attrs = {
        index: op.attr(case.said.attr)
        for index in case.known.members
        if (op := case.known.definition(index))
    }
    members = [index for index, attr in attrs.items() if attr is None or attr.default is not None]
    if not members or case.here in members:
        return None
    help_ = (
        "the writer of the model left the attr out because it had its default: load it there, or"
        " write the attr into the node"
    )
    return _Found(
        f"attr '{case.said.attr}' of op '{case.op}' is missing, and has no default here",
        members,
        help_,
    )


def _attr_value(case: _Case) -> Optional[_Found]:
    if case.known is None:
        return None
    value, members = case.said.value, []
    for index in case.known.members:
        attr = case.known.attr(index, case.said.attr)
        if attr and attr.allows(value) and not (attr.minimum or 0) > _number(value):
            members.append(index)
    if not members or case.here in members:
        return None
    return _Found(
        f"value {value} of attr '{case.said.attr}' of op '{case.op}'",
        members,
        advice.load_there(case.table, members),
    )


def _number(value: str) -> float:
    return int(value) if value.lstrip("-").isdecimal() else float("inf")


def _unknown_dtype(case: _Case) -> Optional[_Found]:
    """Name a skew only if the model holds such a dtype: a reader may also fail on a number of its
    own making.
    """
    value = case.said.value
    if case.place and not value:
        known = case.table.releases[case.here].dtypes if case.here is not None else ()
        value = min(
            dtype for dtype in dtypes_of(case.place.node.attr.values()) if dtype not in known
        )
    members = case.table.dtypes.get(value, ())
    if (case.model is not None and case.place is None) or (members and case.here in members):
        return None
    unknown = "no release of the table knows it: the file is newer, or damaged"
    return _Found(
        f"unknown dtype {value}",
        members,
        advice.load_there(case.table, members) if members else unknown,
        value=value,
    )


def _missing_kernel(case: _Case) -> Optional[_Found]:
    types = case.said.types
    words = ", ".join(f"{attr}={'/'.join(dtypes)}" for attr, dtypes in sorted(types.items()))
    what = f"no CPU kernel of op '{case.op}'" + (f" for {words}" if words else "")
    if case.known is None:
        return _Found(what, (), advice.custom_op(case.op))
    # Only a process without Python lacks such a kernel, and it lacks the kernel in every release.
    members = [] if case.known.needs_python else advice.with_kernel(case.known, types, case.table)
    return _Found(
        what, members, advice.kernel(case.op, case.known, case.here, case.table, members, types)
    )


def _min_consumer(case: _Case) -> Optional[_Found]:
    wanted = int(case.said.value)
    members = case.having(lambda index: case.table.releases[index].producer >= wanted)
    help_ = (
        advice.load_there(case.table, members) if members else "no release of the table is that new"
    )
    return _Found(
        f"the graph asks for readers of GraphDef version {wanted} or newer", members, help_
    )


def _bad_consumer(case: _Case) -> Optional[_Found]:
    others = case.having(lambda index: str(case.table.releases[index].producer) != case.said.value)
    what = (
        f"the graph says that readers of GraphDef version {case.said.value} get it wrong"
        " (bad_consumers)"
    )
    return _Found(what, (), f"load it in {advice.words(case.table.text(others))}")


def _deprecated(case: _Case) -> Optional[_Found]:
    said = case.said
    members = case.having(lambda index: case.table.releases[index].producer < int(said.value))
    what = f"deprecated op '{case.op}', not for graphs of GraphDef version {said.value} or newer"
    return _Found(what, members, said.advice)


def _changed_inputs(case: _Case) -> Optional[_Found]:
    """Name a skew only if another release has another signature; otherwise the model is
    malformed.
    """
    if case.known is None:
        return None
    mine = case.known.definition(case.here) if case.here is not None else None
    signatures = {
        index: op.signature for index in case.known.members if (op := case.known.definition(index))
    }
    members = [
        index for index, signature in signatures.items() if mine and signature != mine.signature
    ]
    if not members:
        return None
    return _Found(
        f"op '{case.op}' has other inputs in other releases",
        members,
        advice.load_there(case.table, members),
    )


def _op_version(case: _Case) -> Optional[_Found]:
    members = advice.reading_version(case.op, int(case.said.value), case.table) or []
    where = (
        f"load it in {advice.words(case.table.text(members))}, or"
        if members
        else "no release of the table reads it:"
    )
    older = (
        "export it with an older serialization version (of JAX:"
        " jax.config.jax_serialization_version)"
    )
    return _Found(f"version {case.said.value} of op '{case.op}'", members, f"{where} {older}")


def _forward_window(case: _Case) -> Optional[_Found]:
    producer = int(case.said.value)
    members = case.having(lambda index: case.table.releases[index].producer >= producer)
    return _Found(
        f"the graph was written by a release of GraphDef version {producer}",
        members,
        "load it there",
    )


_READ: dict[str, Callable[[_Case], Optional[_Found]]] = {
    "unknown_op": _unknown_op,
    "unknown_attr": _unknown_attr,
    "missing_attr": _missing_attr,
    "attr_value": _attr_value,
    "unknown_dtype": _unknown_dtype,
    "missing_kernel": _missing_kernel,
    "min_consumer": _min_consumer,
    "bad_consumer": _bad_consumer,
    "deprecated_op": _deprecated,
    "changed_inputs": _changed_inputs,
    "op_version": _op_version,
    "forward_window": _forward_window,
    "newer_checkpoint": lambda case: _Found(
        "the checkpoint asks for a newer reader",
        (),
        "load it in the release that wrote it, or newer",
    ),
}


def dtypes_of(values: Iterable[schema.AttrValue]) -> Iterator[str]:
    """Return every dtype that is, or is listed in, one of the values."""
    for value in values:
        if value.WhichOneof("value") == "type":
            yield dtype_name(value.type)
        for number in value.list.type:
            yield dtype_name(number)
