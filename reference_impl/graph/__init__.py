"""Algorithms on GraphDef, FunctionDef and the object graph. Needs no TensorFlow.

names           every name that the format reserves
object_graph    paths of objects, their checkpoint keys, and checks
edges           inputs of nodes
node_index      the nodes of a graph by name
references      references between the functions of a MetaGraph
closure, order  what can be reached; strongly connected components
unique_names    names that occur once
function_builder  FunctionDefs that are built by hand; node_defs: their nodes
control_flow/   TF 1.x control flow (Switch, Merge, Enter, Exit) becomes While and If
"""
