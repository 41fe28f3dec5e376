"""The canonical form of references: what refers to what counts, by which name or number does not."""

import itertools
import random

import model_edits as edits
import numpy as np
import pytest

from reference_impl.format import schema
from reference_impl.format.bundle_writer import BundleWriter
from reference_impl.format.canonical import canonical
from reference_impl.format.canonical_body import Body
from reference_impl.format.canonical_graph import digest
from reference_impl.format.canonical_values import Values
from reference_impl.format.graphs import Library


@pytest.fixture
def hashes(tmp_path):
    """Hashes of hand-made models, a set: as many as there are different ones."""
    numbers = itertools.count()

    def get(*builds):
        return {edits.built(tmp_path / str(next(numbers)), build).hash for build in builds}

    return get


def objects(graph, *nodes):
    """An object graph of nodes given as {name: child number}; the kind is a generic object."""
    for children in nodes:
        made = graph.object_graph_def.nodes.add()
        made.user_object.identifier = "_generic_user_object"
        for name, number in children.items():
            made.children.add(local_name=name, node_id=number)
    return graph.object_graph_def.nodes


def function(graph, name, inputs=(), outputs=()):
    """A FunctionDef with float arguments; ``outputs`` maps names to tensors."""
    made = graph.graph_def.library.function.add()
    made.signature.name = name
    for item in inputs:
        made.signature.input_arg.add(name=item, type=schema.DT_FLOAT)
    for item, tensor in dict(outputs).items():
        made.signature.output_arg.add(name=item, type=schema.DT_FLOAT)
        made.ret[item] = tensor
    return made


def call(nodes, name, callee, *inputs):
    made = nodes.add(name=name, op="PartitionedCall", input=inputs)
    made.attr["f"].func.name = callee


# Objects


def test_an_alias_of_which_object(hashes):
    def build(target, order=("a", "b", "c")):
        numbers = {"a": 1, "b": 2, "c": target}
        return lambda graph: objects(graph, {name: numbers[name] for name in order}, {}, {})

    assert len(hashes(build(1), build(2))) == 2
    assert len(hashes(build(1), build(1, "bca"), build(1, "cba"))) == 1


def test_slots_of_which_variable(hashes):
    def build(first, second, name="m"):
        def made(graph):
            nodes = objects(graph, {"optimizer": 1, "v": 2, "w": 3}, {}, {}, {}, {}, {})
            for variable, slot in ((first, 4), (second, 5)):
                nodes[1].slot_variables.add(slot_name=name, original_variable_node_id=variable, slot_variable_node_id=slot)
            nodes[4].registered_name = "four"

        return made

    assert len(hashes(build(2, 3), build(3, 2), build(2, 2), build(2, 3, "n"))) == 4


@pytest.mark.parametrize("field", ["save_function", "restore_function"])
def test_functions_that_save_and_restore(hashes, field):
    def build(number):
        def made(graph):
            nodes = objects(graph, {"table": 1, "f": 2, "g": 3}, {}, {}, {})
            item = nodes[1].saveable_objects["table"]
            item.save_function, item.restore_function = 2, 3
            setattr(item, field, number)

        return made

    assert len(hashes(build(1), build(2), build(3))) == 3


def test_dependencies(hashes):
    def build(*needed):
        def made(graph):
            nodes = objects(graph, {"a": 1, "b": 2, "c": 3}, {}, {}, {})
            for name, number in needed:
                nodes[1].dependencies.add(local_name=name, node_id=number)

        return made

    assert len(hashes(build(), build(("x", 2)), build(("x", 3)), build(("y", 2)), build(("x", 2), ("y", 3)))) == 5
    assert len(hashes(build(("x", 2), ("y", 3)), build(("y", 3), ("x", 2)))) == 1


def test_objects_that_nothing_refers_to(hashes):
    def build(*names):
        def made(graph):
            for number, node in enumerate(objects(graph, *[{} for _ in range(len(names) + 1)])):
                node.registered_name = ("root", *names)[number]

        return made

    assert len(hashes(build("a", "b"), build("b", "a"))) == 1
    assert len(hashes(build("a", "b"), build("a", "a"), build("a"), build())) == 4


