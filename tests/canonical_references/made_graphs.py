"""Object graphs, functions and calls, made by hand."""

from reference_impl.format import schema


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
