"""Parse the errors of TensorFlow 1.4 to 2.21 consumers that are too old or too new for a model.

Every pattern comes from a real error: the texts, with their versions, are in ``tests/data/skew``. A
text tells the kind of skew and some of op, attr, node and function. The releases that have the op
and its place in the model are looked up afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Optional, Union

from reference_impl.errors import DtypeError
from reference_impl.format.values.dtypes import by_name, by_number

MAX_TEXT = 20_000  # characters examined: a model can make its reader print anything


class Complaint(NamedTuple):
    """A parsed error text.

    Attributes:
      kind: one of :data:`savedmodel_tools.skew.naming.KINDS`.
      op, attr: what is unknown, or "".
      value: the value that is not allowed, the unknown dtype, the version asked for; "" where the
        text does not tell.
      node, function: the place, as far as the text tells; the loader may have changed the names.
      types: attr -> dtypes of a missing kernel.
      advice: the advice in the text itself.
      guess: whether the text alone is not enough: the model must hold such a node.
    """

    kind: str
    op: str = ""
    attr: str = ""
    value: str = ""
    node: str = ""
    function: str = ""
    types: Mapping[str, tuple[str, ...]] = {}
    advice: str = ""
    guess: bool = False


def complaints(error_class: Optional[str], message: str) -> Iterator[Complaint]:
    """Return the complaints in a consumer's message, the most specific first; empty if it contains
    no known text.
    """
    message = message[:MAX_TEXT]
    for pattern, read in _PATTERNS:
        found = pattern.search(message)
        if found:
            fields: dict[str, Any] = found.groupdict()
            yield _placed(
                Complaint(read, **fields) if isinstance(read, str) else read(found, message),
                message,
            )
    found = _KEY_ERROR.search(message)
    if found and (error_class or "").rpartition(".")[2] == "KeyError":
        yield Complaint("unknown_op", op=found[1], guess=True)


# Where
# --------------------------------------------------------------------------------------------------

_FUNCTION = re.compile(r"\{\{function_node ([^}\s]+)\}\}")
_NODES = (
    re.compile(r"NodeDef: (?:\{\{function_node [^}]+\}\})?\{\{node ([^}\s]+)\}\}"),
    re.compile(r"NodeDef: ([^\s={]+) = "),
    re.compile(r"used by (?:\{\{function_node [^}]+\}\})?\{\{node ([^}\s]+)\}\}"),
    re.compile(r"used by node (\S+) "),
    re.compile(r"\[\[Node: ([^\s=]+) = "),
    re.compile(r"node '([^']+)' of function"),
    re.compile(r"\{\{node ([^}\s]+)\}\}"),
    re.compile(r"\[\[([^\[\]{}\s]+)\]\]"),
)


def _placed(said: Complaint, message: str) -> Complaint:
    """Add node and function, as far as the text tells.

    The first matching pattern wins; the most certain come first.
    """
    node = said.node or next(
        (found[1] for pattern in _NODES if (found := pattern.search(message))), ""
    )
    # Outer calls come first; the op is in the innermost.
    functions = _FUNCTION.findall(message)
    return said._replace(node=node, function=functions[-1] if functions else "")


def _dtype(text: str) -> str:
    """Return a dtype's name from ``DT_HALF``, ``half``, ``29``."""
    try:
        if text.isdecimal():
            return by_number(int(text)).name
        return by_name(_CPP_NAMES.get(text, text)).name
    except DtypeError:
        return f"number {text}" if text.isdecimal() else text


_CPP_NAMES = {"float": "float32", "double": "float64", "half": "float16"}

# What
# --------------------------------------------------------------------------------------------------

Reader = Callable[["re.Match[str]", str], Complaint]


def _value(found: re.Match[str], message: str) -> Complaint:
    op = _OP.search(message, found.end())
    return Complaint(
        "attr_value", op=op[1] if op else "", attr=found["attr"], value=_dtype(found["value"])
    )


def _unknown_dtype(found: re.Match[str], message: str) -> Complaint:
    op = _OP.search(message)
    attr = _FOR_ATTR.match(message, found.end())
    return Complaint(
        "unknown_dtype",
        op=op[1] if op else "",
        attr=attr[1] if attr else "",
        value=_dtype(found["dtype"]),
    )


def _kernel(found: re.Match[str], message: str) -> Complaint:
    return Complaint(
        "missing_kernel", op=found["op"], types=_types(found["op"], message, found.end())
    )


def _types(op: str, message: str, start: int) -> dict[str, tuple[str, ...]]:
    """Return the requested dtypes: in brackets after the sentence, or (up to 1.12) in the node's
    own text at the end.
    """
    end = message.find("Registered", start)
    asked = message[start:end] if end >= 0 else message[start:]
    if "=" not in asked:
        node = re.search(rf"= {re.escape(op)}\[(.*)\]\(", message[start:])
        asked = node[1] if node else ""
    found = {}
    for attr, dtypes in re.findall(r"(\w+)=(DT_\w+|\[(?:DT_\w+(?:, )?)+\])", asked):
        if not attr.startswith("_"):
            found[attr] = tuple(_dtype(dtype) for dtype in re.findall(r"DT_\w+", dtypes))
    return found