def test_a_constant_is_which_node(hashes):
    def build(name):
        def made(graph):
            objects(graph, {"c": 1}, {})[1].constant.operation = name
            for number, node in enumerate(("x", "y")):
                graph.graph_def.node.add(name=node, op="Const").attr["value"].tensor.CopyFrom(
                    schema.TensorProto(dtype=schema.DT_INT32, int_val=[number])
                )

        return made

    assert len(hashes(build("x"), build("y"))) == 2


def test_captured_tensors(hashes):
    """A tensor inside a function, named by its node: the node counts, not its name."""

    def build(captured, names=("first", "second")):
        def made(graph):
            body = function(graph, "f", ["x"], {"y": f"{names[1]}:y:0"})
            body.node_def.add(name=names[0], op="Neg", input=["x"])
            body.node_def.add(name=names[1], op="Exp", input=[f"{names[0]}:y:0"])
            item = objects(graph, {"t": 1}, {})[1].captured_tensor
            item.name, item.concrete_function = f"{captured}:y:0", "f"

        return made

    assert len(hashes(build("first"), build("second"))) == 2
    assert len(hashes(build("first"), build("p", "pq"))) == 1


def test_unreferenced_concrete_functions(hashes):
    def build(*keywords):
        def made(graph):
            for keyword in keywords:
                trace = graph.object_graph_def.concrete_functions[f"f_{keyword}"]
                trace.canonicalized_input_signature.string_value = keyword

        return made

    assert len(hashes(build("a"), build("b"), build("a", "b"), build())) == 4


# Functions


def test_order_of_results(hashes):
    def build(first, second):
        def made(graph):
            body = function(graph, "f", ["x"], {"a": first, "b": second})
            body.node_def.add(name="neg", op="Neg", input=["x"])
            body.node_def.add(name="exp", op="Exp", input=["x"])

        return made

    assert len(hashes(build("neg:y:0", "exp:y:0"), build("exp:y:0", "neg:y:0"), build("neg:y:0", "neg:y:1"))) == 3


def test_type_of_a_result(hashes):
    def build(kind):
        def made(graph):
            body = function(graph, "f", ["x"], {"a": "neg:y:0"})
            body.node_def.add(name="neg", op="Neg", input=["x"])
            body.signature.output_arg[0].type = kind

        return made

    assert len(hashes(build(schema.DT_FLOAT), build(schema.DT_INT32))) == 2


def test_side_effects(hashes):
    """Which nodes run because of control_ret counts, not under which keys."""

    def build(*effects):
        def made(graph):
            body = function(graph, "f")
            for name in ("print", "write"):
                body.node_def.add(name=name, op=name.title())
            for key, name in effects:
                body.control_ret[key] = name

        return made

    assert len(hashes(build(), build(("k", "print")), build(("k", "write")), build(("k", "print"), ("l", "write")))) == 4
    assert len(hashes(build(("k", "print"), ("l", "write")), build(("l", "print"), ("z", "write")))) == 1


def test_resource_arguments_that_are_one(hashes):
    def build(*ids):
        def made(graph):
            body = function(graph, "f", [f"x{number}" for number in range(len(ids))])
            for number, item in enumerate(ids):
                body.resource_arg_unique_id[number] = item

        return made

    assert len(hashes(build(1, 2, 1), build(1, 1, 2), build(1, 2, 3))) == 3
    assert len(hashes(build(1, 2, 1), build(7, 3, 7))) == 1


def test_attributes_of_a_polymorphic_function(hashes):
    def build(name):
        return lambda graph: function(graph, "f").signature.attr.add(name=name, type="type")

    assert len(hashes(build("T"), build("U"))) == 2


