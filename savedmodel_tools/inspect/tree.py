"""The readable form of ``savedmodel-compat inspect``: one tree per MetaGraph, made for 80
columns.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Union

from reference_impl.format.container.files import shown
from reference_impl.format.container.layout import tags_text
from reference_impl.format.names import DICT, GENERIC, LIST, SIGNATURES, SIGNATURES_CHILD, TUPLE
from reference_impl.format.values.shapes import shape_text
from reference_impl.safety.effect import Effect
from reference_impl.safety.op_effects import UNKNOWN
from reference_impl.views.saved_model import SavedModelInfo
from reference_impl.views.types import (
    Child,
    Function,
    LibraryFunction,
    MetaGraph,
    ObjectNode,
    Program,
    Signature,
    Variable,
)
from savedmodel_common.printable import counted
from savedmodel_tools.inspect.outline import Branch, Line, Part, line
from savedmodel_tools.inspect.printing import write

_MANY = 20  # entries of a section before it is abbreviated
_TREE = 40  # objects shown
_BREADTH = 12  # children of one object shown
_DEPTH = 6
_DEEPEST = 60  # also without abbreviations: each level takes columns
_BOUND = 2  # captures of one trace shown by name
_TRACES = 2
_LARGE = 100_000  # bytes from which a constant is worth a line
_OPS = 40

_CONTAINERS = {
    GENERIC: "object",
    LIST: "list",
    TUPLE: "tuple",
    DICT: "dict",
    SIGNATURES: "signatures",
}

_CAPTURE = re.compile(r"\.capture_\d+$|^\(node \d+\)$")
_FUNCTIONS = ("function", "bare_concrete_function")

_NAMES = 20  # ops of other libraries in one line
_STARTS = 2  # what gets there, shown by name


def show(
    info: SavedModelInfo, sections: Collection[str], full: bool, name: str | None = None
) -> None:
    """Print what `inspect` found, colours and wrapping only on a terminal; ``name``: what the user
    calls the model.
    """
    page: list[Union[Line, Branch]] = list(_head(info, shown(info.path) if name is None else name))
    for graph in info.meta_graphs:
        page += [line(), _Page(graph, full).tree(sections)]
    if info.problems:
        page.append(line())
        page += [line(("problem: ", "bold red"), problem) for problem in info.problems]
    write(page)


def _size(count: int | None) -> str:
    """``1.5 MB``; sizes are decimal as on disks."""
    if count is None:
        return "? B"
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"


def _head(info: SavedModelInfo, name: str) -> Iterable[Line]:
    yield line((name, "bold"))
    facts = [info.format, _size(info.size)]
    if info.checkpoint:
        stored = info.checkpoint
        facts.append(
            f"checkpoint of {counted(stored.tensors, 'tensor')} ({_size(stored.size)},"
            f" {counted(stored.shards, 'shard')})"
        )
    else:
        facts.append("no checkpoint")
    if info.fingerprint:
        facts.append(
            f"fingerprint {info.fingerprint['uuid'] or info.fingerprint['saved_model_checksum']}"
        )
    if info.debug_info:
        facts.append(f"debug info ({_size(info.debug_info.size)})")
    yield line((", ".join(facts), "dim"))
    for file in info.extra:
        yield line((f"extra file {file.path} ({_size(file.size)})", "dim"))


class _Page:
    """One MetaGraph as a tree."""

    def __init__(self, graph: MetaGraph, full: bool):
        self.graph = graph
        self.full = full

    def tree(self, sections: Collection[str]) -> Branch:
        graph = self.graph
        produced = f"TensorFlow {graph.tensorflow_version or '?'}, GraphDef {graph.producer}"
        root = Branch(line("MetaGraph ", (tags_text(graph.tags), "bold cyan"), f"  {produced}"))
        parts: dict[str, Callable[[Branch], None]] = {
            "signatures": self.signatures,
            "objects": self.objects,
            "functions": self.functions,
            "variables": self.variables,
            "assets": self.assets,
            "init": self.init,
            "effects": self.effects,
            "programs": self.programs,
            "collections": self.collections,
            "sizes": self.sizes,
            "ops": self.ops,
        }
        for name, part in parts.items():
            if name in sections:
                part(root)
        return root

    def _few(
        self,
        items: Sequence[Any],
        limit: int,
        branch: Branch,
        what: str,
        add: Callable[[Any], object],
    ) -> None:
        """Add all items, or the first ``limit`` of them and how many there are more."""
        shown = items if self.full or len(items) <= limit + 1 else items[:limit]
        for item in shown:
            add(item)
        if len(shown) < len(items):
            branch.add(line((f"… {len(items) - len(shown)} more {what} (--full)", "dim")))

    def signatures(self, root: Branch) -> None:
        branch = root.add(line(("Signatures", "bold"), "" if self.graph.signatures else " none"))
        self._few(
            self.graph.signatures,
            _MANY,
            branch,
            "signatures",
            lambda item: self._signature(branch, item),
        )

    def _signature(self, branch: Branch, signature: Signature) -> None:
        entry = branch.add(
            line(
                (signature.key, "bold green"),
                (f"  {signature.method_name}", "dim"),
                "" if signature.loads else "  (not in the object graph)",
            )
        )
        for arrow, arguments in (("in  ", signature.inputs), ("out ", signature.outputs)):
            for item in arguments:
                kind = item.type_spec or f"{item.dtype}{shape_text(item.shape)}"
                kind = f"Sparse({kind})" if item.kind == "sparse" else kind
                default = f" = {item.default}" if item.default else ""
                tensors = " ".join(slot.tensor for slot in item.tensors)
                entry.add(
                    line(
                        (arrow, "dim"),
                        (item.name, "cyan"),
                        f": {kind}{default}  ",
                        (tensors, "dim"),
                    )
                )

    def objects(self, root: Branch) -> None:
        nodes = self.graph.objects
        if not nodes:
            return
        branch = root.add(line(("Object tree", "bold"), f"  {counted(len(nodes), 'node')}"))
        first = _first_parents(nodes)
        budget = len(nodes) if self.full else _TREE
        pending: deque[tuple[Branch, int, int]] = deque([(branch, 0, 0)])
        while pending:
            parent, number, depth = pending.popleft()
            children = [
                child for child in nodes[number].children if self._shows(nodes, number, child)
            ]
            limit = max(min(budget, _BREADTH), 0)
            if depth >= (_DEEPEST if self.full else _DEPTH):
                limit = 0
            elif self.full or len(children) == limit + 1 > 1:
                limit = len(children)
            shown = children[:limit]
            budget -= len(shown)
            for child in shown:
                node = nodes[child.id]
                if first.get(child.id) == (number, child.name):
                    entry = parent.add(line((child.name, "cyan"), ": ", *self._kind(node)))
                    pending.append((entry, child.id, depth + 1))
                else:
                    parent.add(line((child.name, "cyan"), " → ", (node.path or "(root)", "dim")))
            if len(shown) < len(children):
                more = "--json" if self.full else "--full"
                parent.add(line((f"… {len(children) - len(shown)} more ({more})", "dim")))

    def _shows(self, nodes: Sequence[ObjectNode], parent: int, child: Child) -> bool:
        """Traces, the functions of a resource and the signatures have sections of their own."""
        if not 0 <= child.id < len(nodes):
            return False
        if self.full:
            return True
        kind = nodes[parent].kind
        is_function = nodes[child.id].kind in _FUNCTIONS
        return (
            kind not in _FUNCTIONS
            and not (kind == "resource" and is_function)
            and (parent, child.name) != (0, SIGNATURES_CHILD)
        )

    def _kind(self, node: ObjectNode) -> Iterable[Part]:
        details = node.details
        if node.kind == "user_object":
            yield _CONTAINERS.get(details["identifier"], details["identifier"])
        elif node.kind == "variable":
            yield "variable "
            yield details["dtype"] + shape_text(
                None if details["shape"] is None else tuple(details["shape"])
            )
            if not details["trainable"]:
                yield " not trainable", "dim"
        elif node.kind == "asset":
            assets = self.graph.assets
            yield (
                f"asset {assets[details['asset']].filename}"
                if 0 <= details["asset"] < len(assets)
                else "asset (dangling)"
            )
        elif node.kind == "function":
            count = len(details["traces"])
            yield (
                counted(count, "function trace")
                if count
                else ("function without a trace: cannot be called", "yellow")
            )
        else:
            yield node.kind.replace("_", " ")
        if node.registered_name:
            yield f" {node.registered_name}", "magenta"

    def functions(self, root: Branch) -> None:
        library = self.graph.library
        nodes = self.graph.objects
        hidden: set[int] = set()
        for node in nodes:
            holds_functions = node.kind in (*_FUNCTIONS, "resource")
            if holds_functions or node.details.get("identifier") == SIGNATURES:
                hidden.update(child.id for child in node.children)
        shown = [
            item
            for item in self.graph.functions
            if self.full or (item.id not in hidden and item.path is not None)
        ]
        count = sum(function.nodes for function in library)
        held = f"  {len(shown)} in the object tree;" if nodes else " "
        held += f" library of {len(library)} with {counted(count, 'node')}"
        branch = root.add(line(("Functions", "bold"), held if library else " none"))
        self._few(shown, _MANY, branch, "functions", lambda item: self._function(branch, item))
        if self.full or not nodes:
            self._few(
                library, _MANY, branch, "functions", lambda item: self._definition(branch, item)
            )

    def _definition(self, branch: Branch, function: LibraryFunction) -> None:
        facts = f"{counted(function.nodes, 'node')}, {_size(function.size)}"
        branch.add(
            line(
                (function.name, "green"),
                function.signature[len(function.name) :],
                (f"  {facts}", "dim"),
            )
        )

    def _function(self, branch: Branch, function: Function) -> None:
        path = function.path if function.path is not None else f"(node {function.id})"
        if not function.traces:
            branch.add(line((path, "green"), "  ", ("no trace: cannot be called", "yellow")))
        shown = (
            function.traces
            if self.full or len(function.traces) <= _TRACES + 1
            else function.traces[:_TRACES]
        )
        for trace in shown:
            parts: list[Part] = [(path, "green"), trace.signature[trace.signature.find("(") :]]
            captures = self._captures(trace.bound_inputs)
            if captures:
                parts.append((f"  captures {captures}", "dim"))
            if not trace.in_library:
                parts.append(("  not in the library: cannot be called", "yellow"))
            branch.add(line(*parts))
        if len(shown) < len(function.traces):
            branch.add(
                line(
                    (f"… {len(function.traces) - len(shown)} more traces of {path} (--full)", "dim")
                )
            )

    def _captures(self, bound: Sequence[str]) -> str:
        """Objects by path; constants, which the tracer has numbered, only by their number."""
        if self.full:
            return ", ".join(bound)
        named = [path for path in bound if not _CAPTURE.search(path)]
        texts = named if len(named) <= _BOUND else [counted(len(named), "object")]
        return ", ".join(
            texts
            + ([counted(len(bound) - len(named), "constant")] if len(named) < len(bound) else [])
        )

    def variables(self, root: Branch) -> None:
        variables = self.graph.variables
        summary = " none"
        if variables:
            total = sum(variable.size or 0 for variable in variables)
            trainable = sum(1 for variable in variables if variable.trainable)
            summary = f"  {len(variables)}, {trainable} trainable, {_size(total)}"
        branch = root.add(line(("Variables", "bold"), summary))
        self._few(
            variables, _MANY, branch, "variables", lambda item: branch.add(self._variable(item))
        )

    def _variable(self, variable: Variable) -> Line:
        name = variable.path if variable.path is not None else variable.name
        parts: list[Part] = [(name, "cyan"), f"  {variable.dtype}{shape_text(variable.shape)}"]
        if variable.size is not None:
            parts.append((f"  {_size(variable.size)}", "dim"))
        notes = []
        if variable.trainable is False:
            notes.append("not trainable")
        if variable.kind == "reference":
            notes.append("reference")
        if variable.slice:
            notes.append(f"slice {variable.slice.rpartition(' ')[2]}")
        if variable.key and variable.path is None and variable.key != variable.name:
            notes.append(f"key {variable.key}")
        parts.append(("".join(f"  {note}" for note in notes), "dim"))
        if not variable.stored:
            parts.append(("  no stored value" if variable.key else "  not restored", "yellow"))
        return line(*parts)

    def assets(self, root: Branch) -> None:
        if not self.graph.assets:
            return
        branch = root.add(line(("Assets", "bold")))
        for asset in self.graph.assets:
            state: Part = (
                f"  {_size(asset.size)}"
                if asset.status == "present"
                else (f"  {asset.status}", "bold red")
            )
            branch.add(line((asset.filename, "cyan"), state, (f"  {asset.tensor}", "dim")))

    def init(self, root: Branch) -> None:
        saver = self.graph.saver
        branch = root.add(
            line(
                ("Loading", "bold"),
                "" if saver or self.graph.init_ops else " nothing to restore or initialise",
            )
        )
        if saver:
            restores = (
                "what it restores could not be followed"
                if saver.restores is None
                else counted(saver.restores, "tensor")
            )
            branch.add(
                line(
                    ("restore  ", "dim"),
                    saver.restore_op,
                    (f"  {restores}, format {saver.version}", "dim"),
                )
            )
        for op in dict.fromkeys(item.op for item in self.graph.init_ops):
            sources = ", ".join(item.source for item in self.graph.init_ops if item.op == op)
            branch.add(line(("init     ", "dim"), op, (f"  {sources}", "dim")))

    def effects(self, root: Branch) -> None:
        if self.graph.effects:
            branch = root.add(line(("Acts on the machine", "bold")))
            lines = list(effect_lines(self.graph.effects, self.full))
            self._few(lines, _MANY, branch, "ops", lambda parts: branch.add(line(*parts)))

    def programs(self, root: Branch) -> None:
        if self.graph.programs:
            branch = root.add(line(("StableHLO programs", "bold")))
            self._few(
                self.graph.programs,
                _MANY,
                branch,
                "programs",
                lambda item: branch.add(line(*_program(item))),
            )

    def collections(self, root: Branch) -> None:
        if self.graph.collections:
            listed = ", ".join(f"{item.key}×{item.items}" for item in self.graph.collections)
            root.add(line(("Collections", "bold"), f"  {listed}"))

    def sizes(self, root: Branch) -> None:
        sizes = self.graph.sizes
        parts = {
            "graph": sizes.graph,
            "functions": sizes.functions,
            "object graph": sizes.object_graph,
        }
        text = ", ".join(f"{name} {_size(size)}" for name, size in parts.items() if size)
        constants = f"; {_size(sizes.constants)} of it constants" if sizes.constants else ""
        branch = root.add(line(("Size", "bold"), f"  {_size(sizes.total)}: {text}{constants}"))
        for item in sizes.largest_constants:
            if self.full or item.size >= _LARGE:
                place = f"{item.function}/{item.node}" if item.function else item.node
                branch.add(
                    line(
                        f"{_size(item.size)}  {item.dtype}{shape_text(item.shape)}  ",
                        (place, "dim"),
                    )
                )

    def ops(self, root: Branch) -> None:
        ops = sorted(self.graph.ops, key=lambda item: (-item.count, item.op))
        total = sum(item.count for item in ops)
        branch = root.add(
            line(("Ops", "bold"), f"  {counted(len(ops), 'kind')}, {counted(total, 'node')}")
        )
        if self.full:
            for item in ops:
                used = f"  from {', '.join(item.reachable_from)}" if item.reachable_from else ""
                where = (
                    f"  {item.main_graph} in the graph, {counted(len(item.functions), 'function')}"
                    if item.functions
                    else ""
                )
                branch.add(line((item.op, "cyan"), f"×{item.count}", (where + used, "dim")))
        elif ops:
            more = f", … {len(ops) - _OPS} more (--full)" if len(ops) > _OPS else ""
            branch.add(
                line(", ".join(f"{item.op}×{item.count}" for item in ops[:_OPS]), (more, "dim"))
            )


def _program(item: Program) -> Iterable[Part]:
    """One StableHLO program: where, the version of the op and of the module, and what it calls."""
    yield (f"{item.function}/{item.node}" if item.function else item.node, "cyan")
    yield f"  XlaCallModule version {item.version}, StableHLO {item.stablehlo or 'as text'}"
    if item.platforms:
        yield f", for {', '.join(item.platforms)}"
    if item.custom_calls:
        names = ", ".join(item.custom_calls[:_MANY])
        yield (
            (
                f", custom calls: {names}"
                if item.exact
                else f", custom calls (among these names): {names}"
            ),
            "yellow",
        )


def _first_parents(nodes: Sequence[ObjectNode]) -> dict[int, tuple[int, str]]:
    """Where each object is shown: its parent and name on the shortest path.

    All other mentions are references to it.
    """
    found: dict[int, tuple[int, str]] = {0: (-1, "")}
    queue = deque([0])
    while queue:
        number = queue.popleft()
        for child in nodes[number].children:
            if 0 <= child.id < len(nodes) and child.id not in found:
                found[child.id] = (number, child.name)
                queue.append(child.id)
    return found


def effect_lines(effects: Sequence[Effect], full: bool) -> Iterator[list[Part]]:
    """Return a line for each entry.

    Unless ``full``, unknown ops are only named: a model may have many of them.
    """
    ordered = sorted(effects, key=lambda item: not item.at_load)
    yield from (_line(item, full) for item in ordered if full or item.kind != UNKNOWN)
    unknown: dict[str, dict[str, None]] = {}
    for item in ordered:
        if item.kind == UNKNOWN and not full:
            unknown.setdefault(item.when, {})[item.op] = None
    for time, names in unknown.items():
        more = f", … {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        listed = ", ".join(list(names)[:_NAMES]) + more
        yield [
            (f"{time}  ", "yellow"),
            (listed, "cyan"),
            ("  no ops of TensorFlow: what they do is not known", "dim"),
        ]


def _line(item: Effect, full: bool) -> list[Part]:
    paths = f" {', '.join(map(repr, item.paths))}" if item.paths else ""
    place = f"{item.function}/{item.node}" if item.function else item.node
    more = f" and {item.count - 1} more" if item.count > 1 else ""
    starts = [*(item.at_load or ()), *(item.at_call or ())]
    shown = (
        starts
        if full or len(starts) <= _STARTS + 1
        else [*starts[:_STARTS], f"… {len(starts) - _STARTS} more"]
    )
    by = f", run by {', '.join(shown)}" if shown else ""
    style = "bold red" if item.at_load else "yellow"
    return [
        (f"{item.when}  ", style),
        (item.op, "cyan"),
        f"  {item.does}{paths}",
        (f"  {place}{more}{by}", "dim"),
    ]