def _min_consumer(found: re.Match[str], message: str) -> Complaint:
    return Complaint(
        "newer_checkpoint" if found["what"] == "Checkpoint" else "min_consumer",
        value=found["version"],
    )


def _op_version(found: re.Match[str], message: str) -> Complaint:
    return Complaint("op_version", op=found["op"], attr="version", value=found["version"])


_NAME = r"[A-Za-z_][\w.>/-]*"
_OP = re.compile(r"Op<name=([^;>]+(?:>[^;]+)?);")
_FOR_ATTR = re.compile(r"\s*for attr '([^']+)'")
_KEY_ERROR = re.compile(rf"(?:^|: )'({_NAME})'$")
_OF_OP = r"Op<name=(?P<op>[^;]+);"
# Text -> the kind of skew, whose groups are fields of `Complaint`, or what reads the text.
_PATTERNS: tuple[tuple[re.Pattern[str], Union[str, Reader]], ...] = (
    (re.compile(r"Op type not registered '(?P<op>[^']+)'"), "unknown_op"),
    (re.compile(r"No op named (?P<op>\S+) in defined operations"), "unknown_op"),
    (re.compile(r"nothing describes op '(?P<op>[^']+)'"), "unknown_op"),
    (re.compile(rf"NodeDef mentions attr '(?P<attr>[^']+)' not in {_OF_OP}"), "unknown_attr"),
    (re.compile(rf"NodeDef missing attrs? '(?P<attr>[^']+)'.*? from {_OF_OP}"), "missing_attr"),
    (re.compile(r"the (?P<op>\S+) node has no attribute '(?P<attr>[^']+)'"), "missing_attr"),
    (re.compile(r"No attr named '(?P<attr>[^']+)' in NodeDef"), "missing_attr"),
    (re.compile(r"type attr not found: (?P<attr>\S+)"), "missing_attr"),
    (
        re.compile(
            r"Expected one attr with name '(?P<attr>[^']+)' in name: \"(?P<node>[^\"]+)\"\s+op:"
            r" \"(?P<op>[^\"]+)\""
        ),
        "missing_attr",
    ),
    (
        re.compile(
            r"Value for attr '(?P<attr>[^']+)' of \"?(?P<value>[^\"\n]{1,200}?)\"? is not in the"
            r" list of allowed values"
        ),
        _value,
    ),
    (
        re.compile(
            r"Value for attr '(?P<attr>[^']+)' of (?P<value>-?\d{1,18}) must be at least minimum"
        ),
        _value,
    ),
    (re.compile(r"AttrValue has invalid DataType enum: (?P<dtype>\d{1,9})"), _unknown_dtype),
    (
        re.compile(r"incompatible with expected unknown dtype enum \((?P<dtype>\d{1,9})\)"),
        _unknown_dtype,
    ),
    (
        re.compile(
            r"Cannot convert (?:the argument `type_value`: )?(?P<dtype>\d{1,9}) to a (?:TensorFlow"
            r" DType|dtype)"
        ),
        _unknown_dtype,
    ),
    (
        re.compile(r"(?:TensorFlow \S+ has no dtype|no dtype has the number) (?P<dtype>\w+)"),
        _unknown_dtype,
    ),
    (
        re.compile(
            r"KernelDef 'op: \"(?P<op>[^\"]+)\".*has constraint on attr '(?P<attr>\w+)' that has"
            r" value '.*' that does not have"
        ),
        "unknown_dtype",
    ),
    (re.compile(r"No OpKernel was registered to support Op '(?P<op>[^']+)'"), _kernel),
    (
        re.compile(
            r"(?P<what>GraphDef|Checkpoint) min consumer version (?P<version>\d{1,9}) above current"
            r" version"
        ),
        _min_consumer,
    ),
    (
        re.compile(r"(?:GraphDef|Checkpoint) disallows consumer version (?P<value>\d{1,9})"),
        "bad_consumer",
    ),
    (
        re.compile(
            r"Op (?P<op>\S+) is not available in GraphDef version \d+\. "
            r"It has been removed in version (?P<value>\d{1,9})\. (?P<advice>[^\n]*?)\.?(?="
            r" \(Check|\n|$)"
        ),
        "deprecated_op",
    ),
    (
        re.compile(
            r"NodeDef expected inputs '[^']*' do not match (?P<value>\d{1,9}) inputs specified;"
            rf" {_OF_OP}"
        ),
        "changed_inputs",
    ),
    (re.compile(r"Expected input\[\d{1,9}\] == '[^']*' to be a control input"), "changed_inputs"),
    (re.compile(r"Attempt to access beyond input size: \d{1,9}"), "changed_inputs"),
    (
        re.compile(r"Input \d{1,9} of node (?P<node>\S+) does not exist\. Node only has"),
        "changed_inputs",
    ),
    (
        re.compile(
            r"Input \d{1,9} of node (?P<node>\S+) was passed \w+ from \S+ incompatible with"
            r" expected (?!unknown)\w+"
        ),
        "changed_inputs",
    ),
    (
        re.compile(
            r"(?P<op>XlaCallModule)Op with version (?P<version>\d{1,9}) is not supported by this"
            r" build"
        ),
        _op_version,
    ),
    (
        re.compile(r"produced by a binary built when GraphDef version was (?P<value>\d{1,9})"),
        "forward_window",
    ),
)