def test_calls_by_op_type_name_outputs_as_the_function_does(hashes):
    def build(used, outputs=("a", "b")):
        def made(graph):
            callee = function(graph, "Pair", ["x"], {outputs[0]: "neg:y:0", outputs[1]: "exp:y:0"})
            callee.node_def.add(name="neg", op="Neg", input=["x"])
            callee.node_def.add(name="exp", op="Exp", input=["x"])
            caller = function(graph, "g", ["x"], {"z": "sin:y:0"})
            caller.node_def.add(name="pair", op="Pair", input=["x"])
            caller.node_def.add(name="sin", op="Sin", input=[f"pair:{outputs[used]}:0"])

        return made

    assert len(hashes(build(0), build(1))) == 2
    assert len(hashes(build(0), build(0, "pq"))) == 1


def test_custom_gradients(hashes):
    def build(first, second, kinds=("CustomGradient-1", "CustomGradient-2")):
        def made(graph):
            for name, op in (("g1", "Neg"), ("g2", "Exp")):
                function(graph, name).node_def.add(name="n", op=op)
            library = graph.graph_def.library
            library.registered_gradients.add(registered_op_type=kinds[0], gradient_func=first)
            library.registered_gradients.add(registered_op_type=kinds[1], gradient_func=second)
            body = function(graph, "f")
            for name, kind in zip(("IdentityN", "Identity"), kinds):
                body.node_def.add(name=name, op=name).attr["_gradient_op_type"].s = kind.encode()

        return made

    assert len(hashes(build("g1", "g2"), build("g2", "g1"), build("g1", "g1"))) == 3
    assert len(hashes(build("g1", "g2"), build("g1", "g2", ("CustomGradient-77", "CustomGradient-5")))) == 1


def test_aliases_of_functions(hashes):
    def build(**aliases):
        def made(graph):
            for name in ("Neg", "Exp"):
                function(graph, f"__inference_{name}_1").node_def.add(name="n", op=name)
            for alias, name in aliases.items():
                graph.meta_info_def.function_aliases[f"__inference_{name}_1"] = alias

        return made

    assert len(hashes(build(), build(a="Neg"), build(b="Neg"), build(a="Exp"), build(a="Neg", b="Exp"))) == 5


def test_a_far_function_of_a_circle(tmp_path):
    """A change too many calls away to be seen step by step still changes everything that leads there."""

    def build(constant, count=60):
        def made(graph):
            for number in range(count):
                body = function(graph, f"f{number}")
                value = constant if number == count // 2 else 0
                body.node_def.add(name="c", op="Const").attr["value"].tensor.CopyFrom(
                    schema.TensorProto(dtype=schema.DT_INT64, int64_val=[value])
                )
                call(body.node_def, "next", f"f{(number + 1) % count}")
            call(graph.graph_def.node, "start", "f0")
            graph.signature_def["s"].outputs["y"].name = "start:0"

        return made

    one, other = edits.built(tmp_path / "a", build(1)), edits.built(tmp_path / "b", build(2))
    assert one.sections["graph"] != other.sections["graph"]


def swapping(layers, results):
    """Functions around functions that turn arguments (or results) round: no mere wrappers, each one matters."""

    def made(graph):
        core = function(graph, "core", ["a", "b"], {"p": "sub:z:0", "q": "exp:y:0"})
        core.node_def.add(name="sub", op="Sub", input=["a", "b"])
        core.node_def.add(name="exp", op="Exp", input=["b"])
        previous = "core"
        for layer in range(layers):
            turned = {"p": "call:output:1", "q": "call:output:0"} if results else {"p": "call:output:0", "q": "call:output:1"}
            around = function(graph, f"layer{layer}", ["a", "b"], turned)
            call(around.node_def, "call", previous, *(["a", "b"] if results else ["b", "a"]))
            previous = around.signature.name
        call(graph.graph_def.node, "start", previous)
        graph.signature_def["s"].outputs["y"].name = "start:0"

    return made


@pytest.mark.parametrize("results", [False, True])
def test_functions_that_turn_something_round(hashes, results):
    assert len(hashes(*[swapping(layers, results) for layers in range(4)])) == 4


# Graphs


