"""Algorithms on GraphDef, FunctionDef and the object graph, without TensorFlow.

edges              inputs of nodes; `function_edges` in functions
node_index         the nodes of a main graph by name; `node_forms` what several nodes have in common
graph_view         a MetaGraph as bodies: the main graph and the functions, and what is reached
references         references between functions: the one walk over all that names a function
closure            reachable vertices, and reversed edges
order              orders of nodes and functions; strongly connected components
unique_names       names that occur once; `argument_names` of arguments and results
node_builder       adds nodes to a graph or a function; `node_defs` fills in NodeDefs
function_builder   builds FunctionDefs; `graph_builder` the main graph of a new MetaGraph
node_attributes    reads attributes of nodes
return_nodes       the results of a body
signature_tensors  the tensors that a SignatureDef names
object_graph       paths of objects, and their checkpoint keys
node_kinds         the kinds of objects, as their messages tell them
object_references  the objects that an object names, and in which roles
called_children    children that TensorFlow calls; `called_names` has their names
saved_variables    the variables of an object graph; `variable_defs` those of TF 1.x
restore_plan       what the restore op of a TF 1.x model assigns
op_table           the outputs of a node; `op_rules` checks a node against its OpDef
functional_ops     ops that run functions as branches and loops; `random_ops` those that draw
damage             damaged nodes of TF 1.x graphs; `device_names`, `variant_values` parts of it
trusted_inputs     nodes whose inputs a kernel takes for granted
"""
