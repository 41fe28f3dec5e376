"""Name functions by what they do: a hash of the body, in which callees are named the same way.

TensorFlow numbers generated functions per process, so two exports of one model by one program never
have equal bytes.

Callees come before callers. Functions that call each other in a cycle are named together, see
`canonical_graph`.

TensorFlow adds a layer of functions that only forward their arguments each time a loaded model is
saved again. A wrapper around an equal wrapper is therefore treated as the inner function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Optional

from reference_impl.format import schema
from reference_impl.graph.edges import data_inputs, parse_input
from reference_impl.graph.node_attributes import argument_attributes
from reference_impl.graph.order import components
from reference_impl.graph.references import CALL_OPS, FunctionIndex
from savedmodel_tools.canonical.alike import Mentioned, Mentions, written
from savedmodel_tools.canonical.body import Body
from savedmodel_tools.canonical.graph import Digraph, digest
from savedmodel_tools.canonical.values import Values

_RECURSIVE = b"recursive"
_KEPT = 1 << 14  # nodes of bodies kept for later calls


class Functions:
    """The hashes of all functions of a library.

    Args:
      library: the functions.
      op_defs: OpDefs whose attribute defaults count as absent.
      known: hashes of function bodies by `canonical_alike.written`; several libraries may share
        them.
      as_written: hash the text of a function where that is enough to tell it from others, not the
          canonical form of its body, which takes several times as long. Equal functions whose nodes
          are in another order then have different hashes.

    Attributes:
      hashes: function name -> hash.
      shared: function name -> the nodes of the function that share resources, see `Body.shared`.

    Raises:
      DuplicateKeyError: two nodes of a function share a name.
    """

    def __init__(
        self,
        library: FunctionIndex,
        op_defs: object = (),
        known: Optional[dict[bytes, bytes]] = None,
        as_written: bool = False,
    ):
        self.library = library
        self._as_written = as_written
        self.hashes: dict[str, bytes] = {}
        self.shared: dict[str, dict[str, list[int]]] = {}
        self.values = Values(library, self._reference, op_defs)
        names = list(library.functions)
        index = {name: number for number, name in enumerate(names)}
        self._asked: list[str] = []  # functions that were requested before they had a hash
        self._wrapped: Optional[str] = None
        # wrapper -> innermost function, distinct wrappers that return constants (outermost first),
        # other distinct wrappers
        self._layers: dict[str, tuple[bytes, tuple[bytes, ...], frozenset[bytes]]] = {}
        self._bodies: dict[str, Body] = {}
        self._room = _KEPT
        self._known = {} if known is None else known
        defaults: list[bytes] = []
        for op, values in sorted(self.values.defaults.items()):
            for key, data in sorted(values.items()):
                defaults += [op.encode(), key.encode(), data]
        self._defaults = digest(*defaults)
        mentioned = Mentioned(library)
        mentions = {name: mentioned.by(name) for name in names}

        def callees(name: str) -> list[int]:
            return [index[callee] for callee in mentions[name].counts]

        for component in components(list(map(callees, names))):
            members = [names[number] for number in component]
            if len(members) == 1 and members[0] not in mentions[members[0]].counts:
                self._name_alone(members[0], mentions[members[0]])
            else:
                self._name_together(members)

    def _name_alone(self, name: str, mentions: Mentions) -> None:
        self._wrapped = _wrapped(self.library, self.library.functions[name])
        value = self._digest_once(name, mentions)
        if self._wrapped is not None:
            core, changing, passing = self._layers.get(
                self._wrapped, (self.hashes[self._wrapped], (), frozenset())
            )
            if any(node.op == "Const" for node in self.library.functions[name].node_def):
                changing = (value, *[layer for layer in changing if layer != value])
            else:
                passing = passing | {value}
            self._layers[name] = core, changing, passing
            value = digest(core, digest(*changing), *sorted(passing))
        self._wrapped = None
        self.hashes[name] = value

    def _digest_once(self, name: str, mentions: Mentions) -> bytes:
        """Return `digest`, computed once for functions with the same text."""
        text = written(self.library.functions[name], mentions, self.hashes)
        if text is None:
            return self.digest(name)
        text = digest(self._defaults, text)
        if text in self._known or self._as_written:
            self.shared[name] = {}
            return self._known.get(text, text)
        value = self.digest(name)
        if not self.shared[
            name
        ]:  # otherwise, the resource names of other functions with this text would be needed
            self._known[text] = value
        return value

    def _reference(self, name: str) -> bytes:
        """Return the hash of a function; note a function that has no hash yet."""
        if name == self._wrapped:
            return b"wrapped"
        if name in self.hashes:
            return self.hashes[name]
        self._asked.append(name)
        return _RECURSIVE

    def _name_together(self, members: list[str]) -> None:
        """Name functions of a cycle: hash each body without the names of the others, then add the
        others' hashes step by step.
        """
        index = {name: number for number, name in enumerate(members)}
        base: list[bytes] = []
        calls: list[list[tuple[bytes, int]]] = []
        for name in members:
            base.append(self.digest(name))
            calls.append(
                [(label, index[callee]) for label, callee in self._unnamed(name) if callee in index]
            )
        graph = Digraph(base, calls, [[] for _ in members], members.__getitem__)
        self.hashes.update(zip(members, graph.needs(base)))

    def _unnamed(self, name: str) -> Iterator[tuple[bytes, str]]:
        """Return the functions without a hash that a function mentions, in canonical order, with
        the place of each.
        """
        body = self.body(name)
        places = [(b"%d" % place, body.nodes[vertex]) for place, vertex in enumerate(body.order)]
        for label, node in [*places, (b"function", None)]:
            self._asked.clear()
            if node is None:
                self._declaration(self.library.functions[name])
                self.values.name(self.library.gradient_of.get(name, ""))
            else:
                body.describe(node)
            yield from [(label, callee) for callee in self._asked]

    def body(self, name: str) -> Body:
        """Return the canonical form of a function's body.

        The first bodies are kept, up to a number of nodes.
        """
        if name in self._bodies:
            return self._bodies[name]
        asked = len(self._asked)
        body = self._body(name)
        settled = (
            self._wrapped is None and len(self._asked) == asked
        )  # every function in the body has its hash
        if settled and self._room >= len(body.names):
            self._room -= len(body.names)
            self._bodies[name] = body
        return body

    def _body(self, name: str) -> Body:
        function = self.library.functions[name]
        arguments = {}
        for number, item in enumerate(function.signature.input_arg):
            arguments[item.name] = digest(
                declared(item), self.values.attributes(argument_attributes(function, number))
            )
        body = Body(function.node_def, self.values, arguments)
        results = [
            body.resolve(function.ret[item.name])
            for item in function.signature.output_arg
            if item.name in function.ret
        ]
        side_effects = {
            body.index[node] for node in function.control_ret.values() if node in body.index
        }
        body.arrange([item[0] for item in results if item is not None], [sorted(side_effects)])
        return body

    def digest(self, name: str) -> bytes:
        """Hash one function: declaration, attributes, body, results, side effects.

        Names inside the function do not count.
        """
        function = self.library.functions[name]
        body = self.body(name)
        results = []
        for item in function.signature.output_arg:
            text = function.ret.get(item.name, "")
            place = body.resolve(text)
            where = (
                text.encode() if place is None else b"%d:%b" % (body.position[place[0]], place[1])
            )
            results.append(declared(item) + where)
        after = [body.index.get(node) for node in function.control_ret.values()]
        effects = sorted({-1 if vertex is None else body.position[vertex] for vertex in after})
        gradient = self.library.gradient_of.get(name)
        self.shared[name] = body.shared()
        return digest(
            self._declaration(function),
            digest(*body.lines()),
            digest(*results),
            _joined(effects),
            b"" if gradient is None else self.values.name(gradient),
            *sorted(map(_joined, self.shared[name].values())),
        )

    def _declaration(self, function: schema.FunctionDef) -> bytes:
        signature = function.signature
        same: dict[int, int] = {}
        resources = [
            (number, same.setdefault(function.resource_arg_unique_id[number], len(same)))
            for number in sorted(function.resource_arg_unique_id)
        ]
        return digest(
            self.values.attributes(function.attr),
            *[schema.serialize(item) for item in signature.attr],
            b"stateful" if signature.is_stateful else b"",
            repr(resources).encode(),
        )


def _wrapped(library: FunctionIndex, function: schema.FunctionDef) -> Optional[str]:
    """Return the function that ``function`` only forwards its arguments to; None when it does
    anything else.

    Each result is the call's result of the same number, or a constant (initialisers return 1,
    regardless of the call).
    """
    calls = [node for node in function.node_def if node.op in CALL_OPS]
    others = {node.op for node in function.node_def}.difference(CALL_OPS)
    if len(calls) != 1 or not others <= {"Identity", "NoOp", "Const"}:
        return None
    called = library.called(calls[0])
    signature = function.signature
    if called is None or data_inputs(calls[0]) != [item.name for item in signature.input_arg]:
        return None
    if len(library.functions[called].signature.output_arg) != len(signature.output_arg):
        return None
    nodes = {node.name: node for node in function.node_def}
    for number, item in enumerate(signature.output_arg):
        edge = parse_input(function.ret.get(item.name, ""), True)
        for _ in nodes:  # the longest possible chain of Identity
            if edge.source not in nodes or nodes[edge.source].op != "Identity":
                break
            edge = parse_input((data_inputs(nodes[edge.source]) or [""])[0], True)
        passed_on = edge.source == calls[0].name and edge.port == f"output:{number}"
        if not passed_on and (edge.source not in nodes or nodes[edge.source].op != "Const"):
            return None
    return called


def declared(item: schema.OpDef.ArgDef) -> bytes:
    """Return the declaration of an argument in an OpDef, without its name."""
    copy = schema.copy_of(item)
    copy.name = copy.description = ""
    return schema.serialize(copy)


def _joined(numbers: Iterable[int]) -> bytes:
    return b",".join([b"%d" % number for number in numbers])