def test_colocation(hashes):
    def build(*places, names=("a", "b", "c")):
        def made(graph):
            objects(graph, {})
            for name, op in zip(names, ("A", "B", "C")):
                graph.graph_def.node.add(name=name, op=op)
            if places:
                graph.graph_def.node[0].attr["_class"].list.s.extend(
                    f"loc:@{names['abc'.index(name)]}".encode() for name in places
                )

        return made

    assert len(hashes(build(), build("b"), build("c"), build("b", "c"))) == 4
    assert len(hashes(build(), build("a"))) == 1  # with itself
    assert len(hashes(build("b", "c"), build("c", "b"), build("b", "c", names="xyz"))) == 1


def test_equal_nodes_with_different_neighbours():
    """Both nodes a result waits for are constants; only what else their users need tells them apart."""
    nodes = [("R", [], [1, 2]), ("C", [], []), ("C", [], []), ("Y", [1, 5], []), ("Y", [2, 6], []), ("Z", [], []), ("W", [], [])]
    rng = random.Random(1)
    assert len({form(nodes, rng.sample("abcdefg", 7), rng.sample(range(7), 7)) for _ in range(40)}) == 1


def test_full_types(hashes):
    def build(kind):
        def made(graph):
            graph.graph_def.node.add(name="n", op="A").experimental_type.type_id = kind

        return made

    assert len(hashes(build(schema.TFT_UNSET), build(schema.TFT_TENSOR))) == 2


def leftover(extra=(), user=False, constant=0):
    """A TF 1.x graph with one saver that it names and one that it does not."""

    def made(graph):
        nodes = graph.graph_def.node
        for scope in ("save", "save_1"):
            value = schema.TensorProto(dtype=schema.DT_INT32, int_val=[constant if scope == "save_1" else 5])
            nodes.add(name=f"{scope}/Const", op="Const").attr["value"].tensor.CopyFrom(value)
            nodes.add(name=f"{scope}/RestoreV2", op="RestoreV2", input=[f"{scope}/Const"])
            nodes.add(name=f"{scope}/restore_all", op="NoOp", input=[f"^{scope}/RestoreV2"])
        for op in extra:
            nodes.add(name=f"save_1/{op}", op=op)
        if user:
            nodes.add(name="user", op="Print", input=["save_1/RestoreV2"])
        graph.saver_def.restore_op_name = "save/restore_all"

    return made


def test_a_forgotten_saver(hashes):
    assert len(hashes(leftover(), leftover(constant=1))) == 1
    assert len(hashes(leftover(), leftover(extra=["MatMul"]), leftover(user=True))) == 3
    # What is not merely a saver is looked at in full.
    assert len(hashes(leftover(extra=["MatMul"]), leftover(extra=["MatMul"], constant=1))) == 2
    assert len(hashes(leftover(user=True), leftover(user=True, constant=1))) == 2


def random_graph(rng, count):
    """(op, data inputs, control inputs) per node; cycles included, as in loops of TF 1.x."""
    nodes = []
    for _ in range(count):
        inputs = [rng.randrange(count) for _ in range(rng.choice([0, 1, 1, 2]))]
        control = sorted(set(rng.sample(range(count), rng.choice([0, 0, 1, 2]))))
        nodes.append((rng.choice("AB"), inputs, control))
    return nodes


def relabelled(nodes, new):
    made = [None] * len(nodes)
    for number, (op, inputs, control) in enumerate(nodes):
        made[new[number]] = op, [new[item] for item in inputs], sorted(new[item] for item in control)
    return made


def form(nodes, names, order, roots=(0,)):
    """The canonical form of a random graph whose nodes have these names and stand in the file in this order."""
    defs = []
    for number in order:
        op, inputs, control = nodes[number]
        texts = [f"{names[item]}:0" for item in inputs] + [f"^{names[item]}" for item in control]
        defs.append(schema.NodeDef(name=names[number], op=op, input=texts))
    body = Body(defs, Values(Library(schema.FunctionDefLibrary()), lambda name: b""))
    body.arrange([body.index[names[root]] for root in roots])
    return digest(*body.lines())


