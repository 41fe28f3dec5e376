"""Algorithms on GraphDef, FunctionDef and the object graph, without TensorFlow.

object_graph    paths of objects, and their checkpoint keys
object_references  the objects that an object names, and in which roles
edges           inputs of nodes
node_index      the nodes of a main graph by name
references      references between functions: the one walk over everything that names a function
closure         reachable vertices, and reversed edges
order           orders of nodes and functions; strongly connected components
unique_names    names that occur once
argument_names  names of arguments and results
op_table        the outputs of a node
function_builder, node_defs  build FunctionDefs and NodeDefs by hand
control_flow/   TF 1.x control flow (Switch, Merge, Enter, Exit) becomes While and If
"""
