"""Algorithms on GraphDef, FunctionDef and the object graph. Needs no TensorFlow.

object_graph    paths of objects, their checkpoint keys, and checks
edges           inputs of nodes
node_index      the nodes of a graph by name
references      references between the functions of a MetaGraph
closure, order  what can be reached; strongly connected components
unique_names    names that occur once
function_builder, node_defs  FunctionDefs and NodeDefs that are built by hand
argument_names  names of arguments and results; argument_uses: what a function does with its arguments
op_table        the outputs of a node
control_flow/   TF 1.x control flow (Switch, Merge, Enter, Exit) becomes While and If
"""
