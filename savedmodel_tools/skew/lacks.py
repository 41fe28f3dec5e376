"""Find what one release lacks for one use of an op.

That is the op, an attr, an attr value, a dtype, a kernel, or a form with that number of inputs.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, Optional

from reference_impl.format import schema
from reference_impl.graph.edges import data_inputs
from savedmodel_tools.skew import advice, arguments
from savedmodel_tools.skew.history import History, OpHistory
from savedmodel_tools.skew.naming import dtypes_of
from savedmodel_tools.skew.protos import plain_value
from savedmodel_tools.skew.records import Op, kernel_values


class Lack(NamedTuple):
    """Something that a release does not have.

    ``kind`` is one of :data:`savedmodel_tools.skew.naming.KINDS`; ``members`` are the releases that
    have it; ``what`` describes it.
    """

    kind: str
    op: str
    attr: str
    value: str
    members: tuple[int, ...]
    what: str


class Use:
    """The uses of one op with the same attrs: a release supports all or none of them."""

    def __init__(self, node: schema.NodeDef, history_: Optional[OpHistory]) -> None:
        self.node, self.history = node, history_
        # In a function `node:output` may stand for a list of tensors.
        self.lists = any(re.fullmatch(r"[^:]+:[^:]*[^:\d][^:]*", text) for text in node.input)
        self.attrs = {
            name: value for name, value in sorted(node.attr.items()) if not name.startswith("_")
        }
        self.types = {
            name: found
            for name, value in self.attrs.items()
            if (found := tuple(dtypes_of([value])))
        }
        self.dtypes = set(itertools.chain.from_iterable(self.types.values()))


def types_it(use: Use, lack: Lack, index: int) -> bool:
    """Return whether the node's inputs and outputs cannot be typed without the lacking part.

    Functions are checked for that, too.
    """
    op = use.history.definition(index) if use.history else None
    return (
        lack.kind == "missing_attr"
        and op is not None
        and bool(re.search(rf"\b{re.escape(lack.attr)}\b", op.signature))
    )


def versions(versions: schema.VersionDef, table: History, index: int) -> Iterator[Lack]:
    """Yield what the GraphDef versions refuse."""
    releases = table.releases
    if releases[index].producer < versions.min_consumer:
        members = tuple(
            i for i, release in enumerate(releases) if release.producer >= versions.min_consumer
        )
        yield Lack(
            "min_consumer",
            "",
            "",
            str(versions.min_consumer),
            members,
            f"min_consumer {versions.min_consumer}",
        )
    if releases[index].producer in versions.bad_consumers:
        members = tuple(
            i
            for i, release in enumerate(releases)
            if release.producer not in versions.bad_consumers
        )
        yield Lack(
            "bad_consumer",
            "",
            "",
            str(releases[index].producer),
            members,
            f"bad_consumer {releases[index].producer}",
        )


def definition(
    use: Use,
    table: History,
    index: int,
    producer: int,
    excused: Optional[Callable[[str], bool]] = None,
) -> Iterator[Lack]:
    """Yield the parts of the op's definition that a release lacks; for an unknown op, only the op
    itself.
    """
    name, known = use.node.op, use.history
    if known is None:
        yield Lack(
            "unknown_op",
            name,
            "",
            "",
            (),
            f"op '{name}', which no release has: {advice.custom_op(name)}",
        )
        return
    op = known.definition(index)
    if op is None:
        yield Lack("unknown_op", name, "", "", known.members, f"op '{name}'")
    elif op.library:
        core = tuple(member for member in known.members if not known.library(member))
        yield Lack(
            "unknown_op", name, "", "", core, f"op '{name}' ({advice.not_loaded(op.library)})"
        )
    else:
        if op.deprecated and 0 < op.deprecated[0] <= producer:
            yield Lack(
                "deprecated_op",
                name,
                "",
                str(op.deprecated[0]),
                (),
                f"op '{name}', deprecated: {op.deprecated[1]}",
            )
        yield from _attrs(use, known, op, table, index, excused)
        yield from _inputs(use, known, op)


def _attrs(
    use: Use,
    known: OpHistory,
    op: Op,
    table: History,
    index: int,
    excused: Optional[Callable[[str], bool]],
) -> Iterator[Lack]:
    """Yield dtypes, attrs and values that the release does not know, and defaults that it lacks."""
    name = op.name
    for dtype in sorted(use.dtypes):
        members = table.dtypes.get(dtype, ())
        if index not in members:
            yield Lack("unknown_dtype", name, "", dtype, members, f"dtype {dtype}")
    for attr_name, value in use.attrs.items():
        attr = op.attr(attr_name)
        if attr is None:
            if _is_ignored(known, attr_name, value, table, index) or (
                excused is not None and excused(attr_name)
            ):
                continue
            members = known.attr_members(attr_name)
            yield Lack(
                "unknown_attr", name, attr_name, "", members, f"attr '{attr_name}' of op '{name}'"
            )
            continue
        for item in _values(value) if attr.allowed is not None else ():
            if item not in (attr.allowed or ()):
                forms = {
                    member: known.attr(member, attr_name)
                    for member in known.attr_members(attr_name)
                }
                members = tuple(
                    member for member, form in forms.items() if form and form.allows(item)
                )
                yield Lack(
                    "attr_value",
                    name,
                    attr_name,
                    item,
                    members,
                    f"{attr_name}={item} of op '{name}'",
                )
    for attr in op.attrs:
        if attr.default is None and attr.name not in use.attrs:
            members = tuple(
                m
                for m in known.members
                if not ((form := known.attr(m, attr.name)) and form.default is None)
            )
            yield Lack(
                "missing_attr",
                name,
                attr.name,
                "",
                members,
                f"a default for attr '{attr.name}' of op '{name}'",
            )


def version_of_op(use: Use, table: History, index: int) -> Optional[Lack]:
    """Yield a version of an op's own format that the release cannot read."""
    name, version = use.node.op, use.node.attr["version"].i if "version" in use.node.attr else 0
    members = advice.reading_version(name, version, table)
    first = next(iter(advice.OP_VERSIONS.get(name, ())), None)
    if members is None or first is None or index in members or index < (table.index(first) or 0):
        return None
    return Lack(
        "op_version",
        name,
        "version",
        str(version),
        tuple(members),
        f"version {version} of op '{name}'",
    )


