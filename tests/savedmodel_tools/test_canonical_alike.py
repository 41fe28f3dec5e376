"""Functions that are written alike are canonicalised once: every hash is what it is when each is
canonicalised by itself.
"""

from __future__ import annotations

import random

import model_edits
import neutral_edits
import pytest

from reference_impl.format import schema
from reference_impl.format.container import layout
from reference_impl.graph.references import FunctionIndex
from savedmodel_tools.canonical import functions as canonical_functions
from savedmodel_tools.canonical.form import meta_graphs_of
from savedmodel_tools.canonical.functions import Functions

CASES = ("module_functions", "keras_functional_save", "defun_gradient", "while_v2", "function_flow")


@pytest.fixture
def alone(monkeypatch):
    """The hashes of a library's functions, each canonicalised by itself."""

    def alone(library, op_defs=()):
        with monkeypatch.context() as patch:
            patch.setattr(canonical_functions, "written", lambda *_: None)
            return Functions(library, op_defs)

    return alone


@pytest.mark.parametrize("case", [case for case in CASES if (model_edits.FIXTURES / case).is_dir()])
def test_hashes_of_a_model_and_of_the_same_model_renamed(case, alone, tmp_path):
    def edit(message):
        for change in (
            neutral_edits.rename_functions,
            neutral_edits.shuffle_functions,
            neutral_edits.rename_tables,
        ):
            change(message.meta_graphs[0], random.Random(3))

    known = {}
    for path in (
        model_edits.fixture(case),
        model_edits.edited(model_edits.fixture(case), tmp_path / "renamed", edit),
    ):
        (graph,) = meta_graphs_of(layout.read(path), known=known)
        expected = alone(
            graph.functions.library, graph.definition.meta_info_def.stripped_op_list.op
        )
        assert graph.functions.hashes == expected.hashes
        assert graph.functions.shared == expected.shared


def library(*functions):
    """Of functions (name, nodes, names of results); a node is (name, op, inputs, {attribute:
    value}).
    """
    made = schema.FunctionDefLibrary()
    for name, nodes, results in functions:
        function = made.function.add()
        function.signature.name = name
        for result in results:
            function.signature.output_arg.add(name=result, type=1)
            function.ret[result] = f"{nodes[-1][0]}:{result}:0"
        for node_name, op, inputs, attributes in nodes:
            node = function.node_def.add(name=node_name, op=op, input=inputs)
            for key, value in attributes.items():
                node.attr[key].CopyFrom(value)
    return made


def text(value):
    return schema.AttrValue(s=value.encode())


def function(name, **attributes):
    return schema.AttrValue(func=schema.NameAttrList(name=name, attr=attributes))


def strings(*values):
    proto = schema.TensorProto(dtype=7, string_val=[value.encode() for value in values])
    proto.tensor_shape.dim.add(size=len(values))
    return schema.AttrValue(tensor=proto)


def leaf(name, op="Sin", results=("y",)):
    return name, [("node", op, [], {})], results


def caller(name, *nodes):
    return name, list(nodes), ()


# Pairs of functions that are alike up to names of functions of the library; `a1` and `a2` do the
# same, `b1` does not.
LEAVES = [leaf("a1"), leaf("a2"), leaf("b1", "Cos")]
PAIRS = {
    "calls of equal functions": (
        ("PartitionedCall", {"f": function("a1")}),
        ("PartitionedCall", {"f": function("a2")}),
        True,
    ),
    "calls of others": (
        ("PartitionedCall", {"f": function("a1")}),
        ("PartitionedCall", {"f": function("b1")}),
        False,
    ),
    "names in texts that count as they are": (
        ("Op", {"metadata": text("a1")}),
        ("Op", {"metadata": text("a2")}),
        False,
    ),
    "names in texts that mean functions": (
        ("Op", {"forward": text("a1")}),
        ("Op", {"forward": text("a2")}),
        True,
    ),
    "names in constants": (
        ("Const", {"value": strings("a1"), "f": function("a1")}),
        ("Const", {"value": strings("a2"), "f": function("a2")}),
        False,
    ),
    "one function twice, or two": (
        ("Case", {"branches": schema.AttrValue(list={"func": [{"name": "a1"}, {"name": "a1"}]})}),
        ("Case", {"branches": schema.AttrValue(list={"func": [{"name": "a1"}, {"name": "a2"}]})}),
        True,
    ),
    "attributes of functions": (
        ("Op", {"f": function("a1", g=function("a1"))}),
        ("Op", {"f": function("a1", g=function("b1"))}),
        False,
    ),
    "shared names": (
        ("HashTableV2", {"shared_name": text("a1")}),
        ("HashTableV2", {"shared_name": text("b1")}),
        False,
    ),
}


