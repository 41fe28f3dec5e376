"""The specification in `docs/format/spec/`: fills in its generated regions, and finds what is
wrong with its constraints.

A page has two kinds of generated regions. Each ends with ``<!-- end -->``::

    <!-- fields: BundleEntryProto -->               the fields of a message, from our .proto files
    <!-- bytes: half_plus_two/model/F 0 36 -->      bytes of a file below fixtures_v1

A constraint is a list item that begins with its id and states one rule for one role::

    - **SM-TABLE-4** A reader MUST compare the checksum of each block that it uses.

Its section lists artifacts under *Shown by*, each line with the ids that it shows, and modules and
tests under *Read by*.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from docs.markdown import table
from reference_impl.format import schema
from reference_impl.format.schema import is_repeated
from savedmodel_kit.hostile.catalogue import hostile_files

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "format" / "spec"
CITING = ("reference_impl", "savedmodel_kit")  # packages whose code may cite ids

_REGION = re.compile(r"<!-- (fields|bytes): ([^>]*?) -->\n.*?<!-- end -->", re.DOTALL)
_ID = re.compile(r"SM-[A-Z]+-[1-9]\d*\Z")
_ANY_ID = re.compile(r"\bSM-[\w-]*\w")
_CONSTRAINT = re.compile(r"^- \*\*([^*]+)\*\* (.*?)(?=\n- |\n\n|\Z)", re.MULTILINE | re.DOTALL)
_MUST = re.compile(r"\bMUST\b")
_ROLE = re.compile(r"\b[Aa]n? (?:reader|writer|verifier|evaluator)\b")
_ITEM = re.compile(r"^- (.*?)(?=\n- |\n\n|\Z)", re.MULTILINE | re.DOTALL)
_ARTIFACT = re.compile(r"(fixture|case|attack|test|hostile) `([^`]+)`")
_PATH = re.compile(r"`([\w/]+/[\w./]*)`")
_TYPES = {
    getattr(FieldDescriptor, name): name[len("TYPE_") :].lower()
    for name in dir(FieldDescriptor)
    if name.startswith("TYPE_")
}
_BYTES_PER_LINE = 16
# The folders of the fixtures, and what the folder of each fixture has.
_FIXTURES = {"fixtures_v1": "model", "fixtures_v2": "case.py"}


class Constraint(NamedTuple):
    """One rule of the specification."""

    page: str
    section: str
    id: str
    text: str


def pages() -> list[Path]:
    """Return the pages of the specification in their order."""
    return sorted(FOLDER.glob("*.md"))


def filled(text: str) -> str:
    """Return a page with its generated regions made anew.

    Raises AttributeError for a message that does not exist, FileNotFoundError for a file.
    """
    return _REGION.sub(_region, text)


def _region(match: re.Match[str]) -> str:
    kind, argument = match.groups()
    content = _fields(argument) if kind == "fields" else _bytes(argument)
    return f"<!-- {kind}: {argument} -->\n{content}\n<!-- end -->"


def _fields(name: str) -> str:
    """Return the table of the fields of a message, such as ``MetaGraphDef.MetaInfoDef``."""
    cls = functools.reduce(getattr, name.split("."), schema)
    descriptor: Descriptor = cls.DESCRIPTOR  # type: ignore[attr-defined]
    rows = [
        (str(field.number), f"`{field.name}`", _type(field), _presence(field))
        for field in sorted(descriptor.fields, key=lambda field: field.number)
    ]
    return f"`{name}`:\n\n" + table(("number", "field", "type", "presence"), rows)


def _type(field: FieldDescriptor) -> str:
    """Return the type of a field as a .proto file states it."""
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        key, value = message.fields_by_name["key"], message.fields_by_name["value"]
        return f"map<{_type(key)}, {_type(value)}>"
    if message is not None:
        return message.full_name.removeprefix("tensorflow.")
    if field.enum_type is not None:
        return field.enum_type.full_name.removeprefix("tensorflow.")
    return _TYPES[field.type]


def _presence(field: FieldDescriptor) -> str:
    if is_repeated(field):
        return "repeated"
    oneof = field.containing_oneof
    return f"one of `{oneof.name}`" if oneof is not None else ""


def _bytes(argument: str) -> str:
    """Return a hex dump of part of a file: its path below fixtures_v1, first and last offset."""
    name, start, end = argument.split()
    data = (ROOT / "fixtures_v1" / name).read_bytes()[int(start) : int(end)]
    rows = (data[at : at + _BYTES_PER_LINE] for at in range(0, len(data), _BYTES_PER_LINE))
    lines = (
        f"{int(start) + _BYTES_PER_LINE * number:08x}  {row.hex(' '):<47}  {_text(row)}"
        for number, row in enumerate(rows)
    )
    return f"`fixtures_v1/{name}`:\n\n```\n" + "\n".join(lines) + "\n```"


def _text(row: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)


def stale() -> list[Path]:
    """Return the pages whose generated regions are not what would be written."""
    return [page for page in pages() if filled(page.read_text("utf-8")) != page.read_text("utf-8")]


def write() -> None:
    """Fill in the generated regions of every page."""
    for page in stale():
        page.write_text(filled(page.read_text("utf-8")), "utf-8")


def constraints_of_pages(texts: Mapping[str, str]) -> list[Constraint]:
    """Return the constraints of all pages, given their texts by name."""
    found: list[Constraint] = []
    for name, text in texts.items():
        found += constraints(name, text)
    return found


def constraints(page: str, text: str) -> Iterator[Constraint]:
    """Yield the constraints of a page."""
    for section in _sections(text):
        for match in _CONSTRAINT.finditer(_under(section, "Constraints")):
            yield Constraint(page, section, match[1], " ".join(match[2].split()))


def _sections(text: str) -> list[str]:
    """Return the items of a page: each begins with a heading of the second level."""
    return re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]


def _under(section: str, heading: str) -> str:
    """Return the text below a heading of the third level, or nothing without one."""
    match = re.search(rf"^### {heading}\n(.*?)(?=^### |\Z)", section, re.MULTILINE | re.DOTALL)
    return match[1] if match else ""


def faults() -> list[str]:
    """Return what is wrong with the specification and with the code that cites it."""
    texts = {page.name: page.read_text("utf-8") for page in pages()}
    found = constraints_of_pages(texts)
    return (
        faults_of_pages(texts)
        + faults_of_citations({item.id for item in found})
        + faults_of_artifacts(artifacts_of(texts))
    )


def faults_of_pages(texts: dict[str, str]) -> list[str]:
    """Return what is wrong with pages, given their texts by name."""
    found = constraints_of_pages(texts)
    ids = Counter(item.id for item in found)
    out = [f"{name}: two constraints have the id {name}" for name, n in ids.items() if n > 1]
    for item in found:
        out += [f"{item.page}: {item.id}: {reason}" for reason in _faults_of_constraint(item)]
    for name, text in texts.items():
        unknown = sorted(set(_ANY_ID.findall(text)) - ids.keys())
        out += [f"{name}: the id {unknown_id} has no constraint" for unknown_id in unknown]
        for section in _sections(text):
            out += [f"{name}: {reason}" for reason in _faults_of_section(section)]
    return out


def artifacts_of(texts: dict[str, str]) -> dict[tuple[str, str], set[str]]:
    """Return the constraints that each artifact shows: ``("fixture", "pbtxt")`` -> ids."""
    found: dict[tuple[str, str], set[str]] = {}
    for text in texts.values():
        for section in _sections(text):
            for line in _ITEM.findall(_under(section, "Shown by")):
                for artifact in _ARTIFACT.findall(line):
                    found.setdefault(artifact, set()).update(_ANY_ID.findall(line))
    return found


def _fixtures() -> Iterator[tuple[str, str]]:
    """Yield the folder and the name of every fixture."""
    for root, mark in _FIXTURES.items():
        for path in sorted((ROOT / root).glob(f"*/{mark}")):
            yield root, path.parent.name


def faults_of_artifacts(shown: dict[tuple[str, str], set[str]]) -> list[str]:
    """Return the artifacts of the kit that no page names as an artifact of a constraint."""
    out = [
        f"{root}/{name} shows no constraint"
        for root, name in _fixtures()
        if not shown.get(("fixture", name))
    ]
    for made in hostile_files().values():
        ids = shown.get(("hostile", made.name), set())
        if ids != {made.rule}:
            listed = ", ".join(sorted(ids)) or "no constraint"
            out.append(f"hostile {made.name} breaks {made.rule}, and the pages name {listed}")
    return out


def _faults_of_constraint(item: Constraint) -> Iterator[str]:
    if not _ID.match(item.id):
        yield "the id is malformed"
    if len(_ROLE.findall(item.text)) != 1:
        yield "a constraint names one role once: reader, writer, verifier or evaluator"
    shown = [
        line
        for line in _ITEM.findall(_under(item.section, "Shown by"))
        if item.id in _ANY_ID.findall(line)
    ]
    if _MUST.search(item.text) and not any(map(_ARTIFACT.search, shown)):
        yield "a MUST without an artifact"


def _faults_of_section(section: str) -> Iterator[str]:
    title = section.splitlines()[0].removeprefix("## ")
    for line in _ITEM.findall(_under(section, "Shown by")):
        if not _ANY_ID.search(line):
            yield f"{title}: an artifact without a constraint: {line}"
    for kind, name in _ARTIFACT.findall(_under(section, "Shown by")):
        if not _exists(kind, name):
            yield f"{title}: there is no {kind} {name}"
    read_by = _PATH.findall(_under(section, "Read by"))
    if _under(section, "Constraints") and not read_by:
        yield f"{title}: no module or test reads it"
    for path in read_by:
        if not (ROOT / path).exists():
            yield f"{title}: {path} does not exist"


def _exists(kind: str, name: str) -> bool:
    if kind == "fixture":
        return any((ROOT / root / name / mark).exists() for root, mark in _FIXTURES.items())
    if kind == "case":
        return (ROOT / "compat_matrix" / "cases" / f"{name}.py").is_file()
    if kind == "attack":
        return name in _functions_of_folder("property_tests/attacks")
    if kind == "hostile":
        return name in hostile_files()
    file, _, function = name.partition("::")
    return (ROOT / file).is_file() and function in _functions(ROOT / file)


@functools.cache
def _functions_of_folder(folder: str) -> frozenset[str]:
    modules = (ROOT / folder).glob("*.py")
    return frozenset().union(*map(_functions, modules))


@functools.cache
def _functions(file: Path) -> frozenset[str]:
    """Return the names of the functions that a module defines."""
    body = ast.parse(file.read_text("utf-8")).body
    return frozenset(node.name for node in body if isinstance(node, ast.FunctionDef))


def faults_of_citations(ids: set[str]) -> list[str]:
    """Return the ids that code cites and the specification does not have."""
    out: list[str] = []
    files = itertools.chain.from_iterable((ROOT / package).rglob("*.py") for package in CITING)
    for path in sorted(files):
        unknown = sorted(set(_ANY_ID.findall(path.read_text("utf-8"))) - ids)
        place = path.relative_to(ROOT)
        out += [f"{place}: the id {unknown_id} has no constraint" for unknown_id in unknown]
    return out