def _inputs(use: Use, known: OpHistory, op: Op) -> Iterator[Lack]:
    """Yield a signature of the op with as many inputs as the node has, if the release lacks it."""
    given = len(data_inputs(use.node))
    if use.lists or _input_count(op, use) in (given, None):
        return
    forms = {member: found for member in known.members if (found := known.definition(member))}
    members = tuple(member for member, form in forms.items() if _input_count(form, use) == given)
    yield Lack(
        "changed_inputs",
        op.name,
        "",
        str(given),
        members,
        f"op '{op.name}' with {given} inputs ({op.signature} here)",
    )


def _input_count(op: Op, use: Use) -> Optional[int]:
    """Return how many tensors a node with these attrs takes; None when the attrs do not tell."""
    sizes = {
        name: plain_value(value)
        for name, value in use.attrs.items()
        if value.WhichOneof("value") in ("i", "list")
    }
    found = arguments.inputs(op, sizes)
    return None if found is None else found.total


def _is_ignored(
    known: OpHistory, attr_name: str, value: schema.AttrValue, table: History, index: int
) -> bool:
    """Return whether the release ignores the attr without changing any answer: the attr is idle or
    has its default.
    """
    members = known.attr_members(attr_name)
    attr = known.attr(members[-1], attr_name) if members else None
    idle = (known.name, attr_name) in advice.IDLE_ATTRS or (
        attr is not None and plain_value(value) == attr.default
    )
    return idle and index >= (table.index(advice.IGNORES_UNKNOWN_ATTRS) or 0)


def _values(value: schema.AttrValue) -> Iterator[str]:
    """Return the values to compare with a list of allowed values; none for an attr that a function
    passes on (legacy Defun).
    """
    if value.WhichOneof("value") == "placeholder":
        return
    plain = plain_value(value)
    for item in plain if isinstance(plain, list) else [plain]:
        if isinstance(item, str):
            yield item


def kernel(use: Use, table: History, index: int) -> Optional[Lack]:
    """Yield the kernel that a release lacks.

    Nothing where the table lists no kernel for any release (Python's, a TPU's) or does not tell.
    """
    known = use.history
    if known is None or not table.releases[index].has_kernels:
        return None
    types = {**use.types, **_constrained(use)}
    if advice.has_kernel(known, index, types):
        return None
    members = tuple(advice.with_kernel(known, types, table))
    if not any(known.products(member) for member in known.members):
        return None
    op = use.node.op
    words = ", ".join(f"{attr}={'/'.join(dtypes)}" for attr, dtypes in sorted(types.items()))
    return Lack(
        "missing_kernel",
        op,
        "",
        words,
        members,
        f"a CPU kernel of op '{op}'" + (f" for {words}" if words else ""),
    )


def _constrained(use: Use) -> dict[str, tuple[str, ...]]:
    """Return the values of the non-dtype attrs that some kernel constrains (a policy, a data
    format).
    """
    names = use.history.constrained - set(use.types) if use.history is not None else frozenset()
    return {
        name: kernel_values(plain_value(use.attrs[name])) for name in sorted(names & set(use.attrs))
    }