def test_random_graphs_are_equal_exactly_when_they_are_isomorphic():
    """Against a search over all renumberings that keep the root."""
    rng = random.Random(5)
    known = {}
    for _ in range(1500):
        count = rng.choice([2, 3, 4])
        nodes = random_graph(rng, count)
        smallest = min(repr(relabelled(nodes, [0, *new])) for new in itertools.permutations(range(1, count)))
        names = rng.sample("abcdefgh", count)
        known.setdefault(smallest, set()).add(form(nodes, names, rng.sample(range(count), count)))
    assert len(known) > 300
    assert all(len(found) == 1 for found in known.values())
    assert len({next(iter(found)) for found in known.values()}) == len(known)


@pytest.mark.parametrize("loops", [False, True])
def test_larger_graphs_do_not_depend_on_names_and_order(loops):
    """Here no root needs most nodes, so that only what surrounds them tells them apart."""
    rng = random.Random(6)
    for _ in range(300):
        count = 14
        nodes = random_graph(rng, count)
        if not loops:
            before = [{n for n in (*inputs, *control) if n < number} for number, (_, inputs, control) in enumerate(nodes)]
            nodes = [
                (op, [n for n in inputs if n in known], [n for n in control if n in known])
                for known, (op, inputs, control) in zip(before, nodes)
            ]
        names = [f"n{number}" for number in range(count)]
        found = {form(nodes, rng.sample(names, count), rng.sample(range(count), count), (3, 1, 5)) for _ in range(3)}
        assert len(found) == 1


def test_equal_nodes_beside_equal_results():
    """Two results are computed alike; which side node belongs to which is seen from the order of the results."""
    nodes = [("A", [], []), ("A", [], []), ("B", [0], []), ("B", [1], []), ("B", [2], [])]
    names = "abcde"
    orders = itertools.permutations(range(5))
    assert len({form(nodes, [names[number] for number in order], order, (0, 1)) for order in orders}) == 1


# Weights


def test_strings_with_their_lengths(tmp_path):
    found = set()
    for number, value in enumerate(([b"ab", b"c"], [b"a", b"bc"], [b"abc", b""], [b"", b"abc"])):
        folder = tmp_path / str(number)
        edits.write(edits.new_model()[0], folder)
        with BundleWriter(folder / "variables" / "variables") as writer:
            writer.add("key", np.array(value, object))
        found.add(canonical(folder).hash)
    assert len(found) == 4


# What else MetaGraphs say


def test_defaults_of_a_signature(hashes):
    def build(*values):
        def made(graph):
            signature = graph.signature_def["s"]
            signature.inputs["x"].dtype = schema.DT_FLOAT
            for value in values:
                signature.defaults["x"].CopyFrom(schema.TensorProto(dtype=schema.DT_FLOAT, float_val=[value]))

        return made

    assert len(hashes(build(), build(1), build(2))) == 3


def test_names_of_contexts(hashes):
    """They name no node; only their numbers do not count."""

    def build(name):
        def made(graph):
            data = schema.CondContextDef(context_name=name, branch=1).SerializeToString()
            graph.collection_def["cond_context"].bytes_list.value.append(data)

        return made

    assert len(hashes(build("cond/cond_text"), build("cond_3/cond_text"))) == 1
    assert len(hashes(build("cond/cond_text"), build("other/cond_text"))) == 2


def test_a_copy_of_a_function_with_a_table(hashes):
    def build(*names):
        def made(graph):
            for name in names:
                body = function(graph, name)
                body.node_def.add(name="table", op="HashTableV2").attr["shared_name"].s = b"table_3"

        return made

    assert len(hashes(build("f"), build("f", "g"))) == 1


def test_consumers(hashes):
    def build(lowest, *bad):
        def made(graph):
            graph.graph_def.versions.min_consumer = lowest
            graph.graph_def.versions.bad_consumers.extend(bad)

        return made

    assert len(hashes(build(0), build(1), build(0, 5), build(0, 6))) == 4
    assert len(hashes(build(0, 5, 6), build(0, 6, 5))) == 1