@pytest.mark.parametrize("what", PAIRS)
def test_what_is_alike_and_what_only_looks_so(what, alone):
    one, other, same = PAIRS[what]
    known = {}
    found = []
    for turn, (op, attributes) in enumerate((one, other)):
        made = FunctionIndex(
            library(*LEAVES, caller(f"caller{turn}", ("node", op, [], attributes)))
        )
        hashes = Functions(made, known=known).hashes
        assert hashes == alone(made).hashes
        found.append(hashes[f"caller{turn}"])
    assert (found[0] == found[1]) is same


SAME_TEXT = {
    "called by op type": [("call", "h", [], {}), ("node", "Neg", ["call:x:0"], {})],
    "in an attribute": [("node", "PartitionedCall", [], {"f": function("h")})],
    "in an attribute of an attribute": [("node", "Op", [], {"f": function("a1", g=function("h"))})],
    "in a text": [("node", "Op", [], {"forward": text("h")})],
}


@pytest.mark.parametrize("nodes", SAME_TEXT.values(), ids=SAME_TEXT)
def test_functions_of_one_text_in_models_where_a_name_means_something_else(nodes, alone):
    """Also a function that does the same, and names its results in another order: `x` is the first
    of one, not of the other.
    """
    known, found = {}, set()
    for op, results in (("Sin", ("x", "y")), ("Cos", ("x", "y")), ("Sin", ("y", "x"))):
        made = FunctionIndex(library(leaf("a1"), leaf("h", op, results), caller("caller", *nodes)))
        hashes = Functions(made, known=known).hashes
        assert hashes == alone(made).hashes
        found.add(hashes["caller"])
    assert len(found) >= 2


def test_each_of_the_functions_that_share_resources_says_so(alone):
    node = ("node", "HashTableV2", [], {"shared_name": text("table")})
    made = FunctionIndex(library(caller("f", node), caller("g", node)))
    assert (
        Functions(made).shared == alone(made).shared == {"f": {"table": [0]}, "g": {"table": [0]}}
    )


def test_defaults_of_ops_are_those_of_the_file(alone):
    op = schema.OpDef(name="Op")
    op.attr.add(name="k", type="int").default_value.i = 3
    made = FunctionIndex(library(caller("f", ("node", "Op", [], {"k": schema.AttrValue(i=3)}))))
    known = {}
    for defs in ((), [op], ()):
        assert Functions(made, defs, known).hashes == alone(made, defs).hashes


def test_most_functions_of_a_program_are_canonicalised_once(monkeypatch):
    """A hundred traces of one function, each with a branch of its own: a name more of each is no
    work more.
    """
    functions = []
    for number in range(100):
        functions.append(leaf(f"branch_{number}"))
        functions.append(
            caller(
                f"call_{number}",
                ("node", "PartitionedCall", [], {"f": function(f"branch_{number}")}),
            )
        )
    done = []
    digest = Functions.digest
    monkeypatch.setattr(
        Functions, "digest", lambda self, name: done.append(name) or digest(self, name)
    )
    found = Functions(FunctionIndex(library(*functions)))
    assert (
        len(set(found.hashes.values())) == 2 and len(done) <= 4
    )  # numbers of one and of two figures are written in other lengths
