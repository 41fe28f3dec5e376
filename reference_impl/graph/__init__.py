"""Algorithms on GraphDef, FunctionDef and the object graph. Needs no TensorFlow.

object_graph    paths of objects, and their checkpoint keys
object_references  the objects that an object names, and in which roles
edges           inputs of nodes
node_index      the nodes of a main graph by name
references      references between functions: the one walk over everything that names a function
closure         what can be reached, and edges the other way round
order           orders of nodes and functions; strongly connected components
argument_uses   what a function does with its arguments
unique_names    names that occur once
argument_names  names of arguments and results
op_table        the outputs of a node
function_builder, node_defs  FunctionDefs and NodeDefs that are built by hand
control_flow/   TF 1.x control flow (Switch, Merge, Enter, Exit) becomes While and If
"""
